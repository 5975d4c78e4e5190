"""The documents are true: what they tell people to type runs as they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which the user's home is empty."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_J")}
    return kept | {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
    }


def test_the_library_example_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    """README's Python code runs, with the real model, and finds the entry across languages."""
    (code,) = _blocks("python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 hybrid Tests are flaky at night\n"
    assert len(list((tmp_path / "notes").glob("*.md"))) == 1


def test_the_first_five_minutes_run(tmp_path: Path, environment: dict[str, str]) -> None:
    """Every command of README's tour succeeds, and each search finds the entry."""
    (tour,) = [block for block in _blocks("sh") if "agent-journal write" in block]
    done = subprocess.run(
        ["bash", "-euxc", tour],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    commands = len(re.findall(r"^agent-journal", tour, re.MULTILINE))
    assert done.stdout.count("Checkout fails") >= commands - 1, done.stdout


def test_the_demo_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    """The main job, end to end, with the installed command, the real model, a real MCP client."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "demo" / "demo.py")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything was found" in done.stdout
