"""What is known of models, and how a folder says how its own is to be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.tiny_models import describe, make_model

from agent_journal.errors import EmbedderUnavailableError
from agent_journal.models.catalogue import CATALOGUE, SEED, Reading, described
from agent_journal.models.places import Places, found, is_right
from agent_journal.models.sources import folder_source


def test_every_model_is_described_whole() -> None:
    """Hashes, sizes, licences, a commit, and the files that are loaded among those fetched."""
    names: set[str] = set()
    for model in CATALOGUE:
        assert re.fullmatch("[0-9a-f]{40}", model.revision)
        assert model.licence in {"Apache-2.0", "MIT"}
        assert [file.path for file in model.loaded] == [model.weights, model.tokenizer]
        for file in model.files:
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert not Path(file.path).is_absolute()
            assert ".." not in file.path
            assert file.size_bytes > 0
        assert 0 < model.reading.passage_tokens <= model.reading.text_tokens <= 510
        names |= {model.key, model.repository}
        assert described(model.key) is described(model.repository.upper()) is model
    assert len(names) == 2 * len(CATALOGUE)
    assert described("another") is None


def test_the_originals_model_is_the_file_that_the_original_uses() -> None:
    """Its very bytes, and both files that transformers.js asks for besides."""
    (weights, *_) = SEED.loaded
    assert weights.path == "onnx/model_quantized.onnx"
    assert weights.size_bytes == 118_308_126
    assert weights.sha256 == "66fc00f5f29afcaff34092e1bdd20008ca3918265a82fb9695a551e510cc4ebc"
    assert {file.path for file in SEED.files} >= {"config.json", "tokenizer_config.json"}


@pytest.mark.parametrize(
    ("files", "reading"),
    [
        ({}, Reading(passage_tokens=126, text_tokens=510)),
        ({"sentence_bert_config": {"max_seq_length": 256}}, Reading(passage_tokens=254)),
        ({"sentence_bert_config": {"max_seq_length": 8192}}, Reading(passage_tokens=510)),
        (
            {"config": {"max_position_embeddings": 66, "model_type": "roberta"}},
            Reading(passage_tokens=62, text_tokens=62),
        ),
        (
            {"config": {"max_position_embeddings": 514, "model_type": "xlm-roberta"}},
            Reading(passage_tokens=126, text_tokens=510),
        ),
        (
            {"tokenizer_config": {"model_max_length": 64}},
            Reading(passage_tokens=62, text_tokens=62),
        ),
        ({"tokenizer_config": {"model_max_length": 1e30}}, Reading()),
        ({"sentence_bert_config": {"max_seq_length": True}}, Reading()),
        ({"sentence_bert_config": {"max_seq_length": None}}, Reading()),
        ({"config_sentence_transformers": {"prompts": None}}, Reading()),
        ({"config_sentence_transformers": {"prompts": {"query": 7}}}, Reading()),
        (
            {"config_sentence_transformers": {"prompts": {"query": "q: ", "document": "d: "}}},
            Reading(query_prefix="q: ", passage_prefix="d: "),
        ),
        ({"1_Pooling/config": {"pooling_mode_cls_token": True}}, Reading(pooling="cls")),
        ({"1_Pooling/config": {"pooling_mode_mean_tokens": True, "x": True}}, Reading()),
        ({"1_Pooling/config": []}, Reading()),
    ],
)
def test_a_folder_says_how_its_model_is_read(
    tmp_path: Path, files: dict[str, object], reading: Reading
) -> None:
    """In the files that sentence-transformers writes; what they don't say has usual values."""
    folder = make_model(tmp_path / "m")
    for name, said in files.items():
        file = folder / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(said), encoding="utf-8")
    source = folder_source(folder)
    assert source.reading == reading
    assert source.name == "m"


def test_weights_are_looked_for_where_exports_put_them(tmp_path: Path) -> None:
    """The quantised ones first; data beside them decide the identity as well."""
    folder = make_model(tmp_path / "m", weights="model.onnx")
    plain = folder_source(folder)
    assert plain.weights == folder / "model.onnx"
    (folder / "model.onnx_data").write_bytes(b"data")
    assert folder_source(folder).fingerprint != plain.fingerprint
    make_model(folder)
    assert folder_source(folder).weights == folder / "onnx" / "model_quantized.onnx"


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """As one whose file is a folder."""
    folder = make_model(tmp_path / "m")
    (folder / "sentence_bert_config.json").mkdir()
    with pytest.raises(EmbedderUnavailableError, match="can't be read"):
        folder_source(folder)


def test_odd_places_hold_nothing(tmp_path: Path) -> None:
    """Folders that are files, names that no system takes, links in a circle."""
    model = describe(make_model(tmp_path / "m"))
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    places = Places(
        tmp_path / "file",
        (tmp_path / "loop", Path("x" * 5000)),
        (tmp_path / "file", Path("y" * 5000)),
    )
    nothing = found(model, places, model.files, verify=True)
    assert (nothing.paths, nothing.doubtful) == ({}, ())
    assert not is_right(tmp_path, model.files[0], verify=True)
