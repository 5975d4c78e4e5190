"""The command that hosts are to start the server with, and why it may not last."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAM = "agent-journal"
_MODULE = "agent_journal"
_SCRIPT_LIMIT_BYTES = 64 * 1024
_KEPT_BY_PROJECTS = (".git", "pyproject.toml", "setup.py")


def server_command(program: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start the server."""
    return (*program, "mcp", *options)


def is_ours(command: Sequence[str]) -> bool:
    """Tell whether a command starts a server of this package, wherever it is installed.

    That may be by a script of a person's own, which names the program.
    """
    names = {Path(word).name for word in command}
    is_named = not names.isdisjoint((PROGRAM, _MODULE))
    return "mcp" in command[1:] and (is_named or _is_script_around_ours(command[0]))


def chosen_program(path: str) -> tuple[str, ...]:
    """Return a program that was asked for by its path, or by a name that is looked for on PATH."""
    return (os.path.abspath(path),) if os.sep in path else (shutil.which(path) or path,)  # noqa: PTH100 - a string


def running_program(started_as: str) -> tuple[str, ...]:
    """Return what starts this very program from anywhere.

    Args:
        started_as: the first word that it was started with: ``sys.argv[0]``.
    """
    started = started_as if Path(started_as).name == PROGRAM else ""
    script = shutil.which(started) or shutil.which(Path(sysconfig.get_path("scripts"), PROGRAM))
    if script is None:
        return (sys.executable, "-m", _MODULE)
    # What pipx and uv put on PATH is a link that outlives what it points to.
    named = shutil.which(PROGRAM)
    is_link = named is not None and os.path.realpath(named) == os.path.realpath(script)
    return (os.path.abspath(named if named and is_link else script),)  # noqa: PTH100 - a string


def is_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether two commands are the same, one of them perhaps found on PATH."""
    if not one or not other or tuple(one[1:]) != tuple(other[1:]):
        return False
    return one[0] == other[0] or (shutil.which(one[0]) or one[0]) == other[0]


def is_startable(command: Sequence[str]) -> bool:
    """Tell whether the program of a command is there."""
    return bool(command) and shutil.which(command[0]) is not None


def doubts(command: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return why a command may soon be gone, each reason a sentence."""
    if not is_startable(command):
        return [f"there is no program {command[0]}"]
    program = Path(shutil.which(command[0]) or command[0])
    real = Path(os.path.realpath(program))
    last = "install it for good, with uv tool install or pipx install"
    if any(_is_below(each, folder) for each in (program, real) for folder in _caches(environ)):
        return [f"{program} is temporary and may be gone tomorrow; {last}"]
    environment = real.parent.parent
    if (environment / "pyvenv.cfg").exists() and any(
        (environment.parent / name).exists() for name in _KEPT_BY_PROJECTS
    ):
        return [f"{program} belongs to the project {environment.parent} and goes with it; {last}"]
    return []


def _is_script_around_ours(word: str) -> bool:
    path = shutil.which(word)
    try:
        with open(path or os.devnull, "rb") as file:  # noqa: PTH123 - a string
            text = file.read(_SCRIPT_LIMIT_BYTES)
    except (OSError, ValueError):  # it is only executed, or no name that a file could have
        return False
    return text.startswith(b"#!") and any(name.encode() in text for name in (PROGRAM, _MODULE))


def _caches(environ: Mapping[str, str]) -> list[Path]:
    home = Path.home()
    named = [environ.get(name) for name in ("XDG_CACHE_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR")]
    return [
        Path(tempfile.gettempdir()),
        home / ".cache",
        home / "Library" / "Caches",
        home / ".local" / "pipx" / ".cache",
        home / ".local" / "share" / "pipx" / ".cache",
        *(Path(folder) for folder in named if folder),
    ]


def _is_below(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder) or path.is_relative_to(os.path.realpath(folder))
