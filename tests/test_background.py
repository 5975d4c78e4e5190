"""The journal behind a server: opened once, kept in step by one thread that sleeps."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader, NoEmbedder
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.errors import IndexUnavailableError
from agent_journal.faces.mcp import background as background_module
from agent_journal.faces.mcp.background import BackgroundJournal
from agent_journal.journal import Journal
from agent_journal.model import Draft
from agent_journal.ports import EmbedderLoader

BOUND_S = 20.0


class _Recording(Journal):
    """A real journal that tells when its upkeep begins and ends, and fails when it is told to."""

    def __init__(self, folder: Path, loader: EmbedderLoader) -> None:
        super().__init__(FileStore(folder), MemoryIndex(), loader)
        self.began, self.ended = threading.Semaphore(0), threading.Semaphore(0)
        self.failures: list[Exception] = []
        self.runs = 0
        self.is_closed = False

    def warm_up(self) -> None:
        self.runs += 1
        self.began.release()
        if self.failures:
            raise self.failures.pop(0)
        super().warm_up()

    def work_backlog(
        self,
        *,
        wait_s: float = BOUND_S,
        limit_s: float | None = None,
        stop: threading.Event | None = None,
        progress: object = None,
    ) -> int:
        assert progress is None
        try:
            return super().work_backlog(wait_s=wait_s, limit_s=limit_s, stop=stop)
        finally:
            self.ended.release()

    def close(self) -> None:
        self.is_closed = True
        super().close()


@pytest.fixture
def journal(tmp_path: Path) -> _Recording:
    return _Recording(tmp_path / "journal", BackgroundLoader(HashingEmbedder))


@pytest.fixture
def background(journal: _Recording) -> Iterator[BackgroundJournal]:
    made = BackgroundJournal(lambda: journal)
    yield made
    assert made.close(BOUND_S)


def wait_for(signal: threading.Semaphore) -> None:
    """Wait until something has happened once more."""
    assert signal.acquire(timeout=BOUND_S)


def test_it_opens_once_whoever_asks_first(tmp_path: Path) -> None:
    """Threads that need it at the same time get the same journal."""
    opened, start = [], threading.Barrier(8)

    def open_journal() -> Journal:
        opened.append(_Recording(tmp_path, NoEmbedder("none")))
        return opened[-1]

    background = BackgroundJournal(open_journal)
    got = []

    def ask() -> None:
        start.wait(BOUND_S)
        got.append(background.get())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND_S)
    assert len(opened) == 1
    assert got == opened * 8
    assert background.close(0)
    assert opened[0].is_closed


def test_it_tries_to_open_again_after_a_failure(journal: Journal) -> None:
    """A folder that is there later is used later."""
    errors: list[Exception] = [IndexUnavailableError("/x", "no")]

    def open_journal() -> Journal:
        if errors:
            raise errors.pop()
        return journal

    background = BackgroundJournal(open_journal)
    with pytest.raises(IndexUnavailableError):
        background.get()
    assert background.get() is journal


def test_nothing_happens_before_it_is_woken(journal: _Recording) -> None:
    """Making and closing it opens no journal and starts no thread."""
    threads = threading.active_count()
    background = BackgroundJournal(lambda: journal)
    assert background.close(0)
    assert not journal.is_closed
    assert threading.active_count() == threads


def test_waking_works_off_the_backlog(journal: _Recording, background: BackgroundJournal) -> None:
    """What was written without a vector has one after the work."""
    journal.write(Draft("one"))
    background.wake()
    wait_for(journal.ended)
    assert journal.status(wait_s=BOUND_S).backlog == 0
    journal.write(Draft("two"))
    background.wake()
    wait_for(journal.ended)
    assert journal.status().backlog == 0


def test_one_waking_is_one_run(journal: _Recording, background: BackgroundJournal) -> None:
    """One waking is one run, and one thread does them all; it keeps no process alive."""
    journal.write(Draft("one"))
    for runs in range(1, 4):
        background.wake()
        wait_for(journal.ended)
        assert journal.runs == runs
    thread = background._thread
    assert thread
    assert thread.is_alive()
    assert thread.daemon


def test_failures_are_told_once_and_end_nothing(
    journal: _Recording, background: BackgroundJournal, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong is logged, the same thing only once, and the next waking works."""
    caplog.set_level(logging.WARNING)
    journal.failures = [
        IndexUnavailableError("/x", "why"),
        IndexUnavailableError("/x", "why"),
        ZeroDivisionError("oh"),
    ]
    for _ in range(3):
        background.wake()
        wait_for(journal.began)
    journal.write(Draft("one"))
    background.wake()
    wait_for(journal.ended)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert "search index /x can't be used: why" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_what_every_search_says_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No model, and no journal before the first write, are nothing to warn of."""
    journal = _Recording(tmp_path / "journal", NoEmbedder("the model is switched off"))
    background = BackgroundJournal(lambda: journal)
    background.wake()
    wait_for(journal.began)
    assert background.close(BOUND_S)
    journal = _Recording(tmp_path, NoEmbedder("the model is switched off"))
    background = BackgroundJournal(lambda: journal)
    background.wake()
    wait_for(journal.ended)
    assert background.close(BOUND_S)
    assert not caplog.records


def test_closing_does_not_wait_for_ever(journal: _Recording) -> None:
    """Work that goes on is left to its thread, and the journal open for it."""
    release = threading.Event()
    entered = threading.Event()

    def open_journal() -> Journal:
        entered.set()
        release.wait(BOUND_S)
        return journal

    background = BackgroundJournal(open_journal)
    background.wake()
    assert entered.wait(BOUND_S)
    assert not background.close(0.01)
    assert not journal.is_closed
    release.set()
    assert background.close(BOUND_S)
    assert journal.is_closed


def test_what_indexing_freed_is_given_back_now_and_then(
    journal: _Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most once a minute, and not when nothing was done since."""
    now, returned = 0.0, []
    monkeypatch.setattr(background_module, "return_memory", lambda: returned.append(now))
    made = BackgroundJournal(lambda: journal, clock=lambda: now)
    for now, writes in ((10.0, True), (61.0, False), (130.0, False), (150.0, True), (200.0, True)):
        if writes:
            journal.write(Draft(f"at {now}"))
        made.wake()
        wait_for(journal.ended)
        made.wake()  # once this one runs, the last has come to its end
        wait_for(journal.ended)
    assert made.close(BOUND_S)
    assert returned == [61.0, 150.0]


def test_what_the_last_work_freed_is_given_back_without_another_call(
    journal: _Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute after the return before it, with nobody asking."""
    returned = threading.Semaphore(0)
    monkeypatch.setattr(background_module, "return_memory", returned.release)
    monkeypatch.setattr(background_module, "_BETWEEN_RETURNS_S", 0.2)
    made = BackgroundJournal(lambda: journal)
    journal.write(Draft("one"))
    made.wake()
    wait_for(returned)
    assert made.close(BOUND_S)


def test_memory_is_returned_where_that_can_be_asked_for() -> None:
    """The real call does no harm."""
    background_module.return_memory()
