"""Nothing leaves the machine: the main job without any network, each system call of it watched."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.proven import Trials

from agent_journal.engines.files import FileStore

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces, strace")

JOB = Path(__file__).with_name("main_job.py")
ALONE = ("unshare", "--user", "--map-root-user", "--net")
SOCKET = re.compile(r"\bsocket(?:pair)?\((\w+)")
BOUND_S = 300.0

# In a namespace of its own the loopback device is down: not even the machine itself is reached.
CONNECT = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", 9), 5)
except OSError as error:
    print(type(error).__name__, error.errno)
"""


@cache
def can_run(*command: str) -> bool:
    """Tell whether a program can be started in this way here."""
    try:
        return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def traced(trace: Path) -> list[str]:
    """Return the start of a command whose sockets are recorded, with those of its children."""
    calls = "trace=socket,socketpair"
    return ["strace", "-f", "-qq", "-e", calls, "-e", "signal=none", "-o", str(trace)]


def run(command: Sequence[str]) -> str:
    """Run a command to its good end, and return what it prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=BOUND_S, cwd=Path.home()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def families(trace: Path) -> set[str]:
    """Return the kinds of sockets that were opened."""
    return set(SOCKET.findall(trace.read_text(encoding="utf-8")))


def test_the_watch_sees_what_opens_a_connection(tmp_path: Path) -> None:
    """Else the next test would prove nothing: a connection shows, and fails without a network."""
    if not can_run(*ALONE):
        pytest.skip("no network namespaces here")
    assert run([*ALONE, sys.executable, "-c", CONNECT]) == "OSError 101\n"  # no way to any network
    if not can_run(*traced(tmp_path / "true")):
        pytest.skip("no strace here")
    run([*traced(tmp_path / "trace"), sys.executable, "-c", CONNECT])
    assert "AF_INET" in families(tmp_path / "trace")


def test_the_main_job_needs_no_network(tmp_path: Path, trials: Trials) -> None:
    """Written, found by meaning, read, checked, redacted, carried elsewhere, and served offline.

    And under the tracer: no program of ours opens a socket, but such as lead nowhere.
    """
    start = list(ALONE) if can_run(*ALONE) else []
    is_traced = can_run(*start, *traced(tmp_path / "true"))
    if is_traced:
        start += traced(tmp_path / "trace")
    if not start:
        pytest.skip("neither network namespaces nor strace here")
    told = json.loads(
        run([*start, sys.executable, str(JOB), sys.executable, "-m", "agent_journal"])
    )
    there = FileStore(Path(told["journal"])).listing().versions
    lost = sum(one not in there for one in told["ids"])
    trials.report("no network", tried=1, acknowledged=len(told["ids"]), lost=lost)
    if is_traced:
        assert families(tmp_path / "trace") == {"AF_UNIX"}
