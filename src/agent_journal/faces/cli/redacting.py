"""The command that removes text for good: asked by a person, and confirmed by one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from agent_journal.engines.scanning import printable
from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import NOTHING, OK
from agent_journal.faces.cli.input import read_body
from agent_journal.faces.cli.options import id_argument
from agent_journal.faces.cli.output import say, say_warning
from agent_journal.faces.cli.shared import shared_options
from agent_journal.faces.framing import one_line
from agent_journal.model import Entry

UNREACHED = (
    "not reached: backups, exports, the history of a repository, copies on other machines, "
    "and blocks of the disk that were given free"
)

_TITLE_WIDTH = 60


@click.command(
    epilog="\b\nExamples:\n"
    '  agent-journal redact 20260131-180000-000 --reason "names a customer"\n'
    '  pass show db | agent-journal redact 2026 --text - --reason "a password" --yes\n'
    "  agent-journal redact 20260131-180000-000\n"
)
@id_argument
@click.option(
    "--text",
    metavar="TEXT",
    help="Remove this alone, wherever it stands in the entry; - is stdin.  [default: all of it]",
)
@click.option("--reason", metavar="WHY", help="Why; it stays in the entry and in the ledger.")
@click.option("--yes", is_flag=True, help="Don't ask; needed where there is no terminal.")
@shared_options(listed=False)
@click.pass_context
def redact(
    context: click.Context, entry_id: str, *, text: str | None, reason: str | None, yes: bool
) -> int:
    """Remove an entry, or a text from it, for good.

    A mark stays in its place, and no word of it in the index. Without --reason, what an earlier
    redaction left undone is done.
    """
    call = Call(context)
    if text == "-":
        text = read_body("-", None)[0].removesuffix("\n")
    elif text == "":
        raise click.UsageError("--text is empty; leave it away to redact all of the entry")
    asks = reason is not None or text is not None
    if asks and not reason:
        raise click.UsageError("a redaction needs --reason, which must not say what is removed")
    if asks and not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("a redaction can't be undone; where nobody can be asked, say --yes")
    settings = call.settings(lexical=True)
    with call.journal(settings) as journal:
        found = journal.resolve(entry_id)
        if asks and not yes and not _is_meant(journal.read(found), text):
            say("nothing was changed")
            return NOTHING
        done = journal.redact(found, reason=reason or "", text=text or "")
    if asks:
        done = replace(done, notices=(*done.notices, *_committed(settings.folder)))
    call.answer(shapes.redacted_shape(done, settings.folder), layout.redacted_lines(done))
    for notice in done.notices:
        say_warning(notice)
    if not call.as_json:
        say(UNREACHED)
    return OK


def _committed(folder: Path) -> Iterator[str]:
    """Tell of the repository in which a journal lies: it may hold the text for ever."""
    for above in (folder, *folder.parents):
        if (above / ".git").exists():
            where = f"the journal lies in the git repository {printable(above)}"
            yield f"{where}: what was committed there keeps the text until its history is rewritten"
            return


def _is_meant(entry: Entry, text: str | None) -> bool:
    what = "all of" if text is None else f"{one_line(text, _TITLE_WIDTH)!r} in"
    title = one_line(entry.heading, _TITLE_WIDTH)
    return click.confirm(f"Remove {what} {entry.id} ({title}) for good?", default=False, err=True)
