"""A file appears whole, under a name that was free; the one module that flushes and links."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

TEMPORARY_PREFIX = ".agent-journal-"
TEMPORARY_SUFFIX = ".tmp"

_FULL_FLUSH: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""Where it exists (macOS), fsync alone leaves data in the drive's own cache."""

_NO_SUCH_CALL = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = _NO_SUCH_CALL | {errno.EPERM, errno.EACCES, errno.EMLINK, errno.EXDEV}
"""What file systems without hard links answer; Android's policy says EACCES."""

_NOT_THERE = frozenset({errno.ENOENT, errno.ENAMETOOLONG})
_AT_LEAST = 8192
_CHUNK = 1024 * 1024
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def reason_of(error: OSError) -> str:
    """Return in words why the system refused, such as ``no space left on device``."""
    return (error.strerror or str(error)).lower()


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """Hold a folder open, so that all that follows happens in this very one.

    Raises:
        OSError: it is missing, is no folder, or can't be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def create_folder(folder: Path, *, mode: int = _PRIVATE_FOLDER) -> None:
    """Make a folder and whatever is missing above it, durably.

    Args:
        folder: one that exists keeps its mode.
        mode: the permission bits of new ones, less what the umask takes.

    Raises:
        OSError: it could not be made.
    """
    if folder.is_dir():
        return
    create_folder(folder.parent, mode=mode)
    with suppress(FileExistsError):
        folder.mkdir(mode=mode)
    with opened(folder.parent) as parent:
        flush_folder(parent)


def create_folder_within(folder: int, name: str) -> None:
    """Make a folder (mode 0700, whatever the umask) in an open one, durably, if it is missing.

    Raises:
        OSError: it could not be made.
    """
    try:
        os.mkdir(name, _PRIVATE_FOLDER, dir_fd=folder)
    except FileExistsError:
        return
    if stat.S_IMODE(_mode_of(folder, name) or 0) != _PRIVATE_FOLDER:
        with suppress(PermissionError):  # a file system without modes
            os.chmod(name, _PRIVATE_FOLDER, dir_fd=folder)
    flush_folder(folder)


def open_private(
    name: str | Path, flags: int, *, folder: int | None = None, create: bool = False
) -> int:
    """Open a regular file that is for its owner alone (mode 0600, whatever the umask).

    Args:
        name: the file; no link at its end is followed.
        flags: how to open it, as for `os.open`.
        folder: the open folder in which it is.
        create: make it; it must not be there.

    Raises:
        FileExistsError: it was to be made, and is there.
        OSError: it can't be opened; ELOOP and ENXIO when it is anything but a regular file.
    """
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    if create:
        flags |= os.O_CREAT | os.O_EXCL
    descriptor = os.open(name, flags, _PRIVATE_FILE, dir_fd=folder)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "Not a regular file")
    if create and stat.S_IMODE(mode) != _PRIVATE_FILE:
        with suppress(OSError):  # a file system without modes
            os.fchmod(descriptor, _PRIVATE_FILE)
    return descriptor


def flush(descriptor: int) -> None:
    """Return once the disk itself has what was written to an open file."""
    if _FULL_FLUSH is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_FLUSH)
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
        else:
            return
    os.fsync(descriptor)


def flush_folder(descriptor: int) -> None:
    """Return once a folder's names are on the disk, on file systems that let one ask for it."""
    try:
        flush(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_CALL:
            raise


def exists(folder: int, name: str) -> bool:
    """Tell whether a name is taken in an open folder, by whatever it is."""
    return _mode_of(folder, name) is not None


def holds_file(folder: int, name: str) -> bool:
    """Tell whether a name in an open folder is that of a regular file, no link to one."""
    mode = _mode_of(folder, name)
    return mode is not None and stat.S_ISREG(mode)


def is_temporary(name: str) -> bool:
    """Tell whether a name is that of a file in the making."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


def names(folder: int) -> list[str]:
    """Return the names in an open folder, sorted."""
    with os.scandir(folder) as listed:
        return sorted(member.name for member in listed)


def modified(folder: int, name: str) -> float:
    """Return when a file in an open folder was last written, in seconds since the epoch.

    Raises:
        FileNotFoundError: it is not there.
    """
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime


def read_file(folder: int, name: str, *, limit: int) -> tuple[bytes, float]:
    """Return the first `limit` bytes of a regular file and its modification time in seconds.

    Raises:
        OSError: it can't be read; ELOOP and ENXIO when it is anything but a regular file.
    """
    descriptor = open_private(name, os.O_RDONLY, folder=folder)
    try:
        status = os.fstat(descriptor)
        chunks = []
        left = limit
        step = max(min(status.st_size, limit), _AT_LEAST) + 1
        while left and (chunk := os.read(descriptor, min(left, step))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks), status.st_mtime
    finally:
        os.close(descriptor)


def hash_file(folder: int, name: str) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal digits.

    Raises:
        OSError: it can't be read; ELOOP and ENXIO when it is anything but a regular file.
    """
    descriptor = open_private(name, os.O_RDONLY, folder=folder)
    try:
        digest = hashlib.sha256()
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
        return digest.hexdigest()
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of some data into an open file.

    Raises:
        OSError: it could not be written, or only a part of it; the disk is full, for one.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


class Staging:
    """A file in the making: a dot-file with a name of its own, gone when the block is left.

    Args:
        folder: the open folder in which the file is to appear.
        mode: its permission bits, whatever the umask.
    """

    def __init__(self, folder: int, mode: int) -> None:
        self._folder = folder
        self._name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._name, flags, mode, dir_fd=folder)
        self._mode = mode
        with suppress(OSError):  # as long as it is held, `has_writer` knows that we are at work
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the temporary name; what was placed stays."""
        os.close(self._descriptor)
        with suppress(OSError):  # a sweep removes what can't be removed now
            os.unlink(self._name, dir_fd=self._folder)

    def fill(self, data: bytes, *, durable: bool) -> None:
        """Write the content, or more of it; all is on the disk on return if it is to be durable.

        Raises:
            OSError: it could not be written; the disk is full, for one.
        """
        if stat.S_IMODE(os.fstat(self._descriptor).st_mode) != self._mode:
            # The umask took too much. FAT and its kin keep no modes and refuse: nothing is lost.
            with suppress(PermissionError):
                os.fchmod(self._descriptor, self._mode)
        write_whole(self._descriptor, data)
        if durable:
            flush(self._descriptor)

    def place(self, name: str) -> None:
        """Let the file appear under a name, all of it at once, if the name is free.

        A hard link does this everywhere but on FAT, some network shares and Android. There an
        exclusive rename does. Where neither is to be had this fails: creating the name first and
        filling it afterwards would show half a file, a plain rename could replace another's.

        Raises:
            FileExistsError: the name is taken.
            OSError: it could not be done.
        """
        try:
            os.link(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            rename_exclusively(self._folder, self._name, name)

    def replace(self, name: str) -> None:
        """Let the file appear under a name at once, in place of whatever is there.

        Raises:
            OSError: it could not be done.
        """
        os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)


def _mode_of(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def rename_exclusively(folder: int, old: str, new: str) -> None:
    """Rename within an open folder, never over something that is there.

    Raises:
        FileExistsError: the new name is taken.
        OSError: the system or the file system has no such call (ENOTSUP), or it failed.
    """
    import ctypes  # noqa: PLC0415 - 15 ms that nearly nobody needs

    library = ctypes.CDLL(None, use_errno=True)
    for function, exclusively in (("renameat2", 1), ("renameatx_np", 4)):  # Linux, macOS
        call = getattr(library, function, None)
        if call is None:
            continue
        call.argtypes = (
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_uint,
        )
        if call(folder, os.fsencode(old), folder, os.fsencode(new), exclusively) == 0:
            return
        code = ctypes.get_errno()
        if code not in _NO_SUCH_CALL:
            raise OSError(code, os.strerror(code), new)
    raise OSError(
        errno.ENOTSUP,
        "the file system has neither hard links nor an exclusive rename; "
        "keep the journal on another one",
    )
