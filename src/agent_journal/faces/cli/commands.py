"""The commands: what each takes, asks of the journal, and answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, Unpack

import click

from agent_journal.errors import EmbedderUnavailableError, JournalError, JournalUnavailableError
from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import MEANINGS, NOTHING, OK
from agent_journal.faces.cli.input import parse_created, read_body, rescued, split_tags
from agent_journal.faces.cli.layout import Line
from agent_journal.faces.cli.options import (
    FilterOptions,
    OriginOptions,
    filter_options,
    ids_argument,
    origin_options,
    provenance_of,
    reference_option,
    resolve,
    tag_option,
)
from agent_journal.faces.cli.output import (
    PROGRAM,
    package_version,
    progress_bar,
    say,
    say_warning,
    waiting,
)
from agent_journal.faces.cli.shared import secrets_option, shared_options
from agent_journal.faces.framing import counted
from agent_journal.model import Draft
from agent_journal.query import Query
from agent_journal.secrets.telling import sentences

if TYPE_CHECKING:
    from agent_journal.config import Settings
    from agent_journal.journal import Journal
    from agent_journal.model import EntryId

BACKLOG_LIMIT_S = 1.0
"""How long a search makes vectors that are missing, once the model is loaded, before it answers."""

SEARCH_WAIT_S = 10.0
"""How long a search waits for the model, which each process loads anew: usually about a second."""

MODEL_WAIT_S = 60.0
"""How long `reindex` and `status` wait for it: far longer than loading takes anywhere."""

_WARNINGS_SHOWN = 10
_SHELLS = ("bash", "zsh", "fish")
_MODULES = {
    "doctor": "doctoring",
    "export": "exporting",
    "hosts": "hosting",
    "import": "importing",
    "install": "hosting",
    "model": "modelling",
    "redact": "redacting",
    "uninstall": "hosting",
}
"""The modules of the commands that are not here: a search should not load them."""


class _Commands(click.Group):
    """Finds a command in its own module when it is asked for; ``import_`` is called `import`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted({*super().list_commands(ctx), *_MODULES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, if there is one."""
        if cmd_name in _MODULES and cmd_name not in self.commands:
            module = import_module(f"agent_journal.faces.cli.{_MODULES[cmd_name]}")
            name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
            self.add_command(getattr(module, name))
        return super().get_command(ctx, cmd_name)


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it so
    if value and not context.resilient_parsing:
        number = package_version()
        line = Line(((f"{PROGRAM} {number}", ""),))
        Call(context).answer({"version": number}, [line])
        context.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n"
    '  agent-journal write "Redis pins to 7.2" "7.4 changed its licence." -t redis,decision\n'
    '  git log -1 --format=%B | agent-journal write "Release notes"\n'
    "  agent-journal search why is redis pinned\n"
    "  agent-journal search --tag decision --since 7d --json\n"
    "  agent-journal read 20260131\n\n\b\nExit codes:\n"
    + "\n".join(f"{code:>5}  {meaning}" for code, meaning in MEANINGS.items()),
)
@shared_options(listed=True)
@click.option(
    "--version",  # not eager, so that --json is known by then
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def commands() -> None:
    """Write, find and read the journal that your coding agents keep.

    Options that stand here may follow the command, too; --model then is --embedding-model.
    """


@commands.command(
    epilog="\b\nExamples:\n"
    '  agent-journal write "Tests need a C locale" "Set LC_ALL=C in CI." -t ci\n'
    '  make 2>&1 | agent-journal write "Build log" --tag ci,log\n'
    "  agent-journal write Design --body-file notes.md\n"
)
@click.argument("title")
@click.argument("body", required=False)
@click.option(
    "--body-file", metavar="FILE", type=click.Path(), help="Take the body from a file; - is stdin."
)
@tag_option("--tag", "-t", "tags", text="Add a tag; give it again, or as a,b, for more.")
@reference_option("--supersedes", text="It takes the place of this entry; again, for more.")
@reference_option("--annotates", text="It says something about this entry; again, for more.")
@click.option("--created", metavar="WHEN", help="When it happened, for imports: 2026-01-31T18:00Z.")
@origin_options
@secrets_option
@shared_options(listed=False)
@click.pass_context
def write(
    context: click.Context,
    title: str,
    body: str | None,
    body_file: str | None,
    tags: tuple[str, ...],
    created: str | None,
    supersedes: tuple[str, ...],
    annotates: tuple[str, ...],
    **origin: Unpack[OriginOptions],
) -> int:
    """Write an entry; print its id.

    Without BODY (- is stdin) it is read from stdin if that is no terminal, else typed in $EDITOR.
    """
    call = Call(context)
    settings = call.settings(writes=True)
    superseded, annotated = _resolved(call, settings, supersedes, annotates)
    draft = Draft(  # refused before anything is typed
        title=title,
        tags=split_tags(tags),
        created=parse_created(created),
        provenance=provenance_of(origin),
        supersedes=superseded,
        annotates=annotated,
    )
    text, is_typed = read_body(body, body_file)
    with rescued(text) if is_typed else nullcontext(), call.journal(settings) as journal:
        entry = journal.write(replace(draft, body=text))
    is_answered = False
    try:
        shape = shapes.written_shape(entry, settings.folder)
        call.answer(shape, [Line(((entry.id, ""),), verbatim=True)])
        is_answered = True
    finally:  # whoever can't be answered must know that the entry is there
        if not (call.as_json and is_answered):
            say(f"written to {shapes.path_of(entry.id, settings.folder)}")
            for sentence in sentences(entry.screening):
                say_warning(sentence)
    return OK


@commands.command(
    epilog="\b\nExamples:\n"
    "  agent-journal search why is redis pinned\n"
    "  agent-journal search E0277 --lexical\n"
    "  agent-journal search '\"connection pool\" exhausted' --explain\n"
    "  agent-journal search deploy --project . --tag decision --since 2w\n"
    "  agent-journal search -- --force-with-lease\n"
)
@click.argument("text", nargs=-1)
@filter_options
@click.option("--lexical", is_flag=True, help="Find by words only, at once, without the model.")
@click.option("--explain", is_flag=True, help="Say what each score is made of.")
@shared_options(listed=False)
@click.pass_context
def search(
    context: click.Context,
    text: tuple[str, ...],
    *,
    lexical: bool,
    explain: bool,
    **filters: Unpack[FilterOptions],
) -> int:
    """Find entries by meaning and by words.

    Without TEXT the newest come first.
    """
    return _search(Call(context), " ".join(text), filters, lexical=lexical, explain=explain)


@commands.command(
    epilog="\b\nExamples:\n"
    "  agent-journal recent --limit 5\n"
    "  agent-journal recent --project . --since 7d\n"
)
@filter_options
@shared_options(listed=False)
@click.pass_context
def recent(context: click.Context, **filters: Unpack[FilterOptions]) -> int:
    """List the newest entries."""
    _search(Call(context), "", filters, lexical=True)
    return OK


@commands.command(
    epilog="\b\nExamples:\n"
    "  agent-journal read 20260131-180000-000\n"
    "  agent-journal read 20260131 --json\n"
)
@ids_argument
@shared_options(listed=False)
@click.pass_context
def read(context: click.Context, ids: tuple[str, ...]) -> int:
    """Print entries whole, by their ids or the beginnings of them."""
    call = Call(context)
    settings = call.settings(lexical=True)
    with call.journal(settings, current=True) as journal:
        found = [journal.read(journal.resolve(prefix)) for prefix in ids]
        entries = [(entry, journal.relations(entry)) for entry in found]
    told = [shapes.entry_shape(*both, settings.folder) for both in entries]
    call.answer({"entries": [*told]}, layout.entries_lines(entries, settings.folder))
    return OK


@commands.command(epilog="\b\nExamples:\n  agent-journal tags | head -20\n")
@shared_options(listed=False)
@click.pass_context
def tags(context: click.Context) -> int:
    """List all tags with their numbers of entries."""
    call = Call(context)
    settings = call.settings(lexical=True)
    with call.journal(settings, current=True) as journal:
        page = journal.search(Query(limit=1))
    call.answer(shapes.tags_shape(page), layout.tag_lines(page.tags))
    if not call.as_json:
        for notice in page.notices:
            say(f"note: {notice}")
    return OK


@commands.command(epilog="\b\nExamples:\n  agent-journal status --journal ~/notes\n")
@shared_options(listed=False)
@click.pass_context
def status(context: click.Context) -> int:
    """Tell where the journal is and how it is doing."""
    call = Call(context)
    settings = call.settings()
    from agent_journal.faces import logs  # noqa: PLC0415 - not needed for --help

    with call.journal(settings, current=True, warm=True) as journal, waiting("Loading the model"):
        found = journal.status(wait_s=MODEL_WAIT_S)
    warnings = logs.latest(_WARNINGS_SHOWN)
    call.answer(
        shapes.status_shape(found, settings, warnings),
        layout.status_lines(found, settings, warnings),
    )
    return OK


@commands.command(
    epilog="\b\nExamples:\n"
    "  agent-journal check --fix\n"
    "  agent-journal check --adopt\n"
    "  agent-journal check --adopt 20260131-180000-000\n"
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--fix", is_flag=True, help="Remove temporary files that crashed writers left behind."
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Say in the ledger that entries without a line belong here; with IDs, that those may be "
    "as they are now, altered or gone.",
)
@shared_options(listed=False)
@click.pass_context
def check(context: click.Context, ids: tuple[str, ...], *, fix: bool, adopt: bool) -> int:
    """Prove every file by the ledger, and list all problems.

    Each is printed as path:line: reason.
    """
    if ids and not adopt:
        raise click.UsageError("an ID goes with --adopt alone; check looks at everything")
    call = Call(context)
    adopted: list[EntryId] = []
    with call.journal(call.settings(lexical=True)) as journal:
        if adopt:
            with progress_bar("Adopting") as progress:
                adopted = journal.adopt(ids, progress=progress)
        with progress_bar("Checking") as progress:
            problems = journal.check(fix=fix, progress=progress)
    call.answer(shapes.check_shape(problems, adopted), layout.problem_lines(problems))
    if not call.as_json:
        if adopt:
            say(f"{counted(len(adopted), 'entry', 'entries')} adopted")
        if not problems:
            say("no problems")
    return NOTHING if problems else OK


@commands.command(epilog="\b\nExamples:\n  agent-journal reindex --embedding-model none\n")
@shared_options(listed=False)
@click.pass_context
def reindex(context: click.Context) -> int:
    """Make the search index and all vectors anew."""
    call = Call(context)
    settings = call.settings()
    if not os.path.exists(settings.folder):  # noqa: PTH110 - Path.exists() fails where no path leads
        say_warning(f"there is no journal at {settings.folder}")
    with call.journal(settings) as journal:
        with progress_bar("Indexing") as progress:
            changes = journal.reindex(progress=progress)
        embedded, reason = 0, ""
        try:
            with progress_bar("Making vectors") as progress:
                embedded = journal.work_backlog(wait_s=MODEL_WAIT_S, progress=progress)
        except (EmbedderUnavailableError, JournalUnavailableError) as error:
            reason = str(error)
    call.answer(
        shapes.changes_shape(changes, embedded=embedded, reason=reason),
        layout.changes_lines(changes, embedded=embedded, reason=reason),
    )
    return OK


@commands.command(
    epilog="\b\nExamples:\n"
    "  agent-journal install claude-code    lets Claude Code start it\n"
    "  agent-journal mcp --journal ~/notes  in a host's configuration, for another journal\n"
)
@shared_options(listed=False)
@click.pass_context
def mcp(context: click.Context) -> int:
    """Serve the journal to an agent's host (MCP over stdio).

    It offers no tools until "enabled" is true under "journal" in the configuration file.
    """
    settings = Call(context).settings(quiet=True)  # the server doesn't go on without its file
    from agent_journal.faces import logs  # noqa: PLC0415 - not needed for --help
    from agent_journal.faces.mcp import serve  # noqa: PLC0415 - slow to import

    logs.set_up(settings)
    if sys.stdin.isatty():
        say("speaking MCP on stdin and stdout; this is for a host to start; Ctrl-C ends it")
    return serve(settings)


@commands.command(
    epilog="\b\nTo switch it on:\n"
    '  bash, in ~/.bashrc:  eval "$(agent-journal completion bash)"\n'
    '  zsh, in ~/.zshrc:    eval "$(agent-journal completion zsh)"\n'
    "  fish:                agent-journal completion fish | source\n"
)
@click.argument("shell", type=click.Choice(_SHELLS))
@shared_options(listed=False)
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a shell's completion script."""
    from agent_journal.faces.cli import completion  # noqa: PLC0415 - only here

    script = completion.script(commands, shell)
    Call(context).answer({"shell": shell, "script": script}, [Line(((script, ""),), verbatim=True)])
    return OK


def _search(
    call: Call, text: str, filters: FilterOptions, *, lexical: bool, explain: bool = False
) -> int:
    resolve(filters)
    query = Query(text=text, **filters)
    settings = call.settings(lexical=lexical or not query.text)
    by_meaning = settings.model != "none"
    waits = waiting("Loading the model") if by_meaning else nullcontext()
    with call.journal(settings, current=True, warm=by_meaning) as journal, waits:
        # Vectors first, so that what was written a moment ago is found by meaning, too.
        failure = _work_off(journal) if by_meaning else ""
        page = journal.search(query, wait_s=0.0, with_tags=call.as_json)
    if failure:
        say_warning(f"vectors could not be made: {failure}")
    call.answer(
        shapes.page_shape(page, settings.folder),
        layout.page_lines(page, _wanted(text), is_ranked=bool(query.text), is_explained=explain),
    )
    return OK if page.hits else NOTHING


def _resolved(call: Call, settings: Settings, *given: Sequence[str]) -> list[list[EntryId]]:
    """Return the ids that begin as given; the journal is opened only if there are any."""
    if not any(given):
        return [[] for _ in given]
    with call.journal(settings) as journal:
        return [[journal.resolve(prefix) for prefix in prefixes] for prefixes in given]


def _wanted(text: str) -> frozenset[str]:
    from agent_journal import words  # noqa: PLC0415 - not needed for --help

    return frozenset(words.query_terms(text))


def _work_off(journal: Journal) -> str:
    """Wait for the model and make some of the missing vectors; return what went wrong."""
    try:
        journal.work_backlog(wait_s=SEARCH_WAIT_S, limit_s=BACKLOG_LIMIT_S)
    except (EmbedderUnavailableError, JournalUnavailableError):
        return ""  # the answer says so
    except JournalError as error:
        return str(error)
    return ""
