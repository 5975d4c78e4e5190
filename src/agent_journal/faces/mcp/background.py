"""A journal that opens when first needed, its backlog worked off beside the calls."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable

from agent_journal.errors import EmbedderUnavailableError, JournalError, JournalUnavailableError
from agent_journal.journal import Journal

_MODEL_WAIT_S = 60.0  # it takes about a second; a busy machine much longer
_BETWEEN_RETURNS_S = 60.0
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # as malloc.h numbers them
_MAPPED_BYTES = 4 * 1024 * 1024  # a search's arrays stay below at 100,000 entries
_HEAPS = 2
_log = logging.getLogger("agent_journal")


class BackgroundJournal:
    """Opens a journal once, in whichever thread needs it first, and keeps one thread for upkeep.

    The thread waits without using the processor until it is woken.

    Args:
        open_journal: opens it; tried again at the next need after it has failed.
        clock: seconds that never go backwards.
    """

    def __init__(
        self,
        open_journal: Callable[[], Journal],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_journal = open_journal
        self._clock = clock
        self._returned_at = clock()
        self._has_worked = False
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        self._work = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._said = ""

    def get(self) -> Journal:
        """Return the journal, opened if need be; safe in any thread.

        Raises:
            JournalError: it can't be opened.
        """
        with self._lock:
            if self._journal is None:
                self._journal = self._open_journal()
            return self._journal

    def wake(self) -> None:
        """Let the index catch up, the model load and the backlog be worked off, now and once."""
        self._work.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
            self._thread.start()

    def close(self, wait_s: float) -> bool:
        """Stop the work and close the journal.

        Args:
            wait_s: how long the piece of work in hand may take.

        Returns:
            False when it took longer: then the journal stays open, and the thread running.
        """
        self._stop.set()
        self._work.set()
        if self._thread is not None:
            self._thread.join(wait_s)
            if self._thread.is_alive():
                return False
        if self._journal is not None:
            self._journal.close()
        return True

    def _run(self) -> None:
        bound_memory()
        while True:
            is_woken = self._work.wait(self._until_return_s())
            if self._stop.is_set():
                break
            if not is_woken:
                self._return_memory()
                continue
            self._work.clear()
            try:
                journal = self.get()
                journal.warm_up()
                changes = journal.catch_up()
                done = journal.work_backlog(wait_s=_MODEL_WAIT_S, stop=self._stop)
                self._has_worked |= bool(done or changes.added or changes.changed)
                self._return_memory()
            except (EmbedderUnavailableError, JournalUnavailableError):
                continue  # every search says so
            except JournalError as error:
                self._say(str(error))
            except Exception:  # noqa: BLE001 - the thread's outer edge: it must go on
                _log.exception("the backlog is left for the next call")

    def _until_return_s(self) -> float | None:
        """Return how long to wait before memory is given back; None when there is none."""
        if not self._has_worked:
            return None
        return max(_BETWEEN_RETURNS_S - (self._clock() - self._returned_at), 0.0)

    def _return_memory(self) -> None:
        """Give what indexing has freed back to the system, now and then."""
        now = self._clock()
        if self._has_worked and now - self._returned_at >= _BETWEEN_RETURNS_S:
            self._has_worked, self._returned_at = False, now
            return_memory()

    def _say(self, message: str) -> None:
        if message != self._said:
            _log.warning(message)
        self._said = message


def bound_memory() -> None:
    """Keep glibc from holding on to much of what was freed.

    Each thread that frees gets a heap of its own, and after a large block was freed once, such
    blocks are taken from these heaps, which are never given back whole: a server that had written
    2,000 entries held 26 MB more for it, of 300.
    """
    import ctypes  # noqa: PLC0415 - 15 ms that the start need not wait for

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)


def return_memory() -> None:
    """Give freed memory back to the system; glibc keeps what each of its threads has freed.

    Other C libraries have no such call, or need none.
    """
    import ctypes  # noqa: PLC0415 - 15 ms that the start need not wait for

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
