"""The proof: what all ledgers say, held against the files that are there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from agent_journal.ledger import Chain, Statement
from agent_journal.model import EntryId

DoubtKind = Literal["unledgered", "altered", "missing", "restored", "unfinished"]


class Doubt(NamedTuple):
    """An entry whose file isn't what the ledgers say."""

    kind: DoubtKind
    id: EntryId
    reason: str


@dataclass(slots=True)
class History:
    """What the ledgers say of one entry.

    Attributes:
        said: every statement by the hash of its line, in no order between machines.
        over: the hashes of the lines that later ones have put aside.
    """

    said: dict[str, Statement] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)

    @property
    def holding(self) -> dict[str, Statement]:
        """The statements that nothing has put aside, by the hashes of their lines."""
        return {line: said for line, said in self.said.items() if line not in self.over}

    @property
    def expected(self) -> set[str]:
        """The hashes that a file may have; none when it is said to be gone, or nothing is said."""
        return {said.sha256 for said in self.holding.values() if said.sha256}

    @property
    def former(self) -> set[str]:
        """The hashes that it had once."""
        known = {each for said in self.said.values() for each in (said.sha256, said.was) if each}
        return known - self.expected

    def lost(self, sha256: str) -> set[str]:
        """Return what is expected beside a file that is there.

        Two machines that redact or adopt the same do so each in its own words; either will do.
        """
        mine = [said for said in self.holding.values() if said.sha256 == sha256]
        return {
            said.sha256
            for said in self.holding.values()
            if said.sha256 not in ("", sha256) and not any(_are_alike(said, one) for one in mine)
        }


def histories(chains: Iterable[Chain]) -> dict[EntryId, History]:
    """Return what ledgers say of each entry."""
    found: dict[EntryId, History] = {}
    for chain in chains:
        for line in chain.lines:
            if line.statement is not None:
                history = found.setdefault(line.statement.id, History())
                history.said[line.hash] = line.statement
                history.over.update(line.statement.over)
    return found


@dataclass(frozen=True)  # without slots, which leave no room for what is worked out once
class Files:
    """What is there.

    Attributes:
        hashes: of each entry's file; empty when it can't be read.
        mark_of: tells what a redaction left in a file: the hash of the file before; else empty.
    """

    hashes: Mapping[EntryId, str]
    mark_of: Callable[[EntryId], str]

    @cached_property
    def holders(self) -> Mapping[str, EntryId]:
        """Each content's entry, the first by id."""
        return {sha256: one for one, sha256 in sorted(self.hashes.items(), reverse=True)}

    def whereabouts(self, expected: Iterable[str]) -> str:
        """Say where a content is that isn't where it should be."""
        there = sorted(self.holders[sha256] for sha256 in expected if sha256 in self.holders)
        name = shlex.quote(f"{there[0]}.md") if there else ""
        return f" (its content is in {name})" if there else " from a backup"


def judge(
    found: Mapping[EntryId, History], files: Files, only: Iterable[EntryId] | None = None
) -> list[Doubt]:
    """Hold files against what ledgers say; return what doesn't fit, by id.

    Args:
        found: what ledgers say of each entry.
        files: what is there.
        only: the entries that are looked at; None means all.
    """
    nothing = History()
    ids = files.hashes.keys() | found.keys() if only is None else only
    doubts = (
        _doubt(entry_id, found.get(entry_id, nothing), files.hashes.get(entry_id), files)
        for entry_id in sorted(ids)
    )
    return [doubt for doubt in doubts if doubt]


def _doubt(entry_id: EntryId, history: History, sha256: str | None, files: Files) -> Doubt | None:
    if sha256 == "":
        return None  # all that can be said is that it can't be read
    expected = history.expected
    if sha256 is None:
        what = "a ledger has a line for it, and it is gone; put it back"
        return _missing(entry_id, f"{what}{files.whereabouts(expected)}") if expected else None
    if sha256 not in expected:
        return _strange(entry_id, history, sha256, files)
    if history.lost(sha256) <= files.holders.keys():
        return None
    what = "another machine wrote another entry of this name; look for it there or in a backup"
    return _missing(entry_id, what)


def _missing(entry_id: EntryId, what: str) -> Doubt:
    return Doubt(
        "missing", entry_id, f"missing: {what}; if it may be gone, run: {_adopt(entry_id)}"
    )


def _strange(entry_id: EntryId, history: History, sha256: str, files: Files) -> Doubt:
    """Say what is wrong with a file that no ledger expects."""
    again = f"run again: agent-journal redact {shlex.quote(entry_id)}"
    if sha256 in history.former:
        what = "restored: an earlier text is here again"
        if any(said.act == "redact" for said in history.holding.values()):
            return Doubt("restored", entry_id, f"{what}, though it was redacted; {again}")
        return Doubt("restored", entry_id, f"{what}; if it is to stay, run: {_adopt(entry_id)}")
    mark = files.mark_of(entry_id)
    if mark and all(said.was != mark for said in history.said.values()):
        what = "unfinished: it is redacted, but traces of the text may be left"
        return Doubt("unfinished", entry_id, f"{what}; {again}")
    if not history.expected:
        what = "unledgered: no ledger has a line for it; others wrote it, or a crash came between"
        adopt = "if it belongs here, run: agent-journal check --adopt"
        return Doubt("unledgered", entry_id, f"{what}; {adopt}")
    what = (
        f"a ledger has another content for it; put that back{files.whereabouts(history.expected)}"
    )
    adopt = f"if the change is meant, run: {_adopt(entry_id)}"
    return Doubt("altered", entry_id, f"altered: {what}; {adopt}")


def _adopt(entry_id: EntryId) -> str:
    return f"agent-journal check --adopt {shlex.quote(entry_id)}"


def _are_alike(one: Statement, other: Statement) -> bool:
    return not set(one.over).isdisjoint(other.over) or bool(one.was and one.was == other.was)
