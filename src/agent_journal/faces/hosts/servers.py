"""MCP servers in a host's own configuration: which command our name stands for; only read here."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_journal.errors import HostError
from agent_journal.faces.hosts.files import contents
from agent_journal.faces.hosts.table import SERVER, Host
from agent_journal.jsontext import strict

_COMMON = frozenset({"command", "args", "type", "env", "source", "enabled"})


@dataclass(frozen=True, slots=True)
class Server:
    """What a host has under our name.

    Attributes:
        command: its words; empty for a server that isn't started by a command.
        settings: names of what a person has set beside it.
    """

    command: tuple[str, ...]
    settings: tuple[str, ...]


def registered(host: Host, path: Path) -> Server | None:
    """Return the server that a host knows by our name, or None.

    Raises:
        HostError: its configuration can't be read.
    """
    found: object = document(host, path)
    for key in (*host.section, SERVER):
        found = found.get(key) if isinstance(found, Mapping) else None
    return server_of(found) if isinstance(found, Mapping) else None


def document(host: Host, path: Path) -> object:
    """Return what a configuration file says; an empty object when there is none.

    Raises:
        HostError: it can't be read.
    """
    try:
        data = contents(path)
        text = (data or b"").decode("utf-8")
        if not text.strip():
            return {}
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(strict(text))
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except (ValueError, RecursionError) as error:  # what both parsers raise
        reason = str(error)
    raise HostError(host.key, f"{host.name}'s configuration {path} can't be read: {reason}")


def server_of(entry: Mapping[str, object]) -> Server:
    """Return a server from what a configuration says of it."""
    program, arguments = entry.get("command"), entry.get("args")
    words = [program, *(arguments if isinstance(arguments, list) else [])]
    if isinstance(program, list):  # as OpenCode has it
        words = program
    settings = {key for key in entry if key not in _COMMON}
    settings |= {"env"} if entry.get("env") else set()
    settings |= {"enabled"} if entry.get("enabled") is False else set()
    return Server(
        command=tuple(words) if _are_words(words) else (), settings=tuple(sorted(settings))
    )


def _are_words(words: Sequence[object]) -> bool:
    return all(isinstance(word, str) for word in words)
