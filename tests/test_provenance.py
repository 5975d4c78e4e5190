"""Who is calling, from what hosts tell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_journal.faces.provenance import (
    CALLER_KEY,
    complete,
    current_project,
    from_environment,
    from_meta,
    working_directory,
)
from agent_journal.model import Draft, Provenance


def test_our_own_variables_come_before_the_hosts() -> None:
    """What a person sets wins over what a host sets; blank counts as unset."""
    host = {"CLAUDE_PROJECT_DIR": "/host", "CLAUDE_CODE_SESSION_ID": "s"}
    assert from_environment(host) == Provenance(project="/host", session="s")
    own = {
        "AGENT_JOURNAL_PROJECT": "/own",
        "AGENT_JOURNAL_AGENT": "me",
        "AGENT_JOURNAL_SESSION": "t",
    }
    assert from_environment({**host, **own}) == Provenance("/own", agent="me", session="t")
    assert from_environment({**host, "AGENT_JOURNAL_PROJECT": " "}).project == "/host"


def test_an_empty_environment_says_nothing() -> None:
    """No value is invented."""
    assert from_environment({}) == Provenance()


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
    ],
)
def test_the_project_is_the_root_around_the_directory(
    roots: list[str], directory: str, project: str
) -> None:
    """The innermost root around it, else the first root, else the directory itself."""
    found = complete(Provenance(), client="", roots=roots, directory=directory)
    assert found == Provenance(project=project)


def test_what_is_known_stays() -> None:
    """A client fills gaps only."""
    known = Provenance("/p", "m", "v", "a", "s")
    assert complete(known, client="c", roots=["file:///r"], directory="/d") == known
    assert complete(Provenance(), client="c", roots=[], directory="").agent == "c"


def test_nothing_that_a_host_tells_can_spoil_a_write() -> None:
    """Bytes that are no UTF-8, NUL and endless names become what an entry can hold."""
    odd = os.fsdecode(b"/caf\xe9") + "\0\x1b"
    found = complete(Provenance(), client="n" * 10_000 + "\ud800", roots=[], directory=odd)
    assert found.project == "/caf\\udce9\\x00\\x1b"
    assert len(found.agent) == 1000
    Draft("t", provenance=found)
    assert from_environment({"CLAUDE_PROJECT_DIR": odd}).project == found.project


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
    assert current_project() == ""
    monkeypatch.chdir(tmp_path)


def test_the_present_project_is_the_repository_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one it is the folder itself; bytes that are no UTF-8 are spelled out."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    (folder / "sub").mkdir(parents=True)
    monkeypatch.chdir(folder / "sub")
    spelled = f"{tmp_path}/caf\\udce9"
    assert current_project() == f"{spelled}/sub"
    (folder / ".git").touch()
    assert current_project() == spelled


def test_our_plugins_say_everything() -> None:
    """The object under our key holds the fields by their names; others in it are passed over."""
    said = {"project": "/p", "model": "m", "provider": "v", "agent": "a", "session": "s", "x": 1}
    assert from_meta({CALLER_KEY: said}) == Provenance("/p", "m", "v", "a", "s")


def test_codex_says_where_it_is_and_which_model_speaks() -> None:
    """As version 0.171.0 sends it."""
    turn = {
        "session_id": "01a2",
        "model": "gpt-x",
        "workspaces": {"/srv/shop": {"has_changes": False}},
    }
    meta = {"sessionId": "01a2", "x-codex-turn-metadata": turn, "progressToken": 1}
    assert from_meta(meta) == Provenance("/srv/shop", model="gpt-x", session="01a2")


@pytest.mark.parametrize(
    "value", [None, "x", 7, [], {"project": ["/p"], "agent": None, "model": 3}]
)
def test_what_is_malformed_counts_as_not_given(value: object) -> None:
    """A call's metadata never breaks the call."""
    assert from_meta({CALLER_KEY: value, "x-codex-turn-metadata": value}) == Provenance()
