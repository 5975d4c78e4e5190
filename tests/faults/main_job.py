"""The main job as a person and an agent do it, by real programs: run as a script, where one likes.

It needs nothing but a Python and the journal's program, whose start is given as arguments: so it
can be run with another Python, in a namespace, under a tracer, or with an odd environment. It ends
with 0 when all of it worked, and prints a JSON object: the journal's folder and the ids it wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BOUND_S = 90.0
CAT = "My cat sleeps on the sofa. Zürich, città, 東京."
MODE = "lexical" if os.environ.get("AGENT_JOURNAL_MODEL") == "none" else "hybrid"


class Job:
    """Does one thing after the other.

    Args:
        program: how the journal's program is started.
    """

    def __init__(self, program: list[str]) -> None:
        self._program = program

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Run a command that must end with a code, and return what it prints."""
        done = subprocess.run(
            [*self._program, *arguments],
            input=stdin.encode(),
            capture_output=True,
            timeout=BOUND_S,
            check=False,
        )
        said = f"{arguments}: {done.returncode}\n{done.stdout!r}\n{done.stderr!r}"
        require(done.returncode == code, said)
        require(b"Traceback" not in done.stderr, said)
        return done.stdout.decode(errors="replace")  # in whatever encoding a terminal has

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Run a command, and return the object that it prints."""
        return json.loads(self.run(*arguments, "--json"))

    def body(self, entry_id: str) -> str:
        """Return an entry's text, whatever the terminal can show."""
        return str(self.json("read", entry_id)["entries"][0]["body"])

    def by_command_line(self) -> list[str]:
        """Write, find by meaning, read, look at everything, and return the ids."""
        ids = [
            self.run("write", "The cat", CAT, "-t", "pets").strip(),
            self.run("write", "Build", stdin="The compiler needs a new flag: -Wfoo_bar.").strip(),
        ]
        self.run("reindex")
        question = "sofa" if MODE == "lexical" else "il gatto dorme sul divano"
        until = time.monotonic() + BOUND_S
        page: Any = {}
        while page.get("mode") != MODE and time.monotonic() < until:
            page = self.json("search", question)  # each waits two seconds for the model
        require(page["mode"] == MODE and page["hits"][0]["id"] == ids[0], repr(page))
        require(self.json("search", "Wfoo_bar")["hits"][0]["id"] == ids[1], "the identifier")
        self.run("read", ids[0])
        require(self.body(ids[0]) == CAT, "the text as it was written")
        require(self.json("status")["entries"] == len(ids), "the number of entries")
        require("pets" in self.run("tags"), "the tag")
        require("Build" in self.run("recent"), "the newest")
        self.run("doctor")
        self.run("check")
        require("bundled" in self.run("model", "list"), "the model")
        self.run("hosts")
        return ids

    def by_server(self) -> str:
        """Shake hands, list, write, find and read as an agent does, and return the entry's id."""
        with subprocess.Popen(
            [*self._program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "job", "version": "1"},
            }
            ask(server, "initialize", hello)
            send(server, {"method": "notifications/initialized"})
            require(len(ask(server, "tools/list", {})["tools"]) == 3, "three tools")
            saved = call(server, "journal_write", title="Lock", body="The queue_lock was stale.")
            entry_id = saved.split("id: ")[1].split()[0]
            require(entry_id in call(server, "journal_search", text="queue_lock"), "the id")
            require("was stale" in call(server, "journal_read", id=entry_id), "the text")
            if server.stdin:
                server.stdin.close()
            require(server.wait(BOUND_S) == 0, "the end")
        return entry_id

    def by_hand(self, ids: list[str]) -> None:
        """Take the entries elsewhere, and a text out of one."""
        exported = self.run("export")
        with tempfile.TemporaryDirectory() as name:
            elsewhere = ("--journal", f"{name}/a copy")
            self.run(*elsewhere, "import", "jsonl", "-", stdin=exported)
            require(self.json(*elsewhere, "search", "queue_lock")["hits"] != [], "the copy")
        self.run("redact", ids[0], "--text", "Zürich", "--reason", "a place", "--yes")
        require("Zürich" not in self.body(ids[0]), "the text removed")
        self.run("search", "Zürich", "--embedding-model", "none", code=1)
        self.run("check")


def send(server: subprocess.Popen[bytes], message: dict[str, object]) -> None:
    """Send a message on one line."""
    if server.stdin:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()


def ask(server: subprocess.Popen[bytes], method: str, params: object) -> Any:  # noqa: ANN401 - JSON
    """Send a request, and return its result."""
    send(server, {"id": 1, "method": method, "params": params})
    line = server.stdout.readline() if server.stdout else b""
    require(line, f"no answer to {method}")
    return json.loads(line)["result"]


def call(server: subprocess.Popen[bytes], name: str, **arguments: object) -> str:
    """Call a tool, and return the text of an answer that is no error."""
    result = ask(server, "tools/call", {"name": name, "arguments": arguments})
    require(not result.get("isError"), repr(result))
    return str(result["content"][0]["text"])


def require(holds: object, what: str) -> None:
    """End with a message unless something holds."""
    if not holds:
        sys.exit(f"main job: {what}")


def main() -> None:
    """Do it all."""
    config = os.environ.get("AGENT_JOURNAL_CONFIG") or "~/.config/opencode/agent-memory.json"
    path = Path(config).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    job = Job(sys.argv[1:])
    ids = job.by_command_line()
    ids.append(job.by_server())
    job.by_hand(ids)
    print(json.dumps({"journal": job.json("status")["journal"], "ids": ids}))  # noqa: T201


if __name__ == "__main__":
    main()
