"""What is known of each model that can be installed: frozen descriptions, without any I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pooling = Literal["mean", "cls"]
"""How the vectors of tokens become one: their mean, or the first one's alone."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model, as its repository has it.

    Attributes:
        path: within the repository, with slashes.
        sha256: of its content, in hexadecimal digits.
    """

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How a model is given a text; with its files, all that decides its vectors.

    Attributes:
        query_prefix, passage_prefix: what it was trained to see before each kind of text.
        passage_tokens: how many tokens of a text it was trained on: a passage has no more.
        text_tokens: how many tokens it can be given at all; the rest is cut off. Both count the
            prefix, and not what every text begins and ends with.
    """

    pooling: Pooling = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""
    passage_tokens: int = 126
    text_tokens: int = 510


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model that can be installed.

    Attributes:
        key: what it is called on the command line and in the configuration.
        repository: where it comes from; also its public name, which sidecars carry.
        revision: the commit whose files are meant.
        licence: as SPDX names it.
        about: what it is good for, in a few words.
        files: all that is fetched.
        weights, tokenizer: the paths of those that are loaded.
        dimension: the length of its vectors.
    """

    key: str
    repository: str
    revision: str
    licence: str
    about: str
    files: tuple[ModelFile, ...]
    weights: str
    tokenizer: str
    dimension: int
    reading: Reading

    @property
    def size_bytes(self) -> int:
        """How large all its files are together."""
        return sum(file.size_bytes for file in self.files)

    @property
    def loaded(self) -> tuple[ModelFile, ...]:
        """The files without which it can't be loaded: weights and tokenizer."""
        return tuple(file for file in self.files if file.path in {self.weights, self.tokenizer})


SEED = ModelDescription(
    key="paraphrase-multilingual-minilm",
    repository="Xenova/paraphrase-multilingual-MiniLM-L12-v2",
    revision="2c4055b12046f11709e9df2c122e59ffbdc2f900",
    licence="Apache-2.0",
    about="50 languages; the model of opencode-agent-memory, whose sidecars it shares",
    files=(
        ModelFile(
            "onnx/model_quantized.onnx",
            118_308_126,
            "66fc00f5f29afcaff34092e1bdd20008ca3918265a82fb9695a551e510cc4ebc",
        ),
        ModelFile(
            "tokenizer.json",
            17_082_913,
            "b60b6b43406a48bf3638526314f3d232d97058bc93472ff2de930d43686fa441",
        ),
        ModelFile(
            "config.json", 673, "05b570bff786faa5c4604152aa16f19f77ed6dfc31e47dd0f3dd987078693ac7"
        ),
        ModelFile(
            "tokenizer_config.json",
            496,
            "3f5961b9ac86288cccdb97f32fb848d6187c78e1603958c53f3ea1f296b7d8a2",
        ),
    ),
    weights="onnx/model_quantized.onnx",
    tokenizer="tokenizer.json",
    dimension=384,
    reading=Reading(),
)
"""The original's: what else uses its cache folder finds there all that it looks for."""

E5_SMALL = ModelDescription(
    key="multilingual-e5-small",
    repository="Xenova/multilingual-e5-small",
    revision="761b726dd34fb83930e26aab4e9ac3899aa1fa78",
    licence="MIT",
    about="100 languages; stronger where a question and its answer share no word",
    files=(
        ModelFile(
            "onnx/model_quantized.onnx",
            118_308_185,
            "f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193",
        ),
        ModelFile(
            "tokenizer.json",
            17_082_730,
            "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
        ),
        ModelFile(
            "config.json", 658, "cb99455288675345e1a4f411438d5d0adbba5fbd3a67ea4fb03c015433b996c1"
        ),
        ModelFile(
            "tokenizer_config.json",
            443,
            "a1d6bc8734a6f635dc158508bef000f8e2e5a759c7d92f984b2c86e5ff53425b",
        ),
    ),
    weights="onnx/model_quantized.onnx",
    tokenizer="tokenizer.json",
    dimension=384,
    reading=Reading(query_prefix="query: ", passage_prefix="passage: ", passage_tokens=510),
)

CATALOGUE: tuple[ModelDescription, ...] = (SEED, E5_SMALL)
"""Every model that can be installed by name, the preferred one first."""


def described(name: str) -> ModelDescription | None:
    """Return the model of a key or a repository, whatever its case; None when there is none."""
    wanted = name.casefold()
    for model in CATALOGUE:
        names = (model.key, model.repository, model.repository.rpartition("/")[2])
        if wanted in {one.casefold() for one in names}:
            return model
    return None
