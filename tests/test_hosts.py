"""`install`, `uninstall` and `hosts`: what they do to files, and to hosts' own programs.

The programs here are small scripts, for what real ones do only when they fail; the real ones are
installed into by tests/hosts/.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import stat
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shell import Shell, documented, shape_of

from agent_journal.errors import HostError
from agent_journal.faces.cli import errors as cli_errors
from agent_journal.faces.hosts import command as host_command
from agent_journal.faces.hosts import files, running, servers
from agent_journal.faces.hosts.installing import examine, install, uninstall
from agent_journal.faces.hosts.table import HOSTS, Host, Machine, host_called

OURS = ("/opt/bin/agent-journal", "mcp")
CLAUDE, CODEX = host_called("claude-code"), host_called("codex")
BY_PROGRAM = [host for host in HOSTS if host.way == "program"]
BY_HAND = [host for host in HOSTS if host.way == "paste"]
VERSION = "1.2.3"


@pytest.fixture
def bin_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that PATH begins with, without any host that may be on this machine."""
    folder = home / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch, bin_folder: Path) -> Shell:
    """A command line with no host on PATH, and nothing that says where the journal is."""
    shell = Shell(home, monkeypatch)
    for name in ("AGENT_JOURNAL_DIR", "AGENT_JOURNAL_MODEL"):
        monkeypatch.delenv(name)
    program(bin_folder, "agent-journal", "exit 0")
    monkeypatch.setattr(sys, "argv", [str(bin_folder / "agent-journal")])
    return shell


@pytest.fixture
def machine(home: Path, bin_folder: Path) -> Machine:
    """This test's home, with a program of ours that hosts can start."""
    program(bin_folder, "agent-journal", "exit 0")
    return Machine({"PATH": f"{bin_folder}:/usr/bin:/bin"}, home, "linux")


def program(folder: Path, name: str, script: str) -> Path:
    """Make a program that runs a shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def fake_claude(folder: Path, place: Path) -> None:
    """Make a claude that keeps what it is told where the real one does."""
    script = f"""
        echo "$*" >>{folder}/calls
        case "$2" in
        add) [ -e {place} ] && exit 1
             shift 6
             printf '{{"mcpServers":{{"journal":{{"command":"%s","args":["%s"]}}}}}}' "$@" >{place}
             ;;
        remove) rm {place};;
        esac"""
    program(folder, "claude", script)


class TestTable:
    """The hosts."""

    def test_every_host_has_its_file(self) -> None:
        """Where hosts keep their servers, and how variables move it."""
        machine = Machine({}, Path("/h"), "linux")
        assert {host.key: str(machine.path(host.location)) for host in HOSTS} == {
            "opencode": "/h/.config/opencode/plugin/agent-journal.js",
            "claude-code": "/h/.claude.json",
            "codex": "/h/.codex/config.toml",
            "gemini-cli": "/h/.gemini/settings.json",
            "vscode": "/h/.config/Code/User/mcp.json",
            "cursor": "/h/.cursor/mcp.json",
            "windsurf": "/h/.codeium/windsurf/mcp_config.json",
            "zed": "/h/.config/zed/settings.json",
            "claude-desktop": "/h/.config/Claude/claude_desktop_config.json",
        }
        moved = Machine(
            {"XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": ""}, Path("/h")
        )
        assert str(moved.path(CLAUDE.location)) == "/c/.claude.json"
        assert str(moved.path(CODEX.location)) == "/h/.codex/config.toml"
        assert str(moved.path(host_called("opencode").location)).startswith("/x/opencode/")
        mac = Machine({"XDG_CONFIG_HOME": "/x"}, Path("/h"), "darwin")
        desktop = mac.path(host_called("claude-desktop").location)
        assert str(desktop).startswith("/h/Library/Application Support/Claude/")

    @pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.key)
    def test_every_host_can_be_told_by_hand(self, host: Host, shell: Shell) -> None:
        """`--print` gives what to run or paste, alone on stdout, and changes nothing."""
        outcome = shell("install", host.key, "--print")
        assert outcome.code == 0
        assert str(shell.home / "bin" / "agent-journal") in outcome.out
        assert ("untested" in outcome.err) is not host.is_tested
        assert "turn the journal on" in outcome.err
        assert sorted(path.name for path in shell.home.iterdir()) == ["bin", "shop"]
        printed = shell("install", host.key, "--print", "--json").json
        assert printed["paste"] == outcome.out.removesuffix("\n")
        assert shape_of(printed) == shape_of(documented("install --print"))

    @pytest.mark.parametrize("host", BY_HAND, ids=lambda host: host.key)
    def test_what_is_pasted_is_recognised(self, host: Host, shell: Shell, machine: Machine) -> None:
        """After a person has done it, the host counts as installed."""
        assert examine(host, machine, version=VERSION).state == "not found"
        place = machine.path(host.location)
        place.parent.mkdir(parents=True)
        assert examine(host, machine, version=VERSION).state == "not installed"
        refused = shell("install", host.key)
        assert refused.code == cli_errors.HOST
        assert f"agent-journal install {host.key} --print" in refused.err
        place.write_text(shell("install", host.key, "--print").out, encoding="utf-8")
        assert examine(host, machine, version=VERSION).state == "installed"
        assert shell("install", host.key).code == 0
        removed = shell("uninstall", host.key)
        assert removed.code == cli_errors.HOST
        assert f'delete "journal" under "{host.section[0]}" in {place}' in removed.err


class TestCommand:
    """Which command hosts are to start."""

    def test_is_the_one_that_runs(self, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As it was started: a link stays a link; from a relative path, from PATH, or by python."""
        real = program(bin_folder, "real", "exit 0")
        link = bin_folder / "agent-journal"
        link.symlink_to(real)
        monkeypatch.chdir(bin_folder.parent)
        for started_as in (str(link), "bin/agent-journal", "agent-journal"):
            assert host_command.running_program(started_as) == (str(link),)
        tool = program(bin_folder.parent, "agent-journal", "exit 0")
        assert host_command.running_program(str(tool)) == (str(tool),)
        link.unlink()
        link.symlink_to(tool)  # as uv's, which may start the tool by its own path
        assert host_command.running_program(str(tool)) == (str(link),)
        script = str(Path(sysconfig.get_path("scripts"), "agent-journal"))
        assert host_command.running_program("/x/agent_journal/__main__.py") == (script,)
        assert host_command.running_program("/gone/agent-journal") == (script,)
        monkeypatch.setattr(sysconfig, "get_path", lambda _: "/gone")  # as in a zipped package
        assert host_command.running_program("-m") == (sys.executable, "-m", "agent_journal")

    def test_another_can_be_chosen(self, shell: Shell) -> None:
        """By its path or its name; it has to be there."""
        other = program(shell.home, "other", "exit 0")
        named = program(shell.home / "bin", "named", "exit 0")
        for path, found in [(str(other), other), ("../other", other), ("named", named)]:
            printed = shell("install", "codex", "--print", "--command", path)
            assert printed.out == f"codex mcp add journal -- {found} mcp\n"
        outcome = shell("install", "codex", "--command", "gone")
        assert outcome.code == cli_errors.USAGE
        assert "there is no program gone" in outcome.err

    def test_takes_along_where_the_journal_is(self, shell: Shell) -> None:
        """Hosts don't pass the environment on, and start the server in other folders."""
        outcome = shell(
            "install", "codex", "--print", "--journal", "notes", "--index", "/i",
            env={"AGENT_JOURNAL_CONFIG": "c.json", "AGENT_JOURNAL_MODEL": "none"},
        )  # fmt: skip
        words = shlex.split(outcome.out)[4:]
        assert words[1:] == [
            "--", str(shell.home / "bin" / "agent-journal"), "mcp",
            "--journal", str(shell.project / "notes"),
            "--config", str(shell.project / "c.json"),
            "--index", "/i", "--embedding-model", "none",
        ][1:]  # fmt: skip

    @pytest.mark.parametrize(
        ("command", "is_ours"),
        [
            (("/a/agent-journal", "mcp"), True),
            (("agent-journal", "--journal", "/x", "mcp"), True),
            (("uvx", "agent-journal", "mcp"), True),
            (("/usr/bin/python3", "-m", "agent_journal", "mcp"), True),
            (("node", "/x/agent-journal-other", "mcp"), False),
            (("agent-journal", "recent"), False),
            ((), False),
        ],
    )
    def test_ours_is_told_from_others(self, command: tuple[str, ...], is_ours: bool) -> None:  # noqa: FBT001 - a parameter of the test
        """However it was installed, a person's own entry is one of ours too."""
        assert host_command.is_ours(command) is is_ours

    def test_what_will_not_last_is_told(
        self, home: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A cache, a temporary folder, and the environment of a project."""
        monkeypatch.setattr("tempfile.gettempdir", lambda: "/nowhere")  # where this home is
        kept = home / ".local" / "share" / "pipx" / "venvs" / "agent-journal" / "bin"
        project = home / "shop" / ".venv" / "bin"
        cache = home / ".cache" / "uv" / "archive-v0" / "x" / "bin"
        for folder in (kept, project, cache):
            folder.mkdir(parents=True)
            program(folder, "agent-journal", "exit 0")
            (folder.parent / "pyvenv.cfg").touch()
        (home / "shop" / "pyproject.toml").touch()
        link = bin_folder / "agent-journal"
        link.symlink_to(kept / "agent-journal")

        def doubts(path: Path) -> str:
            return "\n".join(host_command.doubts((str(path), "mcp"), os.environ))

        assert doubts(link) == doubts(kept / "agent-journal") == ""
        assert f"belongs to the project {home / 'shop'}" in doubts(project / "agent-journal")
        assert "is temporary" in doubts(cache / "agent-journal")
        assert "there is no program" in doubts(home / "gone")
        monkeypatch.setenv("UV_CACHE_DIR", str(kept.parent))
        assert "is temporary" in doubts(link)

    def test_a_name_on_path_is_the_same_as_its_path(self, machine: Machine) -> None:
        """What README once told people to type needs no change."""
        path = str(machine.home / "bin" / "agent-journal")
        assert host_command.is_same(("agent-journal", "mcp"), (path, "mcp"))
        assert not host_command.is_same(("agent-journal", "mcp"), ("/other/agent-journal", "mcp"))
        assert not host_command.is_same((path, "mcp"), (path, "mcp", "--journal", "/x"))
        assert not host_command.is_same((), (path, "mcp"))


class TestFiles:
    """Files that are the user's."""

    def test_a_file_is_replaced_where_it_really_is(self, home: Path) -> None:
        """A link stays one, the mode stays, and nothing is left beside it."""
        real = home / "dotfiles" / "config"
        real.parent.mkdir()
        real.write_bytes(b"old")
        real.chmod(0o640)
        link = home / "config"
        link.symlink_to("dotfiles/config")
        files.replace(link, b"new", before=b"old")
        assert link.is_symlink()
        assert real.read_bytes() == b"new"
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert [path.name for path in real.parent.iterdir()] == ["config"]

    def test_a_new_file_gets_its_folders(self, home: Path) -> None:
        """And nobody else may read it."""
        path = home / "a" / "b"
        files.replace(path, b"new", before=None)
        assert path.read_bytes() == b"new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.parametrize("before", [None, b"what was read"])
    def test_another_writer_wins(self, home: Path, before: bytes | None) -> None:
        """What has changed since it was read is not overwritten."""
        path = home / "file"
        path.write_bytes(b"theirs")
        with pytest.raises(OSError, match="changed meanwhile"):
            files.replace(path, b"mine", before=before)
        assert path.read_bytes() == b"theirs"

    def test_only_files_are_read(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A pipe could be waited for for ever, and what is huge is no configuration."""
        os.mkfifo(home / "pipe")
        with pytest.raises(OSError, match="not a file"):
            files.contents(home / "pipe")
        (home / "huge").write_bytes(b"123")
        monkeypatch.setattr(files, "LIMIT_BYTES", 2)
        with pytest.raises(OSError, match="larger than"):
            files.contents(home / "huge")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
    def test_the_owner_stays(self, home: Path) -> None:
        """As with sudo, which keeps the home directory."""
        path = home / "file"
        path.write_bytes(b"old")
        os.chown(path, 1234, 4321)
        files.replace(path, b"new", before=b"old")
        status = path.stat()
        assert (status.st_uid, status.st_gid) == (1234, 4321)

    def test_what_is_put_aside_never_meets_another(self, home: Path) -> None:
        """Copies and renamed files get names that were free."""
        path = home / "x.json"
        (home / "x.json.before-agent-journal").write_bytes(b"older")
        path.write_bytes(b"1")
        assert files.keep_copy(path).name == "x.json.before-agent-journal-2"
        assert files.put_aside(path).name == "x.json.before-agent-journal-3"
        assert sorted(file.read_bytes() for file in home.iterdir()) == [b"1", b"1", b"older"]


class TestServers:
    """What a host's configuration says of our server."""

    @pytest.mark.parametrize(
        ("key", "text"),
        [
            ("codex", '[mcp_servers.journal]\ncommand = "PATH"\nargs = ["mcp"]\n'),
            ("gemini-cli", '{ // x\n "mcpServers": {"journal": {ENTRY},}}'),
            ("vscode", '{"servers": {"journal": {"type": "stdio", "env": {}, ENTRY}}}'),
            ("claude-code", '{"mcpServers": {"journal": {ENTRY, "env": {}}}}'),
        ],
    )
    def test_is_read_as_each_host_writes_it(self, machine: Machine, key: str, text: str) -> None:
        """TOML, and JSON with comments."""
        host = host_called(key)
        place = machine.path(host.location)
        place.parent.mkdir(parents=True, exist_ok=True)
        ours = str(machine.home / "bin" / "agent-journal")
        text = text.replace("ENTRY", '"command": "PATH", "args": ["mcp"]')
        place.write_text(text.replace("PATH", ours), encoding="utf-8")
        finding = examine(host, machine, version=VERSION)
        assert (finding.state, finding.command) == ("installed", (ours, "mcp"))
        place.write_text(text.replace("PATH", "/gone/agent-journal"), encoding="utf-8")
        finding = examine(host, machine, version=VERSION)
        assert finding.state == "out of date"
        assert finding.reason == "there is no program /gone/agent-journal any more"

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"{", "can't be read: Expecting"),
            (b"\xff", "it is not UTF-8"),
            (b"[" * 100_000, "can't be read"),
            (None, "it is not a file"),
        ],
    )
    def test_what_cannot_be_read_is_left_alone(
        self, machine: Machine, data: bytes | None, reason: str
    ) -> None:
        """Nobody knows then what is there; it is told as unknown, and nothing is done."""
        place = machine.path(CLAUDE.location)
        if data is None:
            place.mkdir()
        else:
            place.write_bytes(data)
        finding = examine(CLAUDE, machine, version=VERSION)
        assert finding.state == "unknown"
        assert reason in finding.reason
        with pytest.raises(HostError, match="mend it first"):
            install(CLAUDE, machine, OURS, version=VERSION)
        with pytest.raises(HostError, match="mend it first"):
            uninstall(CLAUDE, machine, version=VERSION, force=True)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(["mcpServers", "journal", "command", "args"]), inner
                )
            ),
        )
    )
    def test_any_document_says_something(self, document: object) -> None:
        """Whatever a person has written there is no crash, but a server or none."""
        entry = document if isinstance(document, dict) else {}
        assert isinstance(servers.server_of(entry).command, tuple)


class TestPrograms:
    """Installing through a host's own program."""

    def test_is_done_once(self, shell: Shell, machine: Machine) -> None:
        """Then it is there, the journal is on, and a second time nothing changes."""
        place = machine.path(CLAUDE.location)
        fake_claude(shell.home / "bin", place)
        first = shell("install", "claude-code")
        assert first.code == 0
        assert first.out.splitlines() == [
            f"added journal to {place}",
            f"turned the journal on in {shell.config}",
            "restart Claude Code, which reads this only when it starts",
        ]
        calls = (shell.home / "bin" / "calls").read_text(encoding="utf-8")
        ours = shell.home / "bin" / "agent-journal"
        assert calls == f"mcp add --scope user journal -- {ours} mcp\n"
        again = shell("install", "claude-code")
        assert again.out == "nothing changed: Claude Code has the journal, and it is on\n"
        assert (shell.home / "bin" / "calls").read_text(encoding="utf-8") == calls
        removed = shell("uninstall", "claude-code", "--json").json
        assert removed["done"] == [f"removed journal from {place}"]
        assert (removed["state"], removed["changed"]) == ("not installed", True)
        assert shell("uninstall", "claude-code").out == (
            "nothing changed: Claude Code hasn't got the journal\n"
        )
        assert json.loads(shell.config.read_bytes()) == {"journal": {"enabled": True}}

    def test_another_command_of_ours_is_replaced(self, shell: Shell, machine: Machine) -> None:
        """As after a move to pipx; claude adds nothing where there is something."""
        place = machine.path(CLAUDE.location)
        fake_claude(shell.home / "bin", place)
        assert shell("install", "claude-code").code == 0
        other = shell.home / "pipx" / "agent-journal"
        other.parent.mkdir()
        program(other.parent, other.name, "exit 0")
        assert shell("install", "claude-code", "--command", str(other)).code == 0
        (found,) = [
            host for host in shell("hosts", "--json").json["hosts"] if host["host"] == "claude-code"
        ]
        assert found["command"] == [str(other), "mcp"]
        calls = (shell.home / "bin" / "calls").read_text(encoding="utf-8").splitlines()
        assert [call.split()[1] for call in calls] == ["add", "remove", "add"]

    def test_a_script_around_ours_is_ours(self, shell: Shell, machine: Machine) -> None:
        """One that `--command` has chosen, whatever it is called: hosts keep its path alone."""
        place = machine.path(CLAUDE.location)
        fake_claude(shell.home / "bin", place)
        chosen = str(program(shell.home, "my journal", 'LANG=C exec agent-journal "$@"'))
        assert shell("install", "claude-code", "--command", chosen).code == 0
        again = shell("install", "claude-code", "--command", chosen)
        assert again.code == 0, again.err
        assert "nothing changed" in again.out
        assert examine(CLAUDE, machine, version=VERSION).state == "installed"
        assert shell("uninstall", "claude-code").code == 0
        assert not place.exists()

    def test_what_is_not_ours_is_named_and_left(self, shell: Shell, machine: Machine) -> None:
        """Another server of our name is replaced or removed only with --force."""
        place = machine.path(CLAUDE.location)
        fake_claude(shell.home / "bin", place)
        theirs = '{"mcpServers": {"journal": {"command": "node", "args": ["diary.js"]}}}'
        place.write_text(theirs, encoding="utf-8")
        for command in ("install", "uninstall"):
            outcome = shell(command, "claude-code")
            assert outcome.code == cli_errors.HOST
            assert "another server: node diary.js; give --force" in outcome.err
            assert place.read_text(encoding="utf-8") == theirs
        assert not shell.config.exists()
        forced = shell("install", "claude-code", "--force")
        assert "another server: node diary.js" in forced.out
        place.write_text(theirs, encoding="utf-8")
        assert shell("uninstall", "claude-code", "--force").code == 0
        assert not place.exists()

    def test_settings_of_a_person_are_not_dropped(self, shell: Shell, machine: Machine) -> None:
        """Codex's own program would; changing the command by hand keeps them."""
        place = machine.path(CODEX.location)
        place.parent.mkdir()
        theirs = (
            '[mcp_servers.journal]\ncommand = "/old/agent-journal"\nargs = ["mcp"]\n'
            'disabled_tools = ["journal_write"]\nenabled = false\nenv = { A = "b" }\n'
        )
        place.write_text(theirs, encoding="utf-8")
        program(shell.home / "bin", "codex", f"echo called >>{shell.home}/called")
        outcome = shell("install", "codex")
        assert outcome.code == cli_errors.HOST
        assert "settings of yours (disabled_tools, enabled, env)" in outcome.err
        assert place.read_text(encoding="utf-8") == theirs
        assert not (shell.home / "called").exists()

    def test_a_missing_program_is_told_with_what_to_paste(self, shell: Shell) -> None:
        """And nothing else is done: the journal isn't turned on."""
        outcome = shell("install", "codex")
        assert outcome.code == cli_errors.HOST
        ours = shell.home / "bin" / "agent-journal"
        assert outcome.err == (
            "agent-journal: error: there is no program codex on PATH; to do it yourself: "
            f"codex mcp add journal -- {ours} mcp\n"
        )
        assert not shell.config.exists()
        assert shell("install", "codex", "--json").json["error"]["details"]["host"] == "codex"

    @pytest.mark.parametrize(
        ("script", "told"),
        [
            ("echo WARNING x; echo Error: no quota >&2; echo; echo Stack backtrace:; exit 3",
             "codex mcp add journal -- {} mcp failed: Error: no quota; to do it yourself: "),
            ("exit 1", "failed: it said nothing"),
            ("exit 0", "says that it is done, and {place} hasn't got it"),
        ],
    )  # fmt: skip
    def test_a_program_that_fails_is_told(self, shell: Shell, script: str, told: str) -> None:
        """With what it said, and with what to do by hand."""
        program(shell.home / "bin", "codex", script)
        outcome = shell("install", "codex")
        assert outcome.code == cli_errors.HOST
        ours, place = shell.home / "bin" / "agent-journal", shell.home / ".codex" / "config.toml"
        assert told.format(ours, place=place) in outcome.err
        assert outcome.err.count("\n") == 1
        assert not shell.config.exists()

    def test_a_program_that_cannot_remove_is_told(self, shell: Shell, machine: Machine) -> None:
        """Whether it says so or not."""
        place = machine.path(CODEX.location)
        place.parent.mkdir()
        ours = shell.home / "bin" / "agent-journal"
        place.write_text(f'[mcp_servers.journal]\ncommand = "{ours}"\nargs = ["mcp"]', "utf-8")
        program(shell.home / "bin", "codex", "exit 0")
        assert "still has it" in shell("uninstall", "codex").err
        program(shell.home / "bin", "codex", "echo Error: read-only; exit 1")
        assert "failed: Error: read-only; delete journal in" in shell("uninstall", "codex").err

    def test_a_program_that_hangs_is_ended_with_its_children(self, machine: Machine) -> None:
        """Also when a child of it holds its output open."""
        hanging = program(machine.home / "bin", "codex", "sleep 60 & echo $! >$HOME/child; wait")
        environ = {**machine.environ, "HOME": str(machine.home)}
        with pytest.raises(HostError, match="has not ended after"):
            running.run(CODEX, Machine(environ, machine.home), [str(hanging)], limit_s=2)
        child = int((machine.home / "child").read_text(encoding="utf-8"))
        with suppress(ProcessLookupError):  # it is gone already
            ending = os.pidfd_open(child)
            assert select.select([ending], [], [], 30)[0]
            os.close(ending)

    def test_ctrl_c_ends_the_program_too(self, machine: Machine) -> None:
        """It runs in a session of its own, which the terminal's signal doesn't reach."""
        fifo = machine.home / "fifo"
        os.mkfifo(fifo)
        program(machine.home / "bin", "codex", f"echo $$ >{fifo}; sleep 60")
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_journal", "install", "codex"],
            env={**os.environ, **machine.environ},
            stderr=subprocess.PIPE,
        )
        child = int(fifo.read_text(encoding="utf-8"))  # it runs by then
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == cli_errors.INTERRUPTED
        assert told.strip() == b""
        assert not Path(f"/proc/{child}").exists()

    def test_ctrl_c_while_a_program_starts_loses_nothing(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is ended as soon as it has been started; from a thread, none can come."""
        path = program(machine.home / "bin", "codex", "exec sleep 60")
        started: list[subprocess.Popen[bytes]] = []

        class Interrupted(subprocess.Popen[bytes]):  # what no test could time
            def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as the real one's
                super().__init__(*arguments, **options)
                started.append(self)
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", Interrupted)
            with pytest.raises(KeyboardInterrupt):
                running.run(CODEX, machine, [str(path)])
        assert [process.returncode for process in started] == [-signal.SIGKILL]
        program(machine.home / "bin", "codex", "echo ran")
        ended: list[tuple[int, str]] = []
        thread = threading.Thread(
            target=lambda: ended.append(running.run(CODEX, machine, [str(path)]))
        )
        thread.start()
        thread.join()
        assert ended == [(0, "ran\n")]

    def test_a_program_that_cannot_be_started_is_told(self, machine: Machine) -> None:
        """Such as a script without its interpreter."""
        path = machine.home / "bin" / "codex"
        path.write_text("#!/gone/node\n", encoding="utf-8")
        path.chmod(0o755)
        with pytest.raises(HostError, match="can't be started: No such file"):
            running.run(CODEX, machine, [str(path)])

    def test_works_where_the_working_directory_is_gone(
        self, shell: Shell, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Then there is no project to be looked through."""
        fake_claude(shell.home / "bin", machine.path(CLAUDE.location))
        gone = shell.home / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        codes = [shell("install", host).code for host in ("claude-code", "opencode")]
        monkeypatch.chdir(shell.home)
        assert codes == [0, 0]

    def test_a_host_that_is_not_tested_says_so(self, shell: Shell) -> None:
        """And where what it did can't be seen, that too."""
        program(shell.home / "bin", "code", f'printf "%s" "$2" >{shell.home}/given')
        outcome = shell("install", "vscode", "--json").json
        assert json.loads((shell.home / "given").read_bytes()) == {
            "name": "journal",
            "command": str(shell.home / "bin" / "agent-journal"),
            "args": ["mcp"],
        }
        assert any("is not tested" in each for each in outcome["warnings"])
        assert any("doesn't show it" in each for each in outcome["warnings"])


class TestTurningOn:
    """The journal's configuration, as install leaves it."""

    @pytest.fixture
    def installed(self, shell: Shell, machine: Machine) -> Callable[[], None]:
        """Install where nothing else is in the way."""
        fake_claude(shell.home / "bin", machine.path(CLAUDE.location))

        def install_() -> None:
            outcome = shell("install", "claude-code")
            assert outcome.code == 0, outcome.err

        return install_

    def test_everything_else_in_the_file_stays(
        self, shell: Shell, installed: Callable[[], None]
    ) -> None:
        """Other keys, the layout, and where a link leads."""
        real = shell.home / "dotfiles.json"
        real.write_text('{\n\t"cacheDir": "~/m",\n\t"journal": { "enabled":false }\n}', "utf-8")
        shell.config.parent.mkdir(parents=True)
        shell.config.symlink_to(real)
        installed()
        assert shell.config.is_symlink()
        assert real.read_text(encoding="utf-8") == (
            '{\n\t"cacheDir": "~/m",\n\t"journal": { "enabled":true }\n}'
        )

    @pytest.mark.parametrize("text", ['{"journal": {"enabled": "yes"}}', "{", "// x\n{}"])
    def test_a_file_that_cannot_be_read_stops_everything(
        self, shell: Shell, machine: Machine, text: str
    ) -> None:
        """It is left alone, and nothing is installed."""
        shell.config.parent.mkdir(parents=True)
        shell.config.write_text(text, encoding="utf-8")
        fake_claude(shell.home / "bin", machine.path(CLAUDE.location))
        for host in ("claude-code", "opencode"):
            outcome = shell("install", host)
            assert outcome.code == cli_errors.CONFIG
            assert str(shell.config) in outcome.err
            assert "nothing was installed" in outcome.err
            assert outcome.err.count("\n") == 1
        assert shell.config.read_text(encoding="utf-8") == text
        assert not machine.path(CLAUDE.location).exists()
        assert not machine.path(host_called("opencode").location).exists()

    def test_a_file_that_cannot_be_written_is_told(self, shell: Shell) -> None:
        """With what to write there, and what was done already."""
        outcome = shell("install", "opencode", "--config", "/proc/agent-memory.json")
        assert outcome.code == cli_errors.CONFIG
        assert "/proc/agent-memory.json: can't be written: No such file" in outcome.err
        assert 'by hand: {"journal": {"enabled": true}}; wrote ' in outcome.err
        assert outcome.err.count("\n") == 1


class TestHosts:
    """`hosts`."""

    def test_lists_every_host(self, shell: Shell, machine: Machine) -> None:
        """With how the journal stands in each, in the documented shape."""
        fake_claude(shell.home / "bin", machine.path(CLAUDE.location))
        shell("install", "opencode")
        shell("install", "claude-code")
        (shell.home / ".cursor").mkdir()
        (shell.home / ".codex").mkdir()
        (shell.home / ".codex" / "config.toml").write_text("=", encoding="utf-8")
        found = shell("hosts", "--json").json
        assert shape_of(found) == shape_of(documented("hosts"))
        states = {host["host"]: host["state"] for host in found["hosts"]}
        assert states == {
            "opencode": "installed",
            "claude-code": "installed",
            "codex": "unknown",
            "gemini-cli": "not found",
            "vscode": "not found",
            "cursor": "not installed",
            "windsurf": "not found",
            "zed": "not found",
            "claude-desktop": "not found",
        }
        shown = shell("hosts")
        assert (shown.code, shown.err) == (0, "")
        lines = shown.out.splitlines()
        ours = shell.home / "bin" / "agent-journal"
        assert lines[:3] == [
            "opencode        installed",
            f"  {machine.path(host_called('opencode').location)}",
            f"  starts {ours} mcp",
        ]
        assert "can't be read" in lines[lines.index("codex           unknown") + 1]
        assert lines[-1] == "not found: gemini-cli, vscode, windsurf, zed, claude-desktop"

    def test_says_that_the_journal_is_off(self, shell: Shell) -> None:
        """Hosts that have it get no tools then."""
        assert "the journal is off" in shell("hosts").err

    def test_shapes_are_documented(self, shell: Shell) -> None:
        """docs/cli.md shows what install and uninstall print."""
        printed = shell("install", "opencode", "--json").json
        expected = shape_of(documented("install"))
        assert shape_of(printed) == expected
        assert shape_of(shell("uninstall", "opencode", "--json").json) == expected

    def test_without_a_home_it_says_so(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing is guessed."""

        def fail() -> Path:
            raise RuntimeError

        monkeypatch.setattr(Path, "home", fail)  # root has one in any case
        assert shell("hosts").code == cli_errors.CONFIG
