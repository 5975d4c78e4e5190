"""Locks: held by an open file, so that they end with their process, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_journal.engines.placing import create_folder, open_private

_POLL_S = 0.002
_NOT_OURS = frozenset({errno.EACCES, errno.EPERM})


@contextmanager
def locked(path: Path, *, wait_s: float) -> Iterator[int]:
    """Hold the lock of a file, which is made (mode 0600) with its folder when it is missing.

    Gives the file, open for reading and writing; whoever replaces or removes it must hold the lock.

    Raises:
        TimeoutError: others have held it for so long.
        OSError: it can't be made or opened.
    """
    deadline = time.monotonic() + wait_s
    while True:
        descriptor = _opened_or_made(path)
        try:
            await_lock(descriptor, deadline)
            if _is_still_at(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)


@contextmanager
def shared(folder: Path, *, wait_s: float) -> Iterator[None]:
    """Keep whoever wants a folder's lock alone waiting, as several may do at once.

    Where there are no locks, or others keep it locked for so long, the block goes on without.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # missing, for one; whoever works in it will say so
        yield
        return
    try:
        with suppress(OSError):
            await_lock(descriptor, time.monotonic() + wait_s, alone=False)
        yield
    finally:
        with suppress(OSError):  # a process that was forked meanwhile would go on holding it
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def await_lock(descriptor: int, deadline: float, *, alone: bool = True) -> None:
    """Lock an open file or folder, waiting until an instant of the monotonic clock.

    Args:
        descriptor: the file or folder.
        deadline: the instant.
        alone: let nobody else have it; otherwise everybody who doesn't want it alone.

    Raises:
        TimeoutError: others have held it until then.
        OSError: the file system knows no locks.
    """
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError("another process keeps it locked") from None
            time.sleep(_POLL_S)
        else:
            return


def has_writer(folder: int, name: str) -> bool:
    """Tell whether a file in the making is still being made, by a process of this machine."""
    try:
        descriptor = open_private(name, os.O_RDONLY, folder=folder)
    except OSError as error:
        return error.errno in _NOT_OURS
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(descriptor)
    return False


def _opened_or_made(path: Path) -> int:
    while True:
        try:
            return open_private(path, os.O_RDWR)
        except FileNotFoundError:
            create_folder(path.parent)
        with suppress(FileExistsError):  # another was quicker
            return open_private(path, os.O_RDWR, create=True)


def _is_still_at(descriptor: int, path: Path) -> bool:
    """Tell whether nobody replaced or removed a file between opening and locking it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
