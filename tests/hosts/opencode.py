"""OpenCode, driven: a home whose model is the scripted one, and the runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hosts.scripted import ScriptedModel

from agent_journal.faces.hosts.plugin import stamped

Json = dict[str, Any]

BOUND_S = 110.0  # a run takes 4 s, and ten times as much on a busy machine
VERSION = "1.18.33"
COMMAND = (sys.executable, "-m", "agent_journal", "mcp")
_SWITCHES = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "AGENT_JOURNAL_START_S": "60",  # two processors, and more processes
}


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left.

    Attributes:
        log: OpenCode's own log.
    """

    output: str
    log: str

    def lines(self, word: str) -> list[str]:
        """Return the log's lines with a word."""
        return [line for line in self.log.splitlines() if word in line]


@dataclass(slots=True)
class OpenCode:
    """One home of OpenCode.

    Attributes:
        binary: the program.
        home: its home; $HOME and the XDG folders already say so.
        model: what answers it.
        config: added to its configuration.
    """

    binary: Path
    home: Path
    model: ScriptedModel
    config: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Spare OpenCode the installation of what its own plugins would need, from the network."""
        wanted = {"dependencies": {"@opencode-ai/plugin": VERSION}}
        lock = {"lockfileVersion": 3, "packages": {"": wanted}}
        (self.folder / "node_modules").mkdir(parents=True, exist_ok=True)
        for name, content in (("package.json", wanted), ("package-lock.json", lock)):
            (self.folder / name).write_text(json.dumps(content), encoding="utf-8")

    @property
    def folder(self) -> Path:
        """Where it is configured."""
        return self.home / ".config" / "opencode"

    def add_plugin(self, command: Sequence[str] = COMMAND, *, folder: Path | None = None) -> Path:
        """Put our plugin where OpenCode finds it, as `install` does; return its path.

        Args:
            command: what starts the server.
            folder: the configuration folder, if not the one of this home.
        """
        path = (folder or self.folder) / "plugin" / "agent-journal.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stamped(command, "0.1.0"), encoding="utf-8")
        return path

    def environment(self, project: Path) -> dict[str, str]:
        """Return the variables that a process of it needs."""
        served = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "none"},
            "models": {name: _model(name) for name in ("one", "two")},
        }
        config = {
            "autoupdate": False,
            "share": "disabled",
            "model": "scripted/one",
            "small_model": "scripted/one",
            "enabled_providers": ["scripted"],
            "provider": {"scripted": served},
            **self.config,
        }
        # It trusts $PWD over the real working directory.
        chosen = {"PWD": str(project), "OPENCODE_CONFIG_CONTENT": json.dumps(config)}
        return {**os.environ, **_SWITCHES, **chosen}

    def start(
        self, *arguments: str, project: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command of it in a project."""
        return subprocess.Popen(
            [self.binary, *arguments, "--print-logs"],
            cwd=project,
            env={**self.environment(project), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(
        self,
        prompt: str,
        *arguments: str,
        project: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        """Have a prompt worked off without a person."""
        with self.start("run", *arguments, project=project, environment=environment) as process:
            try:
                output, log = process.communicate(prompt, timeout=BOUND_S)
            finally:
                process.kill()
        assert process.returncode == 0, log[-4000:]
        return Run(output, log)


def _model(name: str) -> Json:
    limit = {"context": 128_000, "output": 8_192}
    return {"name": name, "tool_call": True, "limit": limit}
