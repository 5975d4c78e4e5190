"""The plugin with the real server, and with what the real OpenCode can't be made to do."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.hosts.conftest import enable_journal
from tests.hosts.opencode import COMMAND
from tests.hosts.plugin import (
    CALLER,
    VERSION,
    Json,
    Plugin,
    is_there,
    recorded,
    recorded_server,
    recording,
    wait_for,
)

from agent_journal.faces.mcp import tools

NAMES = ["journal_read", "journal_search", "journal_write"]
WRITE = {"title": "A title", "body": "A body"}


@dataclass(frozen=True, slots=True)
class Steady:
    """A plugin for all tests that don't trouble its server.

    Attributes:
        wire: where everything that the server is sent is recorded.
    """

    plugin: Plugin
    wire: Path
    home: Path

    def newest(self) -> str:
        """Return the text of the entry that was written last."""
        files = (self.home / ".config" / "opencode" / "journal").glob("*.md")
        return max(files).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def _steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steady]:
    home = tmp_path_factory.mktemp("steady")
    enable_journal(home)
    places = {f"XDG_{name}_HOME": str(home / ".xdg") for name in ("CACHE", "STATE")}
    environment = {**places, "HOME": str(home), "AGENT_JOURNAL_MODEL": "none"}
    wire = home / "wire"
    with Plugin(home / "plugin.mjs", recording(wire), environment=environment) as plugin:
        yield Steady(plugin, wire, home)


@pytest.fixture
def steady(_steady: Steady) -> Steady:
    """Give the shared plugin, without instances."""
    _steady.plugin.ask("reset")
    return _steady


@pytest.fixture
def path(host_home: Path, tmp_path: Path) -> Path:
    """Give a place for a plugin, and a home whose journal is on."""
    assert host_home
    return tmp_path / "plugin.mjs"


@pytest.fixture
def plugin(path: Path) -> Iterator[Plugin]:
    """Give a plugin whose server may be troubled."""
    with Plugin(path) as plugin:
        yield plugin


def test_the_plugin_is_the_only_export(steady: Steady) -> None:
    """OpenCode takes each export for a plugin."""
    assert steady.plugin.ask("exports") == ["AgentJournal"]


def test_the_plugin_is_small_and_needs_nothing(steady: Steady) -> None:
    """OpenCode leaves out, without a word, a plugin whose imports it can't resolve."""
    text = (steady.home / "plugin.mjs").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 201  # with the line that `install` adds
    assert re.findall(r"\bimport\b.*", text) == [
        'import { spawn } from "node:child_process"',
        'import { homedir } from "node:os"',
    ]
    assert "require(" not in text


def test_what_the_server_lists_is_registered(steady: Steady) -> None:
    """Names, descriptions and arguments come from the server; nothing touches the prompt."""
    plugin = steady.plugin
    loaded = plugin.load()
    assert loaded["hooks"] == ["chat.message", "tool", "tool.definition"]
    served = {tool.name: tool for tool in tools.definitions()}
    assert sorted(loaded["tools"]) == sorted(served) == NAMES
    for name, tool in served.items():
        registered = {"description": tool.description, "args": tool.properties}
        assert loaded["tools"][name] == registered

    wrong = {"jsonSchema": {"required": ["title", "body", "tags"]}, "description": "kept"}
    defined = plugin.ask("definition", instance=0, input={"toolID": "journal_write"}, output=wrong)
    assert defined["jsonSchema"] == served["journal_write"].schema
    assert defined["description"] == "kept"
    other = {"input": {"toolID": "constructor"}, "output": {"jsonSchema": {}}}
    assert plugin.ask("definition", instance=0, **other) == {"jsonSchema": {}}
    assert plugin.ask("logs") == []


def test_the_handshake_tells_versions(steady: Steady) -> None:
    """The server learns which plugin speaks, and which protocol."""
    steady.plugin.load_tools()
    hello = recorded(steady.wire, 1)[0]["params"]
    assert hello["clientInfo"] == {"name": "opencode", "version": VERSION}
    assert hello["capabilities"] == {"experimental": {"agent-journal/plugin": {"protocol": 1}}}


def test_a_refusal_is_an_error_to_the_agent(steady: Steady) -> None:
    """In the server's own words."""
    steady.plugin.load_tools()
    error = steady.plugin.call("journal_read", {})["error"]
    assert error == "id is missing; journal_read takes: id, offset"


# --- permission -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "args", "pattern"),
    [
        ("journal_write", {"title": " \u0085A\n\ttitle\x1c", "body": "b"}, "A title"),
        ("journal_write", {"title": 7, "body": "b"}, "7"),
        ("journal_read", {"id": " x "}, "x"),
        ("journal_search", {"text": "a b"}, "a b"),
        ("journal_search", {"text": " "}, "*"),
        ("journal_search", {}, "*"),
        ("journal_search", {"text": None}, "*"),
    ],
)
def test_permission_is_asked_before_each_call(
    steady: Steady, tool: str, args: Json, pattern: str
) -> None:
    """Under the tool's name, for its subject as the journal will see it."""
    steady.plugin.load_tools()
    steady.plugin.call(tool, args)
    request = {"permission": tool, "patterns": [pattern], "always": ["*"], "metadata": {}}
    assert steady.plugin.ask("asked") == [request]
    if pattern == "A title":
        assert '\ntitle: "A title"\n' in steady.newest()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ("deny", "not allowed"),
        ("effect", "OpenCode can't ask for permission"),
        ("none", "OpenCode can't ask for permission"),
    ],
)
def test_without_permission_nothing_is_done(steady: Steady, ask: str, message: str) -> None:
    """The server hears nothing of a call that was denied, or that nobody could be asked about."""
    plugin = steady.plugin
    plugin.load_tools()
    denied = {"title": f"Denied by {ask}", "body": ""}
    assert plugin.call("journal_write", denied, ask=ask) == {"error": message}
    assert plugin.call("journal_search", {"text": f"after {ask}"})["result"]

    def sent() -> str:
        return steady.wire.read_text(encoding="utf-8")

    wait_for(lambda: f"after {ask}" in sent(), "the search is recorded")
    assert f"Denied by {ask}" not in sent()


@pytest.mark.parametrize("args", ['{"title": "t", "body": ""}', None, 7])
def test_arguments_are_an_object(steady: Steady, args: object) -> None:
    """The server reads JSON in a string as well, past any permission for what it holds."""
    steady.plugin.load_tools()
    answer = steady.plugin.call("journal_write", args)
    assert answer == {"error": "journal_write takes an object"}
    assert steady.plugin.ask("asked") == []


@pytest.mark.parametrize("version", ["1.15.4", "1.2.27", "1.0.142", "0.5.29", None])
def test_an_opencode_that_can_not_ask_gets_no_tools(plugin: Plugin, version: str | None) -> None:
    """One line in its log says why."""
    assert plugin.load(version=version) == {"hooks": ["chat.message"], "tools": None}
    assert plugin.load(version=version)["tools"] is None
    (line,) = plugin.ask("logs")
    assert re.fullmatch(r"agent-journal warn: agent-journal offers no tools: OpenCode .*", line)
    assert f"{version or ''} is too old; the journal needs 1.15.13" in line
    assert plugin.children == []


def test_newer_ones_and_those_in_development_get_tools(plugin: Plugin) -> None:
    """Versions are compared as numbers."""
    for version in ("1.15.13", "1.100.0", "local", "0.0.0-dev-2026"):
        assert sorted(plugin.load_tools(version=version)) == NAMES
        plugin.ask("reset", forget=True)


# --- who calls ------------------------------------------------------------------------------------


def test_a_call_says_who_calls(steady: Steady) -> None:
    """Of that very call, whatever the instance's folder is."""
    steady.plugin.load_tools(directory="/srv/instance", worktree="/srv/instance")
    model = {"id": "m", "providerID": "p", "limit": {}}
    ctx = {**CALLER, "worktree": "/srv/shop", "directory": "/srv/shop/sub"}
    steady.plugin.call("journal_write", WRITE, ctx={**ctx, "extra": {"model": model}})
    text = steady.newest()
    for line in (
        'project: "/srv/shop"',
        'model: "m"',
        'provider: "p"',
        'agent: "build"',
        'session_id: "s"',
    ):
        assert f"\n{line}\n" in text


@pytest.mark.parametrize(
    ("ctx", "instance", "project"),
    [
        ({"worktree": "/", "directory": "/a"}, {"worktree": "/", "directory": "/b"}, "/a"),
        ({}, {"worktree": "/c", "directory": "/c/d"}, "/c"),
        ({}, {"worktree": "/", "directory": "/d"}, "/d"),
        ({"worktree": "/", "directory": "/"}, {"worktree": "/", "directory": "/"}, ""),
    ],
)
def test_the_project_is_the_repository_or_the_folder(
    steady: Steady, ctx: Json, instance: Json, project: str
) -> None:
    """The root is nobody's project, and neither is the folder that the server runs in."""
    steady.plugin.load_tools(**instance)
    steady.plugin.call("journal_write", WRITE, ctx={"sessionID": "s", **ctx})
    found = re.findall('^project: "(.*)"$', steady.newest(), flags=re.MULTILINE)
    assert found == ([project] if project else [])


def test_a_sessions_message_tells_the_model_where_the_call_does_not(steady: Steady) -> None:
    """Sessions don't mix."""
    steady.plugin.load_tools()
    for session in ("s", "other"):
        told = {"model": {"modelID": f"m-{session}", "providerID": f"p-{session}"}}
        given = {"input": {"sessionID": session}, "output": {"message": told}}
        steady.plugin.ask("message", instance=0, **given)
    steady.plugin.ask("message", instance=0, input={"sessionID": "third"}, output={})
    steady.plugin.call("journal_write", WRITE)
    assert '\nmodel: "m-s"\nprovider: "p-s"\n' in steady.newest()


# --- one server, and its troubles -----------------------------------------------------------------


def test_instances_share_one_server_in_the_home_folder(plugin: Plugin, home: Path) -> None:
    """However many projects OpenCode remembers, deleted ones too, and wherever it found us."""
    gone = home / "gone"
    numbers = [
        plugin.send_load(directory=str(gone), worktree="/", fromCopy=number % 2)
        for number in range(8)
    ]
    assert all(plugin.receive(number)["result"]["tools"] for number in numbers)
    (server,) = plugin.children
    assert Path(f"/proc/{server}/cwd").resolve() == home.resolve()
    assert not gone.exists()


def test_a_disabled_journal_has_no_tools_and_no_server(plugin: Plugin, home: Path) -> None:
    """The log tells how to turn it on; the message hook is a function all the same."""
    config = enable_journal(home, enabled=False)
    assert plugin.load() == {"hooks": ["chat.message"], "tools": None}
    assert plugin.load()["tools"] is None
    (line,) = plugin.ask("logs")
    assert line == (
        "agent-journal warn: agent-journal offers no tools: the journal is disabled; "
        f'set "enabled": true under "journal" in {config}'
    )
    plugin.ask("message", instance=0, input={"sessionID": "s"}, output={"message": {}})
    wait_for(lambda: not plugin.children, "the server ends")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/nowhere/agent-journal", "mcp"], r"can't be started \(.*ENOENT.*\)"),
        (["sh", "-c", "echo 'No module x' >&2; exit 3"], r"has ended \(3\): No module x"),
        (["sh", "-c", "kill -KILL $$"], r"has ended \(SIGKILL\)"),
        (["sh", "-c", "echo no JSON; cat >&2"], r"took more than 1 s to start"),
    ],
)
def test_a_server_that_does_not_start_costs_the_tools_alone(
    path: Path, command: list[str], message: str
) -> None:
    """OpenCode goes on, and its log says why there are none."""
    with Plugin(path, command, environment={"AGENT_JOURNAL_START_S": "1"}) as plugin:
        assert plugin.load() == {"hooks": ["chat.message"], "tools": None}
        (line,) = plugin.ask("logs")
        assert re.fullmatch(f".*offers no tools: the journal's server {message}", line), line


def test_a_slow_server_is_not_waited_for(path: Path) -> None:
    """Once it has started after all, later instances get its tools."""
    command = ["sh", "-c", f"kill -STOP $$; exec {shlex.join(COMMAND)}"]
    with Plugin(path, command, environment={"AGENT_JOURNAL_START_S": "1"}) as plugin:
        assert plugin.load()["tools"] is None
        assert plugin.load()["tools"] is None
        (line,) = plugin.ask("logs")
        assert line.endswith("no tools: the journal's server took more than 1 s to start")
        (server,) = plugin.children
        os.kill(server, signal.SIGCONT)
        wait_for(lambda: plugin.load()["tools"], "the tools are there")


def test_a_dead_server_is_started_again(plugin: Plugin) -> None:
    """The next call does it; one that was under way is told."""
    plugin.load_tools()
    (server,) = plugin.children
    os.kill(server, signal.SIGSTOP)
    number = plugin.send_call("journal_write", WRITE)
    wait_for(lambda: plugin.ask("asked"), "the call is under way")
    os.kill(server, signal.SIGKILL)
    assert plugin.receive(number) == {"error": "the journal's server has ended (SIGKILL)"}
    assert plugin.call("journal_write", WRITE)["result"].startswith("Saved.")
    (other,) = plugin.children
    assert other != server


def test_an_aborted_call_is_cancelled(path: Path, tmp_path: Path) -> None:
    """Whoever has aborted waits no longer; what was aborted before is never sent."""
    wire = tmp_path / "wire"
    with Plugin(path, recording(wire)) as plugin:
        plugin.load_tools()
        server = recorded_server(plugin)
        os.kill(server, signal.SIGSTOP)
        number = plugin.send_call("journal_search", {})
        recorded(wire, 4)  # the call is under way
        plugin.ask("abort", call=number)
        assert plugin.receive(number) == {"error": "the journal was not waited for: aborted"}
        assert plugin.call("journal_write", WRITE, aborted=True) == {"error": "aborted"}
        os.kill(server, signal.SIGCONT)
        assert plugin.call("journal_search", {})["result"]
    called, cancelled, other = recorded(wire, 6)[3:]
    assert called["method"] == other["method"] == "tools/call"
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": called["id"], "reason": "aborted"}


def test_a_call_can_be_aborted_while_the_server_starts(path: Path, tmp_path: Path) -> None:
    """Whoever has aborted waits for no start either."""
    flag = tmp_path / "flag"
    command = ["sh", "-c", f"test -e {flag} && kill -STOP $$; exec {shlex.join(COMMAND)}"]
    with Plugin(path, command) as plugin:
        plugin.load_tools()
        flag.touch()
        os.kill(plugin.children[0], signal.SIGKILL)
        wait_for(lambda: not plugin.children, "the server is gone")
        number = plugin.send_call("journal_write", WRITE)
        wait_for(lambda: plugin.children, "another one starts")
        plugin.ask("abort", call=number)
        assert plugin.receive(number) == {"error": "the journal was not waited for: aborted"}
        os.kill(plugin.children[0], signal.SIGCONT)
        found = plugin.call("journal_search", {})["result"]
        assert found.startswith("Nothing was found.")


@pytest.mark.prove
def test_a_call_that_takes_too_long_is_given_up(path: Path, tmp_path: Path) -> None:
    """The agent is told, the server is told, and the next call works."""
    wire = tmp_path / "wire"
    with Plugin(path, recording(wire), limit="15_000") as plugin:
        plugin.load_tools()
        server = recorded_server(plugin)
        os.kill(server, signal.SIGSTOP)
        error = "the journal was not waited for: no answer in 15 s"
        assert plugin.call("journal_search", {}) == {"error": error}
        os.kill(server, signal.SIGCONT)
        assert plugin.call("journal_write", WRITE)["result"].startswith("Saved.")
    assert recorded(wire, 5)[4]["method"] == "notifications/cancelled"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_server_is_left_behind(plugin: Plugin, number: signal.Signals) -> None:
    """However its host ends."""
    plugin.load_tools()
    (server,) = plugin.children
    os.kill(plugin.pid, number)
    wait_for(lambda: not is_there(server), "the server ends")


def test_a_server_that_hangs_is_not_left_behind(path: Path) -> None:
    """One that never reads can't see that its host has gone, which therefore ends it."""
    with Plugin(path, ["sleep", "1000"], environment={"AGENT_JOURNAL_START_S": "1"}) as plugin:
        assert plugin.load()["tools"] is None
        (server,) = plugin.children
        plugin.leave()
        wait_for(lambda: not is_there(server), "the server ends")
