"""The configuration, and the folders in use: who may do what there, and how much room there is."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_journal.engines import placing
from agent_journal.engines.scanning import ENTRY_SUFFIX
from agent_journal.faces.doctor.verdict import Verdict, note, ok, problem
from agent_journal.faces.framing import counted

if TYPE_CHECKING:
    from agent_journal.config import Settings

ROOM_BYTES = 100 * 1024 * 1024
"""Less than this is told: a full disk refuses entries."""

JOURNAL = "journal folder"
_ELSEWHERE = {
    JOURNAL: "--journal or AGENT_JOURNAL_DIR",
    "index folder": "--index or AGENT_JOURNAL_INDEX",
    "log folder": "XDG_STATE_HOME",
}
_OTHERS = (("its group", stat.S_IRWXG, stat.S_IXGRP), ("everybody", stat.S_IRWXO, stat.S_IXOTH))


def configuration(settings: Settings) -> Verdict:
    """Judge the configuration file."""
    path = settings.config_path
    if settings.error:
        message = f"{settings.error}; until it is mended agents get no tools"
        return problem("config", message, f"mend {path}")
    if settings.enabled:
        return ok("config", f"{path} turns the journal on")
    why = "says" if os.path.lexists(path) else "is missing, which means"
    advice = "agent-journal install HOST turns it on; the command line works either way"
    return note("config", f"{path} {why} that agents get no tools", advice)


def folders(settings: Settings, indexed: Callable[[], int]) -> Iterator[Verdict]:
    """Judge the folders of entries, indexes and the log; nothing is created or written.

    Args:
        settings: where they are.
        indexed: tells how many entries the journal's index knows; asked only if there are none.
    """
    yield from _journal(settings.folder, indexed)
    yield _folder("index folder", settings.index_folder)
    if settings.state_folder:
        yield _folder("log folder", settings.state_folder)


def room(settings: Settings) -> Iterator[Verdict]:
    """Judge how much room is left where something is written."""
    places = {
        "entries": settings.folder,
        "indexes": settings.index_folder,
        "temporary files": Path(tempfile.gettempdir()),
    }
    by_disk: dict[int, list[str]] = {}
    for what, path in places.items():
        with suppress(OSError):  # a place that can't be reached has been told
            by_disk.setdefault(_nearest(path).stat().st_dev, []).append(what)
    for names in by_disk.values():
        path, what = places[names[0]], ", ".join(names)
        found = os.statvfs(_nearest(path))
        free = found.f_bavail * found.f_frsize
        if found.f_files and not found.f_favail:
            message = f"no more files can be made for {what}, around {path}"
            yield problem("room", message, "remove files that aren't needed there")
        elif free < ROOM_BYTES:
            message = f"{_size(free)} are left for {what}, around {path}"
            yield problem("room", message, "make room there, or a write will soon be refused")
        else:
            yield ok("room", f"{_size(free)} are free for {what}")


def _journal(folder: Path, indexed: Callable[[], int]) -> Iterator[Verdict]:
    found = _folder(JOURNAL, folder)
    is_empty = found.level == "note" or (found.level == "ok" and not _holds_entries(folder))
    if is_empty and (count := indexed()):
        what = "is missing" if found.level == "note" else "is empty"
        entries = counted(count, "entry", "entries")
        message = f"{folder} {what}, and its search index knows {entries}"
        advice = (
            "mount it if it belongs to another disk; if it is gone for good: agent-journal reindex"
        )
        yield problem(JOURNAL, message, advice)
        return
    yield found
    if found.level == "ok":
        yield from _privacy(folder)


def _folder(subject: str, path: Path) -> Verdict:
    choose = f"choose another with {_ELSEWHERE[subject]}"
    try:
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            return problem(subject, f"{path} is no folder", f"move it away, or {choose}")
        _holds_entries(path)
    except FileNotFoundError:
        return _missing(subject, path, choose)
    except OSError as error:
        reason = f"{path} can't be read: {placing.reason_of(error)}"
        return problem(subject, reason, f"{_grant(path)}, or {choose}")
    if not _may(path, os.W_OK | os.X_OK):
        return problem(subject, f"{path} can't be written", f"{_grant(path)}, or {choose}")
    return ok(subject, f"{path} can be read and written")


def _missing(subject: str, path: Path, choose: str) -> Verdict:
    above = _nearest(path)
    if os.path.lexists(path):
        advice = f"remove the link or mend what it leads to, or {choose}"
        return problem(subject, f"{path} is a link that leads nowhere", advice)
    if not _may(above, os.W_OK | os.X_OK):
        message = f"{path} is missing and can't be made, since {above} can't be written"
        return problem(subject, message, f"{_grant(above)}, or {choose}")
    if subject != JOURNAL:
        return ok(subject, f"{path} is made when it is needed")
    return note(subject, f"{path} is missing so far", "nothing: the first write makes it")


def _privacy(folder: Path) -> Iterator[Verdict]:
    """Tell when other users can get at the entries, which depends on the folders above, too."""
    mode = folder.stat().st_mode
    above = [each.stat().st_mode for each in Path(os.path.realpath(folder)).parents]
    open_to = [
        who
        for who, bits, may_pass in _OTHERS
        if mode & bits and all(each & (may_pass | stat.S_IXOTH) for each in above)
    ]
    if open_to:
        message = f"{folder} is open to {' and '.join(open_to)}"
        yield problem("privacy", message, f"chmod 700 {folder}")


def _holds_entries(folder: Path) -> bool:
    with placing.opened(folder) as descriptor:
        return any(name.endswith(ENTRY_SUFFIX) for name in placing.names(descriptor))


def _nearest(path: Path) -> Path:
    """Return the nearest folder upwards that exists, as far as can be seen."""
    upwards = (path, *path.parents)
    return next(each for each in upwards if os.path.exists(each))  # noqa: PTH110 - it never fails


def _may(path: Path, mode: int) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(path, mode, effective_ids=effective)


def _grant(path: Path) -> str:
    """Return what gives this user the right to use a folder."""
    try:
        is_ours = path.stat().st_uid == os.geteuid()
    except OSError:
        return f"ask its owner for access to {path}"
    return f"chmod u+rwx {path}" if is_ours else f"ask its owner for access to {path}"


def _size(size: int) -> str:
    gigabytes = size / 1e9
    return f"{gigabytes:,.1f} GB" if gigabytes >= 1 else f"{size / 1e6:,.0f} MB"
