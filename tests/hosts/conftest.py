"""What tests of hosts get: the hosts, a model that does as told, and a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hosts.scripted import ScriptedModel

HOSTS = Path(__file__).parent
_HOSTS_OWN = ("ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_", "OPENAI_", "OPENCODE")


@pytest.fixture(scope="session")
def programs() -> Path:
    """Give the folder of the hosts' commands, as npm has installed them.

    Where npm can't be reached there are none, and the tests are skipped, saying so.
    """
    modules = HOSTS / "node_modules"
    if not (modules / ".set-up").exists():
        if not is_npm_reachable():
            pytest.skip("the hosts are not installed, and npm can't be reached to install them")
        pytest.fail("the hosts are not installed: run `make test K=hosts`")
    return modules / ".bin"


def is_npm_reachable() -> bool:
    """Tell whether packages can be had."""
    asked = ["npm", "view", "opencode-ai", "version"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """Give a model endpoint that does what its prompt says."""
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def host_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home whose journal is on, and take away what a host around the tests has set."""
    for name in list(os.environ):
        if name.startswith(_HOSTS_OWN) or name in ("AGENT", "PWD", "OLDPWD"):
            monkeypatch.delenv(name)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
    enable_journal(home)
    return home


def enable_journal(home: Path, *, enabled: bool = True) -> Path:
    """Write the journal's configuration where it is looked for; return its path."""
    path = home / ".config" / "opencode" / "agent-memory.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"journal": {"enabled": enabled}}), encoding="utf-8")
    return path
