"""The command line's edge: runs a command, tells what went wrong, ends with the right code."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from agent_journal.errors import JournalError
from agent_journal.faces.cli.commands import commands
from agent_journal.faces.cli.errors import (
    INTERNAL,
    INTERRUPTED,
    NOTHING,
    PIPE_CLOSED,
    USAGE,
    OutputFailedError,
    exit_code,
)
from agent_journal.faces.cli.input import NothingWrittenError
from agent_journal.faces.cli.output import (
    COMPLETION_VARIABLE,
    PROGRAM,
    forget_stdout,
    print_json,
    say,
    say_error,
)
from agent_journal.faces.cli.shapes import error_shape


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; nothing is raised, every error is told."""
    as_json = "--json" in arguments[: _end_of_options(arguments)]
    try:
        try:
            return _invoke(arguments)
        except Exception as error:  # noqa: BLE001 - the outer edge; `_tell` logs what is unexpected
            return _tell(error, as_json=as_json)
    except BrokenPipeError:
        forget_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        say("")  # the next prompt belongs on a line of its own, after the echoed ^C
        return INTERRUPTED


def _invoke(arguments: Sequence[str]) -> int:
    # Not `Group.main`: it ends the process with a code of its own when a pipe is closed.
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from agent_journal.faces.cli.completion import respond  # noqa: PLC0415 - for shells only

        return respond(commands, instruction)
    try:
        with commands.make_context(PROGRAM, list(arguments)) as context:
            code: int = commands.invoke(context)
            return code
    except click.exceptions.Exit as end:  # as after --help
        return end.exit_code


def _tell(error: Exception, *, as_json: bool) -> int:
    """Tell an error in one line or as JSON, and return its exit code."""
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, click.Abort):
        raise KeyboardInterrupt from None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        say(error.format_message())
        return USAGE
    sentence, code = _judge(error)
    notes = getattr(error, "__notes__", [])
    if code == INTERNAL and _log(error) and not as_json:
        for note in notes:
            say_error(note)
        return code  # the log has told the rest on stderr
    sentence = "; ".join([sentence, *notes])
    if as_json:
        try:
            print_json(error_shape(error, sentence, code))
        except OutputFailedError as failure:
            say_error(f"{failure}; it would have been: {sentence}")
    else:
        say_error(sentence)
    return code


def _judge(error: Exception) -> tuple[str, int]:
    """Return what to say of an error, and its exit code."""
    if isinstance(error, JournalError):
        return str(error), exit_code(error)
    if isinstance(error, NothingWrittenError):
        return error.format_message(), NOTHING
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else PROGRAM
        return f"{error.format_message().rstrip('.')}; see {command} --help", USAGE
    if isinstance(error, click.ClickException):  # such as an editor that failed
        return error.format_message(), USAGE
    return f"internal error, please report it: {type(error).__name__}: {error}", INTERNAL


def _log(error: Exception) -> bool:
    """Log an error that nobody expected, with its traceback, if the log is set up by then."""
    import logging  # noqa: PLC0415 - not needed for --help

    log = logging.getLogger("agent_journal")
    if not log.handlers:  # then logging would print the traceback itself
        return False
    log.error("internal error, please report it; the log says where it happened", exc_info=error)
    return True


def _end_of_options(arguments: Sequence[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)
