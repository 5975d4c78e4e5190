"""The folder of index files: those that nobody needs, or that hold what is to be forgotten, go."""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Collection
from pathlib import Path

from agent_journal.engines.sqlite_file import COMPANIONS, LOCK_SUFFIX, SUFFIX, lock_file, unlink
from agent_journal.errors import IndexUnavailableError

_REMOVAL_WAIT_S = 10.0


def remove_unused(
    folder: Path, application: int, *, older_than_days: float, keep: Path
) -> list[Path]:
    """Remove an application's files that nobody has opened for some days, and return them.

    Args:
        folder: where to look; a missing one holds none. Other databases in it stay.
        application: as in `Layout`.
        older_than_days: a file in use is touched once a day.
        keep: never removed.
    """
    oldest = time.time() - older_than_days * 86_400
    removed: list[Path] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(OSError):  # somebody is at it, or it is gone: so much the better
            if path == keep or not path.is_file():  # opening a pipe would wait for ever
                continue
            if path.stat().st_mtime > oldest or not _is_of(path, application):
                continue
            with lock_file(path, time.monotonic()):
                if path.stat().st_mtime <= oldest:
                    unlink(path, ("", *COMPANIONS, LOCK_SUFFIX))
                    removed.append(path)
    return removed


def remove_holding(
    folder: Path, application: int, needles: Collection[bytes], *, keep: Path
) -> list[Path]:
    """Remove an application's files in which one of some byte strings stands, and return them.

    What is left of a file that was removed by halves counts as one.

    Args:
        folder: where to look; a missing one holds none. Other databases in it stay.
        application: as in `Layout`.
        needles: what to look for.
        keep: never removed.

    Raises:
        IndexUnavailableError: one can't be looked into, or not removed.
    """
    found = {path.name.split(SUFFIX)[0] + SUFFIX for path in folder.glob(f"*{SUFFIX}*")}
    removed: list[Path] = []
    for path in sorted(folder / name for name in found):
        try:
            files = [
                each
                for suffix in ("", *COMPANIONS)
                if (each := path.with_name(path.name + suffix)).is_file()
            ]
            if not files or (path in files and (path == keep or not _is_of(path, application))):
                continue
            if not any(_holds(each, needles) for each in files):
                continue
            with lock_file(path, time.monotonic() + _REMOVAL_WAIT_S):
                unlink(path, ("", *COMPANIONS, LOCK_SUFFIX))
            removed.append(path)
        except OSError as error:
            raise IndexUnavailableError(str(path), error.strerror or str(error)) from error
    return removed


def _holds(path: Path, needles: Collection[bytes]) -> bool:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(needle) >= 0 for needle in needles)


def _is_of(path: Path, application: int) -> bool:
    with path.open("rb") as file:
        header = file.read(72)
    return header[:16] == b"SQLite format 3\0" and header[68:] == application.to_bytes(4, "big")
