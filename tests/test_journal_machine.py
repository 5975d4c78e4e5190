"""Any interleaving of writes, foreign edits, losses and reopenings answers like a dictionary."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.journal import Journal
from agent_journal.model import Draft, EntryId
from agent_journal.query import Query

WORDS = st.sampled_from(["zebra", "quokka", "emu", "gnu", "lock_file", "记忆"])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


class JournalMachine(RuleBasedStateMachine):
    """Drives one folder through two journals, as two processes would, and a plain dictionary."""

    ids = Bundle("ids")

    @initialize()
    def start(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="agent-journal-machine-"))
        self.folder = self.home / "journal"
        self.folder.mkdir()
        self.model: dict[str, str] = {}
        self.journal = self._open()
        self.other = self._open()
        self.foreign = 0

    def _open(self) -> Journal:
        return Journal(
            FileStore(self.folder),
            SqliteIndex(self.home / "index.sqlite3"),
            BackgroundLoader(HashingEmbedder),
        )

    @rule(target=ids, body=TEXTS)
    def write(self, body: str) -> EntryId:
        entry = self.journal.write(Draft("title", body))
        assert entry.id not in self.model
        self.model[entry.id] = body
        return entry.id

    @rule(target=ids, body=TEXTS)
    def write_elsewhere(self, body: str) -> EntryId:
        entry = self.other.write(Draft("title", body))
        self.model[entry.id] = body
        return entry.id

    @rule(target=ids, body=TEXTS)
    def add_by_hand(self, body: str) -> EntryId:
        self.foreign += 1
        name = EntryId(f"by hand {self.foreign}")
        (self.folder / f"{name}.md").write_text(body, encoding="utf-8")
        self.model[name] = body
        return name

    @rule(entry_id=ids, body=TEXTS)
    def replace_by_hand(self, entry_id: EntryId, body: str) -> None:
        new = self.folder / "new.tmp"
        new.write_text(body, encoding="utf-8")
        new.rename(self.folder / f"{entry_id}.md")
        self.model[entry_id] = body

    @rule(target=ids, entry_id=consumes(ids))
    def rename_by_hand(self, entry_id: EntryId) -> EntryId:
        self.foreign += 1
        name = EntryId(f"renamed-{self.foreign}")
        (self.folder / f"{entry_id}.md").rename(self.folder / f"{name}.md")
        self.model[name] = self.model.pop(entry_id)
        return name

    @rule(target=ids, entry_id=consumes(ids))
    def delete_by_hand(self, entry_id: EntryId) -> object:
        (self.folder / f"{entry_id}.md").unlink()
        del self.model[entry_id]
        return multiple()

    @rule()
    def lose_index(self) -> None:
        for file in self.home.glob("index.sqlite3*"):
            file.unlink()

    @rule(junk=st.binary(min_size=1, max_size=5000))
    def damage_index(self, junk: bytes) -> None:
        self.journal.close()
        self.other.close()
        (self.home / "index.sqlite3").write_bytes(junk)
        self.journal, self.other = self._open(), self._open()

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self.journal = self._open()

    @rule()
    def embed(self) -> None:
        self.other.work_backlog(wait_s=10)

    @rule()
    def reindex(self) -> None:
        self.other.reindex()

    @rule(word=WORDS)
    def search(self, word: str) -> None:
        for journal in (self.journal, self.other):
            page = journal.search(Query(word, limit=50), wait_s=0)
            found = {hit.entry.id for hit in page.hits if "lexical" in hit.found_by}
            assert found == {i for i, body in self.model.items() if word in body.split()}
            assert len({hit.entry.id for hit in page.hits}) == len(page.hits)

    @invariant()
    def everything_is_listed_and_readable(self) -> None:
        page = self.journal.search(Query(limit=50))
        if not page.notices:
            assert page.total == len(self.model)
        for hit in page.hits:
            assert hit.entry.body == self.model[hit.entry.id]

    def teardown(self) -> None:
        self.journal.close()
        self.other.close()
        shutil.rmtree(self.home)


JournalMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestJournalMachine = JournalMachine.TestCase
