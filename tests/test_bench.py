"""The benchmarks run from anywhere, with any model, and say what they measured."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tiny_models import make_model

ROOT = Path(__file__).parent.parent
RETRIEVAL = ROOT / "bench" / "retrieval"
ENGINES = {"grep", "bm25", "lexical", "dense", "rrf", "hybrid"}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=100,
    )


def test_the_retrieval_bench_runs_without_the_projects_python(tmp_path: Path) -> None:
    """Started by an interpreter that knows nothing of us, it hands over to the one that does."""
    base = Path(sys.base_prefix) / "bin" / "python3"
    if not base.exists() or run(base, "-c", "import agent_journal", cwd=tmp_path).returncode == 0:
        pytest.skip("there is no interpreter without our package here")
    if not (ROOT / ".venv" / "bin" / "python").exists():
        pytest.skip("make setup has made no environment here")
    done = run(base, RETRIEVAL, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--model" in done.stdout


def test_the_retrieval_bench_says_what_is_missing(tmp_path: Path) -> None:
    """Where no environment was made, it names the word that makes one."""
    base = Path(sys.base_prefix) / "bin" / "python3"
    if not base.exists() or run(base, "-c", "import agent_journal", cwd=tmp_path).returncode == 0:
        pytest.skip("there is no interpreter without our package here")
    copy = tmp_path / "bench" / "retrieval"
    copy.parent.mkdir()
    copy.write_bytes(RETRIEVAL.read_bytes())
    done = run(base, copy, cwd=tmp_path)
    assert (done.returncode, "make setup" in done.stderr) == (1, True)


def test_the_retrieval_bench_measures_the_model_that_is_named(tmp_path: Path) -> None:
    """A folder's model is the one in use, and every engine ranks for every question."""
    make_model(tmp_path / "tiny-model")
    rankings = tmp_path / "rankings.jsonl"
    done = run(
        sys.executable,
        RETRIEVAL,
        *("--model", tmp_path / "tiny-model", "--every", "20", "--rankings", rankings),
        cwd=tmp_path,
    )
    assert done.stdout.startswith("model: tiny-model\n"), done.stderr
    assert "questions without an answer get no hit but weak ones" in done.stdout
    lines = [json.loads(line) for line in rankings.read_text(encoding="utf-8").splitlines()]
    asked = collections.Counter(line["query"] for line in lines)
    assert len(asked) == 8
    assert {line["engine"] for line in lines} == ENGINES
    assert set(asked.values()) == {len(ENGINES)}


def test_the_retrieval_bench_refuses_an_unknown_model(tmp_path: Path) -> None:
    """It says why in one line, before it measures anything."""
    for model in ("no-such-model", str(tmp_path)):
        done = run(sys.executable, RETRIEVAL, "--model", model, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith("bench/retrieval: ")
        assert done.stdout == ""
