"""The commands that take entries in from elsewhere."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import NOTHING, OK
from agent_journal.faces.cli.output import PROGRAM, progress_bar, say, say_warning
from agent_journal.faces.cli.shared import (
    Decorated,
    secrets_option,
    shared_options,
    with_options,
)
from agent_journal.faces.framing import counted, escape_controls

if TYPE_CHECKING:
    from agent_journal.model import Provenance
    from agent_journal.transfer.batch import Batch


def _importing(decorated: Decorated) -> Decorated:
    return with_options(
        decorated,
        click.option("--dry-run", is_flag=True, help="Write nothing; tell what would be added."),
        secrets_option,
        shared_options(listed=False),
    )


@click.group(
    "import",
    epilog="\b\nExamples:\n"
    "  agent-journal import memory-blocks --dry-run\n"
    "  agent-journal import private-journal ~/.private-journal\n"
    "  agent-journal import jsonl backup.jsonl\n",
)
@shared_options(listed=False)
def import_() -> None:
    """Take in entries from elsewhere.

    Each comes once, under its original time: what was imported before is passed over, and what has
    changed since is added anew. Nothing but entries is written.
    """


@import_.command(
    "memory-blocks",
    epilog="\b\nExamples:\n"
    "  agent-journal import memory-blocks --dry-run\n"
    "  agent-journal import memory-blocks ~/src/shop ~/src/wiki\n",
)
@click.argument("projects", nargs=-1, metavar="[PROJECT]...", type=click.Path(readable=False))
@_importing
@click.pass_context
def memory_blocks(context: click.Context, projects: tuple[str, ...], *, dry_run: bool) -> int:
    """Take in the memory blocks of opencode-agent-memory 0.4.

    Those of all projects (~/.config/opencode/memory) and those of each PROJECT's folder
    (.opencode/memory in it); without PROJECT those of the nearest folder upwards that has some.
    """
    from agent_journal.transfer.memory_blocks import (  # noqa: PLC0415 - not needed for --help
        PROJECT_FOLDER,
        BlockFolder,
        find,
    )

    chosen = [_absolute(each) for each in projects] or _nearest_with(PROJECT_FOLDER)
    everywhere = Path("~").expanduser() / ".config" / "opencode" / "memory"
    folders = [BlockFolder(everywhere)]
    folders += [BlockFolder(each / PROJECT_FOLDER, _origin(each)) for each in chosen]
    for each in chosen:
        if not (each / PROJECT_FOLDER).exists():
            say(f"there are no memory blocks in {each / PROJECT_FOLDER}")
    return _take_in(Call(context), find(folders), dry_run=dry_run)


@import_.command(
    "private-journal",
    epilog="\b\nExamples:\n"
    "  agent-journal import private-journal ~/.private-journal\n"
    "  agent-journal import private-journal ~/src/shop/.private-journal --project ~/src/shop\n",
)
@click.argument("path", type=click.Path(readable=False))
@click.option(
    "--project", "-p", metavar="PATH", help="The project that its entries belong to; . is this one."
)
@_importing
@click.pass_context
def private_journal(
    context: click.Context, path: str, *, project: str | None, dry_run: bool
) -> int:
    """Take in a journal of private-journal-mcp.

    PATH is its folder. Sections are kept. Without --project its entries belong to none.
    """
    from agent_journal.transfer.batch import UNKNOWN  # noqa: PLC0415 - not needed for --help
    from agent_journal.transfer.private_journal import find  # noqa: PLC0415 - as above

    origin = _origin(_absolute(project)) if project else UNKNOWN
    return _take_in(Call(context), find(_absolute(path), origin), dry_run=dry_run)


@import_.command(
    "jsonl",
    epilog="\b\nExamples:\n"
    "  agent-journal import jsonl backup.jsonl\n"
    "  ssh laptop agent-journal export | agent-journal import jsonl -\n",
)
@click.argument("file", type=click.Path(readable=False))
@_importing
@click.pass_context
def jsonl(context: click.Context, file: str, *, dry_run: bool) -> int:
    """Take in entries that `export` has written.

    FILE holds a JSON object a line, each with "created" and "body" at least; - is stdin.
    """
    from agent_journal.transfer.batch import Batch  # noqa: PLC0415 - not needed for --help
    from agent_journal.transfer.jsonl import opened, read_lines  # noqa: PLC0415 - as above

    call = Call(context)
    if file == "-":
        return _take_in(call, Batch(read_lines(sys.stdin.buffer, "stdin")), dry_run=dry_run)
    with opened(_absolute(file)) as batch:
        return _take_in(call, batch, dry_run=dry_run)


def _take_in(call: Call, batch: Batch, *, dry_run: bool) -> int:
    from agent_journal.assembly import open_store  # noqa: PLC0415 - not needed for --help
    from agent_journal.transfer.intake import take_in  # noqa: PLC0415 - as above
    from agent_journal.transfer.known import Known  # noqa: PLC0415 - as above

    settings = call.settings(lexical=True, writes=not dry_run)
    with progress_bar("Looking at what is there") as progress:
        known = Known.of(open_store(settings), progress)
    if known.unreadable:
        count = counted(len(known.unreadable), "entry", "entries")
        say_warning(f"{count} can't be read, and may be imported once more; see: {PROGRAM} check")
    with call.journal(settings) as journal, progress_bar("Importing") as progress:
        done = take_in(
            partial(journal.write, may_dangle=True),
            batch,
            known,
            secrets=settings.secrets,
            dry_run=dry_run,
            progress=progress,
        )
    call.answer(
        shapes.intake_shape(done, dry_run=dry_run), layout.intake_lines(done, dry_run=dry_run)
    )
    return NOTHING if done.refused or not done.read else OK


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - a link stays a link


def _origin(folder: Path) -> Provenance:
    """Return where the entries of a project's folder come from."""
    from agent_journal.faces.repository import identity  # noqa: PLC0415 - not needed for --help
    from agent_journal.model import Provenance  # noqa: PLC0415 - as above

    return Provenance(project=escape_controls(str(folder)), repo=identity(str(folder)))


def _nearest_with(inside: Path) -> list[Path]:
    """Return the nearest folder upwards that holds a path, up to the project's; none without."""
    for folder in (here := Path.cwd(), *here.parents):
        if (folder / inside).is_dir():
            return [folder]
        if (folder / ".git").exists():
            break
    return []
