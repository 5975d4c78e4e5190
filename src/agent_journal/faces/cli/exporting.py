"""The command that writes entries out, as JSON Lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import NOTHING, OK, OutputFailedError
from agent_journal.faces.cli.options import RestrictingOptions, resolve, restricting_options
from agent_journal.faces.cli.output import PROGRAM, print_text, progress_bar, say, say_warning
from agent_journal.faces.cli.shared import shared_options
from agent_journal.faces.framing import counted

if TYPE_CHECKING:
    from agent_journal.transfer.jsonl import Export

_CHUNK_LENGTH = 256 * 1024
_FILE_MODE = 0o600


@click.command(
    epilog="\b\nExamples:\n"
    "  agent-journal export -o backup.jsonl\n"
    "  agent-journal export --project . --since 7d | jq -r .title\n"
    "  agent-journal export | ssh desktop agent-journal import jsonl -\n"
)
@restricting_options
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(readable=False),
    help="Write into this new file instead of stdout.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@shared_options(listed=False)
@click.pass_context
def export(
    context: click.Context,
    *,
    output: str | None,
    force: bool,
    **restrictions: Unpack[RestrictingOptions],
) -> int:
    """Write entries as JSON Lines, oldest first.

    Each line is a JSON object with all fields of an entry, which `import jsonl` reads back.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - not needed for --help

    from agent_journal.assembly import open_store  # noqa: PLC0415 - as above
    from agent_journal.query import Filters, Query  # noqa: PLC0415 - as above
    from agent_journal.transfer.jsonl import Export  # noqa: PLC0415 - as above

    call = Call(context)
    resolve(restrictions)
    filters = Filters.of(Query(**restrictions), datetime.now(UTC))
    settings = call.settings(lexical=True)
    path = _destination(output, settings.folder, force=force)
    is_shown = path is None and sys.stdout.isatty()
    with nullcontext() if is_shown else progress_bar("Exporting") as progress:
        exported = Export(open_store(settings), filters, progress)
        if path is None:
            for chunk in _chunks(exported):
                print_text(chunk)
        else:
            _write(path, _chunks(exported), replaces=force)
    return _conclude(call, exported, path)


def _conclude(call: Call, export: Export, path: Path | None) -> int:
    """Tell what was exported, and what was not; return the exit code."""
    if export.unreadable:
        count = counted(len(export.unreadable), "entry", "entries")
        first = export.unreadable[0].path
        say_warning(f"{count} can't be read, {first} for one; see: {PROGRAM} check")
    if export.damaged:
        count = counted(export.damaged, "entry is", "entries are")
        say_warning(f"{count} exported as far as it goes, being damaged; see: {PROGRAM} check")
    if path is not None:
        call.answer(shapes.export_shape(export, path), layout.export_lines(export, path))
    elif not export.count:
        say("nothing to export")
    return OK if export.count and not export.unreadable else NOTHING


def _destination(output: str | None, journal: Path, *, force: bool) -> Path | None:
    """Return the file to write, links followed; None stands for stdout.

    Raises:
        UsageError: something is there that must not be replaced.
    """
    if output is None or output == "-":
        return None
    path = Path(os.path.realpath(output))
    if path.parent == Path(os.path.realpath(journal)):
        raise click.UsageError("the journal folder is for entries; write the export elsewhere")
    if path.exists() and not path.is_file():
        raise click.UsageError(f"{output} is no file; let the shell write there, with >")
    if path.exists() and not force:
        raise click.UsageError(f"{output} is there already; replace it with --force")
    return path


def _write(path: Path, chunks: Iterator[str], *, replaces: bool) -> None:
    """Write a file that appears whole and durable, or not at all; nothing at all makes no file.

    Raises:
        OutputFailedError: it can't be written.
    """
    from agent_journal.engines import placing  # noqa: PLC0415 - not needed for --help

    first = next(chunks, None)
    if first is None:
        return
    try:
        with placing.opened(path.parent) as folder:
            with placing.Staging(folder, _FILE_MODE) as staging:
                staging.fill(first.encode(), durable=False)
                for chunk in chunks:
                    staging.fill(chunk.encode(), durable=False)
                staging.fill(b"", durable=True)
                (staging.replace if replaces else staging.place)(path.name)
            placing.flush_folder(folder)
    except OSError as error:
        raise OutputFailedError(placing.reason_of(error), str(path)) from error


def _chunks(lines: Iterable[str]) -> Iterator[str]:
    """Join lines, so that they are written some at a time."""
    parts: list[str] = []
    length = 0
    for line in lines:
        parts.append(line)
        length += len(line)
        if length >= _CHUNK_LENGTH:
            yield "".join(parts)
            parts, length = [], 0
    if parts:
        yield "".join(parts)
