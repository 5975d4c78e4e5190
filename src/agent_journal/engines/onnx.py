"""Sentence encoders exported to ONNX, run by onnxruntime: those of the catalogue and others.

Each text is run by itself, with no padding: in a model quantised as most are, what a text shares a
run with changes its numbers, since their range is taken over the whole of it. One thread, since on
two busy cores a second one made a text of 128 tokens take 127 ms instead of 67; for the same reason
none of them spins.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_journal.engines.onnx_numbers import Numbers, kept_numbers
from agent_journal.engines.onnx_tokens import Tokens, load_tokens
from agent_journal.errors import EmbedderUnavailableError
from agent_journal.models.sources import ModelSource
from agent_journal.ports import Baseline, Embedder

if TYPE_CHECKING:
    from agent_journal.models.catalogue import Reading
    from agent_journal.ports import Matrix, Vector

BATCH = 2
"""Texts of 126 tokens that a model of twelve layers embeds in 0.15 s."""

CHARS_PER_TOKEN = 16
"""No text has longer tokens on average; what comes after is not even looked at."""

_CUT = f"one-per-run-{CHARS_PER_TOKEN}"  # part of the identity: change it with what decides vectors
_SURROGATES = re.compile("[\ud800-\udfff]")
_SILENT = 4
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_DIMENSIONS_OF_TOKENS = 3


def load_onnx(source: ModelSource, prepared: Path | None = None) -> Embedder:
    """Load a model and return it ready to embed.

    Args:
        source: where it is.
        prepared: a folder in which to keep what takes long to make of its files.

    Raises:
        EmbedderUnavailableError: what it needs isn't installed, or it can't be used.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # versions since 1.29 report what they run
    try:
        import onnxruntime  # noqa: PLC0415 - slow, and wanted only with such a model

        tokens = load_tokens(source.tokenizer, source.tokenizer_sha256, prepared)
    except ImportError as error:
        raise EmbedderUnavailableError(
            f"the model {source.name} can't be used without the package {error.name}; "
            "install it with: pip install 'agent-journal[onnx]'"
        ) from error
    except (OSError, ValueError) as error:
        raise EmbedderUnavailableError(
            f"the tokenizer {source.tokenizer} can't be used: {error}"
        ) from error
    try:
        session = onnxruntime.InferenceSession(
            source.weights, _options(onnxruntime), providers=["CPUExecutionProvider"]
        )
        encoder = _Encoder(session, tokens, source.reading)
        probe = encoder.encode("a probe", source.reading.text_tokens)
    except EmbedderUnavailableError:
        raise
    except Exception as error:
        # onnxruntime has a class of its own for each reason.
        raise EmbedderUnavailableError(
            f"the model in {source.weights} can't be loaded: {error}"
        ) from error
    numbers = kept_numbers(prepared, source.fingerprint, encoder.passage, encoder.query)
    return _Onnx(source, encoder, len(probe), numbers)


def _options(onnxruntime: Any) -> Any:  # noqa: ANN401 - onnxruntime carries no types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = False  # it keeps what the longest text took
    options.log_severity_level = _SILENT
    return options


class _Encoder:
    """A session with its tokenizer; `run` holds no state, so that threads may share it."""

    def __init__(self, session: Any, tokens: Tokens, reading: Reading) -> None:  # noqa: ANN401 - as above
        self._session = session
        self._tokens = tokens
        self._reading = reading
        self._inputs = [each.name for each in session.get_inputs()]
        if odd := set(self._inputs) - _INPUTS:
            raise EmbedderUnavailableError(
                f"the model wants what no text gives: {', '.join(sorted(odd))}"
            )
        self._output = next(
            (
                each.name
                for each in session.get_outputs()
                if len(each.shape) == _DIMENSIONS_OF_TOKENS
            ),
            None,
        )
        if self._output is None:
            raise EmbedderUnavailableError("the model gives no vectors of tokens")

    def passage(self, text: str) -> Vector:
        """Return a passage's vector."""
        return self.encode(self._reading.passage_prefix + text, self._reading.text_tokens)

    def query(self, text: str) -> Vector:
        """Return a query's vector."""
        return self.encode(self._reading.query_prefix + text, self._reading.text_tokens)

    def encode(self, text: str, limit: int) -> Vector:
        """Return the vector of a text with its prefix.

        Raises:
            EmbedderUnavailableError: the model gives no usable numbers.
        """
        import numpy as np  # noqa: PLC0415 - slow, and wanted only when embedding

        tokens = self._tokens.numbers(_fit(text, limit), limit)
        numbers = np.array([tokens or [0]], np.int64)  # some put nothing around an empty text
        given = {
            "input_ids": numbers,
            "attention_mask": np.ones_like(numbers),
            "token_type_ids": np.zeros_like(numbers),
        }
        (states,) = self._session.run([self._output], {name: given[name] for name in self._inputs})
        pooled = states[0].mean(axis=0) if self._reading.pooling == "mean" else states[0][0]
        vector: Vector = pooled.astype(np.float32)
        length = float(np.linalg.norm(vector))
        if not 0 < length < np.inf:
            raise EmbedderUnavailableError("the model gives no usable numbers")
        vector /= length
        return vector

    def reach(self, text: str) -> int:
        """Return how much of a passage is read as one."""
        prefix, limit = self._reading.passage_prefix, self._reading.passage_tokens
        fitted = _fit(prefix + text, limit)
        fits, too_long = len(prefix), len(fitted) + 1
        end = len(fitted)
        while fits < end:  # a cut in two, since tokens don't say where in the text they stand
            if self._tokens.count(fitted[:end]) <= limit:
                fits = end
            else:
                too_long = end
            end = (fits + too_long) // 2
        return min(max(fits - len(prefix), 1), len(text))


class _Onnx:
    """The loaded model."""

    batch = BATCH

    def __init__(
        self, source: ModelSource, encoder: _Encoder, dimension: int, numbers: Numbers
    ) -> None:
        self.name = source.name
        self.identity = hashlib.sha256(f"{source.fingerprint} {_CUT}".encode()).hexdigest()[:32]
        self.dimension = dimension
        self.baseline: Baseline = numbers.baseline
        self.floor = numbers.floor
        self._encoder = encoder

    def reach(self, text: str) -> int:
        """See `Embedder`."""
        return self._encoder.reach(text)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`."""
        import numpy as np  # noqa: PLC0415 - slow, and wanted only when embedding

        matrix: Matrix = np.empty((len(texts), self.dimension), np.float32)
        for row, text in zip(matrix, texts, strict=True):
            row[:] = self._encoder.passage(text)
        return matrix

    def embed_query(self, text: str) -> Vector:
        """See `Embedder`."""
        return self._encoder.query(text)


def _fit(text: str, tokens: int) -> str:
    """Return what the tokenizer is given of a text, so that no length makes it work for long."""
    return _SURROGATES.sub("\ufffd", text[: tokens * CHARS_PER_TOKEN])
