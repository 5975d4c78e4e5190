"""One SQLite file that several processes share, and that is replaced when it is damaged.

Everything in the file can be made again, so damage is never an error for a caller: the file is
removed, an empty one takes its place, and the work is done once more. A lock file beside it makes
sure that no process opens the file while another one removes it: SQLite finds the write-ahead log
by its name, and a log read with another file's database would spoil both.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

from agent_journal.engines.locking import locked
from agent_journal.errors import IndexUnavailableError

SUFFIX = ".sqlite3"
COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database."""

LOCK_SUFFIX = ".lock"
_TOUCH_EVERY_S = 86_400.0
_WAL_LIMIT_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 8
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_UNAVAILABLE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_AUTH,
}
_PRIMARY = 0xFF

_T = TypeVar("_T")
_log = logging.getLogger("agent_journal")


class DamagedError(Exception):
    """What the file holds can't be true; the file is replaced, and no caller sees this."""


# SQLite quotes the file in its messages, and a damaged one in a way that Python can't decode.
_FAILURES = (sqlite3.Error, DamagedError, UnicodeDecodeError)


class Layout(NamedTuple):
    """What is expected in the file.

    Attributes:
        application: SQLite's ``application_id``, so that a stranger's database is recognised.
        version: SQLite's ``user_version``.
        create: makes the tables in an empty file, inside a transaction.
        prepare: makes what belongs to one connection, such as temporary tables.
    """

    application: int
    version: int
    create: Callable[[sqlite3.Connection], None]
    prepare: Callable[[sqlite3.Connection], None]


class _Held(NamedTuple):
    """A connection with the file it was opened on, and the pool's age at that time."""

    connection: sqlite3.Connection
    inode: tuple[int, int] | None
    epoch: int


class SharedFile:
    """Runs transactions on the file, from any thread and after a fork; opened by the first one.

    Args:
        path: the database; its folder is made (mode 0700) when it is missing.
        layout: what it holds.
        connect: `sqlite3.connect`, or what stands in for it.
        timeout_s: the longest wait for another process's lock.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        *,
        connect: Callable[..., sqlite3.Connection] = sqlite3.connect,
        timeout_s: float = 10.0,
    ) -> None:
        self._path = path
        self._layout = layout
        self._connect = connect
        self._timeout_s = timeout_s
        self._touched = 0.0
        self._epoch = 0
        self._idle: list[_Held] = []
        self._inherited: list[list[_Held]] = []
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what the work returns; all that it reads is of one moment.

        Raises:
            IndexUnavailableError: the file can't be used, or is locked for too long.
        """
        return self._attempt("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what the work returns, once all that it wrote is kept; otherwise none of it is.

        Raises:
            IndexUnavailableError: the file can't be used, or is locked for too long.
        """
        return self._attempt("BEGIN IMMEDIATE", work)

    def close(self) -> None:
        """Close every connection; those at work are closed when they end. Idempotent."""
        with self._lock:
            self._epoch += 1
            idle, self._idle = self._idle, []
        for held in idle:
            held.connection.close()

    def compact(self) -> None:
        """Make the file anew of what is in it, so that no byte is left of what was deleted.

        If others keep it busy for too long it is removed, and whoever needs it builds another.

        Raises:
            IndexUnavailableError: neither could be done.
        """
        held = self._take()
        try:
            held.connection.execute("VACUUM")
            is_busy, *_ = held.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except _FAILURES as error:
            _log.warning("search index %s is removed to be built again: %s", self._path, error)
            is_busy = True
        held.connection.close()
        if is_busy:
            self.discard()

    def discard(self) -> None:
        """Remove the file; the next use builds another.

        Raises:
            IndexUnavailableError: it can't be removed.
        """
        with self._exclusive():
            unlink(self._path, ("", *COMPANIONS))

    def _attempt(self, begin: str, work: Callable[[sqlite3.Connection], _T]) -> _T:
        deadline = time.monotonic() + self._timeout_s
        is_replaced = False
        for attempts_left in reversed(range(_ATTEMPTS)):
            held = self._take()
            try:
                result = _transact(held.connection, begin, work)
            except _FAILURES as error:
                held.connection.close()
                if isinstance(error, sqlite3.ProgrammingError):
                    raise  # an error of ours, which no other file would cure
                is_stale = self._inode() != held.inode  # somebody replaced the file meanwhile
                is_busy = _code(error) in _BUSY and time.monotonic() < deadline
                if not (is_stale or is_busy):
                    if is_replaced or not self._is_damage(error):
                        self._give_up(error)
                    self._replace(held, error)
                    is_replaced = True
                elif not attempts_left:
                    self._give_up(error)
            except BaseException:
                held.connection.close()
                raise
            else:
                self._give_back(held)
                return result
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _replace(self, held: _Held, error: Exception) -> None:
        with self._exclusive():
            if self._inode() == held.inode:
                self._remove(error)

    def _is_damage(self, error: Exception) -> bool:
        """Tell whether another file would help."""
        if "no such module" in str(error):
            return self._can_create()
        return _code(error) not in _BUSY | _UNAVAILABLE

    def _can_create(self) -> bool:
        """Tell whether this SQLite has all that the layout needs."""
        connection = self._connect(":memory:")
        try:
            self._layout.create(connection)
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return True

    def _give_up(self, error: Exception) -> NoReturn:
        reason = str(error)
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror.lower()
        raise IndexUnavailableError(str(self._path), reason) from error

    def _take(self) -> _Held:
        if os.getpid() != self._pid:
            self._leave_the_parents_connections()
        inode = self._inode()
        with self._lock:
            fresh = [held for held in self._idle if held.inode == inode]
            stale = [held for held in self._idle if held.inode != inode]
            found = fresh.pop() if fresh else None
            self._idle = fresh
        for held in stale:
            held.connection.close()
        if time.time() - self._touched > _TOUCH_EVERY_S:
            self._touch()
        return found or self._open()

    def _give_back(self, held: _Held) -> None:
        with self._lock:
            if held.epoch == self._epoch:
                self._idle.append(held)
                return
        held.connection.close()

    def _leave_the_parents_connections(self) -> None:
        # SQLite forbids both using and closing them here; so they are kept and forgotten.
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._inherited.append(self._idle)
        self._idle = []

    def _inode(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._give_up(error)
        return found.st_dev, found.st_ino

    def _touch(self) -> None:
        self._touched = time.time()
        with contextlib.suppress(OSError):  # a file that is gone is made again, not touched
            os.utime(self._path)

    def _open(self) -> _Held:
        with self._exclusive():
            try:
                return self._open_locked()
            except _FAILURES as error:
                if self._is_damage(error):
                    self._remove(error)
                elif self._inode():  # else somebody removed it meanwhile
                    self._give_up(error)
            try:
                return self._open_locked()
            except _FAILURES as error:
                self._give_up(error)

    def _open_locked(self) -> _Held:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            unlink(self._path, COMPANIONS)
        connection = self._connect(
            self._path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
        )
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        self._touch()
        return _Held(connection, self._inode(), self._epoch)

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Check that the file is ours and complete, or fill it when it is empty."""
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            self._give_up(OSError("SQLite can't keep a write-ahead log here"))
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        layout = self._layout
        if not tables and not version:
            _transact(connection, "BEGIN IMMEDIATE", self._create)
        elif (application, version) != (layout.application, layout.version):
            raise DamagedError(f"it has the layout {version}, not {layout.version}")
        layout.prepare(connection)

    def _create(self, connection: sqlite3.Connection) -> None:
        self._layout.create(connection)
        connection.execute(f"PRAGMA application_id = {self._layout.application}")
        connection.execute(f"PRAGMA user_version = {self._layout.version}")

    def _remove(self, error: Exception) -> None:
        _log.warning("search index %s is damaged (%s); it is built again", self._path, error)
        unlink(self._path, ("", *COMPANIONS))

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep everyone else from opening or removing the file."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with lock_file(self._path, time.monotonic() + self._timeout_s):
                yield
        except OSError as error:
            self._give_up(error)


def _transact(
    connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], _T]
) -> _T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
            connection.execute("ROLLBACK")
        raise
    return result


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _PRIMARY


def unlink(path: Path, suffixes: tuple[str, ...]) -> None:
    """Remove a database and what is kept beside it, whatever of it is there."""
    # The database goes first: a log without a database is ignored, the reverse may be half true.
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def lock_file(path: Path, deadline: float) -> Iterator[None]:
    """Hold the lock of a database's name.

    Raises:
        OSError: it can't be locked, or not before the deadline.
    """
    name = path.with_name(path.name + LOCK_SUFFIX)
    with locked(name, wait_s=deadline - time.monotonic()):
        yield
