"""What commands take: filters, where an entry comes from, tags and ids."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import click

from agent_journal.faces.cli.input import split_tags
from agent_journal.faces.cli.shared import Decorated, with_options
from agent_journal.model import Provenance
from agent_journal.query import LIMIT_DEFAULT, LIMIT_MAX, Project

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class RestrictingOptions(TypedDict):
    """What an answer is restricted to, as the options give it."""

    project: str | Project
    tags: tuple[str, ...]
    any_tags: tuple[str, ...]
    not_tags: tuple[str, ...]
    agent: str
    model: str
    provider: str
    session: str
    since: str | None
    until: str | None


class FilterOptions(RestrictingOptions):
    """What search and recent are restricted to, and which page of it is wanted."""

    limit: int
    offset: int


class OriginOptions(TypedDict):
    """Where a written entry comes from, as the options give it; None is not given."""

    project: str | None
    agent: str | None
    model: str | None
    provider: str | None
    session: str | None


def filter_options(decorated: Decorated) -> Decorated:
    """Add the options that restrict what is listed, and turn its pages; see `FilterOptions`."""
    return restricting_options(
        with_options(
            decorated,
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
    )


def restricting_options(decorated: Decorated) -> Decorated:
    """Add the options that restrict an answer; see `RestrictingOptions`."""
    return with_options(
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
        tag_option("--not-tag", "not_tags", text="With none of these tags."),
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
    )


def resolve(restrictions: RestrictingOptions) -> None:
    """Put what was typed into the form of a query: comma lists split, a project made out.

    Raises:
        InvalidFieldError: the project is ``.``, and there is no working directory.
    """
    restrictions["tags"] = split_tags(restrictions["tags"])
    restrictions["any_tags"] = split_tags(restrictions["any_tags"])
    restrictions["not_tags"] = split_tags(restrictions["not_tags"])
    if isinstance(project := restrictions["project"], str) and project:
        from agent_journal.faces import provenance  # noqa: PLC0415 - rarely needed

        directory = provenance.working_directory()
        here = partial(provenance.complete, Provenance(), directory=directory)
        asked = provenance.asked_project(project, here)
        restrictions["project"] = _whole_path(asked) if isinstance(asked, str) else asked


def provenance_of(origin: OriginOptions) -> Provenance:
    """Return where an entry comes from: what is given, else the environment, else the folder."""
    from agent_journal.faces import provenance  # noqa: PLC0415 - write's only

    said = provenance.told(os.environ)
    directory = provenance.working_directory()
    project = origin["project"]
    if project is None:
        project = said.project
    elif project in provenance.HERE:
        project = ""
    elif project:
        project = _whole_path(project)
    else:
        directory = ""

    def first(given: str | None, otherwise: str) -> str:
        return otherwise if given is None else given

    known = Provenance(
        project=project,
        model=first(origin["model"], said.model),
        provider=first(origin["provider"], said.provider),
        agent=first(origin["agent"], said.agent),
        session=first(origin["session"], said.session),
    )
    return provenance.complete(known, directory=directory)


def origin_options(decorated: Decorated) -> Decorated:
    """Add the options that say where an entry comes from; see `OriginOptions`."""
    return with_options(
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


def tag_option(*names: str, text: str) -> Callable[[Decorated], Decorated]:
    """Return an option for tags: repeatable, completed from the journal."""
    return click.option(*names, multiple=True, metavar="TAG", shell_complete=_tags_begun, help=text)


def reference_option(name: str, *, text: str) -> Callable[[Decorated], Decorated]:
    """Return an option for another entry's id: repeatable, completed from the journal."""
    return click.option(name, multiple=True, metavar="ID", shell_complete=_ids_begun, help=text)


def ids_argument(decorated: Decorated) -> Decorated:
    """Add an argument of at least one id, completed from the journal."""
    return click.argument(
        "ids", nargs=-1, required=True, metavar="ID...", shell_complete=_ids_begun
    )(decorated)


def id_argument(decorated: Decorated) -> Decorated:
    """Add an argument of one id, completed from the journal."""
    return click.argument("entry_id", metavar="ID", shell_complete=_ids_begun)(decorated)


def _whole_path(project: str) -> str:
    """Return a project's path as it goes from anywhere; a name is left as it is."""
    if project.startswith("~"):
        return os.path.expanduser(project)  # noqa: PTH111 - it leaves unknown users alone
    if project == ".." or project.startswith(("./", "../")):
        from agent_journal.faces.provenance import working_directory  # noqa: PLC0415 - as above

        return os.path.normpath(f"{working_directory()}/{project}")
    return project


def _tags_begun(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from agent_journal.faces.cli import completion  # noqa: PLC0415 - only when a shell asks

    return completion.tags(context, incomplete)


def _ids_begun(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    from agent_journal.faces.cli import completion  # noqa: PLC0415 - only when a shell asks

    return completion.ids(context, incomplete)
