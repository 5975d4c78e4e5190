"""What every store does first: choose the entry's instant, refuse what is too large."""

from __future__ import annotations

import threading
from datetime import datetime

from agent_journal import entryfile
from agent_journal.errors import EntryTooLargeError
from agent_journal.model import ENTRY_LIMIT_BYTES, Draft, from_milliseconds, to_milliseconds

NO_FREE_ID = "every id from its date to the end of the calendar is taken"
"""Why a draft of the very last milliseconds may be refused."""

_REMEMBERED = 100_000


class Instants:
    """Hands out milliseconds, each once; may be called from several threads.

    A taken one leads to the next free one over shortened paths (union-find), so that any order of
    many drafts of few instants takes linear time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._following: dict[int, int] = {}

    def take(self, asked: int) -> datetime:
        """Return the first instant from `asked` on that was not handed out yet, aware UTC.

        Args:
            asked: milliseconds since the epoch.

        Raises:
            OverflowError: the calendar ends before there is one.
        """
        with self._lock:
            following = self._following
            if len(following) > _REMEMBERED:
                following.clear()  # what is taken is found again by looking at what is stored
            free = asked
            path = []
            while (further := following.get(free)) is not None:
                path.append(free)
                free = further
            for instant in [*path, free]:
                following[instant] = free + 1
        return from_milliseconds(free)


def asked_for(draft: Draft, now_ns: int) -> int:
    """Return the instant that a draft asks for, its own or now, in milliseconds since the epoch."""
    return now_ns // 1_000_000 if draft.created is None else to_milliseconds(draft.created)


def render_checked(created: datetime, draft: Draft) -> bytes:
    """Return the file of a draft as `entryfile.render` makes it, if it isn't too large.

    Raises:
        EntryTooLargeError: it would be larger than `ENTRY_LIMIT_BYTES`.
    """
    data = entryfile.render(created, draft)
    if len(data) > ENTRY_LIMIT_BYTES:
        raise EntryTooLargeError(len(data), ENTRY_LIMIT_BYTES)
    return data
