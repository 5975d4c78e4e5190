"""A store of files against a dictionary, with a person at work in its folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.folders import LONG_AGO, NOON, NOON_ID, Clock

from agent_journal.model import Draft, EntryId
from agent_journal.ports import Sidecar, Version


class FolderMachine(RuleBasedStateMachine):
    """A store, reopened now and then, and a person at work in its folder answer like a dict."""

    names = st.sampled_from(
        [EntryId(name) for name in (NOON_ID, "20260131-120000-008", "a b", "x.y", "é")]
    )
    texts = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20)

    @initialize()
    def start(self) -> None:
        """An empty folder and a clock that stands."""
        self.root = Path(tempfile.mkdtemp())
        self.folder = self.root / "journal"
        self.folder.mkdir()
        self.clock = Clock()
        self.bodies: dict[EntryId, str] = {}
        self.sidecars: dict[EntryId, Sidecar] = {}
        self.edited = False
        self.ticks = 0
        self.reopen()

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)

    @rule()
    def reopen(self) -> None:
        """Forget everything but what is on the disk."""
        self.store = self.clock.store(self.folder)
        self.versions: dict[EntryId, Version] = {}
        self.changed: set[EntryId] = set()

    @rule(body=texts)
    def append(self, body: str) -> None:
        """Write an entry whose id may be taken."""
        entry = self.store.append(Draft(title="t", body=body, created=NOON))
        assert entry.id not in self.bodies
        self.bodies[entry.id] = body
        self.changed.add(entry.id)

    @rule(name=names, body=texts)
    def put(self, name: EntryId, body: str) -> None:
        """Add or replace a file by hand."""
        new = self.folder / "new"
        new.write_text(body)
        self._age(new)
        new.rename(self.folder / f"{name}.md")
        self.bodies[name] = body
        self.changed.add(name)

    @rule(name=names, body=texts, wait=st.booleans())
    def edit_in_place(self, name: EntryId, body: str, *, wait: bool) -> None:
        """Change a file where it is; that may go unseen for 2 s."""
        file = self.folder / f"{name}.md"
        if name in self.bodies:
            file.chmod(0o600)
            file.write_text(body)
            self._age(file)
            self.bodies[name] = body
            self.changed.add(name)
            self.edited = not wait
            self.clock.pass_by(2.0 if wait else 0.0)

    @rule(name=names)
    def remove(self, name: EntryId) -> None:
        """Delete an entry, its sidecar too."""
        if self.bodies.pop(name, None) is not None:
            (self.folder / f"{name}.md").unlink()
            self.changed.add(name)
            if self.sidecars.pop(name, None):
                (self.folder / f"{name}.embedding").unlink()

    @rule(name=names, number=st.integers(1, 9), replace=st.booleans())
    def write_sidecar(self, name: EntryId, number: int, *, replace: bool) -> None:
        """Write a sidecar where there is an entry."""
        sidecar = Sidecar("m", (float(number), 1.0))
        writes = name in self.bodies and (replace or name not in self.sidecars)
        assert self.store.write_sidecar(EntryId(name), sidecar, replace=replace) == writes
        if writes:
            self.sidecars[name] = sidecar
            self.changed.add(name)

    @rule(seconds=st.sampled_from([0.5, 2.0]))
    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.pass_by(seconds)

    @rule()
    def settle(self) -> None:
        """Make the folder look as if its last change was long ago, right before the next look."""
        if not self.changed:
            os.utime(self.folder, LONG_AGO)

    @invariant()
    def listing_and_reading_answer_like_the_model(self) -> None:
        """Ids and versions as they must be, contents as they were written."""
        listing = self.store.listing(thorough=self.edited)
        self.edited = False
        assert listing.problems == ()
        assert set(listing.versions) == set(self.bodies)
        for name, version in listing.versions.items():
            if name in self.versions and name not in self.changed:
                assert version == self.versions[name]
            assert bool(version.sidecar) == (name in self.sidecars)
            assert self.store.read(name).body == self.bodies[name]
            assert self.store.read_sidecar(name) == self.sidecars.get(name)
        for name in self.changed & self.versions.keys() & listing.versions.keys():
            assert listing.versions[name] != self.versions[name]
        self.versions = dict(listing.versions)
        self.changed = set()

    def _age(self, file: Path) -> None:
        """Give each content a time of its own, finer than the kernel's ticks."""
        self.ticks += 1
        os.utime(file, ns=(0, 1_700_000_000_000_000_000 + self.ticks))


FolderMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestFolderMachine = FolderMachine.TestCase
