"""Options that every command takes, before its name or after it, kept for the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_KEY = "agent_journal"
Decorated = TypeVar("Decorated", bound=Callable[..., Any])  # Any: whatever is decorated stays so


def shared_options(*, listed: bool) -> Callable[[Decorated], Decorated]:
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
        _option(*models, metavar="NAME", text="To find by meaning; see model list.", listed=listed),
        click.option(
            "--json",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_keep,
            help="Print a JSON object.",
        ),
    )

    return lambda decorated: with_options(decorated, *options)


def given(context: click.Context) -> dict[str, Any]:  # Any: str, or bool for a flag
    """Return the shared options that were given, before the command or after it, by name."""
    found: dict[str, Any] = context.meta.get(_KEY, {})
    return found


def with_options(decorated: Decorated, *options: Callable[[Decorated], Decorated]) -> Decorated:
    """Add options, the first one listed first."""
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def secrets_option(decorated: Decorated) -> Decorated:
    """Add the option that says what happens to what holds secrets; its value is kept, too."""
    return click.option(
        "--secrets",
        metavar="WHAT",
        expose_value=False,
        callback=_keep,
        help="What happens to secrets in it: mask, refuse, allow.  [default: as configured]",
    )(decorated)


def _option(
    *names: str,
    metavar: str,
    text: str,
    listed: bool,
) -> Callable[[Decorated], Decorated]:
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
