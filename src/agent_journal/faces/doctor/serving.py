"""The MCP server, tried as hosts start it: a process of its own, spoken to over its pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

START_LIMIT_S = 30.0
"""How long OpenCode waits for a server, which then has to list its tools."""

END_LIMIT_S = 5.0
"""How long a server may take to end once its stdin has."""

TOOLS = ("journal_read", "journal_search", "journal_write")

_PROTOCOL = "2025-06-18"
_SHOWN = 300
_LINE_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Served:
    """How a server did.

    Attributes:
        failure: what went wrong, in a sentence; empty when nothing did.
        took_s: how long it took to list its tools.
    """

    failure: str = ""
    took_s: float = 0.0


class _NoAnswerError(Exception):
    """The server didn't answer, or not as it should."""


def try_server(command: Sequence[str], folder: Path, *, limit_s: float = START_LIMIT_S) -> Served:
    """Start a server over a temporary journal, let it list its tools and search, and end it.

    Args:
        command: what starts it, up to and with ``mcp``.
        folder: an empty folder of our own, for its journal, index, log and configuration.
        limit_s: how long it may take for all that.
    """
    config = folder / "config.json"
    config.write_text('{"journal": {"enabled": true}}', encoding="ascii")
    options = ["--journal", str(folder / "journal"), "--index", str(folder / "index")]
    options += ["--config", str(config), "--embedding-model", "none"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - what hosts start, or we ourselves
                [*command, *options],
                bufsize=0,  # else what a dead server didn't take would be sent again at the end
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env={**os.environ, "XDG_STATE_HOME": str(folder)},
            )
        except OSError as error:
            return Served(f"{command[0]} can't be started: {error.strerror}")
        with process:
            try:
                _converse(process, began + limit_s)
                took_s = time.monotonic() - began
                _end(process)
            except _NoAnswerError as error:
                return Served(f"{error}{_last_words(errors)}")
            finally:
                process.kill()
    return Served(took_s=took_s)


def _converse(process: subprocess.Popen[bytes], ends: float) -> None:
    client = {"name": "agent-journal-doctor", "version": "1"}
    hello = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
    lines = _Lines(process, ends)
    lines.ask(1, "initialize", hello)
    lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    listed = lines.ask(2, "tools/list", {}).get("tools")
    found = [tool.get("name") for tool in listed] if isinstance(listed, list) else []
    if sorted(map(str, found)) != sorted(TOOLS):
        raise _NoAnswerError(f"it offers {', '.join(map(str, found)) or 'no tools'}")
    done = lines.ask(3, "tools/call", {"name": "journal_search", "arguments": {}})
    if done.get("isError"):
        raise _NoAnswerError(f"a search in an empty journal fails: {done.get('content')}")


def _end(process: subprocess.Popen[bytes]) -> None:
    cast("IO[bytes]", process.stdin).close()  # it is a pipe
    try:
        process.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise _NoAnswerError("it goes on running after its stdin has ended") from None


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(0)
    said = errors.read(_LINE_LIMIT_BYTES).decode("utf-8", "replace").strip().splitlines()
    return f"; it said: {said[-1][:_SHOWN]}" if said else ""


class _Lines:
    """Requests and answers, one JSON object a line, until a moment."""

    def __init__(self, process: subprocess.Popen[bytes], ends: float) -> None:
        self._stdin = cast("IO[bytes]", process.stdin)  # both are pipes
        self._stdout = cast("IO[bytes]", process.stdout).fileno()
        self._ends = ends
        self._rest = b""

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        with suppress(OSError):  # it has ended, as reading its answer will show
            self._stdin.write(json.dumps(message).encode() + b"\n")

    def ask(self, number: int, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """Send a request and return its result; what else the server says is passed over."""
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            try:
                answer = json.loads(self._line(method))
            except ValueError:
                continue  # no message; hosts pass over that, too
            if not isinstance(answer, dict) or answer.get("id") != number or "method" in answer:
                continue
            result = answer.get("result")
            if not isinstance(result, dict):
                raise _NoAnswerError(f"it answers {method} with an error: {answer.get('error')}")
            return result

    def _line(self, method: str) -> bytes:
        while b"\n" not in self._rest:
            left_s = self._ends - time.monotonic()
            if left_s <= 0 or not select.select([self._stdout], [], [], left_s)[0]:
                raise _NoAnswerError(f"it hasn't answered {method} in time")
            if not (data := os.read(self._stdout, 65_536)):
                raise _NoAnswerError(f"it ended before it had answered {method}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line
