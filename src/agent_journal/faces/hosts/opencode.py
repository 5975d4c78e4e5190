"""Where OpenCode looks for configuration and plugins, as the real program was seen to do.

Global are its folder under ``XDG_CONFIG_HOME``, ``~/.opencode``, and what ``OPENCODE_CONFIG_DIR``
names; a project's are its folder and its ``.opencode``, from the working directory up to the one
that holds ``.git``. In each of them plugins are in ``plugin`` or ``plugins``: files ending in
``.js`` or ``.ts``, none in folders below.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_journal.errors import HostError
from agent_journal.faces.hosts.running import run
from agent_journal.faces.hosts.table import Host, Location, Machine

_FOLDER = Location("opencode", variable="XDG_CONFIG_HOME", default=".config")
_FILES = ("opencode.json", "opencode.jsonc")
_PLUGIN_FOLDERS = ("plugin", "plugins")
_MANAGED = {"darwin": "/Library/Application Support/opencode"}
_ASKING_LIMIT_S = 20.0


def configurations(machine: Machine, projects: Iterable[Path]) -> Iterator[Path]:
    """Yield the configuration files that are there, each once."""
    folder = machine.path(_FOLDER)
    named = machine.environ.get("OPENCODE_CONFIG")
    candidates = [
        folder / "config.json",
        *([Path(named).absolute()] if named else []),
        *(place / name for place in _folders(machine, projects) for name in _FILES),
    ]
    yield from _distinct(path for path in candidates if path.is_file())


def plugins(machine: Machine, projects: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that are loaded as plugins, each once."""
    for folder in _folders(machine, projects):
        for name in _PLUGIN_FOLDERS:
            candidates = sorted((folder / name).glob("*")) if (folder / name).is_dir() else []
            yield from (path for path in candidates if path.suffix in (".js", ".ts"))


def around(directory: Path) -> list[Path]:
    """Return the folders of the project around a directory, the innermost first."""
    folders = []
    for folder in (directory, *directory.parents):
        folders.append(folder)
        if os.path.lexists(folder / ".git"):
            break
    return folders


def remembered_projects(host: Host, machine: Machine) -> list[Path]:
    """Return the folders of the projects that OpenCode remembers and that still exist.

    Raises:
        HostError: it can't be asked, or doesn't answer as expected.
    """
    program = machine.program(host)
    if not program:
        return []
    words = [program, "debug", "scrap"]
    code, output = run(host, machine, words, limit_s=_ASKING_LIMIT_S)
    try:
        found = [Path(project["worktree"]) for project in json.loads(output)]
    except (ValueError, TypeError, KeyError):
        raise HostError(host.key, f"opencode debug scrap ended with {code} and no list") from None
    return [folder for folder in found if folder.is_dir() and folder != Path("/")]


def _folders(machine: Machine, projects: Iterable[Path]) -> Iterator[Path]:
    named = machine.environ.get("OPENCODE_CONFIG_DIR")
    yield machine.path(_FOLDER)
    yield machine.home / ".opencode"
    if named:
        yield Path(named).absolute()
    yield Path(_MANAGED.get(machine.platform, "/etc/opencode"))
    for project in projects:
        yield project
        yield project / ".opencode"


def _distinct(paths: Iterable[Path]) -> Iterator[Path]:
    seen = set()
    for path in paths:
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield path
