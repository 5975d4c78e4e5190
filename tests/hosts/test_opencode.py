"""The journal in the real OpenCode: what it writes down, what models get, and who may do what."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from tests.hosts.opencode import COMMAND, Json, OpenCode
from tests.hosts.plugin import is_there, wait_for
from tests.hosts.proof import Desk, desk
from tests.hosts.scripted import ScriptedModel, script

from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.faces.mcp import tools
from agent_journal.model import Draft, Entry
from agent_journal.query import Query

NAMES = ["journal_read", "journal_search", "journal_write"]
DOCUMENT = Path(__file__).parents[2].joinpath("docs", "opencode.md").read_text(encoding="utf-8")
WRITE = ("journal_write", {"title": "A title", "body": "A body"})


@pytest.fixture
def place(host_home: Path, programs: Path) -> Desk:
    """Give a home and a project that is a repository; nothing in their paths names us."""
    return desk(host_home, programs)


@pytest.fixture
def opencode(programs: Path, place: Desk, model: ScriptedModel) -> OpenCode:
    """Give an OpenCode without our plugin."""
    return OpenCode(programs / "opencode", place.home, model)


def entries() -> list[Entry]:
    """Return what is in the journal, the oldest first."""
    with open_journal(load_settings(os.environ)) as journal:
        return [hit.entry for hit in journal.search(Query()).hits][::-1]


def offered(model: ScriptedModel) -> list[str]:
    """Return the journal's tools that models were offered."""
    return sorted({name for each in model.requests for name in each.tools if "journal" in name})


def documented_rules() -> Json:
    """Return the example of permissions in the documentation."""
    (example,) = re.findall("^```json\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    rules: Json = json.loads(example)
    return rules


def test_an_entry_is_written_found_and_read(opencode: OpenCode, place: Desk) -> None:
    """Through what `install` makes; the file says who has written it, and where."""
    place.install("opencode")
    with open_journal(load_settings(os.environ)) as journal:
        old = journal.write(Draft("Redis", "Pinned\u2028to 7.2", tags=["redis"]))
    folder = place.project / "sub"
    folder.mkdir()
    run = opencode.run(
        script(
            ("journal_write", {"title": "Carts are stale", "body": "Bump it.", "tags": "bug"}),
            [("journal_search", {"text": "stale carts"}), ("journal_read", {"id": old.id})],
        ),
        project=folder,
    )
    (_, entry) = entries()
    assert (entry.title, entry.body, entry.tags) == ("Carts are stale", "Bump it.", ("bug",))
    said = entry.provenance
    assert (said.project, said.repo) == (str(place.project), "example.org/me/shop")
    assert (said.model, said.provider, said.agent) == ("one", "scripted", "build")
    assert said.session.startswith("ses_")
    assert run.lines(f"session.id={said.session}")
    written, found, read = opencode.model.results
    assert f"id: {entry.id}" in written
    assert f"1. {entry.id}" in found
    assert "Pinned\u2028to 7.2" in read
    assert offered(opencode.model) == NAMES
    assert not run.lines("agent-journal offers no tools")
    assert not list(place.project.rglob(".opencode"))

    place.journal("uninstall", "opencode")
    assert not list(opencode.folder.glob("plugin*/*"))


def test_denied_tools_leave_no_trace(opencode: OpenCode, place: Desk) -> None:
    """Neither the title's request nor the first one knows of a journal, and none is written."""
    opencode.add_plugin()
    opencode.config = {"permission": {"journal_*": "deny"}}
    opencode.model.script = script(WRITE)
    opencode.run("Hello", project=place.project)
    assert opencode.model.openings.count("Hello") >= 2
    assert "journal" not in opencode.model.openings.lower()
    assert "unavailable tool 'journal_write'" in opencode.model.results[0]
    assert entries() == []


def test_who_may_not_write_may_read(opencode: OpenCode, place: Desk) -> None:
    """The denied tool's definition is left out, the others' are there, and work."""
    opencode.add_plugin()
    opencode.config = documented_rules()
    opencode.model.script = script(WRITE, ("journal_search", {}))
    opencode.run("Hello", "--agent", "plan", project=place.project)
    assert offered(opencode.model) == ["journal_read", "journal_search"]
    write, search, _ = tools.definitions()
    assert write.description[:60] not in opencode.model.wire
    assert search.description[:60] in opencode.model.wire
    refused, found = opencode.model.results
    assert "unavailable tool 'journal_write'" in refused
    assert found.startswith("Nothing was found.")
    assert entries() == []


def test_a_pattern_says_what_may_be_written(opencode: OpenCode, place: Desk) -> None:
    """OpenCode is asked for each call's subject; without that, a plugin's tools just run."""
    opencode.add_plugin()
    opencode.config = documented_rules()
    opencode.model.script = script(
        ("journal_write", {"title": "The\npassword is x", "body": ""}),
        ("journal_write", {"title": "Redis is pinned", "body": ""}),
    )
    opencode.run("Hello", project=place.project)
    refused, written = opencode.model.results
    assert "rule which prevents you from using this specific tool call" in refused
    assert written.startswith("Saved.")
    assert [entry.title for entry in entries()] == ["Redis is pinned"]


def test_a_command_that_is_gone_costs_the_tools_alone(opencode: OpenCode, place: Desk) -> None:
    """OpenCode works, and its log says why there is no journal."""
    opencode.add_plugin(["/nowhere/agent-journal", "mcp"])
    run = opencode.run("Hello", project=place.project)
    assert "DONE" in run.output
    (line,) = run.lines("agent-journal offers no tools")
    assert "the journal's server can't be started (ENOENT" in line
    assert "level=WARN" in line
    assert offered(opencode.model) == []


def test_a_dead_server_is_replaced_and_none_is_left(opencode: OpenCode, place: Desk) -> None:
    """One that is killed is started again; one whose OpenCode is killed ends."""
    folder = place.project  # OpenCode would ask before it touches another
    opencode.add_plugin(["sh", "-c", f"echo $$ >> {folder}/servers; exec {shlex.join(COMMAND)}"])
    kill = f"kill -KILL $(cat {folder}/servers)"
    wait = f"echo $$ > {folder}/shell; exec sleep 600"
    opencode.model.script = script(
        WRITE,
        ("bash", {"command": kill, "description": "Kill"}),
        WRITE,
        ("bash", {"command": wait, "description": "Wait"}),
    )
    with opencode.start("run", project=place.project) as process:
        try:
            assert process.stdin
            process.stdin.write("Hello")
            process.stdin.close()
            wait_for((folder / "shell").exists, "all is called")
            first, second = map(int, (folder / "servers").read_text(encoding="utf-8").split())
            assert not is_there(first)
            assert is_there(second)
        finally:
            process.kill()
    os.kill(int((folder / "shell").read_text(encoding="utf-8")), signal.SIGKILL)
    wait_for(lambda: not is_there(second), "the server ends")
    assert [entry.title for entry in entries()] == ["A title", "A title"]
