"""A model that lies on the disk, ready to be loaded: one of the catalogue's, or any folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_journal.errors import EmbedderUnavailableError
from agent_journal.models.catalogue import CATALOGUE, ModelDescription, Pooling, Reading
from agent_journal.models.places import Places, found, sha256_of

WEIGHTS = ("onnx/model_quantized.onnx", "onnx/model.onnx", "model_quantized.onnx", "model.onnx")
"""Where a folder may have its weights, in order of preference."""

_SPECIAL_TOKENS = 2
_UNSTATED_TOKENS = 128
_MOST_TOKENS = 512
_SIZE_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What is loaded.

    Attributes:
        name: its public name, which sidecars carry.
        weights, tokenizer: the files.
        tokenizer_sha256: of the tokenizer's file.
        fingerprint: a hash of both files and of how they are used.
    """

    name: str
    weights: Path
    tokenizer: Path
    tokenizer_sha256: str
    fingerprint: str
    reading: Reading


def installed_source(model: ModelDescription, places: Places) -> ModelSource:
    """Return a model of the catalogue once its files are found and their hashes are right.

    Raises:
        EmbedderUnavailableError: they are not there, or not the right ones.
    """
    there = found(model, places, model.loaded, verify=True)
    missing = [file for file in model.loaded if file.path not in there.paths]
    if missing:
        what = "is not installed"
        if there.doubtful:
            what = f"can't be trusted: {there.doubtful[0]} is not the file that is meant"
        raise EmbedderUnavailableError(
            f"the model {model.key} {what}; run: agent-journal model install {model.key}"
        )
    sums = {file.path: file.sha256 for file in model.loaded}
    return _source(
        model.repository,
        there.paths[model.weights],
        there.paths[model.tokenizer],
        (sums[model.weights], sums[model.tokenizer]),
        model.reading,
    )


def folder_source(folder: Path) -> ModelSource:
    """Return the model in a folder of sentence-transformers' layout, exported to ONNX.

    Files of a model in the catalogue are recognised, and then used as it says.

    Raises:
        EmbedderUnavailableError: there is none, or one that can't be used.
    """
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    tokenizer = folder / "tokenizer.json"
    if weights is None or not tokenizer.is_file():
        lacking = "tokenizer.json" if weights else " or ".join(WEIGHTS[:2])
        raise EmbedderUnavailableError(f"there is no model in {folder}: it has no {lacking}")
    try:
        sums = sha256_of(weights), sha256_of(tokenizer)
        beside = weights.with_name(f"{weights.name}_data")  # weights over 2 GB, or exported so
        extra = sha256_of(beside) if beside.is_file() else ""
        for model in CATALOGUE:
            if sums == tuple(file.sha256 for file in model.loaded):
                return _source(model.repository, weights, tokenizer, sums, model.reading)
        reading = _reading(folder)
    except OSError as error:
        raise EmbedderUnavailableError(f"the model in {folder} can't be read: {error}") from error
    return _source(folder.absolute().name, weights, tokenizer, (sums[0] + extra, sums[1]), reading)


def _source(
    name: str, weights: Path, tokenizer: Path, sums: tuple[str, str], reading: Reading
) -> ModelSource:
    digest = hashlib.sha256(repr((sums, reading)).encode()).hexdigest()
    return ModelSource(name, weights, tokenizer, sums[1], digest, reading)


def _reading(folder: Path) -> Reading:
    """Return how a folder's own files say that its model is to be read.

    Raises:
        EmbedderUnavailableError: they say what we can't do.
        OSError: one of them can't be read.
    """
    model = _object(folder / "config.json")
    sentences = _object(folder / "sentence_bert_config.json")
    prompts = _object(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    positions = _tokens(model.get("max_position_embeddings"), _MOST_TOKENS)
    if model.get("model_type") in {"xlm-roberta", "roberta"}:
        positions -= _SPECIAL_TOKENS  # they count positions from the padding's on
    stated = _tokens(_object(folder / "tokenizer_config.json").get("model_max_length"), positions)
    trained = _tokens(sentences.get("max_seq_length"), min(_UNSTATED_TOKENS, stated))
    most = max(min(positions, max(stated, trained), _MOST_TOKENS) - _SPECIAL_TOKENS, 1)
    return Reading(
        pooling=_pooling(folder),
        query_prefix=_prefix(prompts, "query"),
        passage_prefix=_prefix(prompts, "passage", "document"),
        passage_tokens=max(min(trained - _SPECIAL_TOKENS, most), 1),
        text_tokens=most,
    )


def _pooling(folder: Path) -> Pooling:
    said = _object(folder / "1_Pooling" / "config.json")
    modes = {
        name.removeprefix("pooling_mode_")
        for name, value in said.items()
        if name.startswith("pooling_mode_") and value is True
    }
    if not modes or modes == {"mean_tokens"}:
        return "mean"
    if modes == {"cls_token"}:
        return "cls"
    raise EmbedderUnavailableError(
        f"the model in {folder} pools by {', '.join(sorted(modes))}; only mean_tokens and "
        "cls_token are known"
    )


def _prefix(prompts: Mapping[str, object], *names: str) -> str:
    return next((text for name in names if isinstance(text := prompts.get(name), str)), "")


def _tokens(value: object, otherwise: int) -> int:
    """Return a number of tokens; huge ones stand for no limit."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > _SPECIAL_TOKENS:
        return int(min(value, _MOST_TOKENS + _SPECIAL_TOKENS))
    return otherwise


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a small file; empty when there is none, or none that is an object.

    Raises:
        OSError: it is there and can't be read.
    """
    try:
        with path.open("rb") as stream:
            value = json.loads(stream.read(_SIZE_LIMIT))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        raise OSError(0, f"{path} is not JSON") from None
    return value if isinstance(value, dict) else {}
