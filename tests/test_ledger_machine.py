"""Whatever is written, edited, deleted, cut and adopted: an audit names exactly what was done.

The oracle knows no hashes. It remembers, for each ledger, which content each entry had when a line
was added, and which lines a person's decision was taken over.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.folders import DRAFT
from tests.ledgered import ledger_files, machine

from agent_journal.engines import auditing
from agent_journal.engines.ledgers import FOLDER
from agent_journal.errors import EntryNotFoundError
from agent_journal.ledger import SUFFIX
from agent_journal.model import EntryId

CONTENTS = st.sampled_from([b"one\n", b"two\n", b"three\n"])
NAMES = st.sampled_from([EntryId("by hand"), EntryId("note"), EntryId("20260131-120000-007")])
MACHINES = st.sampled_from([0, 1])
PLACES = st.integers(0, 30)


@dataclass(eq=False)
class Said:
    """A line as the oracle knows it; no content when it says that the entry is gone."""

    id: EntryId
    content: bytes | None
    over: tuple[Said, ...] = ()


class LedgerMachine(RuleBasedStateMachine):
    """Two machines that share a folder, and a person who does as they like."""

    @initialize()
    def start(self) -> None:
        """An empty folder."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(auditing, "_PAUSE_S", 0.0)  # nobody else writes here
        self.root = Path(tempfile.mkdtemp(prefix="agent-journal-ledgers-"))
        self.folder = self.root / "journal"
        self.folder.mkdir()
        self.stores = [machine(self.folder, self.root / name) for name in ("here", "there")]
        self.files: dict[EntryId, bytes] = {}
        self.ledgers: dict[str, list[Said]] = {}
        self.own: list[str | None] = [None, None]
        self.is_cut: list[set[str]] = [set(), set()]

    def teardown(self) -> None:
        """Remove everything."""
        self.patch.undo()
        shutil.rmtree(self.root)

    @rule(by=MACHINES)
    def write(self, by: int) -> None:
        """A machine writes an entry."""
        entry = self.stores[by].append(DRAFT)
        assert entry.problems == ()
        assert entry.id not in self.files
        self.files[entry.id] = (self.folder / f"{entry.id}.md").read_bytes()
        self._note(by, [Said(entry.id, self.files[entry.id])])

    @rule(name=NAMES, content=CONTENTS)
    def put(self, name: EntryId, content: bytes) -> None:
        """A person adds a file or replaces one."""
        self._put(name, content)

    @precondition(lambda self: self.files)
    @rule(place=PLACES, content=CONTENTS)
    def edit(self, place: int, content: bytes) -> None:
        """A person changes any entry."""
        self._put(self._any(place), content)

    @precondition(lambda self: self.files)
    @rule(place=PLACES)
    def delete(self, place: int) -> None:
        """A person removes any entry."""
        entry_id = self._any(place)
        (self.folder / f"{entry_id}.md").unlink()
        del self.files[entry_id]

    @precondition(lambda self: self.files)
    @rule(place=PLACES, name=NAMES)
    def rename(self, place: int, name: EntryId) -> None:
        """A person renames any entry, perhaps over another."""
        content = self.files[self._any(place)]
        self.delete(place)
        self._put(name, content)

    @rule(by=MACHINES)
    def adopt_all(self, by: int) -> None:
        """A person takes what has no line, and goes on without what ledgers lost."""
        unledgered = sorted(one for kind, one in self._expected() if kind == "unledgered")
        assert self.stores[by].adopt() == unledgered
        self._note(by, [Said(one, self.files[one], self._holding(one)) for one in unledgered])
        if self.own[by] in self.is_cut[by]:
            self.own[by] = None
        self.is_cut[by].clear()

    @rule(by=MACHINES, place=PLACES)
    def adopt(self, by: int, place: int) -> None:
        """A person takes one entry as it is, whatever is wrong with it."""
        known = sorted(
            {*self.files, *(said.id for lines in self.ledgers.values() for said in lines)}
        )
        if not known:
            try:
                self.stores[by].adopt([EntryId("by hand")])
            except EntryNotFoundError:
                return
            raise AssertionError
        entry_id = known[place % len(known)]
        is_doubted = entry_id in {one for _, one in self._expected()}
        assert self.stores[by].adopt([entry_id]) == [entry_id] * is_doubted
        if is_doubted:
            said = Said(entry_id, self.files.get(entry_id), self._holding(entry_id))
            self._note(by, [said])

    @precondition(lambda self: any(self.ledgers.values()))
    @rule(place=PLACES, count=st.integers(1, 3))
    def cut(self, place: int, count: int) -> None:
        """A ledger loses its last lines."""
        name = self._any_ledger(place)
        path = self.folder / FOLDER / name
        kept = path.read_bytes().splitlines(keepends=True)[:-count]
        path.write_bytes(b"".join(kept))
        del self.ledgers[name][len(kept) :]
        self._lost(name)

    @precondition(lambda self: any(self.ledgers.values()))
    @rule(place=PLACES)
    def lose(self, place: int) -> None:
        """A ledger is gone."""
        name = self._any_ledger(place)
        (self.folder / FOLDER / name).unlink()
        del self.ledgers[name]
        self._lost(name)

    @invariant()
    def an_audit_names_what_was_done(self) -> None:
        """On either machine: the same of entries, and the ends of its own ledgers."""
        expected = self._expected()
        for by, store in enumerate(self.stores):
            found = store.audit()
            assert {Path(one.path).name for one in found if one.kind == "truncated"} == self.is_cut[
                by
            ]
            doubts = sorted(
                (one.kind, EntryId(Path(one.path).stem)) for one in found if one.kind != "truncated"
            )
            if not self.ledgers and (
                without := [one for one in expected if one[0] == "unledgered"]
            ):
                assert ("unledgered", "journal") in doubts
                doubts.remove(("unledgered", EntryId("journal")))
                doubts = sorted([*doubts, *without])
            assert doubts == expected

    def _put(self, name: EntryId, content: bytes) -> None:
        new = self.folder / "new"
        new.write_bytes(content)
        new.rename(self.folder / f"{name}.md")
        self.files[name] = content

    def _any(self, place: int) -> EntryId:
        return sorted(self.files)[place % len(self.files)]

    def _any_ledger(self, place: int) -> str:
        written = [name for name, lines in self.ledgers.items() if lines]  # names are random
        return written[place % len(written)]

    def _lost(self, name: str) -> None:
        for by in (0, 1):
            if name in self._remembered(by):
                self.is_cut[by].add(name)

    def _remembered(self, by: int) -> set[str]:
        return self.is_cut[by] | {name for name in (self.own[by],) if name}

    def _note(self, by: int, lines: list[Said]) -> None:
        """Note which ledger got lines: the machine's own, or a new one if that lost its end."""
        if not lines:
            return
        counts = Counter(
            {path.name: len(path.read_bytes().splitlines()) for path in ledger_files(self.folder)}
        )
        (grown,) = [
            name for name, count in counts.items() if count > len(self.ledgers.get(name, ()))
        ]
        assert counts[grown] - len(self.ledgers.get(grown, ())) == len(lines)
        expects_new = self.own[by] is None or self.own[by] in self.is_cut[by]
        assert (grown not in self.ledgers) == expects_new
        assert expects_new or grown == self.own[by]
        assert grown.endswith(SUFFIX)
        self.own[by] = grown
        self.ledgers.setdefault(grown, []).extend(lines)

    def _holding(self, entry_id: EntryId) -> tuple[Said, ...]:
        said = [one for lines in self.ledgers.values() for one in lines]
        over = {id(each) for one in said for each in one.over}
        return tuple(one for one in said if one.id == entry_id and id(one) not in over)

    def _expected(self) -> list[tuple[str, EntryId]]:
        said = [one for lines in self.ledgers.values() for one in lines]
        doubts = (
            (self._doubt(one, said), one) for one in {*self.files, *(each.id for each in said)}
        )
        return sorted((kind, one) for kind, one in doubts if kind)

    def _doubt(self, entry_id: EntryId, said: list[Said]) -> str:
        holding = self._holding(entry_id)
        expected = {one.content for one in holding if one.content is not None}
        content = self.files.get(entry_id)
        if content is None:
            return "missing" if expected else ""
        if content not in expected:
            if any(one.id == entry_id and one.content == content for one in said):
                return "restored"
            return "altered" if expected else "unledgered"
        mine = [one for one in holding if one.content == content]
        others = {
            one.content
            for one in holding
            if one.content not in (None, content)
            and not any(set(map(id, one.over)) & set(map(id, each.over)) for each in mine)
        }
        return "missing" if others - set(self.files.values()) else ""


LedgerMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
