"""`agent-journal redact`: a person's command, which asks before it removes anything."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.redacted import mentions
from tests.shell import Shell, documented, shape_of
from tests.test_mcp import Server, text_of

from agent_journal.faces.cli import errors as cli_errors
from agent_journal.faces.cli.redacting import UNREACHED
from agent_journal.faces.mcp import tools


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a command line with an empty home."""
    return Shell(home, monkeypatch)


@pytest.fixture
def secret(shell: Shell) -> str:
    """An entry that was written, corrected in part, and searched."""
    shell.write("Harmless", "plain words")
    written = shell.write("The zyxtitle", "The zyxpassword of Ada", "-t", "zyxtag,kept")
    assert shell("search", "zyxpassword").code == 0
    assert len(mentions(shell.home)) >= 2
    return written


def test_an_entry_is_removed(shell: Shell, secret: str) -> None:
    """By the beginning of its id; nothing of it is left in the home, and check is content."""
    outcome = shell("redact", secret, "--reason", "names a customer", "--yes")
    assert (outcome.code, outcome.out) == (0, f"{secret} is redacted\n")
    assert outcome.err == f"{UNREACHED}\n"
    assert mentions(shell.home) == []
    assert shell("check").code == 0
    assert shell.entry(secret)["title"] == "[redacted]"
    assert shell("search", "zyxpassword").code == cli_errors.NOTHING
    assert shell("search", "plain").code == 0
    assert mentions(shell.home) == []


def test_a_text_is_removed(shell: Shell, secret: str) -> None:
    """From an argument, or from stdin without its line end."""
    outcome = shell("redact", secret, "--text", "zyxtitle", "--reason", "why", "--yes")
    assert outcome.out == f"{secret} is redacted\n"
    options = ["--text", "-", "--reason", "why", "--yes", "--json"]
    done = shell("redact", secret, *options, stdin=b"zyxpassword\n").json
    assert (done["places"], done["notices"]) == (1, [])
    again = shell("redact", secret, "--text", "zyxtag", "--reason", "why", "--yes")
    assert again.code == 0
    assert mentions(shell.home) == []
    entry = shell.entry(secret)
    assert (entry["body"], entry["tags"]) == ("The [redacted] of Ada", ["[redacted]", "kept"])
    repeated = shell("redact", secret, "--text", "zyxtag", "--reason", "why", "--yes")
    assert (repeated.code, repeated.out) == (cli_errors.REFUSED, "")
    assert f"text doesn't stand in entry {secret}" in repeated.err
    assert "was redacted before; what was made of it is gone" in shell("redact", secret).out


def test_the_answer_is_documented(shell: Shell, secret: str) -> None:
    """docs/cli.md has its very keys."""
    printed = shell("redact", secret, "--reason", "why", "--yes", "--json")
    assert shape_of(printed.json) == shape_of(documented("redact"))
    assert printed.err == ""


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--reason", "why"], cli_errors.USAGE, "say --yes"),
        (["--text", "zyxtag", "--yes"], cli_errors.USAGE, "needs --reason"),
        (["--reason", "", "--yes"], cli_errors.USAGE, "needs --reason"),
        (["--text", "", "--reason", "why", "--yes"], cli_errors.USAGE, "--text is empty"),
        (["--text", " ", "--reason", "why", "--yes"], cli_errors.REFUSED, "text is blank"),
        (["--text", "nowhere", "--reason", "why", "--yes"], cli_errors.REFUSED, "doesn't stand"),
        (["--reason", "x" * 301, "--yes"], cli_errors.REFUSED, "the limit is 300"),
        ([], cli_errors.REFUSED, "never redacted"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    shell: Shell, secret: str, options: list[str], code: int, message: str
) -> None:
    """In one line, and nothing is changed."""
    before = (shell.folder / f"{secret}.md").read_bytes()
    outcome = shell("redact", secret, *options)
    assert outcome.code == code
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert (shell.folder / f"{secret}.md").read_bytes() == before


def test_an_unknown_entry_is_told(shell: Shell, secret: str) -> None:
    """And so is a beginning that several have."""
    assert shell("redact", "unknown", "--reason", "x", "--yes").code == cli_errors.NOT_FOUND
    assert shell("redact", secret[:4], "--reason", "x", "--yes").code == cli_errors.NOT_FOUND


def test_what_the_ledger_lacks_is_told(shell: Shell, secret: str) -> None:
    """As a warning, and in JSON."""
    ledger = shell.folder / ".ledger"
    ledger.rename(shell.folder / ".put-aside")
    ledger.write_text("in the way", encoding="utf-8")
    outcome = shell("redact", secret, "--reason", "why", "--yes")
    assert outcome.code == 0
    assert "agent-journal: warning: all is removed, but no ledger has a line" in outcome.err
    assert len(shell("redact", secret, "--json").json["notices"]) == 1
    ledger.unlink()
    (shell.folder / ".put-aside").rename(ledger)
    [problem] = shell("check", "--json").json["problems"]
    assert problem["kind"] == "unfinished"
    assert shell("redact", secret).code == 0
    assert shell("check").code == 0


@pytest.mark.parametrize(
    ("typed", "code", "is_removed"), [("y\n", 0, True), ("n\n", 1, False), ("\n", 1, False)]
)
def test_a_person_is_asked(
    shell: Shell, secret: str, typed: str, code: int, *, is_removed: bool
) -> None:
    """On a terminal: what is removed, from which entry; no is the answer to nothing."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 200))
    os.write(ours, typed.encode())
    command = [sys.executable, "-m", "agent_journal", "redact", secret]
    done = subprocess.run(
        [*command, "--text", "zyxpassword", "--reason", "why"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ,
        timeout=60,
        check=False,
    )
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert f"Remove 'zyxpassword' in {secret} (The zyxtitle) for good? [y/N]" in shown
    assert ("nothing was changed" in shown) != is_removed
    assert ("zyxpassword" in shell.entry(secret)["body"]) != is_removed


def test_a_repository_is_told(shell: Shell, secret: str) -> None:
    """What was committed stays in its history; the nearest one is named."""
    shell("redact", secret, "--text", "zyxtag", "--reason", "why", "--yes")
    (shell.home / ".git").mkdir()
    outcome = shell("redact", secret, "--text", "zyxtitle", "--reason", "why", "--yes")
    told = f"the journal lies in the git repository {shell.home}: what was committed there keeps"
    assert f"agent-journal: warning: {told} the text" in outcome.err
    (shell.folder / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    options = ("--reason", "why", "--yes", "--json")
    (notice,) = shell("redact", secret, *options).json["notices"]
    assert str(shell.folder) in notice
    assert shell("redact", secret, "--json").json["notices"] == []


def test_a_server_that_runs_serves_nothing_of_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it keeps in memory of the text finds, shows and writes nothing any more."""
    monkeypatch.delenv("AGENT_JOURNAL_MODEL")
    shell.config.parent.mkdir(parents=True)
    shell.config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    queries: list[dict[str, object]] = [{"text": "zyxpassword"}, {"text": "The zyxtitle"}]
    queries += [{"text": "Turin"}, {"tags": ["zyxtag"]}, {"project": "zyxproject"}, {}]
    with Server() as server:
        server.initialize()
        draft = {"title": "The zyxtitle", "body": "The zyxpassword, Turin", "tags": ["zyxtag"]}
        written = text_of(server.call("journal_write", draft))
        (path,) = shell.folder.glob("*.md")
        assert path.stem in written
        before = [text_of(server.call("journal_search", query)) for query in queries]
        assert all("zyxtitle" in one for one in before[:4])
        assert shell("redact", path.stem, "--reason", "why", "--yes").code == 0
        after = [text_of(server.call("journal_search", query)) for query in queries]
        after.append(text_of(server.call("journal_read", {"id": path.stem})))
        assert [one for one in after if "zyx" in one.casefold()] == []
        assert "[redacted]" in after[-1]
        assert mentions(shell.home) == []
        assert server.leave() == 0
    assert mentions(shell.home) == []


def test_agents_have_no_tool_for_it() -> None:
    """They may write, search and read."""
    for tool in tools.definitions():
        assert "redact" not in f"{tool.name} {tool.description} {tool.schema}".casefold()
