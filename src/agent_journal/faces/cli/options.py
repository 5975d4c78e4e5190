"""Options that several commands share, and the values that click makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from agent_journal.model import LIMIT_DEFAULT, LIMIT_MAX

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_KEY = "agent_journal"
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])  # Any: whatever is decorated stays so


class Filters(TypedDict):
    """What search and recent are restricted to, as the options give it."""

    project: str
    tags: tuple[str, ...]
    any_tags: tuple[str, ...]
    agent: str
    model: str
    provider: str
    session: str
    since: str | None
    until: str | None
    limit: int
    offset: int


class Origin(TypedDict):
    """Where a written entry comes from, as the options give it; None is not given."""

    project: str | None
    agent: str | None
    model: str | None
    provider: str | None
    session: str | None


def shared_options(*, listed: bool) -> Callable[[_Decorated], _Decorated]:
    """Add the options that all commands share; their values are kept for `Call`.

    Args:
        listed: show all of them in the help, as before the command. After it only ``--json`` is
            shown, and ``--model`` is left to the command, where it is the model that wrote.
    """
    models = ("--model", "--embedding-model") if listed else ("--embedding-model",)
    options = (
        _option("--journal", metavar="DIR", text="The journal folder.", listed=listed),
        _option("--config", metavar="FILE", text="The configuration file.", listed=listed),
        _option("--index", metavar="DIR", text="The folder of search indexes.", listed=listed),
        _option(*models, metavar="NAME", text="To find by meaning: bundled, none.", listed=listed),
        click.option(
            "--json",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_keep,
            help="Print a JSON object.",
        ),
    )

    return lambda decorated: _with(decorated, *options)


def given(context: click.Context) -> dict[str, Any]:  # Any: str, or bool for a flag
    """Return the shared options that were given, before the command or after it, by name."""
    found: dict[str, Any] = context.meta.get(_KEY, {})
    return found


def filter_options(decorated: _Decorated) -> _Decorated:
    """Add the options that restrict what is listed; see `Filters`."""
    return _with(
        decorated,
        click.option(
            "--project",
            "-p",
            default="",
            metavar="PATH",
            help="Of this project: a path, its last part, or . for the present one.",
        ),
        tag_option(
            "--tag", "-t", "tags", text="With this tag; again, or as a,b: with all of them."
        ),
        tag_option("--any-tag", "any_tags", text="With at least one of these tags."),
        click.option("--agent", default="", metavar="NAME", help="Written by this agent."),
        click.option("--model", default="", metavar="NAME", help="Written by this language model."),
        click.option("--provider", default="", metavar="NAME", help="Whose model this one served."),
        click.option("--session", default="", metavar="ID", help="Written in this session."),
        click.option(
            "--since", metavar="WHEN", help="From then on: 2026-01-31, 2026-01-31T18:00Z, 7d, 2w."
        ),
        click.option(
            "--until", metavar="WHEN", help="Up to then; a date means the end of that day."
        ),
        click.option(
            "--limit",
            "-n",
            type=int,
            default=LIMIT_DEFAULT,
            show_default=True,
            help=f"At most this many, {LIMIT_MAX} being the most.",
        ),
        click.option("--offset", type=int, default=0, help="Skip this many."),
    )


def origin_options(decorated: _Decorated) -> _Decorated:
    """Add the options that say where an entry comes from; see `Origin`."""
    return _with(
        decorated,
        click.option(
            "--project",
            "-p",
            metavar="PATH",
            help="The project it belongs to.  [default: around the working directory]",
        ),
        click.option("--agent", metavar="NAME", help="The agent that writes."),
        click.option("--model", metavar="NAME", help="The language model that writes."),
        click.option("--provider", metavar="NAME", help="Who serves that model."),
        click.option("--session", metavar="ID", help="The conversation it comes from."),
    )


def tag_option(*names: str, text: str) -> Callable[[_Decorated], _Decorated]:
    """Return an option for tags: repeatable, completed from the journal."""
    return click.option(*names, multiple=True, metavar="TAG", shell_complete=_tags_begun, help=text)


def ids_argument(decorated: _Decorated) -> _Decorated:
    """Add an argument of at least one id, completed from the journal."""
    return click.argument(
        "ids", nargs=-1, required=True, metavar="ID...", shell_complete=_ids_begun
    )(decorated)


def _with(decorated: _Decorated, *options: Callable[[_Decorated], _Decorated]) -> _Decorated:
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _option(
    *names: str,
    metavar: str,
    text: str,
    listed: bool,
) -> Callable[[_Decorated], _Decorated]:
    return click.option(
        *names,
        names[-1].removeprefix("--").replace("-", "_"),
        metavar=metavar,
        help=text,
        hidden=not listed,
        expose_value=False,
        callback=_keep,
        # What can't be read is told by whoever reads it, as when a variable names it.
        type=str if metavar == "NAME" else click.Path(readable=False),
    )


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Remember a shared option; one given after the command wins over one before it."""
    if value not in (None, False):
        context.meta.setdefault(_KEY, {})[parameter.name] = value


def _tags_begun(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from agent_journal.faces.cli import completion  # noqa: PLC0415 - only when a shell asks

    return completion.tags(context, incomplete)


def _ids_begun(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    from agent_journal.faces.cli import completion  # noqa: PLC0415 - only when a shell asks

    return completion.ids(context, incomplete)
