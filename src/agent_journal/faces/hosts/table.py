"""The hosts that are known: what each is called, how it takes the journal, where it keeps it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_journal.errors import ConfigError

SERVER = "journal"
"""What hosts know our MCP server by."""

COMMAND = "{command}"
"""In a host's arguments: here the server's command goes, word by word."""

DEFINITION = "{definition}"
"""In a host's arguments: here goes a JSON object of the server's name and command."""

Way = Literal["plugin", "program", "paste"]
"""How a host takes the journal: a file of ours, the host's own program, or a person's hands."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a file of a host is: below a folder that a variable names, or below the home.

    Attributes:
        path: below that folder.
        variable: names the folder; empty if there is none.
        default: the folder below the home directory, when the variable is unset.
        default_on_mac: the same on macOS, where it is another and no variable counts.
    """

    path: str
    variable: str = ""
    default: str = ""
    default_on_mac: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """A program in which agents work.

    Attributes:
        key: what it is called on our command line.
        name: what people call it.
        way: how it takes the journal.
        location: the plugin's file, or the file in which it keeps its MCP servers.
        programs: names of its command, of which the first that is found counts.
        section: the keys that lead to its MCP servers.
        adding: what its program is given to add the server.
        removing: the same to remove it; empty if it can't.
        overwrites: adding replaces a server of the same name, all at once.
        extra: what a server's entry holds there beside its command and arguments.
        hint: what a person should know who has just installed it; empty for nothing.
        is_tested: the suite installs into the real one.
    """

    key: str
    name: str
    way: Way
    location: Location
    programs: tuple[str, ...] = ()
    section: tuple[str, ...] = ("mcpServers",)
    adding: tuple[str, ...] = ()
    removing: tuple[str, ...] = ()
    overwrites: bool = False
    extra: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    is_tested: bool = False


_IN_CONFIG = {"variable": "XDG_CONFIG_HOME", "default": ".config"}
_MAC = "Library/Application Support"

HOSTS: tuple[Host, ...] = (
    Host(
        key="opencode",
        name="OpenCode",
        way="plugin",
        location=Location("opencode/plugin/agent-journal.js", **_IN_CONFIG),
        programs=("opencode",),
        is_tested=True,
    ),
    Host(
        key="claude-code",
        name="Claude Code",
        way="program",
        location=Location(".claude.json", variable="CLAUDE_CONFIG_DIR"),
        programs=("claude",),
        adding=("mcp", "add", "--scope", "user", SERVER, "--", COMMAND),
        removing=("mcp", "remove", "--scope", "user", SERVER),
        is_tested=True,
    ),
    Host(
        key="codex",
        name="Codex",
        way="program",
        location=Location("config.toml", variable="CODEX_HOME", default=".codex"),
        programs=("codex",),
        section=("mcp_servers",),
        adding=("mcp", "add", SERVER, "--", COMMAND),
        removing=("mcp", "remove", SERVER),
        overwrites=True,
        # Seen with 0.171: servers that take longer than 1.0 s to start are missing in turn one.
        hint=(
            "Codex waits one second for servers; where its first turn lacks the journal, put "
            "mcp_optional_startup_grace_ms = 5000 at the head of its config.toml"
        ),
        is_tested=True,
    ),
    Host(
        key="gemini-cli",
        name="Gemini CLI",
        way="program",
        location=Location(".gemini/settings.json", variable="GEMINI_CLI_HOME"),
        programs=("gemini",),
        adding=("mcp", "add", "--scope", "user", SERVER, COMMAND),
        removing=("mcp", "remove", "--scope", "user", SERVER),
        overwrites=True,
    ),
    Host(
        key="vscode",
        name="VS Code",
        way="program",
        location=Location("Code/User/mcp.json", **_IN_CONFIG, default_on_mac=_MAC),
        programs=("code",),
        section=("servers",),
        adding=("--add-mcp", DEFINITION),
    ),
    Host(
        key="cursor",
        name="Cursor",
        way="paste",
        location=Location(".cursor/mcp.json"),
        programs=("cursor",),
    ),
    Host(
        key="windsurf",
        name="Windsurf",
        way="paste",
        location=Location(".codeium/windsurf/mcp_config.json"),
        programs=("windsurf",),
    ),
    Host(
        key="zed",
        name="Zed",
        way="paste",
        location=Location("zed/settings.json", **_IN_CONFIG),
        programs=("zed", "zeditor"),
        section=("context_servers",),
        extra=(("source", "custom"),),
    ),
    Host(
        key="claude-desktop",
        name="Claude Desktop",
        way="paste",
        location=Location("Claude/claude_desktop_config.json", **_IN_CONFIG, default_on_mac=_MAC),
    ),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Whose hosts these are: the environment, the home directory, and the operating system."""

    environ: Mapping[str, str]
    home: Path
    platform: str = sys.platform

    def path(self, location: Location) -> Path:
        """Return where a file is; it need not exist."""
        if self.platform == "darwin" and location.default_on_mac:
            return self.home / location.default_on_mac / location.path
        folder = self.environ.get(location.variable) if location.variable else None
        return (Path(folder).absolute() if folder else self.home / location.default) / location.path

    def program(self, host: Host) -> str:
        """Return the path of a host's program, empty if it isn't on PATH."""
        path = self.environ.get("PATH")
        found = (shutil.which(name, path=path) for name in host.programs)
        return next((os.path.abspath(each) for each in found if each), "")  # noqa: PTH100 - a string


def this_machine(environ: Mapping[str, str]) -> Machine:
    """Return the machine as the environment of this process has it.

    Raises:
        ConfigError: no home directory is known.
    """
    try:
        return Machine(environ, Path.home())
    except RuntimeError:
        raise ConfigError("HOME", "", "is not set, and the user database names none") from None


def host_called(key: str) -> Host:
    """Return the host of a key that is in the table."""
    return next(host for host in HOSTS if host.key == key)
