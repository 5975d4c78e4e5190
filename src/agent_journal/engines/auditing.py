"""An audit: the files of a journal folder, held against its ledgers."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_journal.engines.ledgers import Ledgers
from agent_journal.engines.placing import hash_file, opened
from agent_journal.engines.scanning import ENTRY_SUFFIX, printable
from agent_journal.ledger import Act, Statement
from agent_journal.ledger_proof import Doubt, Files, History, histories, judge
from agent_journal.model import EntryId, Problem
from agent_journal.ports import Listing, Progress

_PAUSE_S = 0.05
_LOOKS = 60
"""Others may be writing: a doubt is looked at again as long as ledgers grow, for 3 s at most."""

_GONE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found.

    Attributes:
        hashes: of each entry's file; empty when it can't be read.
        found: what the ledgers say, by entry.
        doubts: the entries that aren't as they say, by id.
        problems: what is wrong with the ledgers themselves.
        has_ledger: there is at least one that can be read.
    """

    hashes: Mapping[EntryId, str]
    found: Mapping[EntryId, History]
    doubts: tuple[Doubt, ...]
    problems: tuple[Problem, ...]
    has_ledger: bool

    def all_problems(self, folder: Path) -> list[Problem]:
        """Return everything as problems: ledgers first, then entries by id."""
        doubts = list(self.doubts)
        problems = list(self.problems)
        if not self.has_ledger and (
            foreign := [doubt for doubt in doubts if doubt.kind == "unledgered"]
        ):
            doubts = [doubt for doubt in doubts if doubt.kind != "unledgered"]
            reason = (
                f"unledgered: there is no ledger yet that has lines for its {len(foreign):,} "
                f"{'entry' if len(foreign) == 1 else 'entries'}; "
                "if they belong here, run: agent-journal check --adopt"
            )
            problems.append(Problem(printable(folder), reason, None, "unledgered"))
        return problems + [
            Problem(printable(folder / f"{doubt.id}{ENTRY_SUFFIX}"), doubt.reason, None, doubt.kind)
            for doubt in doubts
        ]

    def accepted(self, entry_id: EntryId, at: str) -> Statement:
        """Return what a person says by taking an entry as it is now.

        Args:
            entry_id: the entry.
            at: when, as frontmatter holds instants.
        """
        sha256 = self.hashes.get(entry_id, "")
        history = self.found.get(entry_id) or History()
        act: Act = "adopt" if sha256 else "gone"
        return Statement(act, entry_id, sha256, tuple(history.holding), at=at)


def audit(
    folder: Path,
    ledgers: Ledgers,
    listing: Callable[[], Listing],
    mark_of: Callable[[EntryId], str],
    progress: Progress | None = None,
) -> Audit:
    """Read every file and every ledger; what is just being written is no doubt.

    Args:
        folder: the journal folder.
        ledgers: its ledgers.
        listing: lists it anew.
        mark_of: as in `Files`.
        progress: told of (done, total) files.

    Raises:
        OSError: the folder can't be opened.
        JournalUnavailableError: it can't be listed.
    """
    hashes: dict[EntryId, str] = {}
    with opened(folder) as descriptor:
        _hash(descriptor, listing().versions, hashes, progress)
        books = ledgers.read(descriptor)
        found = histories(books.chains)
        doubts = judge(found, Files(hashes, mark_of))
        for _ in range(_LOOKS):
            if not doubts:
                break
            time.sleep(_PAUSE_S)
            suspects = {doubt.id for doubt in doubts}
            for entry_id in suspects:
                hashes.pop(entry_id, None)
            _hash(descriptor, suspects & listing().versions.keys(), hashes)
            before, books = books, ledgers.read(descriptor)
            found = histories(books.chains)
            doubts = judge(found, Files(hashes, mark_of), suspects)
            if books == before:
                break
    return Audit(hashes, found, tuple(doubts), books.problems, bool(books.chains))


def _hash(
    folder: int,
    ids: Collection[EntryId],
    hashes: dict[EntryId, str],
    progress: Progress | None = None,
) -> None:
    for done, entry_id in enumerate(ids, 1):
        try:
            hashes[entry_id] = hash_file(folder, entry_id + ENTRY_SUFFIX)
        except OSError as error:
            if error.errno not in _GONE:
                hashes[entry_id] = ""
        if progress:
            progress(done, len(ids))
