"""Journals that are made for measuring: text, vectors and questions like those of real ones."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

from agent_journal.assembly import index_path
from agent_journal.config import Settings
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.engines.use import load_use
from agent_journal.journal import Journal
from agent_journal.model import Draft, Provenance

if TYPE_CHECKING:
    from agent_journal.ports import Embedder, Matrix, Vector

ENTRY_WORDS = 98  # on average, title and tags included
PROJECTS = 20
DIMENSION = 512
_TAGS = 300
_SET = Path(__file__).parent / "sets" / "journal-dev.json"


class Vocabulary:
    """Text with the word frequencies of a real journal (Zipf), the same in every run.

    One word in nineteen is an identifier, as in bench/sets/journal-dev.json.
    """

    def __init__(self) -> None:
        self._random = random.Random(7)
        syllables = ["ka", "ro", "mi", "ten", "sol", "bar", "lin", "du", "fe", "gos", "pra", "vel"]
        parts = list(itertools.product(syllables, repeat=4))
        self._random.shuffle(parts)
        self._words = [
            f"{''.join(part[:2])}_{''.join(part[2:])}" if number % 19 == 18 else "".join(part)
            for number, part in enumerate(parts)
        ]
        weights = [1 / (rank + 10) for rank in range(len(parts))]
        self._weights = list(itertools.accumulate(weights))
        shares = [1 - (1 - weight / sum(weights)) ** ENTRY_WORDS for weight in weights]
        self._askable = [rank for rank, share in enumerate(shares) if 0.002 < share < 0.12]

    def sentence(self, length: int) -> str:
        """Return some words in a row."""
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=length))

    def question(self) -> str:
        """Return six words as people ask them.

        In bench/sets/journal-dev.json a query has 6.4 terms; half of them stand in under 1.9 % of
        the entries, a tenth in over 9.4 %, and a query's words touch 14 % of the entries.
        """
        first, last = self._askable[0], self._askable[-1]
        ranks = [int(first * (last / first) ** self._random.random()) for _ in range(6)]
        return " ".join(self._words[rank] for rank in ranks)

    def draft(self, number: int) -> Draft:
        """Return an entry; lengths are as in bench/sets/journal-dev.json: most are short."""
        words = self._random.choices([15, 30, 60, 200, 450], [6, 6, 4, 2, 2])[0]
        body = "\n\n".join(f"{self.sentence(15)}." for _ in range(words // 15))
        return Draft(
            self.sentence(6),
            body,
            [f"tag{int(_TAGS ** self._random.random())}" for _ in range(2)],
            Provenance(
                f"/srv/project{number % PROJECTS}", "model", "provider", "build", f"s{number}"
            ),
            created=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
        )


class Drawn:
    """The bundled model for questions; passages get vectors that it made of others.

    Made words mean nothing to it. So each passage has the vector of one of journal-dev's, with some
    noise, and a question the vector of one of its questions, once the model has embedded the
    question itself: the cosines lie as they do in a real journal, the model's time is in it, and
    100,000 entries take no hour.
    """

    def __init__(self, prepared: Path) -> None:
        self._model = model = load_use(prepared)
        self.name, self.identity = model.name, model.identity
        self.dimension, self.batch = model.dimension, 256
        self.baseline, self.floor = model.baseline, model.floor
        self._noise = np.random.default_rng(1)

    def reach(self, text: str) -> int:
        """Return that one vector stands for all of a text."""
        return len(text)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return vectors of other passages."""
        drawn = self._passages[[zlib.crc32(text.encode()) % len(self._passages) for text in texts]]
        matrix = drawn + self._noise.normal(0, 0.6 / self.dimension**0.5, drawn.shape)
        unit: Matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def embed_query(self, text: str) -> Vector:
        """Embed a text, and return the vector of another question."""
        self._model.embed_query(text)
        vector: Vector = self._questions[zlib.crc32(text.encode()) % len(self._questions)]
        return vector

    @cached_property
    def _passages(self) -> Matrix:
        entries = json.loads(_SET.read_text(encoding="utf-8"))["entries"]
        texts = [f"{entry['title']}\n{entry['body'][:900]}" for entry in entries]
        return self._model.embed_passages([*texts, *(entry["title"] for entry in entries)])

    @cached_property
    def _questions(self) -> Matrix:
        queries = json.loads(_SET.read_text(encoding="utf-8"))["queries"]
        return self._model.embed_passages([query["text"] for query in queries])


def opened(settings: Settings) -> Journal:
    """Open a journal as the product does, but for the vectors of its passages."""
    places = settings.model_places
    if places is None or places.prepared is None or settings.state_folder is None:
        raise RuntimeError("there is no home directory")
    prepared, memory = places.prepared, settings.state_folder / "bench"
    return Journal(
        FileStore(settings.folder, ledgers=lambda: Ledgers(settings.folder, memory)),
        SqliteIndex(index_path(settings)),
        BackgroundLoader(lambda: _drawn(prepared)),
    )


def fill(settings: Settings, drafts: Sequence[Draft]) -> None:
    """Write entries without waiting for the disk."""
    store = FileStore(settings.folder)
    with patch("agent_journal.engines.placing.flush"):
        for draft in drafts:
            store.append(draft)


def _drawn(prepared: Path) -> Embedder:
    return Drawn(prepared)
