"""The command line's commands, run in this process over a real journal."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.shell import DOCS, Shell, documented, shape_of

from agent_journal import words
from agent_journal.config import Settings
from agent_journal.engines import ledgers, placing
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.errors import JournalError
from agent_journal.faces import cli
from agent_journal.faces.cli import commands as cli_commands
from agent_journal.faces.cli import errors as cli_errors
from agent_journal.faces.cli import input as cli_input
from agent_journal.faces.cli import output as cli_output
from agent_journal.faces.cli.commands import commands
from agent_journal.faces.cli.layout import marked
from agent_journal.journal import Journal

RAW_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "a\x1b]0;owned\x07b\x9b31mc\x7fd\u202ee\rf"


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a command line with an empty home, an unborn journal, and no model."""
    return Shell(home, monkeypatch)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model load at once: another real one, that carries the text's signal."""
    monkeypatch.setattr("agent_journal.engines.use.load_use", lambda *_: HashingEmbedder())


class TestWrite:
    """`write`."""

    def test_prints_the_id_alone_and_says_where_the_file_is(self, shell: Shell) -> None:
        """The id goes to stdout, the file's place to stderr, and the entry is in that file."""
        outcome = shell("write", "Redis pins to 7.2", "7.4 changed its licence.")
        assert outcome.code == 0
        assert re.fullmatch(r"\d{8}-\d{6}-\d{3}\n", outcome.out)
        path = shell.folder / f"{outcome.out.strip()}.md"
        assert outcome.err == f"written to {path}\n"
        assert "7.4 changed its licence." in path.read_text(encoding="utf-8")

    def test_takes_everything_that_an_entry_holds(self, shell: Shell) -> None:
        """Tags, provenance and the moment arrive in the entry."""
        entry_id = shell.write(
            "T", "B", "-t", "one,#two", "--tag", "Three", "--project", "/p", "--agent", "a",
            "--model", "m", "--provider", "v", "--session", "s", "--created", "2026-01-31T18:00Z",
        )  # fmt: skip
        entry = shell.entry(entry_id)
        assert entry_id == "20260131-180000-000"
        assert entry["tags"] == ["one", "two", "Three"]
        origin = [entry[name] for name in ("project", "agent", "model", "provider", "session")]
        assert origin == ["/p", "a", "m", "v", "s"]

    def test_corrects_what_is_there(self, shell: Shell) -> None:
        """By the beginnings of ids; both entries tell, and a search puts the new one first."""
        old = shell.write("Redis pins", "redis redis", "--created", "2026-01-31T18:00Z")
        note = shell.write("Note", "on it", "--annotates", "20260131", "--created", "2026-02-01")
        new = shell.write(
            "Other", "no more redis", "--supersedes", "20260131", "--supersedes", note
        )
        assert shell.entry(new)["supersedes"] == [old, note]
        assert shell.entry(note)["annotates"] == [old]
        assert shell.entry(note)["superseded_by"] == [new]
        found = shell.entry(old)
        assert (found["superseded_by"], found["annotated_by"]) == ([new], [note])
        shown = shell("read", old).out
        assert f"\nsuperseded by: {new}\nannotated by: {note}\n" in shown
        assert f"\nsupersedes: {old}, {note}\n" in shell("read", new).out
        hits = shell("search", "redis", "--json").json["hits"]
        assert [(hit["id"], hit["superseded_by"]) for hit in hits] == [(new, []), (old, [new])]
        for command in (("search", "redis"), ("recent",)):
            assert f"{old}  2026-01-31 18:00Z  shop  superseded by {new}\n" in shell(*command).out

    @pytest.mark.parametrize("option", ["--supersedes", "--annotates"])
    def test_refuses_to_correct_what_is_not_one_entry(self, shell: Shell, option: str) -> None:
        """Unknown and ambiguous ids end with code 4 before a body is read, and no file."""
        for second in range(2):
            shell.write("T", "B", "--created", f"2026-01-31T18:00:0{second}Z")
        for prefix, told in (("2025", "no entry"), ("2026", "starts 2 ids"), ("", "no entry")):
            outcome = shell("write", "T", "--body-file", "missing.md", option, prefix)
            assert outcome.code == cli_errors.NOT_FOUND
            assert told in outcome.err
            assert outcome.err.count("\n") == 1
        assert len(shell.files()) == 2

    @pytest.mark.parametrize(
        ("arguments", "stdin"),
        [
            (["from here"], b"not this"),
            (["-"], b"from here"),
            (["--body-file", "-"], b"from here\n"),
            (["--body-file", "body.md"], b"not this"),
            ([], b"from here"),
            ([], b"\xef\xbb\xbffrom here"),
        ],
    )
    def test_finds_its_body(self, shell: Shell, arguments: list[str], stdin: bytes) -> None:
        """The argument, a file, or stdin; a byte order mark is no part of it."""
        Path("body.md").write_text("from here", encoding="utf-8")
        entry_id = shell("write", "T", *arguments, stdin=stdin).out.strip()
        assert shell.entry(entry_id)["body"] == "from here"

    def test_refuses_two_bodies(self, shell: Shell) -> None:
        """An argument and a file contradict one another."""
        outcome = shell("write", "T", "body", "--body-file", "x")
        assert outcome.code == cli_errors.USAGE
        assert "not both" in outcome.err

    @pytest.mark.parametrize(
        ("arguments", "stdin", "told"),
        [
            ([" "], b"x", "title is empty"),
            (["t" * 301], b"x", "limit is 300"),
            (["T"], b"ciao\xff", "stdin is not UTF-8: byte 0xff at position 4"),
            (["T"], b"a\x00b", "body holds U+0000"),
            (["T"], b"x" * 1_100_000, "limit is 1,048,576"),
            (["T"], b"x" * (cli_input.READ_LIMIT_BYTES + 1), "goes on past 4,194,304 bytes"),
            (["T", "--body-file", "missing.md"], b"", "missing.md can't be read"),
            (["T", "--created", "yesterday"], b"", "'yesterday', which is no date"),
            (["T", "--created", "0001-01-01T00:00+10:00"], b"", "outside the years"),
        ],
    )
    def test_refuses_before_anything_is_written(
        self, shell: Shell, arguments: list[str], stdin: bytes, told: str
    ) -> None:
        """A draft that breaks a rule ends with code 3, one line that says why, and no file."""
        outcome = shell("write", *arguments, stdin=stdin)
        assert outcome.code == cli_errors.REFUSED
        assert told in outcome.err
        assert outcome.err.count("\n") == 1
        assert outcome.out == ""
        assert shell.files() == []

    @pytest.mark.parametrize(
        ("options", "env", "folder", "project"),
        [
            ([], {}, "shop/src/deep", "shop"),
            ([], {}, ".", "."),
            (["-p", "."], {"AGENT_JOURNAL_PROJECT": "/elsewhere"}, "shop/src/deep", "shop"),
            ([], {"AGENT_JOURNAL_PROJECT": "/elsewhere"}, "shop", "/elsewhere"),
            (["-p", "mine"], {"AGENT_JOURNAL_PROJECT": "/elsewhere"}, "shop", "mine"),
            (["-p", ""], {}, "shop", None),
        ],
    )
    def test_knows_the_project(
        self,
        shell: Shell,
        monkeypatch: pytest.MonkeyPatch,
        options: list[str],
        env: dict[str, str],
        folder: str,
        project: str | None,
    ) -> None:
        """The option, else the environment, else the nearest .git upwards, else the folder."""
        (shell.home / folder).mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(shell.home / folder)
        entry_id = shell("write", "T", "B", *options, env=env).out.strip()
        found = shell.entry(entry_id)["project"]
        if project is None:
            assert found == ""
        elif project in ("mine", "/elsewhere"):
            assert found == project
        else:
            assert found == str((shell.home / project).resolve())

    def test_works_where_the_working_directory_is_gone(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Then there is no project, and nothing else is missing."""
        gone = shell.home / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        outcome = shell("write", "T", "B")
        monkeypatch.chdir(shell.home)
        assert outcome.code == 0
        assert shell.entry(outcome.out.strip())["project"] == ""

    def test_takes_provenance_from_the_host(self, shell: Shell) -> None:
        """What the environment knows stands in for options that aren't given."""
        env = {
            "AGENT_JOURNAL_AGENT": "helper",
            "AGENT_JOURNAL_SESSION": "s1",
            "AGENT_JOURNAL_LLM": "some-model",
            "AGENT_JOURNAL_PROVIDER": "some-provider",
            "CLAUDECODE": "1",
        }
        entry_id = shell("write", "T", "B", "--session", "s2", env=env).out.strip()
        entry = shell.entry(entry_id)
        assert (entry["agent"], entry["session"]) == ("helper", "s2")
        assert (entry["model"], entry["provider"]) == ("some-model", "some-provider")
        env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s3"}
        entry = shell.entry(shell("write", "T", "B", env=env).out.strip())
        assert (entry["agent"], entry["session"]) == ("claude-code", "s3")

    @pytest.mark.parametrize(
        ("typed", "kept"),
        [
            ("~", "{home}"),
            ("~/x", "{home}/x"),
            ("~nobody-of-that-name/x", "~nobody-of-that-name/x"),
            ("..", "{home}"),
            ("../x/", "{home}/x"),
            ("./x", "{project}/x"),
            ("./", "{project}"),
            (".x", ".x"),
            ("a/b", "a/b"),
        ],
    )
    def test_makes_typed_paths_whole(self, shell: Shell, typed: str, kept: str) -> None:
        """Where a path is typed doesn't matter later; what may be a name stays as it is."""
        expected = kept.format(home=shell.home, project=shell.project)
        env = {"HOME": str(shell.home)}
        entry_id = shell("write", "T", "B", f"--project={typed}", env=env).out.strip()
        assert shell.entry(entry_id)["project"] == expected
        assert shell("recent", f"--project={typed}", env=env).code == 0
        assert shell("search", f"--project={typed}", env=env).code == 0

    def test_refuses_while_the_configuration_cannot_be_read(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The journal may be elsewhere, so that the folder has to be given; searching goes on."""
        shell.write("Written before", "B")
        monkeypatch.delenv("AGENT_JOURNAL_DIR")
        shell.config.parent.mkdir(parents=True)
        shell.config.write_text('{"journal": {"enabled": "yes"}}', encoding="utf-8")
        refused = shell("write", "T", "B")
        assert refused.code == cli_errors.CONFIG
        assert refused.err.count("journal.enabled") == 1  # and not that it goes on without
        assert "--journal DIR" in refused.err
        assert shell("write", "T", "B", "--journal", str(shell.folder)).code == 0
        found = shell("search", "before", "--journal", str(shell.folder))
        assert "Written before" in found.out
        assert "warning" in found.err

    def test_keeps_what_was_typed_if_it_cannot_be_written(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """A text from the editor is never lost to an error (a process test has the editor)."""
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setattr(
            "agent_journal.faces.cli.commands.read_body", lambda *_: ("typed for an hour", True)
        )
        shell.folder.write_text("no folder", encoding="utf-8")
        outcome = shell("write", "T")
        assert outcome.code == cli_errors.STORAGE
        kept = re.search(r"the text is kept in (\S+)", outcome.err)
        assert kept
        assert Path(kept[1]).read_text(encoding="utf-8") == "typed for an hour"
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
        assert "it was: typed for an hour" in shell("write", "T").err

        def fail(*_: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setattr(Journal, "write", fail)
        shell.folder.unlink()
        assert "the text is kept in" in shell("write", "T").err


class TestSearch:
    """`search` and `recent`."""

    def test_shows_hits_with_what_one_needs_to_go_on(self, shell: Shell) -> None:
        """Mode, why it isn't hybrid, score, title, id, project, tags and a snippet are there."""
        entry_id = shell.write("Redis pins to 7.2", "7.4 changed its licence.", "-t", "redis")
        outcome = shell("search", "redis", "licence")
        assert outcome.code == 0
        head, blank, title, facts, snippet = outcome.out.splitlines()
        assert head == "1 entry (lexical: only words are compared, as asked)"
        assert blank == ""
        assert re.fullmatch(r"[01]\.\d\d  Redis pins to 7\.2", title)
        assert entry_id in facts
        assert facts.endswith("  shop  #redis")
        assert snippet.strip() == "7.4 changed its licence."

    def test_explains_scores(self, shell: Shell) -> None:
        """What was found of the words, and whether a name, a quote or the title had a part."""
        shell.write("Deployment", "The pool of connections in app.toml was too small.")
        line = shell("search", "where is app.toml", "--explain").out.splitlines()[-1]
        assert re.fullmatch(r" +\d+% of the words, exact name or quote", line)
        line = shell("search", "deployment", "--explain").out.splitlines()[-1]
        assert line.strip() == "100% of the words, title"
        hit = json.loads(shell("search", '"the pool of connections"', "--json").out)["hits"][0]
        assert (hit["weak"], hit["reasons"]["exact"], hit["reasons"]["cosine"]) == (
            False,
            True,
            None,
        )

    def test_marks_what_may_be_chance(self, shell: Shell) -> None:
        """One common word of many is no answer, and said to be none; nothing is left out for it."""
        for number in range(5):
            shell.write(f"Note {number}", "The server was slow again.")
        outcome = shell("search", "which server renders holiday photographs at midnight")
        head, warning, _, _, facts, *_ = outcome.out.splitlines()
        assert head.startswith("5 entries")
        assert warning == "all weak: perhaps no entry answers this"
        assert facts.endswith("  weak")
        assert outcome.code == 0

    def test_filters(self, shell: Shell) -> None:
        """Every filter option lets pass what it names, and keeps out the rest."""
        options = ["-p", "/x/mine", "--agent", "a", "--model", "m", "--provider", "v"]
        shell.write(
            "Wanted", "", *options, "--session", "s", "-t", "k,l", "--created", "2026-01-31"
        )
        shell.write("Other", "", "-p", "/x/other", "-t", "k,R", "--created", "2020-01-01")
        for given in (
            ["--project", "mine"], ["--tag", "k", "-t", "L"], ["--tag", "#k,l"], ["--agent", "A"],
            ["--any-tag", "l,none"], ["--model", "m"], ["--provider", "v"], ["--session", "s"],
            ["--since", "2026-01-31", "--until", "2026-01-31"], ["--not-tag", "r,none"],
        ):  # fmt: skip
            outcome = shell("search", *given)
            assert "Wanted" in outcome.out, given
            assert "Other" not in outcome.out, given

    def test_a_dot_is_the_present_project(self, shell: Shell) -> None:
        """``--project .`` asks for the entries that ``write`` puts there by default."""
        shell.write("Here", "")
        shell.write("There", "", "--project", "/there")
        outcome = shell("recent", "--project", ".")
        assert "Here" in outcome.out
        assert "There" not in outcome.out

    def test_a_dot_is_the_repository_in_all_its_folders(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From a subfolder, another work tree, a clone by another URL, or after a rename."""
        folders = {}
        for name, url in {
            "clone": "https://ada:secret@Example.com/acme/cart.git",
            "other": "git@example.com:acme/other-cart",
            "again": "ssh://git@example.com:2222/acme/cart",
        }.items():
            folders[name] = shell.home / name
            for arguments in (
                ["init", "-q", str(folders[name])],
                ["-C", str(folders[name]), "remote", "add", "origin", url],
            ):
                subprocess.run(["git", *arguments], check=True)
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        for arguments in (
            [*identity, "commit", "-q", "--allow-empty", "-m", "one"],
            ["worktree", "add", "-q", "../tree"],
        ):
            subprocess.run(["git", *arguments], cwd=folders["clone"], check=True)
        folders["tree"] = shell.home / "tree"
        (folders["tree"] / "src").mkdir()
        monkeypatch.chdir(folders["tree"] / "src")
        shell.write("In a tree")
        for name in ("clone", "other", "again"):
            monkeypatch.chdir(folders[name])
            shell.write(f"In {name}")
        folders["renamed"] = folders["again"].rename(shell.home / "renamed")
        wanted = {"In a tree", "In clone", "In again"}
        for folder in (folders["clone"], folders["tree"] / "src", folders["renamed"]):
            monkeypatch.chdir(folder)
            for project in (".", "cart", "example.com/acme/cart"):
                hits = shell("recent", "--project", project, "--json").json["hits"]
                assert {hit["title"] for hit in hits} == wanted
                assert {hit["repo"] for hit in hits} == {"example.com/acme/cart"}
        assert "secret" not in "".join(
            path.read_text(encoding="utf-8") for path in shell.folder.glob("*.md")
        )

    def test_a_dot_that_is_gone_is_refused(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would find everything otherwise."""
        gone = shell.home / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        outcome = shell("search", "--project", ".")
        monkeypatch.chdir(shell.home)
        assert outcome.code == cli_errors.REFUSED
        assert "nothing tells which one that is" in outcome.err

    def test_ends_with_code_1_when_nothing_is_found(self, shell: Shell) -> None:
        """As grep does; a list that is empty is no failure."""
        shell.write("Redis", "")
        outcome = shell("search", "postgres")
        assert outcome.code == cli_errors.NOTHING
        assert outcome.out.startswith("nothing found")
        assert shell("recent", "--tag", "none").code == 0

    def test_pages(self, shell: Shell) -> None:
        """The heading says which part of how many is shown, also past the end."""
        for number in range(5):
            shell.write(f"Entry {number}", "")
        assert shell("search", "entry", "-n", "2", "--offset", "2").out.startswith("3-4 of 5 ")
        past = shell("search", "entry", "--offset", "9")
        assert past.out.startswith("nothing at offset 9: 5 entries in all")
        assert past.code == cli_errors.NOTHING

    def test_recent_starts_with_the_newest(self, shell: Shell) -> None:
        """Order is by creation, no scores are shown, and the heading says so."""
        shell.write("Old", "", "--created", "2020-01-01")
        shell.write("New", "", "--created", "2026-01-01")
        lines = shell("recent").out.splitlines()
        assert lines[0] == "2 entries (newest first)"
        assert [line for line in lines if not line.startswith(" ")][1:] == ["", "New", "", "Old"]

    def test_recent_of_nothing_says_just_that(self, shell: Shell) -> None:
        """How entries would have been ordered is of no interest; why there are none is."""
        lines = shell("recent").out.splitlines()
        assert lines[0] == "nothing found"
        assert lines[1].startswith("note: there is no journal at ")
        shell.folder.mkdir()
        assert shell("recent").out == "nothing found\n"

    def test_names_a_date_that_is_none(self, shell: Shell) -> None:
        """It is refused with code 3, in JSON with the field that is wrong."""
        outcome = shell("search", "--since", "soon", "--json")
        assert outcome.code == cli_errors.REFUSED
        error = outcome.json["error"]
        assert error["type"] == "InvalidDateError"
        assert error["exit_code"] == cli_errors.REFUSED
        assert error["details"]["field"] == "since"

    def test_finds_by_meaning_what_was_just_written(self, shell: Shell) -> None:
        """The very first search makes the real model's vectors before it answers."""
        shell.write("Le prove falliscono di notte", "Colpa del fuso orario del server.")
        shell.write("Colours", "The buttons are green.")
        env = {"AGENT_JOURNAL_MODEL": "bundled"}
        found = shell("search", "tests fail because of the time zone", "--json", env=env).json
        assert found["backlog"] == 0
        assert found["mode"] == "hybrid"
        assert found["hits"][0]["title"] == "Le prove falliscono di notte"
        assert found["hits"][0]["found_by"] == ["dense"]

    @pytest.mark.usefixtures("model")
    def test_says_how_many_entries_have_no_vector(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An answer that came before all vectors were made counts the rest, and says what to do."""
        shell.write("Il database", "Usiamo Postgres per gli ordini.")
        shell.write("Colours", "The buttons are green.")
        monkeypatch.setattr(cli_commands, "BACKLOG_LIMIT_S", 0.0)  # as with thousands of entries
        lines = shell("search", "database", env={"AGENT_JOURNAL_MODEL": "bundled"}).out.splitlines()
        assert lines[0].startswith("1 entry (lexical: ")
        assert lines[1].startswith("2 entries have no vector yet")

    @pytest.mark.usefixtures("model")
    def test_answers_although_vectors_can_not_be_made(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Vectors that can't be made cost a warning, and neither the answer nor its code."""
        shell.write("Il database", "")

        def fail(*_: object, **__: object) -> int:
            raise JournalError("no luck")

        # A failure that nothing else causes at this moment.
        monkeypatch.setattr(Journal, "work_backlog", fail)
        outcome = shell("search", "il database", env={"AGENT_JOURNAL_MODEL": "bundled"})
        assert outcome.code == 0
        assert outcome.err == "agent-journal: warning: vectors could not be made: no luck\n"

    def test_notes_stand_above_the_hits(self, shell: Shell) -> None:
        """What else there is to know, as of an index that is not kept, is in the answer."""
        shell.write("Redis", "")
        blocked = shell.home / "blocked"
        blocked.write_text("no folder", encoding="utf-8")
        outcome = shell("search", "redis", "--index", str(blocked))
        head, note, blank, title, *_ = outcome.out.splitlines()
        assert head.startswith("1 entry (lexical")
        assert note.startswith("note: ")
        assert str(blocked) in note
        assert blank == ""
        assert title.endswith("Redis")
        assert "note: " in shell("status", "--index", str(blocked)).out

    def test_reading_never_creates_the_journal(self, shell: Shell) -> None:
        """No command but write makes the folder; those that list say that it isn't there."""
        for command in ("search x", "recent", "tags", "status", "read x", "check", "reindex"):
            outcome = shell(*command.split())
            assert "Traceback" not in outcome.err
            assert str(shell.folder) in outcome.out + outcome.err
            assert not shell.folder.exists()


class TestRead:
    """`read`."""

    def test_shows_metadata_then_the_body(self, shell: Shell) -> None:
        """Metadata lines, one blank line, the body as it is."""
        entry_id = shell.write("T", "one\n\n\ttwo  three", "-t", "a,b")
        head, _, body = shell("read", entry_id[:12]).out.partition("\n\n")
        assert head.splitlines()[:2] == [f"id: {entry_id}", "title: T"]
        assert "tags: a, b" in head.splitlines()
        assert f"path: {shell.folder / entry_id}.md" in head.splitlines()
        assert body == "one\n\n\ttwo  three\n"

    def test_shows_several_in_the_order_given(self, shell: Shell) -> None:
        """A rule stands between them."""
        first, second = shell.write("First", "1"), shell.write("Second", "")
        out = shell("read", second, first).out
        assert out.index("title: Second") < out.index("-" * 40) < out.index("title: First")
        assert [
            entry["id"] for entry in shell("read", second, first, "--json").json["entries"]
        ] == [
            second,
            first,
        ]

    def test_shows_what_foreign_files_hold(self, shell: Shell) -> None:
        """Further keys and problems are shown, and the file stays as it is."""
        shell.folder.mkdir()
        path = shell.folder / "hand made.md"
        text = "---\ntitle: By hand\nrating: 1.5\nweird: .nan\nlinks: [a, b]\n---\nBody\n"
        path.write_text(text, encoding="utf-8")
        out = shell("read", "hand").out
        assert "rating: 1.5\n" in out
        assert 'links: ["a", "b"]\n' in out
        assert shell.entry("hand")["extra"]["links"] == ["a", "b"]
        assert path.read_text(encoding="utf-8") == text

    def test_prints_nothing_when_one_is_missing(self, shell: Shell) -> None:
        """All or nothing, with code 4."""
        outcome = shell("read", shell.write("T", "B"), "nope")
        assert outcome.code == cli_errors.NOT_FOUND
        assert outcome.out == ""
        assert outcome.err == "agent-journal: error: no entry 'nope'; search for it to get its id\n"

    def test_names_the_choices_of_an_ambiguous_prefix(self, shell: Shell) -> None:
        """Code 4, and the ids are in the JSON."""
        ids = sorted([shell.write("A", ""), shell.write("B", "")])
        outcome = shell("read", "2", "--json")
        assert outcome.code == cli_errors.NOT_FOUND
        assert outcome.json["error"]["details"]["matches"] == ids


class TestCare:
    """`tags`, `status`, `check` and `reindex`."""

    def test_tags_are_counted(self, shell: Shell) -> None:
        """Most used first."""
        shell.write("A", "", "-t", "x,y")
        shell.write("B", "", "-t", "Y")
        assert shell("tags").out.split() == ["2", "Y", "1", "x"]

    @pytest.mark.usefixtures("model")
    def test_status_tells_all_there_is_to_know(self, shell: Shell) -> None:
        """Folder, counts, index, model, backlog, configuration, problems and warnings."""
        shell.write("A", "")
        (shell.folder / "broken.md").write_text("---\ntitle: [\n---\n", encoding="utf-8")
        shell.config.parent.mkdir(parents=True)
        shell.config.write_text("{", encoding="utf-8")
        log = shell.home / ".local" / "state" / "agent-journal" / "log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("2026-01-01T00:00:00Z warning agent_journal[1]: old \x1b news\n", "utf-8")
        out = shell("status").out
        for part in (
            f"journal: {shell.folder}", "entries: 2", "tags: 0",
            f"index: {shell.home}/.cache/agent-journal/",
            "model: none: only words are compared, as asked",
            f"config: {shell.config}", "config error: ",
            "agent tools: disabled (the config can't be read)",
            "problems: 1 (see check)", "latest warnings:",
            "old \\x1b news",
        ):  # fmt: skip
            assert part in out
        with_model = shell("status", env={"AGENT_JOURNAL_MODEL": "bundled"}).out
        assert "backlog: 2 of 2 entries without a vector of this model" in with_model

    def test_check_lists_problems_as_compilers_do(self, shell: Shell) -> None:
        """Path, line and reason on one line each, and code 1."""
        shell.write("Fine", "")
        assert shell("check").code == 0
        assert shell("check").err == "no problems\n"
        path = shell.folder / "broken.md"
        path.write_text("---\ntitle: [\n---\nBody\n", encoding="utf-8")
        adopted = shell("check", "--adopt", "broken")
        assert adopted.err == "1 entry adopted\n"
        outcome = shell("check")
        assert outcome.out == adopted.out
        assert outcome.code == adopted.code == cli_errors.NOTHING
        assert re.fullmatch(re.escape(str(path)) + r":\d+: .+\n", outcome.out)
        [problem] = shell("check", "--json").json["problems"]
        assert (problem["path"], problem["kind"]) == (str(path), "")

    def test_check_holds_entries_against_the_ledger(self, shell: Shell) -> None:
        """Each is told by one word and with what to do; a person's word settles it."""
        altered, missing = shell.write("One", ""), shell.write("Two", "")
        (shell.folder / "by hand.md").write_text("---\ntitle: T\n---\nx\n", encoding="utf-8")
        shell.folder.joinpath(f"{altered}.md").unlink()
        shell.folder.joinpath(f"{altered}.md").write_text("---\ntitle: U\n---\n", encoding="utf-8")
        shell.folder.joinpath(f"{missing}.md").unlink()
        outcome = shell("check")
        assert outcome.code == cli_errors.NOTHING
        for line, kind in zip(
            outcome.out.splitlines(), ("altered", "missing", "unledgered"), strict=True
        ):
            assert f":1: {kind}: " in line
            assert "agent-journal check --adopt" in line
        found = shell("check", "--adopt", altered, missing, "--json").json
        assert found["adopted"] == [altered, missing]
        assert [problem["kind"] for problem in found["problems"]] == ["unledgered"]
        outcome = shell("check", "--adopt")
        assert (outcome.code, outcome.err) == (0, "1 entry adopted\nno problems\n")
        assert shell("check", "--adopt", "unknown").code == cli_errors.NOT_FOUND
        assert shell("check", altered).code == cli_errors.USAGE

    def test_write_says_what_the_ledger_lacks(self, shell: Shell) -> None:
        """The entry is saved, its id printed; why it has no line goes to stderr or into JSON."""
        shell.write("Fine", "")
        shutil.rmtree(shell.folder / ledgers.FOLDER)
        (shell.folder / ledgers.FOLDER).write_text("in the way", encoding="utf-8")
        outcome = shell("write", "T", "B")
        entry_id = outcome.out.strip()
        assert outcome.code == 0
        assert outcome.err.count("has no line in the ledger: not a directory") == 1
        assert shell.entry(entry_id)["title"] == "T"
        printed = shell("write", "T", "B", "--json").json
        assert [printed["id"] in notice for notice in printed["notices"]] == [True]

    def test_check_removes_stale_temporary_files_only_when_asked(self, shell: Shell) -> None:
        """And neither young ones nor anything else."""
        entry_id = shell.write("Fine", "")
        [lone] = shell.files()
        for name, age_s in (("old", 100_000), ("young", 10)):
            path = _temporary_file(shell.folder, name)
            os.utime(path, (time.time() - age_s,) * 2)
        before = shell.files()
        shell("check")
        assert shell.files() == before
        shell("check", "--fix")
        assert [name for name in shell.files() if name not in before] == []
        assert len(shell.files()) == len(before) - 1
        assert lone in shell.files()
        assert shell.entry(entry_id)["title"] == "Fine"

    @pytest.mark.usefixtures("model")
    def test_reindex_counts(self, shell: Shell) -> None:
        """Entries, vectors, and why there are none."""
        shell.write("A", "")
        without = shell("reindex")
        assert (
            without.out
            == "1 entry indexed\nno vectors were made: only words are compared, as asked\n"
        )
        (gone,) = shell.folder.glob("*.md")
        shell.write("B", "")
        gone.unlink()
        outcome = shell("reindex", env={"AGENT_JOURNAL_MODEL": "bundled"})
        assert outcome.out.endswith("1 entry given vectors\n")
        again = shell("reindex", "--json").json
        assert again["added"] == 1

    @pytest.mark.usefixtures("model")
    def test_reindex_forgets_a_journal_that_is_gone(self, shell: Shell) -> None:
        """Only it does: searching keeps what the index knows."""
        shell.write("A", "")
        shell("recent")
        shutil.rmtree(shell.folder)
        outcome = shell("reindex", env={"AGENT_JOURNAL_MODEL": "bundled"})
        assert outcome.code == 0
        assert "1 entry forgotten" in outcome.out


def _temporary_file(folder: Path, name: str) -> Path:
    """Leave behind what a writer that crashed leaves."""
    path = folder / f"{placing.TEMPORARY_PREFIX}{name}{placing.TEMPORARY_SUFFIX}"
    path.write_text("half", encoding="utf-8")
    return path


class TestForms:
    """What is printed, whatever the command."""

    @pytest.fixture
    def hostile(self, shell: Shell) -> Shell:
        """A journal whose every name and text tries to act on a terminal."""
        shell.folder.mkdir()
        quoted = json.dumps(HOSTILE)
        keys = ("title", "project", "model", "provider", "agent", "session_id", "extra")
        lines = [*(f"{key}: {quoted}" for key in keys), f"tags: [{quoted}]", f"{quoted}: {quoted}"]
        text = "\n".join(["---", *lines, "---", f"needle {HOSTILE}"])
        (shell.folder / "x\x1b[1mx.md").write_text(text, encoding="utf-8")
        (shell.folder / "y\x1b[1m.md").write_text("---\na: [\x1b\n---\nneedle", encoding="utf-8")
        (shell.folder / "z\x1b.md").symlink_to("nowhere")
        return shell

    @pytest.mark.parametrize(
        "command",
        ["search needle", "recent", "read x", "read y", "tags", "status", "check", "read \x1b[2J"],
    )
    @pytest.mark.parametrize("form", [[], ["--json"]])
    def test_control_characters_never_reach_the_terminal(
        self, hostile: Shell, command: str, form: list[str]
    ) -> None:
        """Wherever they stand in entries, names and arguments; tab and newline are left."""
        outcome = hostile(*command.split(), *form)
        assert not RAW_CONTROL.search(outcome.out)
        assert not RAW_CONTROL.search(outcome.err)
        if command not in ("tags", "status"):
            assert "1b" in outcome.out + outcome.err

    @pytest.mark.parametrize("arguments", [["--json", "recent"], ["recent", "--json"]])
    def test_json_may_stand_before_or_after_the_command(
        self, shell: Shell, arguments: list[str]
    ) -> None:
        """As may all shared options."""
        shell.write("é", "")
        outcome = shell(*arguments)
        assert outcome.out.isascii()
        assert outcome.json["hits"][0]["title"] == "é"

    @pytest.mark.usefixtures("model")
    def test_shared_options_win_after_the_command(self, shell: Shell) -> None:
        """The folder given last is the one."""
        one, two = str(shell.home / "one"), str(shell.home / "two")
        assert shell("--journal", one, "write", "T", "B", "--journal", two).code == 0
        assert shell("--journal", two, "recent", "--json").json["total"] == 1
        assert not Path(one).exists()
        index = str(shell.home / "elsewhere")
        status = shell("--index", index, "--model", "bundled", "status", "--json").json
        assert status["index"].startswith(index)
        assert status["model"]
        assert shell("status", "--config", "my.json", "--json").json["config"].endswith("my.json")

    def test_every_answer_has_the_documented_shape(self, shell: Shell) -> None:
        """The examples in docs/cli.md have the very keys and types that are printed."""
        shell.write("Redis pins to 7.2", "7.4 changed its licence.", "-t", "redis")
        (shell.folder / "x.md").write_text("---\na: [\n---\n", encoding="utf-8")
        log = shell.home / ".local" / "state" / "agent-journal" / "log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("2026-01-01T00:00:00Z warning agent_journal[1]: old news\n", "utf-8")
        calls = {
            "write": ["write", "T", "B"], "search": ["search", "redis"],
            "read": ["read", "2"], "tags": ["tags"], "status": ["status"],
            "check": ["check"], "reindex": ["reindex"], "completion": ["completion", "zsh"],
            "Version": ["--version"], "Errors": ["read", "missing"],
        }  # fmt: skip
        reading = ["search", "read", "tags", "status", "check", "reindex", "completion"]
        for heading in [*reading, "Version", "Errors", "write"]:
            printed = shell(*calls[heading], "--json").json
            assert shape_of(printed) == shape_of(documented(heading)), heading

    def test_every_option_is_documented(self) -> None:
        """docs/cli.md names each command and each of its options."""
        text = DOCS.read_text(encoding="utf-8")
        context = click.Context(commands)
        for name in commands.list_commands(context):
            command = commands.get_command(context, name)
            assert command is not None
            assert f"`{name}" in text
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    assert max(parameter.opts, key=len) in text, (name, parameter.opts)

    def test_the_table_of_exit_codes_is_documented(self) -> None:
        """docs/cli.md and the help have the same table."""
        rows = re.findall(r"^\| (\d+) \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
        table = {int(code): meaning.replace("\\|", "|") for code, meaning in rows}
        assert table == cli_errors.MEANINGS

    def test_every_error_has_its_exit_code(self) -> None:
        """Each class under JournalError is in the table, by itself or by one above it."""
        missing = [
            kind
            for kind in _subclasses(JournalError)
            if not any(above in cli_errors.EXIT_CODES for above in kind.__mro__)
        ]
        assert missing == []
        assert set(cli_errors.EXIT_CODES.values()) <= set(cli_errors.MEANINGS)


class TestEdges:
    """Help, mistakes and failures."""

    @pytest.mark.parametrize("flag", ["-h", "--help"])
    def test_every_command_has_help(self, shell: Shell, flag: str) -> None:
        """With a line of usage and examples, and exit codes at the top."""
        top = shell(flag)
        assert top.code == 0
        assert "Examples:" in top.out
        assert "interrupted by Ctrl-C" in top.out
        for name in commands.list_commands(click.Context(commands)):
            outcome = shell(name, flag)
            assert outcome.code == 0
            assert outcome.out.startswith(f"Usage: agent-journal {name} ")
            assert outcome.out.count(f"agent-journal {name}") > 1
            assert re.search(rf"^  {name} +[^.]+\.$", top.out, re.MULTILINE)  # not cut off

    def test_without_a_command_the_help_is_shown(self, shell: Shell) -> None:
        """On stderr, as a mistake; with --json as any other."""
        outcome = shell()
        assert outcome.code == cli_errors.USAGE
        assert outcome.out == ""
        assert outcome.err.startswith("Usage: ")
        assert shell("--json").json["error"]["exit_code"] == cli_errors.USAGE

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["serch"], "'search'?; see agent-journal --help"),
            (["search", "--tagg", "x"], "see agent-journal search --help"),
            (["search", "-n", "many"], "'many' is not a valid integer"),
            (["read"], "Missing argument 'ID...'; see agent-journal read --help"),
            (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
        ],
    )
    def test_a_mistake_is_told_in_one_line(
        self, shell: Shell, arguments: list[str], told: str
    ) -> None:
        """With code 2 and where to look; as JSON too."""
        outcome = shell(*arguments)
        assert outcome.code == cli_errors.USAGE
        assert outcome.err.startswith("agent-journal: error: ")
        assert told in outcome.err
        assert outcome.err.count("\n") == 1
        error = shell(*arguments, "--json").json["error"]
        assert error["exit_code"] == cli_errors.USAGE
        assert error["details"] == {}

    def test_json_that_is_searched_for_is_no_option(self, shell: Shell) -> None:
        """After -- everything is text."""
        outcome = shell("read", "--", "--json")
        assert outcome.code == cli_errors.STORAGE  # there is no journal yet
        assert outcome.err.startswith("agent-journal: error: ")

    def test_a_wrong_flag_is_told_by_its_name(self, shell: Shell) -> None:
        """Code 6, and nothing is done."""
        outcome = shell("--model", "gpt", "search", "x")
        assert outcome.code == cli_errors.CONFIG
        assert (
            "--embedding-model: is 'gpt'; it must be one of: auto, bundled, none, " in outcome.err
        )

    def test_a_journal_that_is_no_folder_is_told(self, shell: Shell) -> None:
        """Code 5, for writing as for reading."""
        shell.folder.write_text("", encoding="utf-8")
        for arguments in (["write", "T", "B"], ["read", "x"], ["check"]):
            outcome = shell(*arguments)
            assert outcome.code == cli_errors.STORAGE
            assert str(shell.folder) in outcome.err

    def test_the_unexpected_is_logged_and_told_without_a_traceback(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Code 7; the traceback is in the log alone."""

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("what nobody expected")

        monkeypatch.setattr(Journal, "check", fail)
        outcome = shell("check")
        assert outcome.code == cli_errors.INTERNAL
        assert outcome.err.startswith("agent-journal: error: internal error, please report it")
        assert outcome.err.count("\n") == 1
        log = shell.home / ".local" / "state" / "agent-journal" / "log"
        assert "test_cli.py" in log.read_text(encoding="utf-8")
        assert shell("check", "--json").json["error"]["exit_code"] == cli_errors.INTERNAL
        # Also before the log is set up.
        monkeypatch.setattr("agent_journal.config.load_settings", fail)
        monkeypatch.setattr(logging.getLogger("agent_journal"), "handlers", [])
        early = shell("check")
        assert early.code == cli_errors.INTERNAL
        assert early.err == (
            "agent-journal: error: internal error, please report it: "
            "RuntimeError: what nobody expected\n"
        )

    @pytest.mark.parametrize(
        ("raised", "code"),
        [
            (KeyboardInterrupt(), cli_errors.INTERRUPTED),
            (click.Abort(), cli_errors.INTERRUPTED),
            (BrokenPipeError(), cli_errors.PIPE_CLOSED),
            (click.ClickException("the editor failed"), cli_errors.USAGE),
            (cli_input.NothingWrittenError("left"), cli_errors.NOTHING),
        ],
    )
    def test_other_ends_have_their_codes(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int
    ) -> None:
        """Each way a command may stop ends with the documented code and no traceback."""

        def stop(*_: object, **__: object) -> None:
            raise raised

        monkeypatch.setattr(Journal, "check", stop)
        outcome = shell("check")
        assert outcome.code == code
        assert "Traceback" not in outcome.err

    def test_an_error_that_cannot_be_printed_is_told_on_stderr(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where stdout fails, the sentence goes to stderr."""

        def fail(_: object) -> None:
            raise cli_errors.OutputFailedError("disk full")

        monkeypatch.setattr("agent_journal.faces.cli.edge.print_json", fail)
        outcome = shell("read", "x", "--json")
        assert "output could not be written: disk full" in outcome.err
        assert "it would have been: journal folder" in outcome.err

    def test_ctrl_c_while_loading_ends_quietly(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Code 130, as later on."""

        def interrupt() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(cli_output, "prepare_streams", interrupt)
        assert cli.main() == cli_errors.INTERRUPTED
        assert shell.files() == []

    def test_mcp_hands_over_to_the_server(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the resolved settings; its code is the command's."""
        served: list[Path] = []

        def serve(settings: Settings) -> int:
            served.append(settings.folder)
            return 3

        # The server itself has tests of its own, over a real connection.
        monkeypatch.setattr("agent_journal.faces.mcp.serve", serve)
        assert shell("mcp").code == 3
        assert served == [shell.folder]


class TestCompletion:
    """`completion`, and what the shells' scripts ask."""

    def complete(self, shell: Shell, *words: str, kind: str = "bash") -> list[str]:
        """Return what is offered for the last of some words."""
        typed = ["agent-journal", *words]
        outcome = shell(
            env={
                "_AGENT_JOURNAL_COMPLETE": f"{kind}_complete",
                "COMP_WORDS": "\n".join(typed) if kind != "fish" else " ".join(typed),
                "COMP_CWORD": str(len(words)) if kind != "fish" else words[-1],
            }
        )
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.out.strip("\n").splitlines()

    @pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
    def test_prints_a_script(self, shell: Shell, kind: str) -> None:
        """It asks our program for completions."""
        outcome = shell("completion", kind)
        assert outcome.code == 0
        assert f"_AGENT_JOURNAL_COMPLETE={kind}_complete" in outcome.out

    def test_completes_tags(self, shell: Shell) -> None:
        """Also the last of a comma list; what has blanks is quoted; what can't be typed is left."""
        shell.write("T", "", "-t", "redis,release notes,other", "-t", "re\x1bd")
        assert self.complete(shell, "search", "--tag", "re") == [
            "plain,redis",
            "plain,release\\\\ notes",
        ]
        assert self.complete(shell, "write", "-t", "x,RED") == ["plain,x,redis"]
        assert self.complete(shell, "write", "-t", "Redis,re") == ["plain,Redis,release\\\\ notes"]

    def test_completes_ids(self, shell: Shell) -> None:
        """The newest first, with their titles where a shell shows them."""
        first = shell.write("First \x1b", "", "--created", "2026-01-01")
        second = shell.write("Second", "", "--created", "2026-01-02")
        assert self.complete(shell, "read", "") == [f"plain,{second}", f"plain,{first}"]
        assert self.complete(shell, "read", "2026") == [f"plain,{second}", f"plain,{first}"]
        assert self.complete(shell, "read", first[:8], kind="fish") == [
            f"plain,{first}\tFirst \\x1b"
        ]
        assert self.complete(shell, "read", first[:8], kind="zsh") == [
            "plain", first, "First \\x1b",
        ]  # fmt: skip
        assert self.complete(shell, "read", "9") == []

    def test_stays_silent_where_nothing_can_be_known(self, shell: Shell) -> None:
        """No journal, or a configuration that is broken, must not spoil the prompt."""
        assert self.complete(shell, "search", "-t", "x") == []
        shell.config.parent.mkdir(parents=True)
        shell.config.write_text("{", encoding="utf-8")
        assert self.complete(shell, "read", "") == []
        assert self.complete(shell, "--journal", "''", "search", "-t", "x") == []
        assert self.complete(shell, "--journal", "''", "read", "x") == []


class TestTerminal:
    """What only a terminal gets; the colours are tested in a process of its own."""

    def test_a_bar_is_drawn_once_work_takes_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And not for what ends at once, nor outside a terminal."""
        stream = _Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        with cli_output.progress_bar("Indexing") as progress:
            assert progress
            progress(1, 1)
        assert stream.getvalue() == ""
        monkeypatch.setattr(cli_output, "BAR_DELAY_S", 0.0)
        with cli_output.progress_bar("Indexing") as progress:
            assert progress
            progress(1, 9)
            progress(2, 9)
        assert "Indexing" in stream.getvalue()
        monkeypatch.setattr("sys.stderr", io.StringIO())
        with cli_output.progress_bar("Indexing") as progress:
            assert progress is None

    def test_waiting_is_told_and_wiped_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The line is gone when the answer comes."""
        stream = _Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr(cli_output, "BAR_DELAY_S", 0.0)
        with cli_output.waiting("Loading"):
            assert stream.told.wait(10)
        assert stream.getvalue() == "Loading ...\r\x1b[K"
        monkeypatch.setattr("sys.stderr", io.StringIO())
        with cli_output.waiting("Loading"):
            pass

    def test_any_stream_may_stand_for_the_standard_ones(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One without an encoding of its own too, or none at all."""
        stream = io.StringIO()
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setattr("sys.stderr", None)
        cli_output.prepare_streams()
        cli_output.print_lines([])
        cli_output.print_json({"a": "\x7f"})
        cli_output.say("lost")
        sys.stderr.close()
        assert stream.getvalue() == '{"a": "\\u007f"}\n'

    def test_words_that_were_asked_for_are_marked(self) -> None:
        """Whole words, whatever their case and accents; the text stays the same."""
        segments = marked(
            "Il CAFFÈ è pronto, caffettiera no", frozenset(words.query_terms("un caffe"))
        )
        assert [text for text, style in segments if style] == ["CAFFÈ"]
        assert "".join(text for text, _ in segments) == "Il CAFFÈ è pronto, caffettiera no"

    def test_only_what_was_asked_for_is_marked_in_a_line_without_blanks(self) -> None:
        """A sentence of a script without word borders isn't marked as a whole."""
        segments = marked("我们使用moment.js学习机器。", frozenset(words.query_terms("学习")))
        assert [text for text, style in segments if style] == ["学习"]
        assert "".join(text for text, _ in segments) == "我们使用moment.js学习机器。"


class _Terminal(io.StringIO):
    """A stream that says it is a terminal, and when something has been told."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def isatty(self) -> bool:
        """Claim to be a terminal."""
        return True

    def write(self, text: str) -> int:
        """Keep a text."""
        written = super().write(text)
        self.told.set()
        return written


def _subclasses(kind: type[JournalError]) -> Iterator[type[JournalError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


class TestPlaces:
    """Folders and files that an option names, or that one works in."""

    def test_a_folder_with_any_name_can_be_worked_in(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its entries name it in a form that they can hold, and are found by it."""
        folder = shell.home / os.fsdecode(b"caf\xe9\x1b")
        folder.mkdir()
        monkeypatch.chdir(folder)
        written = shell.write("a title")
        assert shell.entry(written)["project"] == f"{shell.home}/caf\\udce9\\x1b"
        assert shell("search", "--project", ".").code == 0

    def test_what_cannot_be_read_is_told_as_ever(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The command line itself is right. Root may read all, so the system's answer is set."""
        shell.write("a title")
        monkeypatch.setattr(os, "access", lambda *_, **__: False)
        assert shell("search", "title", "--journal", str(shell.folder)).code == 0

    def test_a_name_too_long_for_the_system_is_told(self, shell: Shell) -> None:
        """No command takes it for a fault of its own."""
        for command in (["reindex"], ["check"], ["write", "t", "b"]):
            outcome = shell(*command, "--journal", "x" * 10_000)
            assert outcome.code == 5
            assert "name too long" in outcome.err
