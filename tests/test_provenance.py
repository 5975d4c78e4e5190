"""Who is calling, from what hosts tell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_journal.errors import InvalidFieldError
from agent_journal.faces.provenance import (
    CALLER_KEY,
    asked_project,
    complete,
    from_meta,
    own_project,
    told,
    working_directory,
)
from agent_journal.model import Draft, Provenance
from agent_journal.query import Project

CLAUDE = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": "/host", "CLAUDE_CODE_SESSION_ID": "s"}
TURN: dict[str, Any] = {
    "session_id": "01a2",
    "thread_id": "01a2",
    "model": "gpt-x",
    "workspaces": {
        "/srv/shop": {
            "associated_remote_urls": {"origin": "https://example.com/acme/shop"},
            "latest_git_commit_hash": "d00fe9b1cabf95d1571bbbbeffa41d3724c7e47b",
            "has_changes": False,
        }
    },
    "codex_version": "0.171.0",
}
CODEX = {"sessionId": "01a2", "x-codex-turn-metadata": TURN, "progressToken": 1}


# What is said


def test_what_a_person_sets_comes_before_everything() -> None:
    """Before the call, the client and the host; blank counts as unset."""
    own = {
        "AGENT_JOURNAL_PROJECT": "/own",
        "AGENT_JOURNAL_LLM": "my-model",
        "AGENT_JOURNAL_PROVIDER": "me",
        "AGENT_JOURNAL_AGENT": "mine",
        "AGENT_JOURNAL_SESSION": "t",
    }
    mine = Provenance("/own", "my-model", "me", "mine", "t")
    said = {"project": "/p", "model": "m", "provider": "v", "agent": "a", "session": "s"}
    assert told({**CLAUDE, **own}) == mine
    assert told({**CLAUDE, **own}, {CALLER_KEY: said}, "client") == mine
    assert told({**CLAUDE, **own}, CODEX, "client") == mine
    assert told({**CLAUDE, "AGENT_JOURNAL_PROJECT": " "}).project == "/host"


def test_the_embedders_setting_says_nothing_of_the_language_model() -> None:
    """They are two models, and have two variables."""
    assert told({"AGENT_JOURNAL_MODEL": "none"}) == Provenance()


def test_an_empty_environment_says_nothing() -> None:
    """No value is invented."""
    assert told({}) == Provenance()


def test_claude_code_tells_by_its_environment() -> None:
    """To its servers, which it also tells its name, and to commands in its terminal."""
    assert told(CLAUDE) == Provenance("/host", agent="claude-code", session="s")
    assert told(CLAUDE, {"progressToken": 1}, "claude-code") == told(CLAUDE)
    assert told({"CLAUDECODE": "1"}).agent == "claude-code"
    assert told({"CLAUDE_PROJECT_DIR": "/host"}) == Provenance("/host")


def test_other_hosts_may_run_in_its_terminal() -> None:
    """Then what it says isn't about them, as far as they are known or say something themselves."""
    assert told(CLAUDE, {}, "opencode") == Provenance(agent="opencode")
    assert told(CLAUDE, {CALLER_KEY: {"project": "/p"}}, "x") == Provenance("/p")
    assert told(CLAUDE, {CALLER_KEY: {}}) == Provenance()
    turn = {"model": "gpt-x"}
    assert told(CLAUDE, {"x-codex-turn-metadata": turn}, "codex-mcp-client") == Provenance(
        model="gpt-x", agent="codex"
    )
    assert told(CLAUDE, {}, "inspector") == Provenance("/host", agent="inspector", session="s")


def test_our_plugins_say_everything() -> None:
    """The object under our key holds the fields by their names; others in it are passed over."""
    said = {"project": "/p", "model": "m", "provider": "v", "agent": "a", "session": "s", "x": 1}
    assert from_meta({CALLER_KEY: said}) == Provenance("/p", "m", "v", "a", "s")
    assert from_meta({CALLER_KEY: {"repo": "h/r"}}) == Provenance()


def test_codex_says_where_it_is_and_which_model_speaks() -> None:
    """As version 0.171.0 sends it; of several workspaces none is known to be the right one."""
    assert from_meta(CODEX) == Provenance("/srv/shop", "gpt-x", agent="codex", session="01a2")
    several = {**TURN, "workspaces": {"/a": {}, "/b": {}}}
    assert from_meta({"x-codex-turn-metadata": several}) == Provenance(
        model="gpt-x", agent="codex", session="01a2"
    )


@pytest.mark.parametrize(
    "value", [None, "x", 7, [], {"project": ["/p"], "agent": None, "model": 3, "session": {}}]
)
def test_what_is_malformed_counts_as_not_given(value: object) -> None:
    """A call's metadata never breaks the call."""
    assert from_meta({CALLER_KEY: value}) == Provenance()
    turn = {"model": value, "workspaces": value, "session_id": value}
    codex = from_meta({"x-codex-turn-metadata": turn, "sessionId": value})
    assert codex.project in ("", "project")
    assert {codex.model, codex.session} <= {"", "x"}


# What is added to it


@pytest.mark.parametrize(
    ("roots", "directory", "project"),
    [
        ([], "/work", "/work"),
        ([], "/", ""),
        ([], "", ""),
        (["file:///a", "file:///b"], "/work", "/a"),
        (["file:///a", "file:///work"], "/work", "/work"),
        (["file:///work", "file:///srv/sub/"], "/srv/sub/deep", "/srv/sub"),
        (["file:///wor"], "/work", "/wor"),
        (["file:///other", "file:///wor"], "/work", "/other"),
        (["file:///with%20blank/%C3%A9"], "/x", "/with blank/é"),
        (["https://host/x", "file://[", "nonsense", ""], "/x", "/x"),
        (["file:///"], "/x", "/x"),
        (["file:///a%00b"], "/x", "/a\\x00b"),
    ],
)
def test_the_project_is_the_root_around_the_directory(
    roots: list[str], directory: str, project: str
) -> None:
    """The innermost root around it, else the first root, else the directory itself."""
    assert complete(Provenance(), roots=roots, directory=directory) == Provenance(project)


def test_what_is_known_stays() -> None:
    """Gaps are filled, and nothing else."""
    known = Provenance("/p", "m", "v", "a", "s", "h/r")
    assert complete(known, roots=["file:///r"], directory="/d") == known
    assert complete(Provenance("/"), directory="/d") == Provenance("/")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Give a repository that has a remote."""
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    for arguments in (["init", "-q"], ["remote", "add", "origin", "git@example.com:acme/shop"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def test_a_working_directory_stands_for_its_work_tree(repo: Path) -> None:
    """Where one happens to be within it says nothing; what is named is kept as it was named."""
    source = str(repo / "src")
    name = "example.com/acme/shop"
    assert complete(Provenance(), directory=source) == Provenance(str(repo), repo=name)
    assert complete(Provenance(source)) == Provenance(source, repo=name)
    root = (repo / "src").as_uri()
    assert complete(Provenance(), roots=[root], directory="/x") == Provenance(source, repo=name)
    assert complete(Provenance("shop"), directory=source) == Provenance("shop")


def test_nothing_that_a_host_tells_can_spoil_a_write() -> None:
    """Bytes that are no UTF-8, NUL and endless names become what an entry can hold."""
    odd = os.fsdecode(b"/caf\xe9") + "\0\x1b"
    long = "n" * 1_000_000 + "\ud800"
    spelled = "/caf\\udce9\\x00\\x1b"
    said = told({"CLAUDE_PROJECT_DIR": odd}, {"x": {}}, long)
    assert (said.project, len(said.agent)) == (spelled, 1000)
    in_meta = {"project": odd, "agent": long, "session": "\ud800", "model": "a\nb"}
    for found in (
        complete(said),
        complete(Provenance(), directory=odd),
        complete(told({}, {CALLER_KEY: in_meta})),
        complete(told({}, {"x-codex-turn-metadata": {"workspaces": {odd: 1}, "model": long}})),
    ):
        assert found.project == spelled
        Draft("t", provenance=found)
        assert own_project(found).holds(found)


def test_a_folder_of_another_encoding_is_its_repositorys(repo: Path) -> None:
    """The project's path is spelled out, its repository is known."""
    folder = repo.rename(repo.parent / os.fsdecode(b"caf\xe9"))
    found = complete(Provenance(), directory=str(folder / "src"))
    spelled = f"{folder.parent}/caf\\udce9"
    assert found == Provenance(spelled, repo="example.com/acme/shop")


# Which project a search means


def test_a_dot_is_the_callers_own_project(repo: Path, tmp_path: Path) -> None:
    """By its repository, by each name of its folder, and by its work tree."""
    link = tmp_path / "link"
    link.symlink_to(repo / "src")
    caller = complete(Provenance(str(link)))
    name = "example.com/acme/shop"
    own = Project(name, [str(link), str(repo / "src")], str(repo))
    for dot in (".", " . ", "./"):
        assert asked_project(dot, lambda: caller) == own
    assert own.holds(Provenance(str(repo / "docs")))
    assert own.holds(Provenance("/elsewhere", repo=name))
    assert not own.holds(Provenance(str(repo), repo="example.com/acme/other"))


def test_outside_a_repository_it_is_the_folder_alone(tmp_path: Path) -> None:
    """Neither what lies in it nor what it lies in."""
    own = asked_project(".", lambda: complete(Provenance(), directory=str(tmp_path)))
    assert isinstance(own, Project)
    assert own.holds(Provenance(str(tmp_path)))
    assert not own.holds(Provenance(str(tmp_path / "sub")))
    assert not own.holds(Provenance(str(tmp_path.parent)))
    assert own_project(Provenance("mine")).holds(Provenance("Mine"))


def test_what_else_is_asked_for_is_left_as_it_is() -> None:
    """And nobody is asked who is calling."""

    def never() -> Provenance:
        raise AssertionError

    for project in ("", "shop", "..", "/srv/shop", "./shop"):
        assert asked_project(project, never) == project


def test_a_dot_without_a_project_is_refused() -> None:
    """Else it would find everything."""
    with pytest.raises(InvalidFieldError, match="nothing tells which one that is"):
        asked_project(".", Provenance)


def test_a_working_directory_that_is_gone_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder deleted under the process is no reason to fail."""
    monkeypatch.chdir(tmp_path)
    assert working_directory() == str(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert working_directory() == ""
    assert complete(Provenance(), directory=working_directory()) == Provenance()
    monkeypatch.chdir(tmp_path)
