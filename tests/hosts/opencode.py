"""OpenCode, driven: a home whose model is the scripted one, and the runs in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
        version: the program's.
    """

    binary: Path
    home: Path
    model: ScriptedModel
    config: Json = field(default_factory=dict)
    version: str = VERSION

    def __post_init__(self) -> None:
        """Spare OpenCode the installation of what its own plugins would need, from the network."""
        wanted = {"dependencies": {"@opencode-ai/plugin": self.version}}
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


@dataclass(frozen=True, slots=True)
class Serving:
    """A server of OpenCode, which works for many projects in one process."""

    process: subprocess.Popen[str]
    url: str

    def ask(self, path: str, body: Json | None = None, *, project: Path) -> Any:  # noqa: ANN401 - JSON
        """Request something, with a body by POST, and return the answer."""
        request = urllib.request.Request(  # noqa: S310 - http
            f"{self.url}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", "x-opencode-directory": str(project)},
        )
        with urllib.request.urlopen(request, timeout=BOUND_S) as answer:  # noqa: S310 - as above
            return json.loads(answer.read() or b"null")

    def session(self, project: Path) -> str:
        """Begin a session and return its id."""
        return str(self.ask("/session", {}, project=project)["id"])

    def prompt(self, session: str, text: str, *, project: Path) -> Json:
        """Have a prompt worked off and return the message that ends it."""
        body = {"parts": [{"type": "text", "text": text}]}
        answer: Json = self.ask(f"/session/{session}/message", body, project=project)
        return answer


@contextmanager
def serving(opencode: OpenCode, *, project: Path) -> Iterator[Serving]:
    """Start a server of OpenCode, and end it at the end."""
    with opencode.start("serve", "--port", "0", project=project) as process:
        try:
            assert process.stdout
            assert process.stderr
            url = next(
                found[0] for line in process.stdout if (found := re.search(r"http:\S+", line))
            )
            for pipe in (process.stdout, process.stderr):  # full pipes would stop it
                threading.Thread(target=pipe.read, daemon=True).start()
            yield Serving(process, url)
        finally:
            process.kill()


def _model(name: str) -> Json:
    limit = {"context": 128_000, "output": 8_192}
    return {"name": name, "tool_call": True, "limit": limit}
