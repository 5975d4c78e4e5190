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
SPEED = ROOT / "bench" / "speed"
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


@pytest.mark.parametrize(("bench", "option"), [(RETRIEVAL, "--model"), (SPEED, "--report")])
def test_a_bench_runs_without_the_projects_python(tmp_path: Path, bench: Path, option: str) -> None:
    """Started by an interpreter that knows nothing of us, it hands over to the one that does."""
    base = Path(sys.base_prefix) / "bin" / "python3"
    if not base.exists() or run(base, "-c", "import agent_journal", cwd=tmp_path).returncode == 0:
        pytest.skip("there is no interpreter without our package here")
    if not (ROOT / ".venv" / "bin" / "python").exists():
        pytest.skip("make setup has made no environment here")
    done = run(base, bench, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert option in done.stdout


@pytest.mark.parametrize("bench", [RETRIEVAL, SPEED])
def test_a_bench_says_what_is_missing(tmp_path: Path, bench: Path) -> None:
    """Where no environment was made, it names the word that makes one."""
    base = Path(sys.base_prefix) / "bin" / "python3"
    if not base.exists() or run(base, "-c", "import agent_journal", cwd=tmp_path).returncode == 0:
        pytest.skip("there is no interpreter without our package here")
    copy = tmp_path / "bench" / bench.name
    copy.parent.mkdir()
    copy.write_bytes(bench.read_bytes())
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


@pytest.mark.prove
def test_the_speed_bench_writes_its_report(tmp_path: Path) -> None:
    """The table goes between the page's marks, and the picture beside it."""
    page = tmp_path / "performance.md"
    page.write_text(
        "before\n<!-- measured -->\nof yesterday\n<!-- end -->\nafter\n", encoding="utf-8"
    )
    done = run(sys.executable, SPEED, "--sizes", "300", "--report", tmp_path, cwd=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- measured -->\n| ")
    assert text.endswith("<!-- end -->\nafter\n")
    for name in ("warm search at 300, p50", "cold search by words at 300", "passages embedded"):
        assert f"\n| {name} " in text
    assert "of yesterday" not in text
    assert (tmp_path / "performance.svg").read_text(encoding="utf-8").startswith("<svg ")
