"""What is in a journal folder now, looking at no more files than it takes to be right.

Three costs, at 10,000 entries: one stat of the folder when its own modification time vouches for
the last listing; the names when it can't; a stat of every file at most every `RECHECK_S`, since
edits in place leave no trace in the folder. (At 100,000 entries this takes half a second, and so
comes less often.) Two contents of one file can't be told apart when size, inode and the kernel's
clock tick (some milliseconds) of their last change are all the same.

A sidecar is known by its inode when it is first seen: nobody edits vectors by hand, all who write
them make new files, and a look at each would double what a new process has to do. One that changes
in place is seen from the second look on.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from agent_journal.engines.placing import opened, reason_of
from agent_journal.errors import JournalUnavailableError
from agent_journal.model import EntryId, Problem
from agent_journal.ports import Listing, Version

ENTRY_SUFFIX = ".md"
SIDECAR_SUFFIX = ".embedding"
RECHECK_S = 2.0
"""How long an edit in place may go unseen; longer where looking at every file takes long."""

_REST = 50
"""Between looks at every file so many times as long as one took: 2 % of the time is spent on it."""

_SETTLED_NS = 2_000_000_000
"""How old a folder's mtime must be to vouch for a listing: coarser clocks than this are not known
(FAT counts in steps of 2 s), and what comes within the same step leaves it unchanged."""


_Seen: TypeAlias = tuple[int, int, int, int]
"""A file's inode as its folder names it, mtime in ns, size, and the inode as it names itself.

The inodes differ on some stacked file systems. A plain tuple, since there are thousands of them.
"""

_SeenSidecar: TypeAlias = tuple[int, int, int, str]
"""A sidecar's inode, its mtime and size (0 until they were looked at), and its version."""


class _Files(NamedTuple):
    """Regular files by stem; everything else that has such a name, by name, with what it is."""

    entries: dict[str, _Seen]
    sidecars: dict[str, _SeenSidecar]
    others: dict[str, str]
    fresh: list[str]
    """The stems of files that were looked at and had changed, or were new."""


class _Scan(NamedTuple):
    folder: tuple[int, int]
    modified_ns: int
    began_ns: int
    checked_at: float
    look_s: float
    files: _Files
    listing: Listing


_NOTHING = _Scan((-1, -1), 0, 0, -RECHECK_S, 0.0, _Files({}, {}, {}, []), Listing({}))


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
        self._last = _NOTHING

    def listing(self, *, thorough: bool = False) -> Listing:
        """Return what is there, as `Store.listing` promises.

        Raises:
            JournalUnavailableError: the folder is missing or can't be read.
        """
        with self._lock:
            last, self._last = self._last, _NOTHING
            try:
                if thorough or not self._is_current(last):
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
        return entry_id in self._last.listing.versions

    def _is_current(self, last: _Scan) -> bool:
        status = self._folder.stat()
        return (
            (status.st_dev, status.st_ino) == last.folder
            and status.st_mtime_ns == last.modified_ns
            and status.st_mtime_ns + _SETTLED_NS <= last.began_ns
            and not self._is_due(last, self._monotonic())
        )

    def _is_due(self, last: _Scan, now: float) -> bool:
        return now - last.checked_at >= max(RECHECK_S, _REST * last.look_s)

    def _scan(self, last: _Scan, *, thorough: bool) -> _Scan:
        began_ns, began = self._now_ns(), self._monotonic()
        with opened(self._folder) as descriptor:
            status = os.fstat(descriptor)
            folder = status.st_dev, status.st_ino
            if folder != last.folder:
                last = _NOTHING
            recheck = thorough or last is _NOTHING or self._is_due(last, began)
            files = _look(descriptor, last.files, recheck=recheck, is_first=last is _NOTHING)
        listing = Listing(_versions(files, last), self._problems(files))
        if last is not _NOTHING and listing == last.listing:
            listing = last.listing
        checked_at, look_s = last.checked_at, last.look_s
        if recheck:
            checked_at, look_s = began, self._monotonic() - began
        return _Scan(folder, status.st_mtime_ns, began_ns, checked_at, look_s, files, listing)

    def _problems(self, files: _Files) -> tuple[Problem, ...]:
        return tuple(
            Problem(printable(self._folder / name), reason)
            for name, reason in sorted(files.others.items())
            if not name.endswith(SIDECAR_SUFFIX)
            or name.removesuffix(SIDECAR_SUFFIX) in files.entries
        )


def printable(path: Path | str) -> str:
    r"""Return a path as text that any encoding of Unicode can carry: bad bytes show as ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _look(folder: int, known: _Files, *, recheck: bool, is_first: bool) -> _Files:
    """Look at every name, and at the files behind those that are new, or behind all of them.

    The loop is written out: at 10,000 entries a function call for each is what a search can feel.
    """
    files = _Files({}, {}, {}, [])
    entry, sidecar = -len(ENTRY_SUFFIX), -len(SIDECAR_SUFFIX)
    entries_before, entries, fresh = known.entries, files.entries, files.fresh
    beside: list[os.DirEntry[str]] = []
    with os.scandir(folder) as listed:
        for member in listed:
            name = member.name
            if name[entry:] == ENTRY_SUFFIX:
                if name[0] == ".":
                    continue
                stem = name[:entry]
                inode = member.inode()
                seen = entries_before.get(stem)
                if recheck or seen is None or seen[0] != inode:
                    try:
                        status = member.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed since its name was read
                    if not (stat.S_ISREG(status.st_mode) and name.isascii()) and (
                        reason := _objection(name, status.st_mode)
                    ):
                        files.others[name] = reason
                        continue
                    stamp = inode, status.st_mtime_ns, status.st_size, status.st_ino
                    if seen != stamp:
                        seen = stamp
                        fresh.append(stem)
                entries[stem] = seen
            elif name[sidecar:] == SIDECAR_SUFFIX and name[0] != ".":
                beside.append(member)
    _look_at_sidecars(beside, known, files, recheck=recheck and not is_first)
    return files


def _look_at_sidecars(
    members: Sequence[os.DirEntry[str]], known: _Files, files: _Files, *, recheck: bool
) -> None:
    """Look at the sidecars as at the entries; the first time their inodes are enough."""
    before, sidecars, fresh = known.sidecars, files.sidecars, files.fresh
    suffix = -len(SIDECAR_SUFFIX)
    for member in members:
        name = member.name
        stem, inode = name[:suffix], member.inode()
        seen = before.get(stem)
        if not recheck:
            if seen is not None and seen[0] == inode:
                sidecars[stem] = seen
                continue
            if name.isascii() and member.is_file(follow_symlinks=False):
                sidecars[stem] = inode, 0, 0, str(inode)
                fresh.append(stem)
                continue
        try:
            status = member.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # removed since its name was read
        if reason := _objection(name, status.st_mode):
            files.others[name] = reason
            continue
        modified_ns, size = status.st_mtime_ns, status.st_size
        version = str(inode)
        if seen is not None and seen[0] == inode:
            is_same = seen[1:3] in ((0, 0), (modified_ns, size))
            version = seen[3] if is_same else f"{modified_ns}-{size}-{inode}"
        if seen is None or version != seen[3]:
            fresh.append(stem)
        sidecars[stem] = inode, modified_ns, size, version


def _versions(files: _Files, last: _Scan) -> Mapping[EntryId, Version]:
    """Carry over the last listing's versions but for what came, changed or went."""
    entries, sidecars = files.entries, files.sidecars
    if not last.listing.versions:
        return {  # written out like the loop above, and as `_version` makes each
            EntryId(stem): Version(
                f"{seen[1]}-{seen[2]}-{seen[3]}/{sidecars[stem][3] if stem in sidecars else ''}"
            )
            for stem, seen in entries.items()
        }
    versions = dict(last.listing.versions)
    gone = last.files.entries.keys() - entries.keys()
    lost = last.files.sidecars.keys() - sidecars.keys()
    for stem in {*files.fresh, *gone, *lost}:
        if stem in entries:
            versions[EntryId(stem)] = _version(entries[stem], sidecars.get(stem))
        else:
            versions.pop(EntryId(stem), None)
    return versions


def _version(seen: _Seen, sidecar: _SeenSidecar | None) -> Version:
    _, modified_ns, size, inode = seen
    return Version.of(f"{modified_ns}-{size}-{inode}", sidecar[3] if sidecar else "")


def _objection(name: str, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "it is a symbolic link, which is never followed; put the file itself here"
    if not stat.S_ISREG(mode):
        return "it is no regular file and can't be an entry"
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        return "its name is no valid UTF-8; rename it"
    return ""
