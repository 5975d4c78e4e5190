"""`install opencode` and `uninstall opencode`: our plugin's file, and the original plugin.

What OpenCode itself makes of it is tested by tests/hosts/.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import fail
from tests.shell import Shell

from agent_journal.errors import HostError
from agent_journal.faces.cli import errors as cli_errors
from agent_journal.faces.hosts import opencode, original
from agent_journal.faces.hosts.installing import Finding, examine
from agent_journal.faces.hosts.plugin import recognised, stamped
from agent_journal.faces.hosts.table import Machine, host_called

OPENCODE = host_called("opencode")
SPEC = "@ghilteras/opencode-agent-memory"
BUNDLE = 'tool("journal_write"); read("agent-memory.json")'


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A command line with no host on PATH, in a project's folder."""
    shell = Shell(home, monkeypatch)
    for name in [name for name in os.environ if name.startswith(("AGENT_JOURNAL", "OPENCODE"))]:
        monkeypatch.delenv(name)
    script(home / "bin" / "agent-journal", "exit 0")
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "argv", [str(home / "bin" / "agent-journal")])
    return shell


@pytest.fixture
def place(shell: Shell) -> Path:
    """Where the plugin goes."""
    return shell.home / ".config" / "opencode" / "plugin" / "agent-journal.js"


def script(path: Path, text: str) -> None:
    """Make a program that runs a shell script."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def write(path: Path, text: str) -> Path:
    """Write a file, and make its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def found(shell: Shell) -> Finding:
    """Return how the journal stands in OpenCode."""
    version = shell("--version", "--json").json["version"]
    return examine(OPENCODE, Machine(os.environ, shell.home), version=version)


class TestPlugin:
    """The plugin's file."""

    @given(st.lists(st.text(), min_size=1), st.text())
    def test_says_what_it_starts_and_who_wrote_it(self, command: list[str], version: str) -> None:
        """Whatever a path may hold; and nothing else in the file changes."""
        text = stamped(command, version)
        ours = recognised(text)
        assert ours
        assert (ours.command, ours.version, ours.is_edited) == (tuple(command), version, False)
        changed = set(text.splitlines()) - set(stamped(["agent-journal", "mcp"], "").splitlines())
        assert len(changed) <= 3  # those two and the seal
        edited = recognised(text.replace("spawn", "spaun"))
        assert edited
        assert edited.is_edited

    @pytest.mark.parametrize(
        "text",
        ["", BUNDLE, 'const COMMAND = []\nconst VERSION = "1"\n', "// agent-journal install x\n"],
    )  # fmt: skip
    def test_other_files_are_not_taken_for_ours(self, text: str) -> None:
        """Only what carries the seal is."""
        assert recognised(text) is None

    def test_what_is_broken_inside_is_ours_and_edited(self) -> None:
        """Somebody has written something else into the two lines."""
        text = stamped(["x"], "1").replace('["x"]', "[x]")
        ours = recognised(text)
        assert ours
        assert (ours.command, ours.is_edited) == ((), True)


class TestInstalling:
    """Our plugin in OpenCode's folder."""

    def test_is_done_once(self, shell: Shell, place: Path) -> None:
        """No configuration of OpenCode is written, and a second run changes nothing."""
        first = shell("install", "opencode")
        assert first.code == 0
        assert first.out.splitlines() == [
            f"wrote {place}",
            f"turned the journal on in {shell.config}",
            "restart OpenCode, which reads this only when it starts",
        ]
        assert "there is no program opencode on PATH" in first.err
        ours = recognised(place.read_text(encoding="utf-8"))
        assert ours
        assert ours.command == (str(shell.home / "bin" / "agent-journal"), "mcp")
        written = sorted(path.name for path in shell.config.parent.rglob("*"))
        assert written == ["agent-journal.js", "agent-memory.json", "plugin"]
        before = place.stat().st_mtime_ns
        assert shell("install", "opencode").out == (
            "nothing changed: OpenCode has the journal, and it is on\n"
        )
        assert place.stat().st_mtime_ns == before
        assert found(shell).state == "installed"

    def test_goes_where_openCode_looks(  # noqa: N802 - its name
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """OpenCode's own files obey XDG_CONFIG_HOME; the journal's configuration doesn't."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(shell.home / "xdg"))
        assert shell("install", "opencode").code == 0
        assert (shell.home / "xdg" / "opencode" / "plugin" / "agent-journal.js").is_file()
        assert shell.config.is_file()

    def test_is_renewed_after_an_upgrade(self, shell: Shell, place: Path) -> None:
        """A file of another version, or for a program that is gone, is out of date."""
        program = str(shell.home / "bin" / "agent-journal")
        write(place, stamped([program, "mcp"], "0.0.1"))
        finding = found(shell)
        assert (finding.state, finding.version) == ("out of date", "0.0.1")
        assert "of version 0.0.1, this is" in finding.reason
        assert f"wrote {place}" in shell("install", "opencode").out
        assert found(shell).state == "installed"
        text = place.read_text(encoding="utf-8").partition("// agent-journal install")[0]
        write(place, _resealed(text.replace("Symbol", "Symbole")))
        assert "of another build of version" in found(shell).reason
        write(place, stamped(["/gone/agent-journal", "mcp"], finding_version(shell)))
        assert found(shell).reason == "there is no program /gone/agent-journal any more"
        assert shell("install", "opencode").code == 0
        assert found(shell).state == "installed"

    @pytest.mark.parametrize(
        ("text", "reason"),
        [("export const Mine = 1", "is not from here"), (None, "was edited after")],
    )
    def test_what_is_not_ours_is_named_and_left(
        self, shell: Shell, place: Path, text: str | None, reason: str
    ) -> None:
        """With --force it is renamed, so that nothing is lost."""
        text = text or stamped(["x"], "1").replace("spawn", "spaun")
        write(place, text)
        for command in ("install", "uninstall"):
            outcome = shell(command, "opencode")
            assert outcome.code == cli_errors.HOST
            assert reason in outcome.err
            assert "--force" in outcome.err
            assert place.read_text(encoding="utf-8") == text
        assert not shell.config.exists()
        assert shell("install", "opencode", "--force").code == 0
        aside = place.with_name("agent-journal.js.before-agent-journal")
        assert aside.read_text(encoding="utf-8") == text
        assert found(shell).state == "installed"
        write(place, text)
        assert "renamed" in shell("uninstall", "opencode", "--force").out
        assert not place.exists()
        assert aside.with_name(f"{aside.name}-2").read_text(encoding="utf-8") == text

    def test_uninstalling_removes_the_file_alone(self, shell: Shell, place: Path) -> None:
        """The journal stays, and stays turned on; other plugins stay."""
        other = write(place.with_name("other.js"), "export const Other = async () => ({})")
        shell("install", "opencode")
        config = shell.config.read_bytes()
        assert shell("uninstall", "opencode").out.splitlines()[0] == f"removed {place}"
        assert not place.exists()
        assert other.exists()
        assert shell.config.read_bytes() == config
        assert "hasn't got the journal" in shell("uninstall", "opencode").out

    def test_what_cannot_be_written_or_removed_is_told(
        self, shell: Shell, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The plugin's folder may be on a disk that is full or read-only."""
        with monkeypatch.context() as patch:
            fail(patch, "link", errno.EROFS)
            outcome = shell("install", "opencode")
        assert outcome.code == cli_errors.HOST
        assert f"{place} could not be written: Read-only file system" in outcome.err
        assert list(place.parent.iterdir()) == []
        assert not shell.config.exists()
        shell("install", "opencode")
        with monkeypatch.context() as patch:
            fail(patch, "unlink", errno.EROFS)
            assert "could not be removed: Read-only" in shell("uninstall", "opencode").err
        assert place.exists()
        place.unlink()
        place.mkdir()
        assert "can't be read: it is not a file" in shell("install", "opencode").err


class TestOriginal:
    """opencode-agent-memory, wherever OpenCode loads it from."""

    @pytest.mark.parametrize(
        "where",
        [
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
            ".config/opencode/config.json",
            ".opencode/opencode.json",
            "named.json",
            "named/opencode.jsonc",
            "shop/opencode.json",
            "shop/.opencode/opencode.jsonc",
            "remembered/opencode.json",
            "remembered/.opencode/opencode.json",
        ],
    )
    def test_is_found_in_every_configuration(
        self, shell: Shell, place: Path, monkeypatch: pytest.MonkeyPatch, where: str
    ) -> None:
        """Global, named by a variable, of the project around, and of those that are remembered."""
        remembered = json.dumps([
            {"worktree": str(shell.home / "remembered")}, {"worktree": "/"}, {"worktree": "/gone"}
        ])  # fmt: skip
        script(shell.home / "bin" / "opencode", f"[ $1 = debug ] && echo '{remembered}'")
        (shell.home / "remembered").mkdir()
        monkeypatch.setenv("OPENCODE_CONFIG", str(shell.home / "named.json"))
        monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(shell.home / "named"))
        deep = shell.project / "src" / "deep"
        deep.mkdir(parents=True)
        monkeypatch.chdir(deep)
        text = f'{{\n  // mine\n  "plugin": ["other", "{SPEC}@0.5.0"],\n}}'
        path = write(shell.home / where, text)
        outcome = shell("install", "opencode")
        assert outcome.code == cli_errors.HOST
        assert f"OpenCode loads opencode-agent-memory ({path}:3)" in outcome.err
        assert "--replace" in outcome.err
        assert not place.exists()
        assert not shell.config.exists()
        assert path.read_text(encoding="utf-8") == text
        assert shell("install", "opencode", "--replace").code == 0
        assert path.read_text(encoding="utf-8") == '{\n  // mine\n  "plugin": ["other"],\n}'
        copy = path.with_name(f"{path.name}.before-agent-journal")
        assert copy.read_text(encoding="utf-8") == text
        assert found(shell).state == "installed"
        assert "nothing changed" in shell("install", "opencode").out

    @pytest.mark.parametrize(
        "spec",
        [
            "opencode-agent-memory",
            "opencode-agent-memory@latest",
            SPEC,
            [SPEC, {"a": [1, 2]}],
            "git+https://example.org/ghilteras/OpenCode-Agent-Memory.git#main",
            "file:///opt/opencode-agent-memory/src/plugin.ts",
            "/opt/opencode-agent-memory",
            "./bundle.js",
            "file:HOME/.config/opencode/bundle.js",
        ],
    )
    def test_is_known_by_any_name(self, shell: Shell, spec: object) -> None:
        """Of any owner and version, with options, from a folder, or bundled into one file."""
        folder = shell.config.parent
        write(folder / "bundle.js", BUNDLE)
        document = json.dumps({"plugin": [spec, "x"]}).replace("HOME", str(shell.home))
        path = write(folder / "opencode.json", document)
        assert f"({path}:1)" in shell("install", "opencode").err
        shell("install", "opencode", "--replace")
        assert json.loads(path.read_bytes()) == {"plugin": ["x"]}

    @pytest.mark.parametrize(
        "document",
        [
            {"plugin": ["my-opencode-agent-memory", f"{SPEC}-2", "./gone.js", "./x.js"]},
            {"plugin": [["x", {"like": "opencode-agent-memory"}], [], 5, None]},
            {"plugin": {"opencode-agent-memory": True}, "mcp": {"a": 1}, "theme": SPEC},
            {"mcp": {"j": {"command": ["agent-journal", "mcp"], "enabled": False}}},
            [],
        ],
    )  # fmt: skip
    def test_others_are_left(self, shell: Shell, document: object) -> None:
        """Plugins with similar names, and configurations of odd shapes."""
        write(shell.config.parent / "x.js", "journal_write")
        path = write(shell.config.parent / "opencode.json", json.dumps(document))
        assert shell("install", "opencode", "--replace").code == 0
        assert json.loads(path.read_bytes()) == document

    @pytest.mark.parametrize("kind", ["bundle", "link"])
    @pytest.mark.parametrize("folder", [".config/opencode/plugins", "shop/.opencode/plugin"])
    def test_is_found_in_plugin_folders(self, shell: Shell, kind: str, folder: str) -> None:
        """As a file, or a link into a clone; then it is renamed, so that it isn't loaded."""
        clone = write(shell.home / "opencode-agent-memory" / "src" / "plugin.ts", "export {}")
        path = shell.home / folder / "memory.ts"
        write(path.with_name("other.js"), "export const Other = 1")
        if kind == "link":
            path.symlink_to(clone)
        else:
            write(path, BUNDLE)
        assert f"({path})" in shell("install", "opencode").err
        outcome = shell("install", "opencode", "--replace")
        assert outcome.out.splitlines()[0] == f"renamed {path} to memory.ts.before-agent-journal"
        assert not os.path.lexists(path)
        assert path.with_name("memory.ts.before-agent-journal").is_symlink() is (kind == "link")
        assert path.with_name("other.js").exists()
        assert clone.exists()

    def test_every_place_is_named_and_left_by_one_command(self, shell: Shell) -> None:
        """Several lists, several entries in one, and a file that is a link to one of them."""
        folder = shell.config.parent
        one = write(folder / "opencode.json", f'{{"plugin": ["{SPEC}", "a", ["{SPEC}@1", {{}}]]}}')
        two = write(shell.project / "opencode.json", f'{{"plugin": [\n"{SPEC}"]}}')
        (folder / "opencode.jsonc").symlink_to(one)
        assert f"({one}:1, {one}:1, {two}:2)" in shell("install", "opencode").err
        done = shell("install", "opencode", "--replace", "--json").json["done"]
        assert [sentence.split()[0] for sentence in done] == ["took", "took", "wrote", "turned"]
        assert json.loads(one.read_bytes()) == {"plugin": ["a"]}
        assert json.loads(two.read_bytes()) == {"plugin": []}
        assert (folder / "opencode.jsonc").is_symlink()

    def test_what_could_not_be_looked_through_is_told(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Then nobody can say that the original isn't there; our own server is named as well."""
        folder = shell.config.parent
        broken = write(folder / "opencode.json", "{")
        servers = '{"mcp": {"mine": {"command": ["agent-journal", "mcp"]}, "x": {"url": "y"}}}'
        write(folder / "opencode.jsonc", servers)
        script(shell.home / "bin" / "opencode", "echo oops")
        monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", f'{{"plugin": ["{SPEC}"]}}')
        outcome = shell("install", "opencode")
        assert outcome.code == 0
        assert f"{broken} can't be read" in outcome.err
        assert "opencode debug scrap ended with 0 and no list" in outcome.err
        assert "OPENCODE_CONFIG_CONTENT names opencode-agent-memory" in outcome.err
        assert (
            f'"mine" under "mcp" in {folder / "opencode.jsonc"} starts the journal' in outcome.err
        )

    def test_what_cannot_be_changed_stops_it(
        self, shell: Shell, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With what to do by hand, and what was done already."""
        path = write(shell.config.parent / "opencode.json", f'{{"plugin": ["{SPEC}"]}}')
        write(place.with_name("memory.js"), BUNDLE)
        with monkeypatch.context() as patch:
            fail(patch, "link", errno.EROFS)
            outcome = shell("install", "opencode", "--replace")
        assert outcome.code == cli_errors.HOST
        assert f"{path} could not be changed: Read-only" in outcome.err
        assert "take opencode-agent-memory out of it by hand" in outcome.err
        assert not place.exists()
        monkeypatch.setattr("agent_journal.engines.placing.rename_exclusively", _refuse)
        outcome = shell("install", "opencode", "--replace")
        assert "memory.js could not be changed" in outcome.err
        assert f"took opencode-agent-memory out of {path}" in outcome.err

    def test_the_folders_around_end_at_the_repository(self, shell: Shell) -> None:
        """As OpenCode has it; without a repository they end at the root."""
        assert opencode.around(shell.project / "a") == [shell.project / "a", shell.project]
        assert opencode.around(Path("/gone/b"))[-1] == Path("/")

    def test_a_plugin_that_cannot_be_read_is_no_sighting(self, shell: Shell) -> None:
        """OpenCode can't load it either."""
        os.mkfifo(write(shell.config.parent / "plugin" / "x", "").with_name("pipe.js"))
        (shell.config.parent / "plugin" / "gone.ts").symlink_to("nowhere")
        machine = Machine(os.environ, shell.home)
        assert original.look(OPENCODE, machine, []).sightings == ()

    def test_an_installation_without_openCode_asks_nothing(self, shell: Shell) -> None:  # noqa: N802 - its name
        """There are no projects that it could remember."""
        assert opencode.remembered_projects(OPENCODE, Machine(os.environ, shell.home)) == []
        script(shell.home / "bin" / "opencode", "exit 3")
        with pytest.raises(HostError, match="ended with 3 and no list"):
            opencode.remembered_projects(OPENCODE, Machine(os.environ, shell.home))


def finding_version(shell: Shell) -> str:
    """Return this package's version."""
    version: str = shell("--version", "--json").json["version"]
    return version


def _resealed(text: str) -> str:
    from agent_journal.faces.hosts import plugin  # noqa: PLC0415 - what another build would do

    return f"{text}// agent-journal install {plugin._seal(text)}\n"


def _refuse(*_arguments: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))
