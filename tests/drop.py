"""Run code without root's powers: for root no folder is read-only, and a test proves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
_LOADED_LATE = """
import encodings.utf_8_sig
import agent_journal.engines.ledgers, agent_journal.removal, agent_journal.secrets.screening
"""


@contextmanager
def dropped() -> Iterator[None]:
    """Be nobody within the block; for the child processes of `run_as_nobody` only."""
    if os.geteuid() != 0:
        yield
        return
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def run_as_nobody(code: str, *arguments: str | Path) -> str:
    """Run a script in a process of its own and return what it prints.

    It finds its arguments in `sys.argv[1:]`, and is nobody inside `with dropped():`, which it need
    not import; what comes before can still import modules that only root may read. (The codec that
    entries are read with is one: Python itself may lie in root's home. What a write loads when it
    needs it are others.)
    """
    script = f"{_LOADED_LATE}\nimport sys\nfrom tests.drop import dropped\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=Path(__file__).parents[1],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
