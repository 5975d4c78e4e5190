"""Files that are the user's or a host's: read with a limit, replaced at once, never lost."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent_journal.engines import placing

LIMIT_BYTES = 16 * 1024 * 1024
"""Hosts keep histories in such files, but none is larger than this."""

ASIDE = ".before-agent-journal"
"""What the name of a copy, or of a file that is put aside, ends with."""

_FOLDER_MODE = 0o777  # less what the umask takes: a host's folder isn't ours to close


def contents(path: Path) -> bytes | None:
    """Return what a file holds, a link being followed; None when there is none.

    Raises:
        OSError: it can't be read, or is too large, or isn't a file.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(0, "it is not a file")
        with path.open("rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(data) > LIMIT_BYTES:
        raise OSError(0, f"it is larger than {LIMIT_BYTES:,} bytes")
    return data


def replace(path: Path, data: bytes, *, before: bytes | None) -> None:
    """Give a file other contents, all at once and durably; a link leads to the same file as before.

    Its mode and, where that can be, its owner stay. The folder is made if it is missing.

    Args:
        path: the file.
        data: what it is to hold.
        before: what it held when that was decided; None if it was not there.

    Raises:
        OSError: it could not be done, or the file has changed meanwhile; it is then as it was.
    """
    target = Path(os.path.realpath(path))
    placing.create_folder(target.parent, mode=_FOLDER_MODE)
    if contents(target) != before:
        raise OSError(0, "it has changed meanwhile; try again")
    status = target.stat() if before is not None else None
    mode = stat.S_IMODE(status.st_mode) if status else 0o600
    with placing.opened(target.parent) as folder:
        with placing.Staging(folder, mode) as staging:
            staging.fill(data, durable=True)
            if before is None:
                staging.place(target.name)
            else:
                staging.replace(target.name)
        placing.flush_folder(folder)
    if status and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # only root can give files to others
            os.chown(target, status.st_uid, status.st_gid)


def keep_copy(path: Path) -> Path:
    """Copy a file beside itself under a name of its own; return where.

    Raises:
        OSError: it could not be done.
    """
    data = contents(path) or b""
    mode = stat.S_IMODE(path.stat().st_mode)
    with placing.opened(path.parent) as folder:
        with placing.Staging(folder, mode) as staging:
            staging.fill(data, durable=True)
            aside = _aside(path, staging.place)
        placing.flush_folder(folder)
    return aside


def put_aside(path: Path) -> Path:
    """Rename a file, or a link, so that no host takes it for a plugin; return its new place.

    Raises:
        OSError: it could not be done.
    """
    with placing.opened(path.parent) as folder:
        rename = partial(placing.rename_exclusively, folder, path.name)
        aside = _aside(path, rename)
        placing.flush_folder(folder)
    return aside


def remove(path: Path) -> None:
    """Remove a file, or a link alone.

    Raises:
        OSError: it could not be done.
    """
    path.unlink()
    with placing.opened(path.parent) as folder:
        placing.flush_folder(folder)


def _aside(path: Path, appear: Callable[[str], None]) -> Path:
    """Let a file appear beside another, under the first name that is free; return where."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}{ASIDE}" + (f"-{number}" if number > 1 else ""))
        try:
            appear(aside.name)
        except FileExistsError:
            number += 1
        else:
            return aside
