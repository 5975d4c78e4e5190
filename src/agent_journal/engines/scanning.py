"""What is in a journal folder now, looking at no more files than it takes to be right.

Three costs, at 10,000 entries: one stat of the folder when its own modification time vouches for
the last listing; the names when it can't; a stat of every file at most every `RECHECK_S`, since
edits in place leave no trace in the folder. Two contents of one file can't be told apart when size,
inode and the kernel's clock tick (some milliseconds) of their last change are all the same.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agent_journal.engines.placing import opened, reason_of
from agent_journal.errors import JournalUnavailableError
from agent_journal.model import EntryId, Problem
from agent_journal.ports import Listing, Version

ENTRY_SUFFIX = ".md"
SIDECAR_SUFFIX = ".embedding"
RECHECK_S = 2.0
"""How long an edit in place may go unseen."""

_SETTLED_NS = 2_000_000_000
"""How old a folder's mtime must be to vouch for a listing: coarser clocks than this are not known
(FAT counts in steps of 2 s), and what comes within the same step leaves it unchanged."""


class _Seen(NamedTuple):
    inode: int
    version: str


class _Found(NamedTuple):
    files: dict[str, _Seen]
    others: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Scan:
    folder: tuple[int, int]
    modified_ns: int
    began_ns: int
    checked_at: float
    files: Mapping[str, _Seen]
    listing: Listing


class Scanner:
    """Lists one folder again and again; may be called from several threads.

    Args:
        folder: the journal folder, which need not exist yet.
        now_ns: the clock of the file system, nanoseconds since the epoch.
        monotonic: a clock that never goes back, in seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._now_ns = now_ns
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last: _Scan | None = None

    def listing(self, *, thorough: bool = False) -> Listing:
        """Return what is there, as `Store.listing` promises.

        Raises:
            JournalUnavailableError: the folder is missing or can't be read.
        """
        with self._lock:
            last, self._last = self._last, None
            try:
                if last is None or thorough or not self._is_current(last):
                    last = self._scan(last, thorough=thorough)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError)
                reason = "it does not exist" if missing else reason_of(error)
                raise JournalUnavailableError(
                    printable(self._folder), reason, missing=missing
                ) from error
            self._last = last
            return last.listing

    def has_listed(self, entry_id: str) -> bool:
        """Tell whether the last listing held an entry, without looking again."""
        last = self._last
        return last is not None and entry_id in last.listing.versions

    def _is_current(self, last: _Scan) -> bool:
        status = self._folder.stat()
        return (
            (status.st_dev, status.st_ino) == last.folder
            and status.st_mtime_ns == last.modified_ns
            and status.st_mtime_ns + _SETTLED_NS <= last.began_ns
            and self._monotonic() - last.checked_at < RECHECK_S
        )

    def _scan(self, last: _Scan | None, *, thorough: bool) -> _Scan:
        began_ns, began = self._now_ns(), self._monotonic()
        with opened(self._folder) as descriptor:
            status = os.fstat(descriptor)
            folder = status.st_dev, status.st_ino
            known: Mapping[str, _Seen] = {}
            checked_at = began
            if (
                last is not None
                and not thorough
                and folder == last.folder
                and began - last.checked_at < RECHECK_S
            ):
                known, checked_at = last.files, last.checked_at
            found = _look(descriptor, known)
        listing = self._listing_of(found)
        if last is not None and listing == last.listing:
            listing = last.listing
        return _Scan(folder, status.st_mtime_ns, began_ns, checked_at, found.files, listing)

    def _listing_of(self, found: _Found) -> Listing:
        versions: dict[EntryId, Version] = {}
        others = {
            name: reason
            for name, reason in found.others.items()
            if name.endswith(ENTRY_SUFFIX) or f"{_stem(name)}{ENTRY_SUFFIX}" in found.files
        }
        for name, seen in found.files.items():
            if name.endswith(ENTRY_SUFFIX):
                stem = name[: -len(ENTRY_SUFFIX)]
                sidecar = found.files.get(stem + SIDECAR_SUFFIX)
                versions[EntryId(stem)] = Version(seen.version, sidecar.version if sidecar else "")
        problems = (
            Problem(printable(self._folder / name), reason)
            for name, reason in sorted(others.items())
        )
        return Listing(versions, tuple(problems))


def printable(path: Path | str) -> str:
    r"""Return a path as text that any encoding of Unicode can carry: bad bytes show as ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _stem(name: str) -> str:
    return name.removesuffix(ENTRY_SUFFIX).removesuffix(SIDECAR_SUFFIX)


def _look(folder: int, known: Mapping[str, _Seen]) -> _Found:
    files: dict[str, _Seen] = {}
    others: dict[str, str] = {}
    with os.scandir(folder) as listed:
        for member in listed:
            name = member.name
            if not name.endswith((ENTRY_SUFFIX, SIDECAR_SUFFIX)) or name.startswith("."):
                continue
            inode = member.inode()
            seen = known.get(name)
            if seen is not None and seen.inode == inode:
                files[name] = seen
                continue
            try:
                status = member.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed since its name was read
            if reason := _objection(name, status.st_mode):
                others[name] = reason
                continue
            version = f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"
            files[name] = _Seen(inode, version)
    return _Found(files, others)


def _objection(name: str, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "it is a symbolic link, which is never followed; put the file itself here"
    if not stat.S_ISREG(mode):
        return "it is no regular file and can't be an entry"
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        return "its name is no valid UTF-8; rename it"
    return ""
