"""docs/guarantees.md: each promise names tests, and there are such tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAME = re.compile(r"`((?:\w+/)*test_\w+\.py::[\w:]+)`")
PROMISES = [
    line.split(" | ", 1)
    for line in TEXT.split("## What is not promised")[0].splitlines()
    if line.startswith("| ") and line != "| promise | proof |"
]

COLLECT = """
import sys
import pytest

class Told:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        for item in session.items:
            long = item.get_closest_marker("prove") is not None
            print("COLLECTED", item.nodeid.split("[")[0], long)

sys.exit(pytest.main(["--collect-only", "-qq", "-m", "", *sys.argv[1:]], plugins=[Told()]))
"""


@pytest.fixture(scope="module")
def collected() -> dict[str, set[bool]]:
    """Each test in the files that are named, and whether its cases are long forms: some may be."""
    files = sorted({f"tests/{name.split('::')[0]}" for name in NAME.findall(TEXT)})
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^COLLECTED tests/(\S+) (True|False)$", done.stdout, re.MULTILINE)
    cases: dict[str, set[bool]] = {}
    for name, is_long in found:
        cases.setdefault(name, set()).add(is_long == "True")
    return cases


def test_every_promise_names_a_test() -> None:
    """And nothing else stands in backticks there that could be meant for one."""
    assert len(PROMISES) > 30
    for _, proof in PROMISES:
        named = NAME.findall(proof)
        assert named, proof
        assert len(named) == proof.count("`") / 2, proof


def test_every_named_test_exists(collected: dict[str, set[bool]]) -> None:
    """It is collected, and runs at every change unless it is a long form."""
    named = NAME.findall(TEXT)
    assert [name for name in named if name not in collected] == []
    assert [name for name in named if False not in collected[name]] == []


def test_what_is_said_to_have_a_long_form_has_one(collected: dict[str, set[bool]]) -> None:
    """In one of the files that are named for it."""
    starred = [proof for promise, proof in PROMISES if "\\*" in promise + proof]
    assert len(starred) > 5
    for proof in starred:
        files = {name.split("::")[0] for name in NAME.findall(proof)}
        assert any(
            True in cases and name.split("::")[0] in files for name, cases in collected.items()
        )
