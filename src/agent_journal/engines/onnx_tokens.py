"""Text to the numbers of a model's tokens, by whichever library does it with less."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from agent_journal.engines import placing
from agent_journal.engines.onnx_unigram import to_sentencepiece

_FILE_MODE = 0o600
_SUM_BYTES = 32


class Tokens(Protocol):
    """A tokenizer; may be used by several threads."""

    def numbers(self, text: str, limit: int) -> list[int]:
        """Return a text's first tokens, between those that every text begins and ends with."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens a text has, without those around it."""
        ...


def load_tokens(file: Path, sha256: str, prepared: Path | None) -> Tokens:
    """Load a tokenizer.

    Args:
        file: its tokenizer.json.
        sha256: of this file.
        prepared: a folder in which to keep what takes long to make of it.

    Raises:
        ImportError: a library is missing.
        OSError: the file can't be read.
        ValueError: it isn't a tokenizer that we know.
    """
    kept = kept_file(prepared, f"{sha256}.sentencepiece", lambda: to_sentencepiece_of(file))
    return _SentencePieces(kept) if kept else _FastTokens(file)


def kept_file(folder: Path | None, name: str, make: Callable[[], bytes | None]) -> bytes | None:
    """Return what a folder keeps under a name, made now if it isn't there, or isn't whole.

    What can't be kept is made each time; nothing is kept of None.
    """
    if folder is None:
        return make()
    with suppress(OSError):
        kept = (folder / name).read_bytes()
        if kept[:_SUM_BYTES] == hashlib.sha256(kept[_SUM_BYTES:]).digest():
            return kept[_SUM_BYTES:]
    made = make()
    if made is not None:
        with suppress(OSError):
            placing.create_folder(folder)
            with (
                placing.opened(folder) as descriptor,
                placing.Staging(descriptor, _FILE_MODE) as staging,
            ):
                staging.fill(hashlib.sha256(made).digest() + made, durable=True)
                staging.replace(name)
    return made


def to_sentencepiece_of(file: Path) -> bytes | None:
    """Return `to_sentencepiece` of a file, once sentencepiece has been seen to take it."""
    made = to_sentencepiece(file.read_bytes())
    if made is None:
        return None
    try:
        _SentencePieces(made)
    except (RuntimeError, ValueError):  # such as a piece that comes twice
        return None
    return made


class _SentencePieces:
    """A model of pieces with scores."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece  # noqa: PLC0415 - slow, and wanted only for such a model

        self._model: Any = sentencepiece.SentencePieceProcessor()  # carries no types
        self._model.LoadFromSerializedProto(model)
        self._first, self._last = self._model.bos_id(), self._model.eos_id()
        if min(self._first, self._last) < 0:
            raise ValueError("it has no token to begin or to end with")

    def numbers(self, text: str, limit: int) -> list[int]:
        """See `Tokens`."""
        numbers: list[int] = self._model.encode(text)
        return [self._first, *numbers[:limit], self._last]

    def count(self, text: str) -> int:
        """See `Tokens`."""
        return len(self._model.encode(text))


class _FastTokens:
    """Whatever tokenizer.json describes."""

    def __init__(self, file: Path) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # or it warns after every fork
        import tokenizers  # noqa: PLC0415 - slow, and wanted only for such a model

        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(os.fspath(file))
        except Exception as error:
            # It raises bare exceptions.
            raise ValueError(str(error)) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        framed = self._tokenizer.encode("").ids
        self._before = framed[:1]
        self._after = framed[1:]

    def numbers(self, text: str, limit: int) -> list[int]:
        """See `Tokens`."""
        numbers = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [*self._before, *numbers[:limit], *self._after]

    def count(self, text: str) -> int:
        """See `Tokens`."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)
