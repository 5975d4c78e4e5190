"""Prints what the command line says: styled on a terminal, plain in a pipe, or as JSON."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from agent_journal.faces.cli.errors import OutputFailedError
from agent_journal.faces.cli.layout import Line
from agent_journal.faces.framing import escape_controls, one_line
from agent_journal.jsonline import Json, encode

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from agent_journal.ports import Progress

PROGRAM = "agent-journal"
COMPLETION_VARIABLE = "_AGENT_JOURNAL_COMPLETE"
"""Set by a shell's completion script when the shell wants completions."""

_WIPE = "\r\x1b[K"  # back to the line's start, and clear it

BAR_DELAY_S = 0.3
"""Work that ends sooner shows no progress bar."""


def package_version() -> str:
    """Return the version of this package, as it is installed."""
    from importlib.metadata import version  # noqa: PLC0415 - slow to import

    return version(PROGRAM)


def prepare_streams() -> None:
    """Make sure that printing can't fail for a character, and that nothing else gets fd 0 to 2.

    A closed standard stream would leave its number to the next file that is opened, the index for
    one, and whatever a library prints would end up in it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            nothing = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - stays open
            setattr(sys, name, nothing)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(shape: Json) -> None:
    """Print a JSON object on one line.

    Raises:
        BrokenPipeError: nobody reads the output any more.
        OutputFailedError: it can't be written for another reason.
    """
    _write(encode(shape) + "\n")


def print_text(text: str) -> None:
    """Print a text as it is.

    Raises:
        BrokenPipeError: nobody reads the output any more.
        OutputFailedError: it can't be written for another reason.
    """
    _write(text)


def print_lines(lines: Iterable[Line]) -> None:
    """Print lines, with styles and wrapping on a terminal.

    Raises:
        BrokenPipeError: nobody reads the output any more.
        OutputFailedError: it can't be written for another reason.
    """
    if sys.stdout.isatty():
        _write(_styled(lines))
    else:
        _write("".join(f"{line.text}\n" for line in lines))


def say(message: str) -> None:
    """Tell the person something beside the answer, on stderr; lost if that is closed."""
    _say(escape_controls(message))


def say_warning(message: str) -> None:
    """Tell the person what they should know, in one line on stderr."""
    _say(f"{PROGRAM}: warning: {one_line(message)}")


def say_error(message: str) -> None:
    """Tell the person what went wrong, in one line on stderr."""
    _say(f"{PROGRAM}: error: {one_line(message)}")


def forget_stdout() -> None:
    """Point stdout at nothing, so that the flush at exit can't fail once more."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # a stream of a test has no descriptor
        os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


@contextmanager
def progress_bar(label: str, *, in_bytes: bool = False) -> Iterator[Progress | None]:
    """Give a function to be told of (done, total), which draws a bar on stderr.

    It is None unless stderr is a terminal. Nothing is drawn in the first 0.3 s.

    Args:
        label: what is being done.
        in_bytes: it is bytes that are counted.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label, in_bytes=in_bytes)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Say on a terminal what is waited for, if that takes longer than 0.3 s, and wipe it away."""
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(BAR_DELAY_S, _show, (f"{label} ...",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        _show(_WIPE)


class _Bar:
    """A progress bar that appears only once the work has taken a while."""

    def __init__(self, label: str, *, in_bytes: bool) -> None:
        self._label = label
        self._in_bytes = in_bytes
        self._begun = time.monotonic()
        self._drawn: tuple[RichProgress, TaskID] | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show that so much of the work is done."""
        if self._drawn is None:
            if done >= total or time.monotonic() - self._begun < BAR_DELAY_S:
                return
            self._drawn = self._draw(total)
        progress, task = self._drawn
        progress.update(task, completed=done, total=total)

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._drawn:
            self._drawn[0].stop()

    def _draw(self, total: int) -> tuple[RichProgress, TaskID]:
        from rich.console import Console  # noqa: PLC0415 - slow to import
        from rich.progress import (  # noqa: PLC0415 - as above
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress  # noqa: PLC0415 - as above

        progress = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn() if self._in_bytes else MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = progress.add_task(self._label, total=total)
        progress.start()
        return progress, task


def _styled(lines: Iterable[Line]) -> str:
    from rich.console import Console  # noqa: PLC0415 - slow to import, for terminals only
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    printed: list[str] = []
    for line in lines:
        if line.verbatim or not line.segments:
            printed.append(f"{line.text}\n")  # rich would expand tabs
            continue
        with console.capture() as captured:
            text = Text.assemble(*line.segments)
            room = max(console.width - line.indent - line.hang, 1)
            for number, part in enumerate(text.wrap(console, room)):
                part.rstrip()  # in place
                indent = line.indent + (line.hang if number else 0)
                console.print(Text(" " * indent) + part, soft_wrap=True)
        printed.append(captured.get())
    return "".join(printed)


def _write(text: str) -> None:
    stream: TextIO = sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_stdout()
        raise OutputFailedError(error.strerror or str(error)) from None


def _say(message: str) -> None:
    _show(f"{message}\n")


def _show(text: str) -> None:
    with suppress(OSError, ValueError):  # stderr closed: there is no one left to tell
        sys.stderr.write(text)
        sys.stderr.flush()
