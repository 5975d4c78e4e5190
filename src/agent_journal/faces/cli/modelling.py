"""The commands about models that find by meaning: listing, installing, choosing, removing them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_journal.errors import ConfigError, JournalUnavailableError, ModelUnavailableError
from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import NOTHING, OK
from agent_journal.faces.cli.output import PROGRAM, progress_bar, say, say_warning, waiting
from agent_journal.faces.cli.shared import shared_options
from agent_journal.models.catalogue import CATALOGUE, SEED, ModelDescription, described

if TYPE_CHECKING:
    from agent_journal.config import Settings
    from agent_journal.models.places import Places

MODEL_WAIT_S = 60.0
"""How long `use --now` waits for the model: far longer than loading takes anywhere."""

_KEYS = ", ".join(model.key for model in CATALOGUE)
_EXTRA = "pip install 'agent-journal[onnx]'"


@click.group(
    epilog="\b\nExamples:\n"
    "  agent-journal model list\n"
    f"  agent-journal model install {SEED.key}\n"
    f"  agent-journal model install {SEED.key} --from /media/stick\n"
    "  agent-journal model use multilingual-e5-small --now\n",
)
@shared_options(listed=False)
def model() -> None:
    """List, install, choose and remove models for finding by meaning.

    One comes with agent-journal. Only `model install` ever opens a network connection.
    """


@model.command("list", epilog="\b\nExamples:\n  agent-journal model list --json\n")
@shared_options(listed=False)
@click.pass_context
def list_(context: click.Context) -> int:
    """List models: those in the package, those installed, those that can be."""
    from agent_journal.assembly import missing_packages  # noqa: PLC0415 - not needed for --help
    from agent_journal.faces.models import survey  # noqa: PLC0415 - as above

    call = Call(context)
    settings = call.settings()
    missing = missing_packages()
    rows = survey.rows(settings, is_runnable=not missing)
    call.answer(shapes.models_shape(rows, settings), layout.model_lines(rows))
    if missing and not call.as_json:
        say(f"installed models are run by {' and '.join(missing)}, to be had with: {_EXTRA}")
    return OK


@model.command(
    epilog=f"\b\nNames: {_KEYS}\n\n\b\nExamples:\n"
    f"  agent-journal model install {SEED.key}\n"
    f"  agent-journal model install {SEED.key} --from ~/Downloads\n"
)
@click.argument("name")
@click.option(
    "--from",
    "folder",
    metavar="FOLDER",
    type=click.Path(readable=False),
    help="Take the files from a folder instead of the network.",
)
@shared_options(listed=False)
@click.pass_context
def install(context: click.Context, name: str, folder: str | None) -> int:
    """Fetch a model's files, and check them.

    They go into cacheDir if the configuration names it, else into the user's cache. What is on this
    machine already, in Hugging Face's cache for one, is used where it lies. What was cut short goes
    on where it ended. HF_ENDPOINT names a mirror; https_proxy and no_proxy are obeyed.
    """
    from agent_journal.assembly import missing_packages  # noqa: PLC0415 - not needed for --help
    from agent_journal.faces.models import installing  # noqa: PLC0415 - as above
    from agent_journal.faces.models.fetching import Source  # noqa: PLC0415 - as above

    call = Call(context)
    chosen = _called(context, name)
    settings = call.settings()
    places = _places(settings, chosen)
    source = Source.of(os.environ) if folder is None else Path(folder).absolute()
    with progress_bar(f"Fetching {chosen.key}", in_bytes=True) as progress:
        done = installing.install(chosen, places, source, progress)
    uses = _is_used(chosen, settings)
    call.answer(
        shapes.installed_shape(done, is_used=uses), layout.installed_lines(done, is_used=uses)
    )
    if not call.as_json and (missing := missing_packages()):
        say_warning(f"{' and '.join(missing)} must be there to run it: {_EXTRA}")
    return OK


@model.command(
    epilog=f"\b\nNames: auto, bundled, none, {_KEYS}\n\n\b\nExamples:\n"
    "  agent-journal model use multilingual-e5-small --now\n"
    "  agent-journal model use ~/models/my-encoder\n"
    "  agent-journal model use auto\n"
)
@click.argument("name")
@click.option("--now", is_flag=True, help="Make all missing vectors at once, showing progress.")
@shared_options(listed=False)
@click.pass_context
def use(context: click.Context, name: str, *, now: bool) -> int:
    """Choose the model that finds by meaning, in the configuration file.

    NAME is one of the names below, or a folder with an ONNX export of sentence-transformers. `auto`
    is the model of opencode-agent-memory once it is installed, else the bundled one. Entries get
    the vectors they lack bit by bit: as searches come, in the background of a server, or with
    --now. Vectors of other models are kept.
    """
    from dataclasses import replace  # noqa: PLC0415 - not needed for --help

    from agent_journal.assembly import load_embedder  # noqa: PLC0415 - as above
    from agent_journal.config import model_called  # noqa: PLC0415 - as above

    call = Call(context)
    settings = call.settings()
    if settings.error:
        settings.error.add_note("mend it first; nothing was changed")
        raise settings.error
    try:
        chosen = model_called(name, os.environ)
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="NAME") from None
    settings = replace(settings, model=chosen)
    loaded = ""
    if chosen != "none":
        with waiting("Loading the model"):
            loaded = load_embedder(settings).name
    is_changed = _choose(settings)
    embedded = _embed(call, settings) if now and loaded else None
    call.answer(
        shapes.chosen_shape(settings, loaded, is_changed=is_changed, embedded=embedded),
        layout.chosen_lines(settings, loaded, is_changed=is_changed, embedded=embedded),
    )
    if not call.as_json:
        if os.environ.get("AGENT_JOURNAL_MODEL", chosen) != chosen:
            say_warning(f"AGENT_JOURNAL_MODEL says {os.environ['AGENT_JOURNAL_MODEL']}, and wins")
        if is_changed:
            say("agents' hosts that are running go on with the model they have")
    return OK


@model.command(
    epilog=f"\b\nNames: {_KEYS}\n\n\b\nExamples:\n  agent-journal model remove {SEED.key}\n"
)
@click.argument("name")
@shared_options(listed=False)
@click.pass_context
def remove(context: click.Context, name: str) -> int:
    """Remove the files that `model install` has put there; others' stay."""
    from agent_journal.faces.models import installing  # noqa: PLC0415 - not needed for --help

    call = Call(context)
    chosen = _called(context, name)
    settings = call.settings()
    gone, left = installing.remove(chosen, _places(settings, chosen))
    call.answer(shapes.removed_shape(chosen, gone, left), layout.removed_lines(chosen, gone, left))
    if not call.as_json and gone and not left and settings.model == chosen.key:
        say_warning(f"it is still the one configured; choose another: {PROGRAM} model use auto")
    return OK if gone else NOTHING


def _called(context: click.Context, name: str) -> ModelDescription:
    found = described(name)
    if found is None:
        message = f"there is no model {name[:80]!r} to install; names: {_KEYS}"
        raise click.BadParameter(message, context, param_hint="NAME")
    return found


def _places(settings: Settings, chosen: ModelDescription) -> Places:
    if settings.model_places is None:
        raise ModelUnavailableError(chosen.key, "no home directory is known; set HOME")
    return settings.model_places


def _is_used(chosen: ModelDescription, settings: Settings) -> bool:
    return settings.model == chosen.key or (settings.model == "auto" and chosen is SEED)


def _choose(settings: Settings) -> bool:
    """Put the model into the configuration file; tell whether that changed it.

    Raises:
        ConfigError: the file can't be written.
    """
    from agent_journal.config import with_model  # noqa: PLC0415 - not needed for --help
    from agent_journal.faces.hosts import files  # noqa: PLC0415 - as above

    path = settings.config_path
    try:
        before = files.contents(path)
        text = with_model(path, settings.model)
        if text is None:
            return False
        files.replace(path, text.encode("utf-8"), before=before)
    except OSError as error:
        reason = f"can't be written: {error.strerror or error}"
        raise ConfigError(str(path), "", reason) from None
    return True


def _embed(call: Call, settings: Settings) -> int:
    """Make all vectors that are missing, and return of how many entries."""
    with call.journal(settings) as journal, progress_bar("Making vectors") as progress:
        try:
            return journal.work_backlog(wait_s=MODEL_WAIT_S, progress=progress)
        except JournalUnavailableError:
            return 0  # nothing was written yet
