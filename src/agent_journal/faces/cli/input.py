"""What a draft is made of on the command line: its body, its tags, and when it happened."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import BinaryIO

import click

from agent_journal.errors import InvalidFieldError
from agent_journal.model import ENTRY_LIMIT_BYTES, to_utc

READ_LIMIT_BYTES = 4 * ENTRY_LIMIT_BYTES
"""Reading stops here: far above what an entry holds, far below what memory does."""


class NothingWrittenError(click.ClickException):
    """The editor was left without saving, so that there is nothing to write."""


def read_body(body: str | None, body_file: str | None) -> tuple[str, bool]:
    """Return a body and whether it was typed into an editor just now.

    The first of these that is there: the argument or the file (``-`` is stdin for both), stdin if
    it isn't a terminal, the editor.

    Raises:
        UsageError: there are two bodies, or none and no terminal to show an editor.
        InvalidFieldError: the text isn't UTF-8, far too long, or its file can't be read.
        NothingWrittenError: the editor was left without saving.
    """
    if body is not None and body_file is not None:
        raise click.UsageError("give the body as an argument or with --body-file, not both")
    if "-" in (body, body_file):
        return _decoded(sys.stdin.buffer, "stdin"), False
    if body is not None:
        return body, False
    if body_file is not None:
        try:
            with open(body_file, "rb") as file:  # noqa: PTH123 - pathlib would slow --help down
                return _decoded(file, body_file), False
        except OSError as error:
            message = f"body file {body_file} can't be read: {error.strerror}"
            raise InvalidFieldError("body", message) from None
    if not sys.stdin.isatty():
        return _decoded(sys.stdin.buffer, "stdin"), False
    if not sys.stdout.isatty():  # as in id=$(agent-journal write T): the editor would be captured
        raise click.UsageError(
            'there is no body; give it as an argument ("" for none), with --body-file, or on stdin'
        )
    try:
        text = click.edit("", extension=".md")
    except click.ClickException as error:
        raise click.UsageError(
            f"the editor can't be used: {error.format_message()}; set EDITOR to one that is there, "
            "or give the body as an argument, with --body-file, or on stdin"
        ) from error
    if text is None:
        raise NothingWrittenError("the editor was left without saving; nothing was written")
    return text, True


@contextmanager
def rescued(text: str) -> Iterator[None]:
    """Keep a text that was typed in an editor in a temporary file if it can't be written.

    Raises:
        Exception: whatever stopped the writing, with a note that names the file.
    """
    try:
        yield
    except Exception as error:
        import tempfile  # noqa: PLC0415 - hardly ever needed

        try:
            with tempfile.NamedTemporaryFile(
                "wb", prefix="agent-journal-", suffix=".md", delete=False
            ) as file:
                file.write(text.encode(errors="surrogatepass"))
        except OSError as failure:
            error.add_note(f"the text can't be kept either: {failure.strerror}; it was: {text}")
        else:
            error.add_note(f"the text is kept in {file.name}")
        raise


def parse_created(value: str | None) -> datetime | None:
    """Return the instant that ``--created`` names; without a zone it is UTC.

    Raises:
        InvalidFieldError: it is no ISO 8601 date or time.
    """
    if value is None:
        return None
    try:
        return to_utc(datetime.fromisoformat(value.strip()))
    except ValueError:
        message = f"created is {value[:80]!r}, which is no date; use 2026-01-31T18:00Z"
        raise InvalidFieldError("created", message) from None


def split_tags(values: Iterable[str]) -> tuple[str, ...]:
    """Return tags given as repeated options or comma lists, with or without a leading ``#``."""
    return tuple(part for value in values for part in value.split(","))


def _decoded(stream: BinaryIO, name: str) -> str:
    data = stream.read(READ_LIMIT_BYTES + 1)
    if len(data) > READ_LIMIT_BYTES:
        message = (
            f"body from {name} goes on past {READ_LIMIT_BYTES:,} bytes, the limit of an entry is "
            f"{ENTRY_LIMIT_BYTES:,}; split it into several entries"
        )
        raise InvalidFieldError("body", message)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = (
            f"body from {name} is not UTF-8: byte 0x{error.object[error.start]:02x} at position "
            f"{error.start}; convert it, for example with iconv -f LATIN1 -t UTF-8"
        )
        raise InvalidFieldError("body", message) from None
