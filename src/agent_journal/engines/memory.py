"""The store in dictionaries: the oracle of the contract suite, for tests that need no disk."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from agent_journal import entryfile
from agent_journal import sidecar as sidecarfile
from agent_journal.engines.instants import NO_FREE_ID, Instants, asked_for, render_checked
from agent_journal.errors import EntryNotFoundError, WriteFailedError
from agent_journal.ledger import hash_of
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Problem,
    entry_id_of,
    from_milliseconds,
)
from agent_journal.ports import Listing, Progress, Sidecar, Version
from agent_journal.redaction import Redacted, Redaction
from agent_journal.removal import redact


class _Content(NamedTuple):
    data: bytes
    version: str
    mtime: float


@dataclass(slots=True)
class _File:
    entry: _Content
    sidecar: _Content | None = None


class MemoryStore:
    """The `Store` that keeps the very bytes a folder would hold, and loses them with the process.

    Args:
        now_ns: the clock, nanoseconds since the epoch.
    """

    def __init__(self, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._lock = threading.RLock()
        self._files: dict[EntryId, _File] = {}
        self._numbers = itertools.count(1)
        self._instants = Instants()
        self._listing: Listing | None = None

    @property
    def location(self) -> str:
        """Where the entries are, for messages."""
        return "memory"

    def put(self, entry_id: str, data: bytes) -> None:
        """Add an entry that others made, or change one, as an editor or a sync would."""
        with self._lock:
            known = self._files.get(EntryId(entry_id))
            sidecar = known.sidecar if known else None
            self._files[EntryId(entry_id)] = _File(self._content(data), sidecar)

    def put_sidecar(self, entry_id: str, data: bytes | None) -> None:
        """Give an entry the sidecar that others made, or take it away with None."""
        with self._lock:
            content = None if data is None else self._content(data)
            self._files[EntryId(entry_id)].sidecar = content
            self._listing = None

    def remove(self, entry_id: str) -> None:
        """Remove an entry with its sidecar, as a person might."""
        with self._lock:
            del self._files[EntryId(entry_id)]
            self._listing = None

    def listing(self, *, thorough: bool = False) -> Listing:  # noqa: ARG002 - it always is
        """Return what is stored now; see `Store.listing`."""
        with self._lock:
            if self._listing is None:
                self._listing = Listing(
                    {
                        entry_id: Version.of(
                            file.entry.version, file.sidecar.version if file.sidecar else ""
                        )
                        for entry_id, file in self._files.items()
                    }
                )
            return self._listing

    def read(self, entry_id: EntryId) -> Entry:
        """Return an entry; see `Store.read`."""
        with self._lock:
            file = self._files.get(entry_id)
        if file is None:
            raise EntryNotFoundError(entry_id)
        data, _, mtime = file.entry
        data = data[: entryfile.READ_LIMIT_BYTES + 1]
        return entryfile.parse(data, entry_id=entry_id, path=f"{entry_id}.md", mtime=mtime)

    def append(self, draft: Draft) -> Entry:
        """Store a new entry; see `Store.append`."""
        asked = asked_for(draft, self._now_ns())
        created = from_milliseconds(asked)
        data = render_checked(created, draft)
        with self._lock:
            while True:
                try:
                    free = self._instants.take(asked)
                except OverflowError:
                    raise WriteFailedError(self.location, NO_FREE_ID) from None
                entry_id = entry_id_of(free)
                if entry_id not in self._files:
                    break
            if free != created:
                data = render_checked(free, draft)
            self._files[entry_id] = _File(self._content(data))
        return self.read(entry_id)

    def audit(self, *, progress: Progress | None = None) -> list[Problem]:  # noqa: ARG002 - as below
        """Return an empty list: what one process keeps needs no proof; see `Store.audit`."""
        return []

    def adopt(
        self,
        ids: Collection[EntryId] = (),
        *,
        progress: Progress | None = None,  # noqa: ARG002 - there is nothing to look at
    ) -> list[EntryId]:
        """Return an empty list, since nothing has a line; see `Store.adopt`."""
        for entry_id in ids:
            self.read(entry_id)
        return []

    def redact(
        self, entry_id: EntryId, asked: Redaction | None, purge: Callable[[], None]
    ) -> Redacted:
        """Remove text from an entry for good; see `Store.redact`."""
        with self._lock:
            entry, data = self.read(entry_id), self._files[entry_id].entry.data
            was = hash_of(data)
            at = from_milliseconds(self._now_ns() // 1_000_000)
            new, count = redact(entry, data, asked, was=was, at=at)
            self._files[entry_id] = _File(
                self._content(new) if count else self._files[entry_id].entry
            )
            self._listing = None
            purge()
        return Redacted(entry_id, count, was if count else "")

    def unredacted(self) -> AbstractContextManager[object]:
        """Let redactions wait; see `Store.unredacted`."""
        return self._lock

    def read_sidecar(self, entry_id: EntryId) -> Sidecar | None:
        """Return an entry's sidecar; see `Store.read_sidecar`."""
        with self._lock:
            file = self._files.get(entry_id)
        if file is None or file.sidecar is None:
            return None
        return sidecarfile.parse(file.sidecar.data, path=f"{entry_id}.embedding")

    def write_sidecar(self, entry_id: EntryId, sidecar: Sidecar, *, replace: bool = False) -> bool:
        """Put a sidecar beside an entry; see `Store.write_sidecar`."""
        with self._lock:
            file = self._files.get(entry_id)
            if file is None or (file.sidecar is not None and not replace):
                return False
            file.sidecar = self._content(sidecarfile.render(sidecar))
            return True

    def sweep(self, *, older_than_s: float) -> list[str]:  # noqa: ARG002 - nothing gets old here
        """Return an empty list: no writer leaves anything behind; see `Store.sweep`."""
        return []

    def _content(self, data: bytes) -> _Content:
        self._listing = None
        return _Content(data, str(next(self._numbers)), self._now_ns() / 1e9)
