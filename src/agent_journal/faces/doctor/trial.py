"""The journal, tried in a temporary folder: entries are written, embedded, found and read."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_journal.assembly import open_journal, open_store
from agent_journal.errors import EmbedderUnavailableError, InvalidDraftError, JournalError
from agent_journal.faces.doctor.verdict import Verdict, note, ok, problem
from agent_journal.model import Draft
from agent_journal.query import Query

if TYPE_CHECKING:
    from agent_journal.config import Settings
    from agent_journal.journal import Journal
    from agent_journal.model import Entry, EntryId
    from agent_journal.ports import Sidecar

MODEL_WAIT_S = 60.0
"""How long the model may take; usually it is a second."""

_CAKE = Draft("Lemon cake", "Whisk eggs with sugar and bake for forty minutes.")
_LOGIN = Draft("Login fails after the upgrade", "Users are signed out on every page.")
_BY_MEANING = (  # none of these words stands in an entry; not every model knows two languages
    ("by meaning across languages", "ricetta di un dolce con gli agrumi"),
    ("by meaning", "a dessert made with citrus fruit"),
)
_BY_WORDS = (("by words", "lemon"),)
_SAME_COSINE = 0.99
_REPORT = "this is a fault of agent-journal: please report it with this line"


class Trial:
    """A temporary journal, with the settings of the real one but for its places.

    Args:
        settings: those of the real journal.
        folder: an empty folder of our own.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.model = ""
        self._settings = replace(
            settings,
            folder=folder / "journal",
            index_folder=folder / "index",
            config_path=folder / "config.json",
            state_folder=folder / "state",
            error=None,
        )

    def run(self) -> Iterator[Verdict]:
        """Write, embed, search and read; yield how each of it went.

        Afterwards `model` is the embedder's name, empty without one.
        """
        try:
            with open_journal(self._settings) as journal:
                began = time.monotonic()
                cake, _ = journal.write(_CAKE), journal.write(_LOGIN)
                yield self._embedded(journal, began)
                yield from self._found(journal, cake)
        except JournalError as error:
            yield problem("trial", f"a temporary journal fails: {error}", _REPORT)

    def stale(self, samples: Sequence[tuple[Entry, Sidecar]]) -> list[EntryId]:
        """Return those of some entries whose vectors aren't those of their text.

        Copies of the entries are embedded in the temporary journal.

        Raises:
            JournalError: they can't be.
        """
        copies: dict[EntryId, tuple[Entry, Sidecar]] = {}
        store = open_store(self._settings)
        with open_journal(self._settings) as journal:
            for entry, sidecar in samples:
                try:
                    copy = journal.write(Draft(entry.title, entry.body))
                except InvalidDraftError:
                    continue  # it is a foreign file, and has a problem that is told elsewhere
                copies[copy.id] = entry, sidecar
            journal.work_backlog(wait_s=MODEL_WAIT_S)
        stale = []
        for entry_id, (entry, sidecar) in copies.items():
            anew = store.read_sidecar(entry_id)
            if anew is None or _cosine(anew.vector, sidecar.vector) < _SAME_COSINE:
                stale.append(entry.id)
        return stale

    def _embedded(self, journal: Journal, began: float) -> Verdict:
        if self._settings.model == "none":
            advice = 'nothing, if it is meant so; else set "model" to "bundled"'
            return note("model", "none is used, as configured: words alone are compared", advice)
        try:
            done = journal.work_backlog(wait_s=MODEL_WAIT_S)
        except EmbedderUnavailableError as error:
            advice = "install agent-journal anew, with its dependencies; until then words are used"
            return problem("model", error.reason, advice)
        self.model = journal.status().model
        took = f"{time.monotonic() - began:.1f} s"
        return ok("model", f"{self.model} embedded {done} entries, {took} after it was asked for")

    def _found(self, journal: Journal, cake: Entry) -> Iterator[Verdict]:
        queries = _BY_MEANING if self.model else _BY_WORDS
        for how, text in queries:
            page = journal.search(Query(text))
            if page.hits and page.hits[0].entry == cake == journal.read(cake.id):
                message = f"in a temporary journal an entry was written, found {how} and read"
                yield ok("trial", message)
                break
        else:
            message = f"an entry isn't found {queries[-1][0]}, or isn't read as it was written"
            yield problem("trial", message, _REPORT)
        for notice in page.notices:
            advice = "use a Python whose SQLite has FTS5 and WAL, or searches take longer"
            yield problem("trial", notice, advice)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.hypot(*one) / math.hypot(*other)
