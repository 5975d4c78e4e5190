"""Our plugin file: stamped with what it starts, and told apart from files that aren't ours."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

_SHIM = "opencode.js"
_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)
_VERSION = re.compile(r"^const VERSION = (\".*\")$", re.MULTILINE)
_SEAL = re.compile(r"^// agent-journal install ([0-9a-f]{64})\n\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin file that we have written.

    Attributes:
        command: the words that start the server.
        version: that of the package which wrote it.
        is_edited: it is no longer as it was written.
    """

    command: tuple[str, ...]
    version: str
    is_edited: bool


def stamped(command: Sequence[str], version: str) -> str:
    """Return the plugin as it is to be written."""
    text = files("agent_journal.faces").joinpath(_SHIM).read_text(encoding="utf-8")
    text = _with_line(_COMMAND, f"const COMMAND = {json.dumps(list(command))}", text)
    text = _with_line(_VERSION, f"const VERSION = {json.dumps(version)}", text)
    return f"{text}// agent-journal install {_seal(text)}\n"


def recognised(text: str) -> Plugin | None:
    """Return what a file says of itself if it is ours, of whatever version; else None."""
    sealed = _SEAL.search(text)
    command, version = _COMMAND.search(text), _VERSION.search(text)
    if sealed is None or command is None or version is None:
        return None
    try:
        words, number = json.loads(command[1]), json.loads(version[1])
    except ValueError:
        words, number = [], ""
    return Plugin(
        command=tuple(map(str, words)),
        version=str(number),
        is_edited=sealed[1] != _seal(text[: sealed.start()]),
    )


def _with_line(pattern: re.Pattern[str], line: str, text: str) -> str:
    return pattern.sub(lambda _match: line, text)  # as it is: a path may hold a backslash


def _seal(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
