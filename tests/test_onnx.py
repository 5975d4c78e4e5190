"""The engine that runs ONNX models: what decides vectors, is refused or kept; and search."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tests.tiny_models import describe, make_model, packaged, pieces_json, vocabulary, words_json

from agent_journal import upkeep
from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.engines import onnx_tokens
from agent_journal.engines.onnx import BATCH, load_onnx
from agent_journal.engines.onnx_numbers import measured
from agent_journal.engines.onnx_tokens import load_tokens
from agent_journal.engines.onnx_unigram import to_sentencepiece
from agent_journal.engines.use import load_use
from agent_journal.errors import EmbedderUnavailableError
from agent_journal.model import Draft
from agent_journal.models import catalogue
from agent_journal.models.catalogue import SEED
from agent_journal.models.places import sha256_of
from agent_journal.models.sources import folder_source
from agent_journal.ports import Embedder
from agent_journal.query import Query

TEXTS = (
    "",
    " ",
    "the payment webhook fails when it is retried",
    "  two   blanks\tand\n\nlines  ",
    "漢字仮名交文 שלום é ü",
    "Ünknown ﬁ ligature and 😀 emoji",
    "nul \0 and control \x07",
)


def loaded(folder: Path, prepared: Path | None = None) -> Embedder:
    """Load the model in a folder."""
    return load_onnx(folder_source(folder), prepared)


def refusal(folder: Path) -> str:
    """Return why the model in a folder can't be loaded."""
    with pytest.raises(EmbedderUnavailableError) as caught:
        loaded(folder)
    return caught.value.reason


# tokens


@given(st.text(st.sampled_from("the paymentwbhok漢字éü .,\n\t<s>\u2581"), max_size=80))
def test_both_libraries_find_the_same_tokens(text: str) -> None:
    """What was made for sentencepiece numbers any text as tokenizers does the original."""
    said = json.dumps(pieces_json()).encode()
    plain = tokenizers.Tokenizer.from_str(said.decode())
    made = to_sentencepiece(said)
    assert made is not None
    pieces = onnx_tokens._SentencePieces(made)
    if "<s>" not in text:  # tokenizers takes it for the token that no text may hold
        assert pieces.numbers(text, 10_000) == plain.encode(text).ids[:10_002]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_cut_between_those_around_them(tmp_path: Path, text: str) -> None:
    """Both kinds of tokenizer keep the first ones, and count without what stands around them."""
    for number, said in enumerate((pieces_json(), words_json())):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(said), encoding="utf-8")
        tokens = load_tokens(file, sha256_of(file), None)
        whole = tokens.numbers(text, 1000)
        assert tokens.count(text) == len(whole) - 2
        assert tokens.numbers(text, 3) == [whole[0], *whole[1:-1][:3], whole[-1]]


def test_only_pieces_with_scores_go_to_sentencepiece() -> None:
    """Other kinds, and steps that it can't take, are left to tokenizers."""
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    upper = {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}
    changes: list[dict[str, Any]] = [
        {"model": {**pieces_json()["model"], "byte_fallback": True}},
        {"model": {**pieces_json()["model"], "unk_id": None}},
        {"model": {"type": "BPE", "note": "Unigram"}},
        {"normalizer": strip},
        {"normalizer": upper},
        {"normalizer": None},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}},
        {"pre_tokenizer": {"type": "WhitespaceSplit"}},
        {"post_processor": {"type": "TemplateProcessing", "single": [], "special_tokens": {}}},
        {"post_processor": None},
        {"added_tokens": []},
    ]
    for change in changes:
        assert to_sentencepiece(json.dumps(pieces_json(**change)).encode()) is None, change
    assert to_sentencepiece(json.dumps(words_json()).encode()) is None
    assert to_sentencepiece(b'"Unigram"') is None
    assert to_sentencepiece(json.dumps(pieces_json()).encode())


def test_added_tokens_beyond_the_pieces_do_not_matter() -> None:
    """Some files add tokens after the last piece; none of them is one of a text."""
    said = pieces_json()
    said["added_tokens"].append(said["added_tokens"][0] | {"id": 10_000, "content": "<more>"})
    assert to_sentencepiece(json.dumps(said).encode())


def test_pieces_that_sentencepiece_refuses_go_to_tokenizers(tmp_path: Path) -> None:
    """Such as those in which one comes twice."""
    said = pieces_json()
    said["model"]["vocab"][10] = said["model"]["vocab"][11]
    model = loaded(make_model(tmp_path / "m", said))
    assert model.embed_query("payment").shape == (model.dimension,)


# vectors


def test_prefixes_pooling_and_limits_decide_vectors(tmp_path: Path) -> None:
    """Each of them makes another identity and other vectors; the same ones make the same."""
    plain = loaded(make_model(tmp_path / "plain"))
    files: dict[str, dict[str, object]] = {
        "config_sentence_transformers.json": {
            "prompts": {"query": "why ", "passage": "entry ", "other": "x"}
        },
        "1_Pooling/config.json": {
            "pooling_mode_cls_token": True,
            "pooling_mode_mean_tokens": False,
        },
        "sentence_bert_config.json": {"max_seq_length": 8},
    }
    identities = {plain.identity}
    for number, (name, said) in enumerate(files.items()):
        folder = make_model(tmp_path / str(number))
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(said), encoding="utf-8")
        other = loaded(folder)
        identities.add(other.identity)
        if number == 0:
            assert np.allclose(other.embed_query("redis"), plain.embed_query("why redis"))
            (passage,) = other.embed_passages(["redis"])
            assert np.allclose(passage, plain.embed_query("entry redis"))
        if number == 1:
            assert not np.allclose(other.embed_query("redis"), plain.embed_query("redis"))
        if number == 2:
            assert other.reach("redis " * 20) in {35, 36}
            assert plain.reach("redis " * 20) == 120
    assert len(identities) == 4
    assert loaded(make_model(tmp_path / "again")).identity == plain.identity
    assert loaded(make_model(tmp_path / "seed", seed=1)).identity != plain.identity


def test_a_passage_of_the_originals_model_has_126_tokens(tmp_path: Path) -> None:
    """Its parts are cut there, though whole texts are read up to 510 as the original does."""
    reading = SEED.reading
    assert (reading.passage_tokens, reading.text_tokens, reading.pooling) == (126, 510, "mean")
    model = loaded(make_model(tmp_path / "m"))
    text = "redis licence legal " * 300
    reach = model.reach(text)
    file = tmp_path / "m" / "tokenizer.json"
    tokens = load_tokens(file, sha256_of(file), None)
    assert tokens.count(text[:reach]) in {125, 126}  # within a word there may be more than after it
    assert tokens.count(text[: reach + 9]) > 126
    long = text[: reach + 500]
    vectors = model.embed_passages([long, f"{long[:-7]}zebra."])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4


def test_each_text_is_run_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has one row and no padding: batch-mates change what a quantised model gives."""
    model = loaded(make_model(tmp_path / "m"))
    encoder: Any = model._encoder  # type: ignore[attr-defined]  # the engine's own
    session, shapes = encoder._session, []

    class Spy:
        def run(self, outputs: list[str], inputs: dict[str, Any]) -> object:
            shapes.append({array.shape for array in inputs.values()})
            return session.run(outputs, inputs)

    monkeypatch.setattr(encoder, "_session", Spy())
    model.embed_passages(["redis", "the payment webhook fails"])
    assert [len(shape) for shape in shapes] == [1, 1]
    assert [rows for shape in shapes for rows, _ in shape] == [1, 1]
    assert len({length for shape in shapes for _, length in shape}) == 2
    assert model.batch == BATCH


def test_a_tokenizer_that_puts_nothing_around_texts_will_do(tmp_path: Path) -> None:
    """Then the empty text has no token at all, and gets a vector all the same."""
    said = words_json() | {"post_processor": None}
    model = loaded(make_model(tmp_path / "m", said, tokens=400))
    matrix = model.embed_passages(["", " ", "redis"])
    assert np.abs(np.linalg.norm(matrix, axis=1) - 1).max() < 1e-5


# what is refused


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    """The sentence names what is lacking."""
    assert "has no onnx/model_quantized.onnx or onnx/model.onnx" in refusal(tmp_path)
    folder = make_model(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in refusal(folder)


def test_models_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    """Unknown inputs, no vectors of tokens, other pooling, broken files, useless numbers."""
    odd = make_model(tmp_path / "odd", inputs=("input_ids", "attention_mask", "pixels"))
    assert "wants what no text gives: pixels" in refusal(odd)
    useless = make_model(tmp_path / "useless", scale=float("nan"))
    assert "gives no usable numbers" in refusal(useless)
    zero = make_model(tmp_path / "zero", scale=0.0)
    assert "gives no usable numbers" in refusal(zero)
    broken = make_model(tmp_path / "broken")
    (broken / "onnx" / "model_quantized.onnx").write_bytes(b"no model")
    assert "can't be loaded" in refusal(broken)
    short = make_model(tmp_path / "short", tokens=2)
    assert "can't be loaded" in refusal(short)
    words = make_model(tmp_path / "words")
    (words / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert "tokenizer.json can't be used" in refusal(words)
    pooled = make_model(tmp_path / "pooled")
    (pooled / "1_Pooling").mkdir()
    (pooled / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_max_tokens": true}', encoding="utf-8"
    )
    assert "pools by max_tokens" in refusal(pooled)
    said = make_model(tmp_path / "said")
    (said / "config.json").write_text("{", encoding="utf-8")
    assert "config.json is not JSON" in refusal(said)


def test_a_graph_without_vectors_of_tokens_is_told(tmp_path: Path) -> None:
    """Those that give one vector a text have pooled it in a way of their own."""
    import onnx  # noqa: PLC0415 - only here
    from onnx import TensorProto, helper  # noqa: PLC0415 - as above

    folder = make_model(tmp_path / "m")
    node = helper.make_node("Cast", ["input_ids"], ["out"], to=TensorProto.FLOAT)
    given_ = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["a", "b"])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["a", "b"])
    model = helper.make_model(
        helper.make_graph([node], "g", [given_], [out]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, folder / "onnx" / "model_quantized.onnx")
    assert "gives no vectors of tokens" in refusal(folder)


@pytest.mark.parametrize("package", ["onnxruntime", "sentencepiece", "tokenizers"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """Whoever hasn't installed the extra is told its name."""
    folder = make_model(tmp_path / "m", words_json() if package == "tokenizers" else None)
    monkeypatch.setitem(sys.modules, package, None)
    reason = refusal(folder)
    assert f"without the package {package}" in reason
    assert "agent-journal[onnx]" in reason


# what is kept


def test_what_takes_long_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time no tokenizer is read and no cosine measured; what is lost is redone."""
    folder, prepared = make_model(tmp_path / "m"), tmp_path / "kept" / "here"
    first = loaded(folder, prepared)
    assert len(list(prepared.iterdir())) == 2
    with monkeypatch.context() as patched:
        patched.setattr("agent_journal.engines.onnx_tokens.to_sentencepiece", None)
        patched.setattr("agent_journal.engines.onnx_numbers.measured", None)
        second = loaded(folder, prepared)
    assert (second.baseline, second.floor) == (first.baseline, first.floor)
    assert np.array_equal(second.embed_query("redis"), first.embed_query("redis"))
    for file in prepared.glob("*.numbers"):
        file.write_text("[1]", encoding="utf-8")
    assert loaded(folder, prepared).floor == first.floor
    file = tmp_path / "file"
    file.touch()
    assert loaded(folder, file / "no folder").floor == first.floor


@pytest.mark.parametrize("damage", [b"", b"junk", b"\n\x03abc"])
def test_a_damaged_tokenizer_that_was_kept_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    """Half a file, or somebody else's, is never trusted."""
    folder, prepared = make_model(tmp_path / "m"), tmp_path / "kept"
    first = loaded(folder, prepared)
    (kept,) = prepared.glob("*.sentencepiece")
    kept.write_bytes(damage)
    assert np.array_equal(loaded(folder, prepared).embed_query("redis"), first.embed_query("redis"))


def test_numbers_found_by_trying_are_those_measured_on_a_set() -> None:
    """For the bundled model both are known: mean .114 and deviation .083, over 25,449 pairs."""
    model = load_use()
    tried = measured(lambda text: model.embed_passages([text])[0], model.embed_query)
    assert abs(tried.mean - model.baseline.mean) < 0.03
    assert abs(tried.deviation - model.baseline.deviation) < 0.03


# the journal


@pytest.fixture
def settings(home: Path) -> Callable[..., Any]:
    """Give settings of a journal in the test's home."""

    def make(model: str) -> Any:  # noqa: ANN401 - Settings
        return load_settings(os.environ, journal=str(home / "journal"), model=model)

    return make


def test_entries_are_found_by_a_real_model_end_to_end(
    tmp_path: Path, settings: Callable[..., Any], home: Path
) -> None:
    """Written, embedded with real weights, found by meaning from the far end of a long entry."""
    chosen = settings(str(packaged(tmp_path / "mini")))
    filler = "The meeting moved to Thursday and the room was booked again. " * 12
    with open_journal(chosen) as journal:
        needle = journal.write(Draft("Notes", f"{filler}\n## Pets\nThe cat is allergic to fish."))
        journal.write(Draft("More notes", filler))
        assert journal.work_backlog(wait_s=60) == 2
        page = journal.search(Query("which animal can't eat seafood"), wait_s=60)
        assert (page.mode, page.reason, page.backlog) == ("hybrid", "", 0)
        assert page.hits[0].entry.id == needle.id
        assert "dense" in page.hits[0].found_by
        assert journal.status(wait_s=60).model == "mini"
    assert not list((home / "journal").glob("*.embedding"))


def test_only_the_originals_model_writes_sidecars_of_its_length(
    tmp_path: Path,
    settings: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    """Files known by their hash are used under the original's name, wherever they lie."""
    assert SEED.repository == upkeep.SEED_MODEL
    assert SEED.dimension == upkeep.SEED_DIMENSION
    folder = make_model(tmp_path / "m")
    known = describe(folder, repository=SEED.repository)
    monkeypatch.setattr(catalogue, "CATALOGUE", (known,))
    monkeypatch.setattr("agent_journal.models.sources.CATALOGUE", (known,))
    with open_journal(settings(str(folder))) as journal:
        entry = journal.write(Draft("redis", "legal has not answered"))
        journal.work_backlog(wait_s=60)
    sidecar = json.loads((home / "journal" / f"{entry.id}.embedding").read_text(encoding="utf-8"))
    assert (sidecar["model"], sidecar["dimension"]) == (SEED.repository, 128)
    model = loaded(folder)
    assert np.allclose(
        sidecar["vector"], model.embed_passages(["redis\nlegal has not answered"])[0], atol=1e-6
    )


def test_sidecars_of_the_original_stand_in_until_vectors_are_made(
    tmp_path: Path,
    settings: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    """Its entries are found by meaning at once, and its files stay as they are."""
    folder = make_model(tmp_path / "m")
    known = describe(folder, repository=SEED.repository)
    monkeypatch.setattr("agent_journal.models.sources.CATALOGUE", (known,))
    model, chosen = loaded(folder), settings(str(folder))
    with open_journal(chosen) as journal:
        entry = journal.write(Draft("cat", "sat on the mat and slept"))
        journal.write(Draft("bananas", "grow south"))
        vector = model.embed_passages(["cat\nsat on the mat and slept"])[0].tolist()
        sidecar = home / "journal" / f"{entry.id}.embedding"
        said = {"v": 2, "model": SEED.repository, "dimension": len(vector), "vector": vector}
        sidecar.write_text(json.dumps(said), encoding="utf-8")
        before = sidecar.read_bytes()
        monkeypatch.setattr(upkeep, "SEED_DIMENSION", len(vector))
        page = journal.search(Query("the cat slept on a mat, it sat"), wait_s=60)
        assert (page.mode, page.backlog) == ("hybrid", 2)
        assert page.hits[0].entry.id == entry.id
        assert "dense" in page.hits[0].found_by
        assert journal.work_backlog(wait_s=60) == 2
        page = journal.search(Query("the cat slept on a mat, it sat"), wait_s=60)
        assert (page.backlog, page.hits[0].entry.id) == (0, entry.id)
    assert sidecar.read_bytes() == before


PROBE = """
import sys
from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.model import Draft
from agent_journal.query import Query
import os

opened = []
looks = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: opened.append(args) if event in looks else None)
settings = load_settings(os.environ, model=sys.argv[1] or None)
with open_journal(settings) as journal:
    journal.write(Draft("redis", "is pinned"))
    if sys.argv[1] != "none":
        journal.work_backlog(wait_s=60)
    page = journal.search(Query("redis"), wait_s=60)
    brought = {"onnxruntime", "sentencepiece", "tokenizers"} & set(sys.modules)
    print(page.mode, opened, sorted(brought))
"""


def test_what_runs_onnx_is_imported_for_such_a_model_alone(tmp_path: Path, home: Path) -> None:
    """No other model brings it, none opens a connection, and the runtime reports to nobody."""
    folder = make_model(tmp_path / "m")
    expected = {
        "none": "lexical [] []\n",
        "": "hybrid [] []\n",
        "bundled": "hybrid [] []\n",
        str(folder): "hybrid [] ['onnxruntime', 'sentencepiece']\n",
    }
    for model, printed in expected.items():
        done = subprocess.run(
            [sys.executable, "-c", PROBE, model], capture_output=True, text=True, check=True
        )
        assert done.stdout == printed
        assert done.stderr == ""
    kept = {path.relative_to(home).parts[0:2] for path in (home / ".cache").rglob("*")}
    assert {part for _, part in kept} == {"agent-journal"}


def test_the_tiny_model_is_small(tmp_path: Path) -> None:
    """Under a megabyte, so that it can be served and cut many times in a test."""
    folder = make_model(tmp_path / "m")
    assert (folder / "onnx" / "model_quantized.onnx").stat().st_size < 1_000_000
    assert len(vocabulary()) > 100
