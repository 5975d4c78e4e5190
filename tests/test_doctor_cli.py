"""`doctor` on the command line: the whole examination, which changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder
from tests.shell import Shell, documented, shape_of
from tests.test_cli_process import BOUND_S, PROGRAM, Program

from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.errors import EmbedderUnavailableError, JournalError
from agent_journal.faces.doctor import trial
from agent_journal.faces.doctor.trial import Trial
from agent_journal.faces.hosts.installing import install
from agent_journal.faces.hosts.table import host_called, this_machine


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a command line with an empty home, an unborn journal, no model, and no hosts."""
    (home / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    return Shell(home, monkeypatch)


@pytest.fixture
def program(home: Path) -> Program:
    """Give the program, with an empty home and a place for temporary files."""
    program = Program(home)
    (home / "tmp").mkdir()
    program.env["TMPDIR"] = str(home / "tmp")
    return program


def turn_on(config: Path) -> None:
    """Write a configuration that turns the journal on."""
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('{"journal": {"enabled": true}}', "ascii")


def state(home: Path) -> dict[str, tuple[int, ...]]:
    """Return everything below a folder, with what a change of it would change."""
    paths = {str(path): path.lstat() for path in home.rglob("*")}
    return {
        path: (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        for path, found in paths.items()
    }


def test_all_is_well_in_a_journal_that_works(shell: Shell) -> None:
    """Each thing has a line of its own; the exit code says so, too."""
    turn_on(shell.config)
    shell.write("T", "B")
    outcome = shell("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    subjects = [line[9:24].strip() for line in outcome.out.splitlines() if line[:2] == "ok"]
    assert subjects == [
        "program", "config", "journal folder", "index folder", "log folder", "room", "entries",
        "trial", "server",
    ]  # fmt: skip
    assert "no problems, 2 notes\n" in outcome.out  # no model, no hosts


def test_nothing_of_the_users_is_changed(shell: Shell) -> None:
    """No file, no folder, no link: neither made, nor touched, nor removed; hosts included."""
    turn_on(shell.config)
    entry_id = shell.write("T", "B")
    (shell.folder / f"{entry_id}.embedding").write_text("[1]", "ascii")
    (shell.folder / ".agent-journal-1-x.tmp").write_text("half", "ascii")
    shell("search", "T")  # makes an index
    cache = shell.home / ".cache" / "agent-journal"
    (cache / "0123456789abcdef-v1.1.sqlite3").write_text("of another journal", "ascii")
    os.utime(cache / "0123456789abcdef-v1.1.sqlite3", (0, 0))
    (shell.home / ".config" / "opencode" / "opencode.json").write_text("{}", "ascii")
    before = state(shell.home)
    outcome = shell("doctor")
    assert outcome.code == 1
    assert state(shell.home) == before


def test_nothing_is_made_where_there_is_nothing(shell: Shell) -> None:
    """No journal, no index, no log, no configuration; that is no problem."""
    before = state(shell.home)
    outcome = shell("doctor")
    assert outcome.code == 0
    assert f"note     journal folder  {shell.folder} is missing so far\n" in outcome.out
    assert state(shell.home) == before


def test_a_journal_that_went_is_missed(shell: Shell) -> None:
    """Its index knows; one that never held anything doesn't count."""
    assert shell("status").code == 0  # it makes an index
    assert "no problems, " in shell("doctor").out
    shell.write("T")
    shell("search", "T")
    aside = shell.folder.rename(shell.home / "aside")
    before = state(shell.home)
    outcome = shell("doctor")
    assert outcome.code == 1
    assert f"{shell.folder} is missing, and its search index knows 1 entry\n" in outcome.out
    assert state(shell.home) == before
    shell.folder.mkdir()
    assert f"{shell.folder} is empty, and its search index knows 1 entry\n" in shell("doctor").out
    for path in (shell.home / ".cache" / "agent-journal").iterdir():
        path.write_text("no index", "ascii")
    assert "its search index knows" not in shell("doctor").out
    assert aside.exists()


def test_a_warning_goes_into_no_log(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is told as a verdict, and leaves no trace."""

    def fail(*_: object) -> None:
        raise EmbedderUnavailableError("the model's weights are missing")

    monkeypatch.setattr("agent_journal.engines.use.load_use", fail)
    outcome = shell("doctor", "--embedding-model", "bundled")
    assert (outcome.code, outcome.err) == (1, "")
    assert "problem  model           the model's weights are missing\n" in outcome.out
    assert not (shell.home / ".local").exists()


def test_every_problem_says_what_to_do(shell: Shell) -> None:
    """And each of them counts."""
    shell.config.parent.mkdir(parents=True)
    shell.config.write_text('{"journal": {"enabled": "yes"}}', "ascii")
    shell.folder.mkdir()
    (shell.folder / "x.md").write_text("no frontmatter", "ascii")
    outcome = shell("doctor", "--json")
    assert outcome.code == 1
    verdicts = outcome.json["verdicts"]
    problems = {each["subject"]: each for each in verdicts if each["level"] == "problem"}
    assert set(problems) == {"config", "entries"}
    assert outcome.json["problems"] == 2
    assert all(each["advice"] for each in verdicts if each["level"] != "ok")
    assert outcome.json["notes"] == sum(each["level"] == "note" for each in verdicts)


def test_the_servers_of_hosts_are_started(shell: Shell) -> None:
    """Each with the very command that is installed, over the temporary journal."""
    turn_on(shell.config)
    script = shell.home / "bin" / "agent-journal"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_journal "$@"\n', "ascii")
    script.chmod(0o755)
    machine, command = this_machine(os.environ), (str(script), "mcp", "--journal", "/nowhere")
    version = shell("--version", "--json").json["version"]
    install(host_called("opencode"), machine, command, version=version)
    outcome = shell("doctor")
    assert outcome.code == 0
    assert f"ok       OpenCode        {script} mcp lists its tools in " in outcome.out
    script.write_text("#!/bin/sh\necho it is broken >&2\n", "ascii")
    outcome = shell("doctor")
    assert outcome.code == 1
    assert f"problem  OpenCode        {script} mcp: it ended before it had answered " in outcome.out
    assert "; it said: it is broken\n" in outcome.out
    assert "-> agent-journal install opencode, and restart OpenCode\n" in outcome.out


def test_a_server_of_our_own_that_fails_is_a_problem(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is that of the running program."""
    broken = shell.home / "bin" / "agent-journal"
    broken.write_text("#!/bin/sh\nexit 1\n", "ascii")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(broken)])
    outcome = shell("doctor")
    assert outcome.code == 1
    assert f"problem  server          {broken} mcp: it ended before it had answered" in outcome.out


@pytest.mark.usefixtures("model")
def test_vectors_are_compared(shell: Shell) -> None:
    """One that was made of another text is noted."""
    entry_id = shell.write("T", "old words")
    assert shell("reindex", "--embedding-model", "bundled").code == 0
    outcome = shell("doctor", "--embedding-model", "bundled")
    assert "every entry has one beside it; 1 was made anew and is the same" in outcome.out
    path = shell.folder / f"{entry_id}.md"
    path.chmod(0o600)
    path.write_text('---\ntitle: "T"\n---\nnew text altogether\n', "ascii")
    outcome = shell("doctor", "--embedding-model", "bundled")
    assert f"1 vector is of another text than the entry has now: {entry_id}\n" in outcome.out


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model load at once: another real one, that carries the text's signal."""
    monkeypatch.setattr("agent_journal.engines.use.load_use", lambda *_: HashingEmbedder())
    monkeypatch.setattr(trial, "_BY_MEANING", (("abroad", "gatto"), ("by words", "lemon cake")))


@pytest.mark.usefixtures("model")
def test_vectors_that_cannot_be_compared_are_a_problem(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk fills up between two trials, which can't be had here."""

    def fail(_self: Trial, _samples: object) -> None:
        raise JournalError("the disk is full")

    shell.write("T")
    monkeypatch.setattr(Trial, "stale", fail)
    outcome = shell("doctor", "--embedding-model", "bundled")
    assert outcome.code == 1
    assert "problem  vectors         they can't be compared: the disk is full\n" in outcome.out


def test_without_a_temporary_folder_the_rest_is_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, which can't be had here."""

    def fail(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", fail)
    outcome = shell("doctor")
    assert outcome.code == 1
    assert "no temporary folder can be made: No space left on device" in outcome.out


def test_a_journal_that_cannot_be_read_is_a_problem() -> None:
    """The rest is examined all the same."""
    with open_folder() as folder:
        printed = run_as_nobody(
            """
import os, _strptime
from agent_journal.faces.cli.edge import run
folder = sys.argv[1]
os.environ |= {"HOME": folder, "AGENT_JOURNAL_MODEL": "none", "XDG_CACHE_HOME": folder + "/cache"}
os.environ |= {"XDG_CONFIG_HOME": folder + "/config", "XDG_STATE_HOME": folder + "/state"}
os.chdir(folder)
run(["doctor", "--journal", folder + "/warm"])  # loads what nobody can't
print("NOW")
with dropped():
    os.mkdir("closed", 0)
    print(run(["doctor", "--journal", folder + "/closed"]))
    os.chmod("closed", 0o700)
""",
            folder,
        )
    told = printed.split("NOW\n")[1].splitlines()
    assert f"problem  journal folder  {folder}/closed can't be read: permission denied" in told
    assert any(line.startswith("ok       trial ") for line in told)
    assert not any("entries " in line[:20] for line in told)
    assert told[-1] == "1"


def test_it_shows_what_it_does_on_a_terminal(program: Program) -> None:
    """Verdicts come one by one, wrapped and coloured; what is waited for is wiped away."""
    for number in range(3):
        program("write", f"T{number}", "B")
    start = (
        "import sys; from agent_journal.faces.cli import main, output; "
        "output.BAR_DELAY_S = 0; sys.exit(main())"  # a wait of 0.3 s can't be relied on
    )
    code, shown = program.on_terminal(
        "doctor", columns=60, start=(sys.executable, "-c", start), env={"PATH": "/usr/bin:/bin"}
    )
    assert code == 0
    for label in (b"Reading the entries", b"Trying the model ...", b"Starting the server ..."):
        assert label in shown
        assert shown.rindex(label) < shown.index(b"no problems")
    assert b"\x1b[32mok" in shown
    plain = shown.decode().replace("\x1b[0m", "")
    assert max(len(line) for line in plain.splitlines() if "\x1b" not in line) <= 60


def test_ctrl_c_leaves_nothing_behind(program: Program) -> None:
    """No server, no temporary folder, no traceback."""
    with subprocess.Popen(
        [*PROGRAM, "doctor"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program.env,
        cwd=program.home,
        start_new_session=True,  # a terminal interrupts the whole group
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b" room " in line:  # what comes next is the trial
                break
        ends = time.monotonic() + BOUND_S
        while not list((program.home / "tmp").glob("*/server-0")) and time.monotonic() < ends:
            pass  # until the server starts
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=BOUND_S)
    # Python ends by the signal itself if it came while a piece of source was being compiled.
    assert process.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in errors
    assert list((program.home / "tmp").rglob("*")) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_it_is_documented_with_its_shape(shell: Shell) -> None:
    """The example in docs/cli.md has the very keys and types that are printed."""
    printed = shell("doctor", "--json")
    assert shape_of(printed.json) == shape_of(documented("doctor"))
    assert json.dumps(printed.json)
