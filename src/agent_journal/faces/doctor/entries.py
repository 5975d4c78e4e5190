"""The entries: what `check` finds, which folders they name, and the vectors beside them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agent_journal.assembly import journal_over, open_store
from agent_journal.engines.placing import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    modified,
    names,
    opened,
)
from agent_journal.engines.scanning import ENTRY_SUFFIX, SIDECAR_SUFFIX
from agent_journal.errors import EntryNotFoundError, StorageError
from agent_journal.faces.doctor.verdict import Verdict, note, ok, problem
from agent_journal.faces.framing import counted
from agent_journal.model import Entry, EntryId, Problem
from agent_journal.ports import Progress, Sidecar, Store
from agent_journal.upkeep import SEED_MODEL

if TYPE_CHECKING:
    from agent_journal.config import Settings

LEFTOVER_S = 86_400.0
"""A temporary file that is older has no writer any more."""

COMPARED = 10
"""So many vectors are made anew, and compared with those beside the entries."""

_COMPARED_LENGTH = 3_000  # characters; a long entry would take seconds
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Survey:
    """What reading every entry and sidecar showed.

    Attributes:
        count: entries.
        problems: as `Journal.check` finds them.
        projects: numbers of entries by the project that they name.
        models: of each valid sidecar, by its entry.
        leftovers: temporary files of writers that crashed.
    """

    count: int
    problems: Sequence[Problem]
    projects: Counter[str]
    models: dict[EntryId, str]
    leftovers: int


class _Watched:
    """A store that remembers what is read from it, so that one reading serves all questions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.projects: Counter[str] = Counter()
        self.models: dict[EntryId, str] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a store has
        return getattr(self._store, name)

    def read(self, entry_id: EntryId) -> Entry:
        entry = self._store.read(entry_id)
        self.projects[entry.provenance.project] += 1
        return entry

    def read_sidecar(self, entry_id: EntryId) -> Sidecar | None:
        sidecar = self._store.read_sidecar(entry_id)
        if sidecar is not None:
            self.models[entry_id] = sidecar.model
        return sidecar


def survey(settings: Settings, progress: Progress | None = None) -> Survey:
    """Read every entry and sidecar, and write nothing, no index either.

    Args:
        settings: where the journal is.
        progress: told of (done, total) entries.

    Raises:
        JournalUnavailableError: the folder is missing or can't be read.
    """
    store = open_store(settings)
    watched = _Watched(store)
    with journal_over(cast("Store", watched)) as journal:  # it hands on whatever it hasn't
        problems = journal.check(progress=progress)
    count = len(store.listing().versions)
    leftovers = _leftovers(settings.folder)
    return Survey(count, problems, watched.projects, watched.models, leftovers)


def verdicts(found: Survey) -> Iterator[Verdict]:
    """Judge entries and the projects that they name."""
    number = counted(found.count, "entry", "entries")
    if found.problems:
        told = counted(len(found.problems), "problem", "problems")
        message = f"{told} in {number}, for one {found.problems[0]}"
        advice = "agent-journal check lists them; the entries are found and read all the same"
        yield problem("entries", message, advice)
    else:
        yield ok("entries", f"{number}, and no problem in them")
    if found.leftovers:
        files = counted(found.leftovers, "temporary file", "temporary files")
        message = f"{files} left behind by writers that crashed"
        yield note("entries", message, "agent-journal check --fix removes them")
    gone = {
        project: entries
        for project, entries in sorted(found.projects.items(), key=lambda each: (-each[1], each[0]))
        if project.startswith("/") and not os.path.isdir(project)  # noqa: PTH112 - any name at all
    }
    if gone:
        shown = ", ".join(list(gone)[:_SHOWN]) + (", ..." if len(gone) > _SHOWN else "")
        belong = counted(sum(gone.values()), "entry belongs", "entries belong")
        folders = counted(len(gone), "folder that is", "folders that are")
        message = f"{belong} to {folders} not on this machine (any more): {shown}"
        yield note("projects", message, "nothing: they are found as ever, by that path or its end")


def to_compare(settings: Settings, found: Survey, model: str) -> list[tuple[Entry, Sidecar]]:
    """Return some entries with their vectors of a model, those that may be stale first.

    Args:
        settings: where the journal is.
        found: what is in it.
        model: the embedder's name.
    """
    store, folder = open_store(settings), settings.folder
    ours = [entry_id for entry_id, each in found.models.items() if each == model]
    chosen: list[tuple[Entry, Sidecar]] = []
    for entry_id in sorted(ours, key=lambda each: (_is_newer(folder, each), each), reverse=True):
        with suppress(EntryNotFoundError, StorageError):  # gone since, or it has been told
            entry, sidecar = store.read(entry_id), store.read_sidecar(entry_id)
            if sidecar is not None and entry.title and len(entry.body) <= _COMPARED_LENGTH:
                chosen.append((entry, sidecar))
        if len(chosen) == COMPARED:
            break
    return chosen


def vectors(
    found: Survey, model: str, compared: int, stale: Sequence[EntryId]
) -> Iterator[Verdict]:
    """Judge the vectors that lie beside the entries.

    Args:
        found: what is in the folder.
        model: the embedder's name.
        compared: how many vectors were compared with new ones of their text.
        stale: the entries whose vectors are of another text.
    """
    models = Counter(found.models.values())
    ours, originals = models.pop(model, 0), models.pop(SEED_MODEL, 0)
    if stale:
        number = counted(len(stale), "vector is", "vectors are")
        message = f"{number} of another text than the entry has now: {', '.join(stale[:_SHOWN])}"
        yield note("vectors", message, "agent-journal reindex renews them")
    if models:
        number = counted(models.total(), "vector is", "vectors are")
        message = f"{number} of models that aren't used here: {', '.join(sorted(models)[:_SHOWN])}"
        yield note("vectors", message, "agent-journal reindex puts new ones in their place")
    missing = found.count - ours - originals - models.total()
    if missing:
        number = counted(missing, "entry", "entries")
        message = f"beside {number} lies no valid vector; words alone may find what has none"
        yield note("vectors", message, "agent-journal reindex makes them; a server does, in time")
    if found.count and not (stale or models or missing):
        again = counted(compared, "was made anew and is", "were made anew and are")
        same = f"; {again} the same" if compared else ""
        theirs = f", {originals:,} of them the original plugin's" if originals else ""
        yield ok("vectors", f"every entry has one beside it{theirs}{same}")


def _is_newer(folder: Path, entry_id: EntryId) -> bool:
    """Tell whether an entry was changed after its vector was made."""
    try:
        with opened(folder) as descriptor:
            entry = modified(descriptor, entry_id + ENTRY_SUFFIX)
            return entry > modified(descriptor, entry_id + SIDECAR_SUFFIX)
    except OSError:
        return False


def _leftovers(folder: Path) -> int:
    oldest_kept = time.time() - LEFTOVER_S
    count = 0
    with suppress(OSError), opened(folder) as descriptor:
        for name in names(descriptor):
            if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX):
                count += modified(descriptor, name) < oldest_kept
    return count
