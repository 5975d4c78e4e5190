"""The plugin in a process of plain node, which stands in for OpenCode."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.hosts.opencode import COMMAND

from agent_journal.faces.hosts.plugin import stamped

Json = dict[str, Any]

VERSION = "0.0.1"
DRIVER = Path(__file__).with_name("plugin.mjs")
CALLER = {"sessionID": "s", "agent": "build", "directory": "/srv/shop", "worktree": "/"}
BOUND_S = 60.0


class Plugin:
    """A process of node that has loaded the plugin.

    Args:
        path: where to put the plugin.
        command: what it is to start the server with.
        limit: milliseconds after which it gives a call up.
        environment: added to this process's.
    """

    def __init__(
        self,
        path: Path,
        command: Sequence[str] = COMMAND,
        *,
        limit: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        text = stamped(command, VERSION)
        if limit:
            assert text.count("60_000") == 1
            text = text.replace("60_000", limit)
        path.write_text(text, encoding="utf-8")
        self._process = subprocess.Popen(
            ["node", DRIVER, path],
            env={**os.environ, "AGENT_JOURNAL_START_S": "60", **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self._last = 0
        self._early: dict[int, Json] = {}

    def __enter__(self) -> Self:
        """Return the process itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave no process behind, not even one that a test has stopped."""
        for pid in self.children:
            os.kill(pid, signal.SIGCONT)
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def children(self) -> list[int]:
        """What it has started, and is still there."""
        return children(self.pid)

    def leave(self) -> None:
        """End the process as a host that is closed ends."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.stdin = None  # what ends the process must not flush it again
        self._process.wait()

    def send(self, kind: str, **given: object) -> int:
        """Request something, and return the request's number."""
        assert self._process.stdin
        self._last += 1
        line = json.dumps({"id": self._last, "kind": kind, **given})
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._last

    def receive(self, number: int) -> Json:
        """Return what a request gave: a result or an error."""
        assert self._process.stdout
        while number not in self._early:
            answer = json.loads(self._process.stdout.readline())
            self._early[answer.pop("id")] = answer
        return self._early.pop(number)

    def ask(self, kind: str, **given: object) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Request something, and return its result."""
        answer = self.receive(self.send(kind, **given))
        assert "error" not in answer, answer
        return answer["result"]

    def send_load(self, **given: object) -> int:
        """Make an instance of the plugin, as OpenCode does for each project."""
        project = {"directory": "/srv/shop", "worktree": "/", "version": "1.18.33"}
        return self.send("load", **{**project, **given})

    def load(self, **given: object) -> Json:
        """Make an instance and return its hooks and tools."""
        loaded: Json = self.receive(self.send_load(**given))["result"]
        return loaded

    def load_tools(self, **given: object) -> Json:
        """Make an instance and return its tools; without any the log says why."""
        tools: Json = self.load(**given)["tools"]
        assert tools, self.ask("logs")
        return tools

    def send_call(self, tool: str, args: object, **given: object) -> int:
        """Call a tool, and return the request's number."""
        usual = {"instance": 0, "ctx": CALLER, "ask": "allow", "call": self._last + 1}
        return self.send("call", tool=tool, args=args, **{**usual, **given})

    def call(self, tool: str, args: object, **given: object) -> Json:
        """Call a tool, and return its result or error."""
        return self.receive(self.send_call(tool, args, **given))


def children(pid: int) -> list[int]:
    """Return a process's children, whichever of its threads has started them."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, thread.read_text(encoding="utf-8").split())
    return found


def is_there(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and wasn't waited for doesn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < ends, f"in vain: {what}"
        time.sleep(0.02)


def recording(wire: Path, command: Sequence[str] = COMMAND) -> list[str]:
    """Return a command that starts the server and records what it is sent."""
    return ["sh", "-c", f"tee -a {shlex.quote(str(wire))} | {shlex.join(command)}"]


def recorded(wire: Path, least: int = 0) -> list[Json]:
    """Return the messages that a server was sent, once they are so many: it may be quicker."""

    def lines() -> list[str]:
        return wire.read_text(encoding="utf-8").split("\n")[:-1] if wire.exists() else []

    wait_for(lambda: len(lines()) >= least, f"{least} messages are recorded")
    return [json.loads(line) for line in lines()]


def recorded_server(plugin: Plugin) -> int:
    """Return the server whose messages are recorded."""
    (shell,) = plugin.children
    (server,) = [
        pid for pid in children(shell) if b"mcp" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return server
