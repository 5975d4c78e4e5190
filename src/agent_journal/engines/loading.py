"""Loading an embedder in the background, so that nobody waits longer for it than they want to."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from agent_journal.errors import EmbedderUnavailableError
from agent_journal.ports import Embedder

RETRY_S = 30.0
"""A failed load is tried again no sooner than so many seconds later."""

_log = logging.getLogger("agent_journal")


class BackgroundLoader:
    """See `EmbedderLoader`; loads in a daemon thread, which never keeps the process alive."""

    def __init__(
        self, load: Callable[[], Embedder], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take what to load; nothing happens before the first `get`.

        Args:
            load: returns a ready embedder, or raises.
            clock: seconds that never go backwards; decides when a failure is old enough.
        """
        self._load = load
        self._clock = clock
        self._changed = threading.Condition()
        self._embedder: Embedder | None = None
        self._is_loading = False
        self._failure = ""
        self._failed_at = 0.0

    def get(self, wait_s: float) -> Embedder:
        """See `EmbedderLoader`."""
        with self._changed:
            if self._embedder is None and not self._is_loading and self._may_try():
                self._is_loading = True
                threading.Thread(target=self._run, name="load-embedder", daemon=True).start()
            self._changed.wait_for(lambda: not self._is_loading, timeout=max(wait_s, 0.0))
            if self._embedder is not None:
                return self._embedder
            if self._is_loading:
                raise EmbedderUnavailableError("the model is still loading", loading=True)
            raise EmbedderUnavailableError(self._failure)

    def _may_try(self) -> bool:
        return not self._failure or self._clock() - self._failed_at >= RETRY_S

    def _run(self) -> None:
        embedder: Embedder | None = None
        failure = ""
        try:
            embedder = self._load()
        except EmbedderUnavailableError as error:
            failure = error.reason
            _log.warning("%s", failure)
        except Exception as error:  # noqa: BLE001 - the thread's outer edge: whatever it is, search goes on
            failure = f"the model can't be loaded: {str(error) or type(error).__name__}"
            _log.warning("%s", failure, exc_info=True)
        with self._changed:
            self._embedder, self._failure = embedder, failure
            self._failed_at = self._clock()
            self._is_loading = False
            self._changed.notify_all()


class NoEmbedder:
    """See `EmbedderLoader`; there is none, on purpose."""

    def __init__(self, reason: str) -> None:
        """Take the reason, a lower-case sentence that is shown with every answer."""
        self._reason = reason

    def get(self, wait_s: float) -> NoReturn:  # noqa: ARG002 - nothing to wait for
        """Raise at once; see `EmbedderLoader`."""
        raise EmbedderUnavailableError(self._reason)
