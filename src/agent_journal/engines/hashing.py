"""An embedder without a model, for tests: words and letter groups hashed into a vector.

It carries a text's signal, so that similar texts are near, and is the same in every process and on
every machine. It knows nothing of meaning and is never offered to users.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_journal.ports import Baseline

if TYPE_CHECKING:
    from agent_journal.ports import Matrix, Vector

_WORD = re.compile(r"\w+")
_GROUP = 3
_TEXT_LIMIT = 20_000


class HashingEmbedder:
    """See `Embedder`; a word weighs as much as all of its letter groups together."""

    def __init__(self, dimension: int = 256, name: str = "test/hashing") -> None:
        self.dimension = dimension
        self.name = name
        self.identity = f"hashing-{name}-{dimension}"
        self.baseline = Baseline(mean=0.05, deviation=0.08)
        self.floor = 0.3
        self.batch = 32

    def reach(self, text: str) -> int:
        """See `Embedder`."""
        return min(len(text), _TEXT_LIMIT)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`."""
        import numpy as np  # noqa: PLC0415 - slow, and wanted only when embedding

        matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(matrix, texts, strict=True):
            for feature, weight in _features(text).items():
                code = zlib.crc32(feature.encode("utf-8", "replace"))
                row[code % self.dimension] += weight if code & 0x8000_0000 else -weight
            if not row.any():  # no words, or features that cancel out
                row[0] = 1.0
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix

    def embed_query(self, text: str) -> Vector:
        """See `Embedder`."""
        vector: Vector = self.embed_passages([text])[0]
        return vector


def _features(text: str) -> dict[str, float]:
    features: defaultdict[str, float] = defaultdict(float)
    for word, count in Counter(_WORD.findall(text[:_TEXT_LIMIT].casefold())).items():
        features[word] += count
        framed = f"<{word}>"
        groups = [framed[at : at + _GROUP] for at in range(len(framed) - _GROUP + 1)]
        for group in groups:
            features[f"#{group}"] += count / len(groups)
    return {feature: weight**0.5 for feature, weight in features.items()}
