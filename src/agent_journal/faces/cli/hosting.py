"""The commands about hosts: installing the journal in them, and seeing where it is."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_journal.errors import ConfigError
from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import OK
from agent_journal.faces.cli.layout import Line
from agent_journal.faces.cli.output import package_version, say, say_warning
from agent_journal.faces.cli.shared import given, shared_options
from agent_journal.faces.hosts.table import HOSTS, Host, host_called, this_machine

if TYPE_CHECKING:
    from agent_journal.config import Settings
    from agent_journal.faces.hosts.installing import Outcome

_host_argument = click.argument(
    "host", metavar="HOST", type=click.Choice([host.key for host in HOSTS], case_sensitive=False)
)
_CARRIED = (
    ("journal", "AGENT_JOURNAL_DIR"),
    ("config", "AGENT_JOURNAL_CONFIG"),
    ("index", "AGENT_JOURNAL_INDEX"),
    ("embedding_model", "AGENT_JOURNAL_MODEL"),
)
"""What a call may be given about the journal, and hosts would not pass on to the server."""


@click.command(
    epilog=f"Hosts: {', '.join(host.key for host in HOSTS)}\n\n\b\nExamples:\n"
    "  agent-journal install opencode\n"
    "  agent-journal install claude-code\n"
    "  agent-journal install cursor --print\n"
    "  agent-journal install codex --journal ~/notes/journal\n"
)
@_host_argument
@click.option(
    "--print", "prints", is_flag=True, help="Change nothing; print what to run or paste instead."
)
@click.option("--command", metavar="PATH", help="Let the host start this program.")
@click.option(
    "--replace", "replaces", is_flag=True, help="Put the plugin opencode-agent-memory aside."
)
@click.option("--force", is_flag=True, help="Replace what isn't ours, or was edited.")
@shared_options(listed=False)
@click.pass_context
def install(
    context: click.Context,
    host: str,
    command: str | None,
    *,
    prints: bool,
    replaces: bool,
    force: bool,
) -> int:
    """Give an agent's host the journal, and turn the journal on.

    --journal, --config, --index and --embedding-model, if given, go to the host's server, too.
    """
    call = Call(context)
    settings = call.settings(quiet=True)
    if settings.error:
        settings.error.add_note("mend it first; nothing was installed")
        raise settings.error
    from agent_journal.faces import logs  # noqa: PLC0415 - not needed for --help
    from agent_journal.faces.hosts import command as commands  # noqa: PLC0415 - as above
    from agent_journal.faces.hosts import installing  # noqa: PLC0415 - as above

    logs.set_up(settings)
    into = host_called(host)
    program = commands.chosen_program(command) if command else commands.running_program(sys.argv[0])
    words = commands.server_command(program, _carried(context, settings))
    if command and not commands.is_startable(words):
        raise click.BadParameter(f"there is no program {command}", context, param_hint="--command")
    machine = this_machine(os.environ)
    version = package_version()
    if prints:
        text = installing.paste(into, words, version=version)
        place = machine.path(into.location)
        call.answer(
            shapes.paste_shape(into, words, place, text), [Line(((text, ""),), verbatim=True)]
        )
        if not call.as_json:
            _say_where_to_paste(into, place, settings)
        return OK
    outcome = installing.install(
        into,
        machine,
        words,
        version=version,
        replaces=replaces,
        force=force,
        directory=_working_directory(),
    )
    outcome = _turn_on(outcome, settings)
    outcome = replace(
        outcome, warnings=(*outcome.warnings, *commands.doubts(words, machine.environ))
    )
    _answer(call, outcome)
    return OK


@click.command(
    epilog=f"Hosts: {', '.join(host.key for host in HOSTS)}\n\n\b\nExamples:\n"
    "  agent-journal uninstall opencode\n"
    "  agent-journal uninstall codex\n"
)
@_host_argument
@click.option("--force", is_flag=True, help="Remove what isn't ours, or was edited, as well.")
@shared_options(listed=False)
@click.pass_context
def uninstall(context: click.Context, host: str, *, force: bool) -> int:
    """Take the journal out of a host again.

    The journal itself stays, and stays turned on.
    """
    from agent_journal.faces.hosts import installing  # noqa: PLC0415 - not needed for --help

    machine = this_machine(os.environ)
    outcome = installing.uninstall(
        host_called(host), machine, version=package_version(), force=force
    )
    _answer(Call(context), outcome)
    return OK


@click.command(epilog="\b\nExamples:\n  agent-journal hosts\n  agent-journal hosts --json\n")
@shared_options(listed=False)
@click.pass_context
def hosts(context: click.Context) -> int:
    """List agents' hosts, and how the journal stands in each."""
    from agent_journal.faces.hosts import installing  # noqa: PLC0415 - not needed for --help

    call = Call(context)
    settings = call.settings()
    found = installing.survey(this_machine(os.environ), version=package_version())
    call.answer(shapes.findings_shape(found, settings), layout.finding_lines(found))
    if not call.as_json and not settings.enabled and not settings.error:
        say(f'the journal is off: "enabled" under "journal" in {settings.config_path} is not true')
    return OK


def _carried(context: click.Context, settings: Settings) -> list[str]:
    """Return what the call says of the journal's place, as options with absolute paths."""
    values = {
        "journal": settings.folder,
        "config": settings.config_path,
        "index": settings.index_folder,
        "embedding_model": settings.model,
    }
    options = []
    for name, variable in _CARRIED:
        if given(context).get(name) or os.environ.get(variable):
            options += [f"--{name.replace('_', '-')}", str(values[name])]
    return options


def _turn_on(outcome: Outcome, settings: Settings) -> Outcome:
    """Set ``enabled`` in the configuration file, unless it is set.

    Raises:
        ConfigError: the file can't be written.
    """
    from agent_journal.config import turned_on  # noqa: PLC0415 - not needed for --help
    from agent_journal.faces.hosts import files  # noqa: PLC0415 - as above

    path = settings.config_path
    try:
        before = files.contents(path)
        text = turned_on(path)
        if text is None:
            return outcome
        files.replace(path, text.encode("utf-8"), before=before)
    except OSError as error:
        reason = f"can't be written: {error.strerror or error}"
        failure = ConfigError(str(path), "", reason)
        failure.add_note('turn the journal on there by hand: {"journal": {"enabled": true}}')
        for sentence in outcome.done:
            failure.add_note(sentence)
        raise failure from None
    return replace(outcome, done=(*outcome.done, f"turned the journal on in {path}"))


def _answer(call: Call, outcome: Outcome) -> None:
    call.answer(shapes.outcome_shape(outcome), layout.outcome_lines(outcome))
    if not call.as_json:
        for warning in outcome.warnings:
            say_warning(warning)


def _say_where_to_paste(host: Host, place: Path, settings: Settings) -> None:
    untested = "" if host.is_tested else " (untested)"
    if host.way == "program":
        say(f"run this to give {host.name} the journal{untested}")
    else:
        say(f"this goes into {place}{untested}; then restart {host.name}")
    if not settings.enabled:
        say(f'turn the journal on in {settings.config_path}: {{"journal": {{"enabled": true}}}}')


def _working_directory() -> Path | None:
    with suppress(OSError):
        return Path.cwd()
    return None
