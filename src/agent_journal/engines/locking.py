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


def await_lock(descriptor: int, deadline: float) -> None:
    """Lock an open file or folder, waiting until an instant of the monotonic clock.

    Raises:
        TimeoutError: others have held it until then.
        OSError: the file system knows no locks.
    """
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
