"""Completes tags and ids in a shell, from the journal that the words typed so far name."""

from __future__ import annotations

import logging
import re

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
)

from agent_journal.errors import AmbiguousIdError, JournalError
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.output import COMPLETION_VARIABLE, PROGRAM
from agent_journal.faces.framing import is_plain, one_line
from agent_journal.model import EntryId, fold_case
from agent_journal.query import Query

_OFFERED = 30  # ids; more than that no one chooses from
_HELP_WIDTH = 60
_SPECIAL = re.compile(r"[^\w@%+=:,./-]")


class _Bash(BashComplete):
    """Quotes what is completed, as zsh and fish do by themselves; its script undoes one level."""

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return a completion as the script reads it."""
        quoted = _SPECIAL.sub(lambda found: f"\\{found[0]}", item.value)
        return f"{item.type},{quoted.replace(chr(92), chr(92) * 2)}"


_KINDS: dict[str, type[ShellComplete]] = {
    "bash": _Bash,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


def script(command: click.Command, shell: str) -> str:
    """Return the script that makes a shell complete our command line."""
    return _KINDS[shell](command, {}, PROGRAM, COMPLETION_VARIABLE).source()


def respond(command: click.Command, instruction: str) -> int:
    """Print completions for a shell's script, and nothing else: stderr would spoil the prompt."""
    logging.getLogger("agent_journal").addHandler(logging.NullHandler())
    add_completion_class(_Bash)
    return shell_complete(command, {}, PROGRAM, COMPLETION_VARIABLE, instruction)


def tags(context: click.Context, incomplete: str) -> list[str]:
    """Return what the last tag of a comma list may become, most used first."""
    done, comma, begun = incomplete.rpartition(",")
    given = {fold_case(tag.strip()) for tag in done.split(",")}
    call = Call(context)
    try:
        settings = call.settings(lexical=True, quiet=True)
        with call.journal(settings) as journal:
            known = journal.tags()
    except JournalError:
        return []  # it will be told when the command runs
    return [
        f"{done}{comma}{tag}"
        for tag in known
        if fold_case(tag).startswith(fold_case(begun))
        and fold_case(tag) not in given
        and is_plain(tag)
        and "," not in tag
    ]


def ids(context: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Return ids that start so, with titles; the newest when nothing is typed yet."""
    call = Call(context)
    try:
        settings = call.settings(lexical=True, quiet=True)
        with call.journal(settings) as journal:
            if not incomplete:
                page = journal.search(Query(limit=_OFFERED))
                entries = [hit.entry for hit in page.hits]
            else:
                try:
                    found: list[EntryId] = [journal.resolve(incomplete)]
                except AmbiguousIdError as error:
                    found = [EntryId(match) for match in sorted(error.matches, reverse=True)]
                entries = [journal.read(entry_id) for entry_id in found[:_OFFERED]]
    except JournalError:
        return []  # as above
    return [
        CompletionItem(entry.id, help=one_line(entry.heading, _HELP_WIDTH))
        for entry in entries
        if is_plain(entry.id)
    ]
