"""What upkeep makes of an entry, and what it asks of an index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.memory import MemoryStore
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.entryfile import parse
from agent_journal.errors import StorageError
from agent_journal.model import Draft, Entry, EntryId
from agent_journal.ports import IndexedEntry, QueryVector, Version
from agent_journal.query import Filters
from agent_journal.upkeep import ANALYSIS_VERSION, Changes, Upkeep, analyse
from agent_journal.words import query_terms

if TYPE_CHECKING:
    from agent_journal.ports import Matrix

GOLDEN = Path(__file__).parent / "golden"


def test_the_analysis_has_the_version_it_says() -> None:
    """A changed analysis would search old indexes wrongly: raise ANALYSIS_VERSION with it.

    The golden entries and the benchmark's, all scripts and forms among them, stand for all text.
    """
    digest = hashlib.sha256()
    entries = [
        parse(file.read_bytes(), entry_id=EntryId(file.stem), path=str(file), mtime=0)
        for file in sorted((GOLDEN / "entries").glob("*.md"))
    ]
    bench = json.loads(
        (GOLDEN.parent.parent / "bench" / "sets" / "journal-dev.json").read_text(encoding="utf-8")
    )
    entries += [
        parse(
            f"---\ntitle: {json.dumps(entry['title'])}\n---\n{entry['body']}".encode(),
            entry_id=EntryId(entry["id"]),
            path="",
            mtime=0,
        )
        for entry in bench["entries"]
    ]
    glued = "이제 moment.js를 2026년에 쓴다. הAPI נפל. تعطل الAPI. 使用words.py时。全文検索ｴﾝｼﾞﾝ。"  # noqa: RUF001
    entries.append(parse(glued.encode(), entry_id=EntryId("glued"), path="", mtime=0))
    assert len(entries) > 180
    for entry in entries:
        found = analyse(entry, Version.of("v"), None)
        digest.update(repr((found.id, found.title_key, found.passages)).encode())
    assert (ANALYSIS_VERSION, digest.hexdigest()[:16]) == (2, "01c7bd4bae65c44c")


class _CountingStore(MemoryStore):
    reads = 0

    def read(self, entry_id: EntryId) -> Entry:
        self.reads += 1
        return super().read(entry_id)


def test_what_another_process_indexed_meanwhile_is_not_read_again() -> None:
    """Work is looked over between batches; two that start together don't do all of it twice."""
    store, index = _CountingStore(), MemoryIndex()
    for number in range(600):
        store.append(Draft(f"entry {number}"))
    first, second = Upkeep(store, index), Upkeep(store, index)
    store.reads = 0
    told: list[tuple[int, int]] = []

    def at_work(done: int, total: int) -> None:
        if not told:
            second.catch_up()
        told.append((done, total))

    assert first.catch_up(progress=at_work) == Changes(added=600)
    assert told == [(256, 600), (512, 600), (600, 600)]
    assert store.reads == 600
    assert index.count() == 600


class _LookingIndex(MemoryIndex):
    """Tells of each entry that it is given whether it came with its text."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[bool] = []
        self.before_update: Callable[[], None] = lambda: None

    def update(
        self, changed: Collection[IndexedEntry], removed: Collection[EntryId] = ()
    ) -> list[EntryId]:
        self.before_update()
        self.given += [entry.passages is not None for entry in changed]
        return super().update(changed, removed)


def test_a_new_sidecar_does_not_have_the_text_analysed_again() -> None:
    """Vectors are written one entry after the other; its words are the same as before."""
    store, index = MemoryStore(), _LookingIndex()
    entry = store.append(Draft("a title", "redis"))
    upkeep = Upkeep(store, index)
    upkeep.catch_up()
    upkeep.work_backlog(HashingEmbedder(), lambda: False)
    assert upkeep.catch_up() == Changes(changed=1)
    assert index.given == [True, False]
    assert index.listing()[entry.id] == store.listing().versions[entry.id]
    assert index.evidence(query_terms("redis"), Filters()).frequencies == (1,)


def test_an_index_emptied_meanwhile_gets_the_text_too() -> None:
    """A sidecar alone finds nothing to stand beside; the entry is not left out."""
    store, index = MemoryStore(), _LookingIndex()
    store.append(Draft("a title", "redis"))
    upkeep = Upkeep(store, index)
    upkeep.catch_up()
    upkeep.work_backlog(HashingEmbedder(), lambda: False)

    def emptied() -> None:
        index.before_update = lambda: None
        index.clear()

    index.before_update = emptied
    upkeep.catch_up()
    assert index.given == [True, False, True]
    assert index.evidence(query_terms("redis"), Filters()).frequencies == (1,)


class _BusyIndex(MemoryIndex):
    """Does something of others' before it is asked what it knows, once."""

    before_listing: Callable[[], object] | None = None

    def listing(self) -> Mapping[EntryId, Version]:
        work, self.before_listing = self.before_listing, None
        if work:
            work()
        return super().listing()


def test_what_others_write_and_index_meanwhile_stays() -> None:
    """It isn't in the listing that was made before, and is not gone."""
    store, index = MemoryStore(), _BusyIndex()
    store.append(Draft("before"))
    upkeep = Upkeep(store, index)
    upkeep.catch_up()
    store.append(Draft("by us"))

    def others() -> None:
        store.append(Draft("by others"))
        Upkeep(store, index).catch_up()

    index.before_listing = others
    assert upkeep.catch_up().removed == 0
    assert index.count() == 3


class _VanishingStore(FileStore):
    """When one entry is read, somebody removes all others."""

    def read(self, entry_id: EntryId) -> Entry:
        entry = super().read(entry_id)
        for file in Path(self.location).glob("*.md"):
            if file.stem != entry_id:
                file.unlink()
        return entry


def test_entries_removed_while_they_are_read_are_passed_over(tmp_path: Path) -> None:
    """Neither the text nor the vectors of what is gone are missed."""
    plain = FileStore(tmp_path)
    for number in range(3):
        plain.append(Draft(f"entry {number}"))
    index = MemoryIndex()
    assert Upkeep(_VanishingStore(tmp_path), index).catch_up() == Changes(added=3)
    assert index.count() == 1
    for number in range(3):
        plain.append(Draft(f"more {number}"))
    Upkeep(plain, index).catch_up()
    embedder = HashingEmbedder()
    assert Upkeep(_VanishingStore(tmp_path), index).work_backlog(embedder, lambda: False) == 1
    assert Upkeep(plain, index).work_backlog(embedder, lambda: False) == 0


class _ForbiddenStore(FileStore):
    """May not read one of its entries; root can't be kept from it, so the refusal is made up."""

    forbidden: EntryId

    def read(self, entry_id: EntryId) -> Entry:
        if entry_id == self.forbidden:
            raise StorageError(f"{entry_id}.md", "permission denied")
        return super().read(entry_id)


def test_what_cannot_be_read_stops_nothing_else(tmp_path: Path) -> None:
    """It is told as a problem; the others are indexed and embedded."""
    store = _ForbiddenStore(tmp_path)
    store.append(Draft("one"))
    store.forbidden = store.append(Draft("two")).id
    index = MemoryIndex()
    upkeep = Upkeep(store, index)
    upkeep.catch_up()
    assert [problem.reason for problem in upkeep.unreadable] == ["permission denied"]
    Upkeep(FileStore(tmp_path), index).catch_up()
    assert index.count() == 2
    assert upkeep.work_backlog(HashingEmbedder(), lambda: False) == 1
    assert index.backlog(HashingEmbedder().identity) == 1


def test_long_entries_come_last_and_a_stop_gives_back_what_was_claimed() -> None:
    """Whoever has little time gets past a long entry, and keeps nobody else from it."""
    store, index = MemoryStore(), MemoryIndex()
    short = [store.append(Draft(f"short {number}", "text")).id for number in range(3)]
    store.append(Draft("long", "\n\n".join(f"paragraph {n} of words." for n in range(5000))))
    upkeep = Upkeep(store, index)
    upkeep.catch_up()
    embedder, looks = HashingEmbedder(), count()
    assert upkeep.work_backlog(embedder, lambda: next(looks) > 3) == len(short)
    assert index.backlog(embedder.identity) == 1
    assert upkeep.work_backlog(embedder, lambda: False) == 1


class _ShortSighted(HashingEmbedder):
    """Reads the first hundred characters of a text, and two texts at once."""

    def __init__(self) -> None:
        super().__init__(name="test/short-sighted")
        self.batch = 2

    def reach(self, text: str) -> int:
        return min(len(text), 100)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        assert len(texts) <= self.batch
        return super().embed_passages([text[:100] for text in texts])


def test_what_a_model_cannot_read_at_once_is_found_all_the_same() -> None:
    """A passage gets a vector for each part of it; the query that meets one names the passage."""
    store, index = MemoryStore(), MemoryIndex()
    filler = "The weather was fine and nothing happened. " * 14
    needle = "Zebra stripes confuse biting flies."
    store.append(Draft("A day", f"{filler}{needle} {filler[:120]}"))
    store.append(Draft("Another day", filler))
    upkeep, embedder = Upkeep(store, index), _ShortSighted()
    upkeep.catch_up()
    assert upkeep.work_backlog(embedder, lambda: False) == 2
    vector = embedder.embed_query(f"A day\n{needle}")
    asked = QueryVector(embedder.name, embedder.identity, vector, floor=0.6)
    evidence = index.evidence([], Filters(), asked).plain()
    ((cosine, passage),) = evidence.nearest.values()
    assert cosine > 0.6
    assert passage is not None
    assert evidence.passages[passage].start == 0
    whole = HashingEmbedder().embed_passages([f"A day\n{filler}{needle} {filler[:120]}"])[0]
    assert float(whole @ HashingEmbedder().embed_query(f"A day\n{needle}")) < 0.6
