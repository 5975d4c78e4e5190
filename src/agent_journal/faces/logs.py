"""Warnings, to stderr and to a small private file, since hosts swallow stderr.

The file is opened anew for each record: nothing is held open, several processes may write to it,
and it is created by the first warning, so that a quiet run leaves no trace. What an entry holds is
never logged: of an exception that isn't ours only its class and its places in the code are written.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from agent_journal.config import Settings
from agent_journal.errors import JournalError
from agent_journal.faces.framing import exact_line

SIZE_LIMIT_BYTES = 256 * 1024
"""The file is put aside when it is larger, in the place of the one put aside before."""

MESSAGE_LIMIT = 2_000
"""Characters of a message that are kept."""

FRAME_LIMIT = 20
"""Places in the code that are kept of an exception, the innermost."""

MEMBER_LIMIT = 5
"""Exceptions that are kept of a group."""

_LOGGER = logging.getLogger("agent_journal")
_RECORD = re.compile(r"\d{4}-\d\d-\d\dT")


def set_up(settings: Settings) -> None:
    """Send this program's warnings to stderr and to the log file; what was set up before ends.

    Nothing is created yet. A folder that can't be written costs the file and nothing else: stderr
    has each record too.
    """
    for handler in _own_handlers():
        _LOGGER.removeHandler(handler)
    _LOGGER.addHandler(_StderrHandler(logging.WARNING))
    if settings.state_folder is not None:
        _LOGGER.addHandler(_FileHandler(settings.state_folder / "log"))


def latest(limit: int) -> list[str]:
    """Return the latest records of the log file, one line each, the newest last.

    Args:
        limit: at most so many; fewer when there are not as many, none before `set_up`.
    """
    lines: list[str] = []
    for handler in _own_handlers():
        if isinstance(handler, _FileHandler):
            for path in (handler.put_aside, handler.path):
                try:
                    # Reading a pipe in the file's place could wait for ever.
                    text = path.read_text("utf-8", "replace") if path.is_file() else ""
                except OSError:
                    continue  # it isn't ours to read: nothing to show
                lines += [line for line in text.split("\n") if _RECORD.match(line)]
    return lines[-limit:] if limit > 0 else []


class _StderrHandler(logging.Handler):
    """Writes to whatever stderr is at that moment, in one plain line."""

    def emit(self, record: logging.LogRecord) -> None:
        cause = _exception(record)
        suffix = f" ({type(cause).__name__})" if cause else ""
        try:
            sys.stderr.write(f"agent-journal: {_level(record)}: {_message(record)}{suffix}\n")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            return  # stderr is closed, gone, or None: there is nowhere left to complain


class _FileHandler(logging.Handler):
    """Appends to a file of bounded size that only its owner can read."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.WARNING)
        self.path = path
        self.put_aside = path.with_name(path.name + ".1")

    def emit(self, record: logging.LogRecord) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        head = f"{moment} {_level(record)} {record.name}[{record.process}]: {_message(record)}"
        lines = [head, *_trace(_exception(record))]
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        try:
            _make_private_folder(self.path.parent)
            self._append(data)
        except OSError:
            return  # as `set_up` promises

    def _append(self, data: bytes) -> None:
        with _open_private(self.path) as file:
            found = os.fstat(file.fileno())
            if found.st_size == 0 or found.st_size + len(data) <= SIZE_LIMIT_BYTES:
                file.write(data)
                return
        # Another process may have put it aside meanwhile; the new one stays then.
        if os.path.samestat(found, self.path.stat()):
            self.path.replace(self.put_aside)
        with _open_private(self.path) as file:
            file.write(data)


def _own_handlers() -> list[logging.Handler]:
    return [each for each in _LOGGER.handlers if isinstance(each, _StderrHandler | _FileHandler)]


def _open_private(path: Path) -> io.FileIO:
    """Open a file for appending, each write at once and whole; only its owner may read it."""
    # A pipe in the file's place must not hold up the program.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    return io.FileIO(os.open(path, flags, 0o600), "ab")


def _make_private_folder(folder: Path) -> None:
    """Create a folder and what it needs above, all 0700, as the XDG specification asks."""
    if not folder.is_dir():
        for each in (*reversed(folder.parents), folder):
            if not each.is_dir():
                each.mkdir(mode=0o700, exist_ok=True)


def _level(record: logging.LogRecord) -> str:
    return record.levelname.lower()


def _message(record: logging.LogRecord) -> str:
    """Return the message as one bounded line without control characters."""
    try:
        text = record.getMessage()
    except (TypeError, ValueError, KeyError):  # arguments that don't fit: a mistake of ours
        text = str(record.msg)
    cut = f"{text[:MESSAGE_LIMIT]}..." if len(text) > MESSAGE_LIMIT else text
    return exact_line(cut.replace("\n", "\\n").replace("\t", "\\t"))


def _exception(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None


def _trace(exception: BaseException | None, seen: set[int] | None = None) -> Iterator[str]:
    """Yield indented lines that say where an exception came from, its members and causes too."""
    seen = set() if seen is None else seen
    while exception is not None and id(exception) not in seen:
        seen.add(id(exception))
        yield f"    {type(exception).__qualname__}{_detail(exception)}"
        for frame in traceback.extract_tb(exception.__traceback__, limit=-FRAME_LIMIT):
            yield f"        {frame.filename}:{frame.lineno} in {frame.name}"
        if isinstance(exception, BaseExceptionGroup):
            for member in exception.exceptions[:MEMBER_LIMIT]:
                yield from _trace(member, seen)
        hidden = exception.__suppress_context__
        exception = exception.__cause__ or (None if hidden else exception.__context__)


def _detail(exception: BaseException) -> str:
    """Return an exception's message where we know that it holds no entry's text."""
    if isinstance(exception, OSError):
        return f": {exception.strerror}: {exception.filename}"
    return f": {exception}" if isinstance(exception, JournalError) else ""
