"""Which models there are on this machine, and which could be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_journal.models.catalogue import CATALOGUE, SEED
from agent_journal.models.places import found

if TYPE_CHECKING:
    from agent_journal.config import Settings

State = Literal["in the package", "installed", "incomplete", "not installed", "a folder"]


@dataclass(frozen=True, slots=True)
class Row:
    """One model.

    Attributes:
        name: what it is called in the configuration.
        repository: where it comes from; empty for a folder.
        size_bytes: of what would be fetched; None when nothing would be.
        state: whether it is here, going by its files' sizes.
        place: where its weights are; None when they aren't.
        is_used: it is the one that is configured, or `auto` comes to it.
        about: what it is good for.
    """

    name: str
    repository: str
    licence: str
    size_bytes: int | None
    state: State
    place: Path | None
    is_used: bool
    about: str


def rows(settings: Settings, *, is_runnable: bool) -> list[Row]:
    """Return every model, the one in the package first.

    Args:
        settings: which model is configured, and where models may be.
        is_runnable: the packages that run installed models are there.
    """
    listed = []
    is_seed_used = False
    for model in CATALOGUE:
        places = settings.model_places
        there = found(model, places, model.files, verify=False).paths if places else {}
        loaded = [file.path for file in model.loaded if file.path in there]
        state: State = "not installed"
        if len(loaded) == len(model.loaded):
            state = "installed"
        elif there:
            state = "incomplete"
        is_auto = model is SEED and settings.model == "auto"
        is_used = settings.model == model.key or (is_auto and state == "installed" and is_runnable)
        is_seed_used |= is_used and model is SEED
        listed.append(
            Row(
                model.key,
                model.repository,
                model.licence,
                model.size_bytes,
                state,
                there.get(model.weights),
                is_used,
                model.about,
            )
        )
    is_bundled = settings.model == "bundled" or (settings.model == "auto" and not is_seed_used)
    bundled = Row(
        "bundled",
        "google/universal-sentence-encoder-multilingual-v3",
        "Apache-2.0",
        None,
        "in the package",
        None,
        is_bundled,
        "16 languages; needs nothing else",
    )
    if "/" in settings.model:
        folder = Path(settings.model)
        listed.append(Row(settings.model, "", "", None, "a folder", folder, True, "your own"))  # noqa: FBT003 - a row
    return [bundled, *listed]
