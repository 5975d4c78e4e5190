"""A journal that opens when first needed, its backlog worked off beside the calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from agent_journal.errors import EmbedderUnavailableError, JournalError, JournalUnavailableError
from agent_journal.journal import Journal

_MODEL_WAIT_S = 60.0  # it takes about a second; a busy machine much longer
_log = logging.getLogger("agent_journal")


class BackgroundJournal:
    """Opens a journal once, in whichever thread needs it first, and keeps one thread for upkeep.

    The thread waits without using the processor until it is woken.

    Args:
        open_journal: opens it; tried again at the next need after it has failed.
    """

    def __init__(self, open_journal: Callable[[], Journal]) -> None:
        self._open_journal = open_journal
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
        while self._work.wait() and not self._stop.is_set():
            self._work.clear()
            try:
                journal = self.get()
                journal.warm_up()
                journal.catch_up()
                journal.work_backlog(wait_s=_MODEL_WAIT_S, stop=self._stop)
            except (EmbedderUnavailableError, JournalUnavailableError):
                continue  # every search says so
            except JournalError as error:
                self._say(str(error))
            except Exception:  # noqa: BLE001 - the thread's outer edge: it must go on
                _log.exception("the backlog is left for the next call")

    def _say(self, message: str) -> None:
        if message != self._said:
            _log.warning(message)
        self._said = message
