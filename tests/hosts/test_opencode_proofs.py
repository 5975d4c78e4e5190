"""The longer proofs of the plugin: every kind of rule, several processes, many instances."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.hosts.conftest import HOSTS, enable_journal, is_npm_reachable
from tests.hosts.opencode import COMMAND, Json, OpenCode, serving
from tests.hosts.plugin import children, is_there, recorded, recording, wait_for
from tests.hosts.scripted import ScriptedModel, script

from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.faces.hosts.plugin import stamped
from agent_journal.model import Entry
from agent_journal.query import Query

pytestmark = pytest.mark.prove

READ, SEARCH, WRITE = "journal_read", "journal_search", "journal_write"
ALL = [READ, SEARCH, WRITE]
UNAVAILABLE = "unavailable tool"
RULE = "rule which prevents"
SAVED = "Saved."


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of permission, and what it does.

    Attributes:
        config: added to OpenCode's configuration.
        offered: the tools that models are offered.
        ok: how the answer to a write of "ok, go" begins, or what it holds.
        secret: the same of a write of "secret".
        environment: added to OpenCode's variables.
        arguments: added to its command.
    """

    config: Json
    offered: list[str]
    ok: str
    secret: str
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


DENIED: Json = {"journal_*": "deny"}
OFF = {"journal_*": False}
ONLY_OK = {WRITE: {"*": "deny", "ok*": "allow"}}
NO_SECRETS = {WRITE: {"*": "allow", "secret*": "deny"}}
RULES = {
    "none": Rule({}, ALL, SAVED, SAVED),
    "permission": Rule({"permission": DENIED}, [], UNAVAILABLE, UNAVAILABLE),
    "tools": Rule({"tools": OFF}, [], UNAVAILABLE, UNAVAILABLE),
    "permission of the agent": Rule(
        {"agent": {"build": {"permission": DENIED}}}, [], UNAVAILABLE, UNAVAILABLE
    ),
    "tools of the agent": Rule({"agent": {"build": {"tools": OFF}}}, [], UNAVAILABLE, UNAVAILABLE),
    "environment": Rule(
        {}, [], UNAVAILABLE, UNAVAILABLE, {"OPENCODE_PERMISSION": json.dumps(DENIED)}
    ),
    "only write": Rule(
        {"permission": {"*_write": "deny"}}, [READ, SEARCH], UNAVAILABLE, UNAVAILABLE
    ),
    "every pattern": Rule(
        {"permission": {WRITE: {"*": "deny"}}}, [READ, SEARCH], UNAVAILABLE, UNAVAILABLE
    ),
    "allowed pattern": Rule({"permission": ONLY_OK}, ALL, SAVED, RULE),
    "denied pattern": Rule({"permission": NO_SECRETS}, ALL, SAVED, RULE),
    "denied pattern of the agent": Rule(
        {"agent": {"build": {"permission": NO_SECRETS}}}, ALL, SAVED, RULE
    ),
    "asked, and nobody there": Rule({"permission": {"journal_*": "ask"}}, ALL, "reject", ""),
    "asked, and all approved": Rule(
        {"permission": {"journal_*": "ask"}}, ALL, SAVED, SAVED, arguments=("--auto",)
    ),
}


@pytest.fixture
def opencode(programs: Path, host_home: Path, model: ScriptedModel) -> OpenCode:
    """Give an OpenCode with our plugin; nothing in its paths names us."""
    opencode = OpenCode(programs / "opencode", host_home, model)
    opencode.add_plugin()
    return opencode


@pytest.fixture
def project(host_home: Path) -> Path:
    """Give a folder that is no repository."""
    return folder(host_home / "shop")


def folder(path: Path) -> Path:
    """Make a folder."""
    path.mkdir()
    return path.resolve()


def entries() -> list[Entry]:
    """Return what is in the journal, the newest first."""
    with open_journal(load_settings(os.environ)) as journal:
        pages = [journal.search(Query(limit=50, offset=offset)) for offset in (0, 50)]
    return [hit.entry for page in pages for hit in page.hits]


def offered(model: ScriptedModel) -> list[str]:
    """Return the journal's tools that models were offered."""
    return sorted({name for each in model.requests for name in each.tools if "journal" in name})


def write(title: str) -> tuple[str, Json]:
    """Return a call that writes an entry."""
    return WRITE, {"title": title, "body": "A body"}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_is_offered_and_what_runs(
    opencode: OpenCode, project: Path, name: str
) -> None:
    """As OpenCode documents its permissions, for plugin tools too."""
    rule, model = RULES[name], opencode.model
    opencode.config = rule.config
    model.script = script(write("secret"), write("ok, go"))
    arguments, environment = rule.arguments, rule.environment
    opencode.run("Hello", *arguments, project=project, environment=environment)
    assert model.openings.count("Hello") >= 2  # the title's request, and the first one
    assert offered(model) == rule.offered
    assert ("journal" in model.openings.lower()) == bool(rule.offered)
    if rule.ok == "reject":  # the loop ends at once
        assert len(model.conversations) == 1
        assert entries() == []
        return
    secret, ok = model.results
    assert rule.secret in secret
    assert rule.ok in ok
    titles = [title for title, text in (("ok, go", ok), ("secret", secret)) if SAVED in text]
    assert [entry.title for entry in entries()] == titles


@pytest.mark.parametrize(
    ("tool", "rules", "refused", "runs"),
    [
        (READ, {"*": "allow", "private*": "deny"}, {"id": "private-1"}, {"id": "public-1"}),
        (SEARCH, {"*": "allow", "salary*": "deny"}, {"text": " salary\n2026"}, {}),
        (SEARCH, {"*": "deny", "cache*": "allow"}, {}, {"text": "cache"}),
    ],
)
def test_patterns_are_compared_with_ids_and_texts(
    opencode: OpenCode, project: Path, tool: str, rules: Json, refused: Json, runs: Json
) -> None:
    """A search without text is one for `*`."""
    opencode.config = {"permission": {tool: rules}}
    opencode.model.script = script((tool, refused), (tool, runs))
    opencode.run("Hello", project=project)
    first, second = opencode.model.results
    assert RULE in first
    assert RULE not in second


def test_a_subagent_has_rules_of_its_own(opencode: OpenCode, project: Path) -> None:
    """Who is denied is sent no definition; who isn't writes under its own name and session."""
    denied = {"description": "A reviewer", "mode": "subagent", "permission": DENIED}
    opencode.config = {"agent": {"reviewer": denied}}

    def task(agent: str) -> tuple[str, Json]:
        prompt = script(write(f"by {agent}"))
        return "task", {"description": "Work", "prompt": prompt, "subagent_type": agent}

    opencode.run(script(task("reviewer"), task("general"), write("by build")), project=project)
    written = entries()
    assert [entry.title for entry in written] == ["by build", "by general"]
    assert [entry.provenance.agent for entry in written] == ["build", "general"]
    assert len({entry.provenance.session for entry in written}) == 2
    reviewing = [
        each
        for each in opencode.model.requests
        if "by reviewer" in each.text and "subagent_type" not in each.text
    ]
    assert reviewing
    assert all("journal" not in name for each in reviewing for name in each.tools)


def test_always_means_the_tool(opencode: OpenCode, project: Path) -> None:
    """Who answers "always" once isn't asked about other titles again."""
    opencode.config = {"permission": {"journal_*": "ask"}}
    with serving(opencode, project=project) as server:
        session = server.session(project)
        prompt = script(write("one"), write("two"))
        done: list[Json] = []
        work = threading.Thread(
            target=lambda: done.append(server.prompt(session, prompt, project=project))
        )
        work.start()
        wait_for(lambda: server.ask("/permission", project=project), "permission is asked")
        (asked,) = server.ask("/permission", project=project)
        assert (asked["permission"], asked["patterns"]) == (WRITE, ["one"])
        reply = {"response": "always"}
        server.ask(f"/session/{session}/permissions/{asked['id']}", reply, project=project)
        work.join(60)
        assert done
    assert [entry.title for entry in entries()] == ["two", "one"]


def test_two_processes_write_at_once_in_two_projects(opencode: OpenCode, host_home: Path) -> None:
    """All is kept, each entry under its own project and session."""
    projects = [folder(host_home / name) for name in ("shop", "depot")]

    def work(project: Path) -> None:
        titles = [[f"{project.name} {step}-{call}" for call in range(4)] for step in range(10)]
        opencode.run(script(*([write(each) for each in step] for step in titles)), project=project)

    threads = [threading.Thread(target=work, args=[project]) for project in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    owned = [
        [entry for entry in entries() if entry.provenance.project == str(project)]
        for project in projects
    ]
    for project, own in zip(projects, owned, strict=True):
        assert len({entry.title for entry in own}) == len(own) == 40
        assert all(entry.title.startswith(project.name) for entry in own)
        assert len({entry.provenance.session for entry in own}) == 1
    started = max(own[-1].created for own in owned)
    assert started < min(own[0].created for own in owned)  # they did work at once


def test_many_projects_share_one_server(opencode: OpenCode, host_home: Path) -> None:
    """Each has an instance of the plugin, a deleted one too; together they have one child."""
    projects = [folder(host_home / f"project-{number}") for number in range(8)]
    with serving(opencode, project=projects[0]) as server:
        for project in projects:
            session = server.session(project)
            server.prompt(session, script(write(f"in {project.name}")), project=project)
        server.session(host_home / "gone")
        (child,) = children(server.process.pid)
        assert Path(f"/proc/{child}/cwd").resolve() == host_home.resolve()
    wait_for(lambda: not is_there(child), "the server ends")
    assert not (host_home / "gone").exists()
    assert {entry.provenance.project for entry in entries()} == set(map(str, projects))


def test_an_aborted_call_is_cancelled(opencode: OpenCode, project: Path, host_home: Path) -> None:
    """Through OpenCode's own way of aborting; the session works again at once."""
    wire = host_home / "wire"
    opencode.add_plugin(recording(wire, COMMAND))
    with serving(opencode, project=project) as server:
        session = server.session(project)
        server.prompt(session, script((SEARCH, {})), project=project)
        (shell,) = children(server.process.pid)
        pids = children(shell)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        prompt = script(write("too late"))
        work = threading.Thread(target=lambda: server.prompt(session, prompt, project=project))
        work.start()
        wait_for(lambda: len(opencode.model.conversations) == 3, "the call is under way")
        for pid in pids:
            if b"tee" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGCONT)
        recorded(wire, 5)  # the call is sent
        server.ask(f"/session/{session}/abort", {}, project=project)
        work.join(60)
        assert not work.is_alive()
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        server.prompt(session, script((SEARCH, {"text": "x"})), project=project)
    called, cancelled, other = recorded(wire, 7)[4:]
    assert called["method"] == other["method"] == "tools/call"
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == called["id"]


def test_a_disabled_journal_has_no_tools(opencode: OpenCode, project: Path, home: Path) -> None:
    """The log says how to turn it on, and the server ends."""
    enable_journal(home, enabled=False)
    opencode.add_plugin(["sh", "-c", f"echo $$ >> {home}/servers; exec {shlex.join(COMMAND)}"])
    with serving(opencode, project=project) as server:
        server.prompt(server.session(project), "Hello", project=project)
        (pid,) = (home / "servers").read_text(encoding="utf-8").split()
        wait_for(lambda: not is_there(int(pid)), "the server ends")
    assert "journal" not in opencode.model.openings.lower()


def test_a_server_with_a_password_has_the_tools_too(opencode: OpenCode, project: Path) -> None:
    """Asking OpenCode for its version needs no password from us."""
    environment = {"OPENCODE_SERVER_PASSWORD": "secret"}
    opencode.run(script(write("a title")), project=project, environment=environment)
    assert [entry.title for entry in entries()] == ["a title"]


def test_the_oldest_that_is_offered_tools_keeps_to_the_rules(
    opencode: OpenCode, project: Path, host_home: Path
) -> None:
    """What the plugin takes for the oldest OpenCode that asks does ask, and tells who calls."""
    if not is_npm_reachable():
        pytest.skip("npm can't be reached to install the oldest OpenCode")
    place = host_home / "oldest"
    shutil.copytree(HOSTS / "oldest", place, ignore=shutil.ignore_patterns("node_modules"))
    version = json.loads((place / "package.json").read_text("utf-8"))["dependencies"]["opencode-ai"]
    assert f'const OLDEST = "{version}"' in stamped(COMMAND, "")
    npm = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    subprocess.run(npm, cwd=place, check=True)
    binary = place / "node_modules" / ".bin" / "opencode"
    old = OpenCode(binary, host_home, opencode.model, {"permission": ONLY_OK}, version)
    old.model.script = script(write("secret"), write("ok, go"), (SEARCH, {"text": "ok"}))
    old.run("Hello", project=project)
    secret, ok, found = old.model.results
    assert RULE in secret
    assert SAVED in ok
    (entry,) = entries()
    assert entry.id in found
    said = entry.provenance
    assert (said.project, said.model, said.provider) == (str(project), "one", "scripted")
    assert (said.agent, said.session[:4]) == ("build", "ses_")
    required = [
        tool["function"]["parameters"].get("required", [])
        for tool in old.model.conversations[0].body["tools"]
        if tool["function"]["name"] == SEARCH
    ]
    assert required == [[]]

    old.config = {"permission": DENIED}
    before = len(old.model.requests)
    old.run("Hello", project=project)
    assert all("journal" not in each.text for each in old.model.requests[before : before + 2])
