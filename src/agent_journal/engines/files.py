"""The store in a folder: one Markdown file per entry, created once and never opened for writing."""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agent_journal import entryfile
from agent_journal import sidecar as sidecarfile
from agent_journal.engines.instants import NO_FREE_ID, Instants, asked_for, render_checked
from agent_journal.engines.locking import shared
from agent_journal.engines.placing import (
    Staging,
    create_folder,
    exists,
    flush_folder,
    holds_file,
    is_temporary,
    modified,
    names,
    opened,
    read_file,
    reason_of,
)
from agent_journal.engines.scanning import ENTRY_SUFFIX, SIDECAR_SUFFIX, Scanner, printable
from agent_journal.errors import (
    EntryNotFoundError,
    InvalidSidecarError,
    JournalUnavailableError,
    LedgerUnavailableError,
    StorageError,
    WriteFailedError,
)
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Problem,
    entry_id_of,
    from_milliseconds,
    timestamp,
)
from agent_journal.naming import said_path
from agent_journal.ports import Listing, Progress, Sidecar

if TYPE_CHECKING:
    from agent_journal.engines.auditing import Audit
    from agent_journal.engines.ledgers import Ledgers
    from agent_journal.redaction import Redacted, Redaction

_ENTRY_MODE = 0o400
_SIDECAR_MODE = 0o600
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO})
_REDACTION_WAIT_S = 30.0
_LINES_AT_ONCE = 500  # so that other writers need not wait for long

_log = logging.getLogger("agent_journal")


class FileStore:
    """The `Store` whose entries are files in a folder, shared with any number of processes.

    Args:
        folder: the journal folder; it is made by the first write, never by a read.
        ledgers: returns those of this folder, once they are needed; None keeps and checks none.
        now_ns: the clock, nanoseconds since the epoch.
        monotonic: a clock that never goes back, in seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ledgers: Callable[[], Ledgers] | None = None,
        now_ns: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = Path(os.path.abspath(folder))  # noqa: PTH100 - a link stays a link
        self._now_ns = now_ns
        self._scanner = Scanner(self._folder, now_ns=now_ns, monotonic=monotonic)
        self._instants = Instants()
        self._open_ledgers = ledgers
        self._told = ""

    @cached_property
    def _ledgers(self) -> Ledgers | None:
        return self._open_ledgers() if self._open_ledgers else None

    @property
    def location(self) -> str:
        """The folder's absolute path."""
        return printable(self._folder)

    def listing(self, *, thorough: bool = False) -> Listing:
        """Return what is stored now; see `Store.listing`."""
        return self._scanner.listing(thorough=thorough)

    def read(self, entry_id: EntryId) -> Entry:
        """Return an entry; see `Store.read`."""
        name = self._name_of(entry_id, ENTRY_SUFFIX)
        if name is None:
            raise EntryNotFoundError(entry_id)
        path = printable(self._folder / name)
        try:
            with opened(self._folder) as folder:
                data, mtime = read_file(folder, name, limit=entryfile.READ_LIMIT_BYTES + 1)
        except OSError as error:
            if error.errno in _NOT_THERE | _NO_FILE:
                raise EntryNotFoundError(entry_id) from error
            raise StorageError(
                path, f"entry {said_path(path)} can't be read: {reason_of(error)}"
            ) from error
        return entryfile.parse(data, entry_id=entry_id, path=path, mtime=mtime)

    def append(self, draft: Draft) -> Entry:
        """Store a new entry, durably; see `Store.append`."""
        asked = asked_for(draft, self._now_ns())
        created = from_milliseconds(asked)
        data = render_checked(created, draft)
        ledgers = self._ledgers  # loaded now: nothing may fail once the entry is there
        try:
            create_folder(self._folder)
            with opened(self._folder) as folder:
                while True:
                    free = self._instants.take(asked)
                    name = entry_id_of(free) + ENTRY_SUFFIX
                    if exists(folder, name):
                        continue
                    if free != created:
                        created, data = free, render_checked(free, draft)
                    if _publish(folder, name, data):
                        break
                problems = self._entered(ledgers, folder, name, data)
        except OverflowError:
            raise WriteFailedError(self.location, NO_FREE_ID) from None
        except OSError as error:
            raise WriteFailedError(self.location, reason_of(error)) from error
        path = printable(self._folder / name)
        entry = entryfile.parse(data, entry_id=entry_id_of(created), path=path, mtime=0.0)
        return replace(entry, problems=(*entry.problems, *problems)) if problems else entry

    def audit(self, *, progress: Progress | None = None) -> list[Problem]:
        """Hold every file against the ledgers; see `Store.audit`."""
        if self._ledgers is None:
            return []
        return self._audited(self._ledgers, progress).all_problems(self._folder)

    def adopt(
        self, ids: Collection[EntryId] = (), *, progress: Progress | None = None
    ) -> list[EntryId]:
        """Take files as they are now; see `Store.adopt`."""
        if self._ledgers is None:
            for entry_id in ids:
                self.read(entry_id)
            return []
        found = self._audited(self._ledgers, progress)
        known = found.hashes.keys() | found.found.keys()
        for entry_id in ids:
            if entry_id not in known:
                raise EntryNotFoundError(entry_id)
        at = timestamp(from_milliseconds(self._now_ns() // 1_000_000))
        chosen = [
            doubt.id
            for doubt in found.doubts
            if doubt.kind != "unfinished"
            and (doubt.id in ids if ids else doubt.kind == "unledgered")
        ]
        lines = [found.accepted(entry_id, at) for entry_id in chosen]
        try:
            with opened(self._folder) as folder:
                for start in range(0, len(lines), _LINES_AT_ONCE):
                    self._ledgers.enter(folder, lines[start : start + _LINES_AT_ONCE])
                if not ids:
                    self._ledgers.forget(folder)
        except OSError as error:
            raise JournalUnavailableError(self.location, reason_of(error)) from error
        return chosen

    def redact(
        self, entry_id: EntryId, asked: Redaction | None, purge: Callable[[], None]
    ) -> Redacted:
        """Remove text from an entry for good; see `Store.redact`."""
        from agent_journal.engines.redacting import (  # noqa: PLC0415 - 3 ms with what it imports
            redact_file,
        )

        name = self._name_of(entry_id, ENTRY_SUFFIX)
        try:
            with opened(self._folder) as folder:
                is_there = name is not None and holds_file(folder, name)
        except FileNotFoundError:
            is_there = False
        except OSError as error:
            raise JournalUnavailableError(self.location, reason_of(error)) from error
        if name is None or not is_there:
            raise EntryNotFoundError(entry_id)
        return redact_file(
            self._folder / name,
            entry_id,
            asked,
            ledgers=self._ledgers,
            purge=purge,
            at=from_milliseconds(self._now_ns() // 1_000_000),
        )

    def unredacted(self) -> AbstractContextManager[None]:
        """Let redactions wait; see `Store.unredacted`."""
        return shared(self._folder, wait_s=_REDACTION_WAIT_S)

    def read_sidecar(self, entry_id: EntryId) -> Sidecar | None:
        """Return an entry's sidecar; see `Store.read_sidecar`."""
        name = self._name_of(entry_id, SIDECAR_SUFFIX)
        if name is None:
            return None
        path = printable(self._folder / name)
        try:
            with opened(self._folder) as folder:
                data, _ = read_file(folder, name, limit=sidecarfile.READ_LIMIT_BYTES + 1)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise InvalidSidecarError(path, reason_of(error)) from error
        return sidecarfile.parse(data, path=path)

    def write_sidecar(self, entry_id: EntryId, sidecar: Sidecar, *, replace: bool = False) -> bool:
        """Put a sidecar beside an entry; see `Store.write_sidecar`."""
        name = self._name_of(entry_id, SIDECAR_SUFFIX)
        if name is None:
            return False
        try:
            with opened(self._folder) as folder:
                if not holds_file(folder, entry_id + ENTRY_SUFFIX):
                    return False
                if not replace and exists(folder, name):
                    return False
                with Staging(folder, _SIDECAR_MODE) as staging:
                    # Not flushed: it can be made again, and a torn one is known by its form.
                    staging.fill(sidecarfile.render(sidecar), durable=False)
                    (staging.replace if replace else staging.place)(name)
        except FileExistsError:
            return False
        except OSError as error:
            path = printable(self._folder / name)
            _log.warning("sidecar %s was not written: %s", path, reason_of(error))
            return False
        return True

    def sweep(self, *, older_than_s: float) -> list[str]:
        """Remove temporary files of crashed writers; see `Store.sweep`."""
        oldest_kept = self._now_ns() / 1e9 - older_than_s
        removed = []
        try:
            with opened(self._folder) as folder:
                for name in names(folder):
                    if is_temporary(name) and holds_file(folder, name):
                        with suppress(FileNotFoundError):  # its writer finished, or another sweep
                            if modified(folder, name) < oldest_kept:
                                os.unlink(name, dir_fd=folder)
                                removed.append(printable(self._folder / name))
        except FileNotFoundError:
            pass  # no folder, nothing to sweep
        except OSError as error:
            _log.warning("%s was not swept: %s", self.location, reason_of(error))
        return removed

    def _entered(
        self, ledgers: Ledgers | None, folder: int, name: str, data: bytes
    ) -> tuple[Problem, ...]:
        """Add an entry's line to the ledger; tell when that can't be done, once in the log."""
        if ledgers is None:
            return ()
        from agent_journal.ledger import Statement, hash_of  # noqa: PLC0415 - it is there by now

        entry_id = EntryId(name.removesuffix(ENTRY_SUFFIX))
        try:
            ledgers.enter(folder, [Statement("write", entry_id, hash_of(data))])
        except LedgerUnavailableError as error:
            mend = "agent-journal check --adopt adds one"
            reason = (
                f"entry {entry_id} is saved, but has no line in the ledger: {error.reason}; {mend}"
            )
            if self._told != error.reason:
                self._told = error.reason
                _log.warning(reason)
            return (Problem(error.path, reason, None, "unledgered"),)
        self._told = ""
        return ()

    def _audited(self, ledgers: Ledgers, progress: Progress | None) -> Audit:
        from agent_journal.engines.auditing import audit  # noqa: PLC0415 - as above

        try:
            return audit(
                self._folder,
                ledgers,
                lambda: self.listing(thorough=True),
                self._mark_of,
                progress,
            )
        except OSError as error:
            raise JournalUnavailableError(self.location, reason_of(error)) from error

    def _mark_of(self, entry_id: EntryId) -> str:
        from agent_journal.removal import mark_of  # noqa: PLC0415 - as above

        try:
            return mark_of(self.read(entry_id))
        except (EntryNotFoundError, StorageError):
            return ""  # gone since, or told as a problem of its own

    def _name_of(self, entry_id: str, suffix: str) -> str | None:
        """Return the file's name for an id that can be one, so that no caller's text is a path."""
        if not _SAFE_ID.fullmatch(entry_id) and not self._scanner.has_listed(entry_id):
            try:
                if entry_id not in self.listing().versions:
                    return None
            except JournalUnavailableError as error:
                if not error.missing:
                    raise
                return None
        return entry_id + suffix


def _publish(folder: int, name: str, data: bytes) -> bool:
    """Make an entry appear, durably; False when another writer took its name."""
    placed = False
    try:
        with Staging(folder, _ENTRY_MODE) as staging:
            staging.fill(data, durable=True)
            try:
                staging.place(name)
            except FileExistsError:
                return False
            placed = True
        flush_folder(folder)
    except BaseException:
        if placed:
            with suppress(OSError):  # the first error is the one to tell
                os.unlink(name, dir_fd=folder)
        raise
    return True
