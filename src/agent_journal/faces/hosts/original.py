"""The original plugin, opencode-agent-memory: found wherever OpenCode loads it from, put aside.

Both would register the same tools, and the original overwrites entries of the same millisecond.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_journal.errors import HostError
from agent_journal.faces.hosts import files, opencode
from agent_journal.faces.hosts.command import is_ours
from agent_journal.faces.hosts.plugin import recognised
from agent_journal.faces.hosts.servers import document, server_of
from agent_journal.faces.hosts.table import Host, Machine
from agent_journal.jsontext import places, strict, without

NAME = "opencode-agent-memory"
_SPEC = re.compile(rf"(?:^|[/\\:@]){NAME}(?=$|[/\\@#.])", re.IGNORECASE)
_SIGNS = (b"journal_write", b"agent-memory.json")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A place that loads the original.

    Attributes:
        path: a configuration file, or the plugin's own file in a plugin folder.
        number: which of the configuration's plugins it is; None for a plugin's own file.
        line: where it stands there.
    """

    path: Path
    number: int | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Name the place as compilers do."""
        return f"{self.path}:{self.line}" if self.line else str(self.path)


@dataclass(frozen=True, slots=True)
class Search:
    """What was found in OpenCode's configuration.

    Attributes:
        sightings: where the original is loaded.
        servers: where our own server is started as an MCP server beside the plugin.
        doubts: what could not be looked through, each as a sentence.
    """

    sightings: tuple[Sighting, ...]
    servers: tuple[str, ...]
    doubts: tuple[str, ...]


def look(host: Host, machine: Machine, projects: Iterable[Path]) -> Search:
    """Look through OpenCode's global configuration and that of some projects."""
    folders = list(projects)
    sightings: list[Sighting] = []
    servers: list[str] = []
    doubts: list[str] = []
    for path in opencode.configurations(machine, folders):
        try:
            found = document(host, path)
        except HostError as error:
            doubts.append(str(error))
            continue
        if isinstance(found, Mapping):
            sightings += _in_configuration(path, found)
            servers += _our_servers(path, found)
    for path in opencode.plugins(machine, folders):
        if _is_original(path):
            sightings.append(Sighting(path))
    if NAME in machine.environ.get("OPENCODE_CONFIG_CONTENT", ""):
        doubts.append(f"OPENCODE_CONFIG_CONTENT names {NAME}; take it out there")
    return Search(tuple(sightings), tuple(servers), tuple(doubts))


def put_aside(host: Host, sightings: Iterable[Sighting]) -> Iterator[str]:
    """Keep OpenCode from loading the original; yield what was done, each as a sentence.

    From a configuration the entry alone is taken out, after the file has been copied; a plugin's
    own file is renamed.

    Raises:
        HostError: a file could not be changed; what was yielded before is done.
    """
    by_file: dict[Path, list[Sighting]] = {}
    for sighting in sightings:
        by_file.setdefault(sighting.path, []).append(sighting)
    for path, group in by_file.items():
        numbers = [sighting.number for sighting in group if sighting.number is not None]
        try:
            if not numbers:
                yield f"renamed {path} to {files.put_aside(path).name}"
                continue
            copy = _take_out(path, numbers)
        except OSError as error:
            reason = f"{path} could not be changed: {error.strerror or error}"
            raise HostError(host.key, f"{reason}; take {NAME} out of it by hand") from None
        yield f"took {NAME} out of {path}; it was as {copy.name} still is"


def _in_configuration(path: Path, found: Mapping[str, object]) -> Iterator[Sighting]:
    loaded = found.get("plugin")
    if not isinstance(loaded, list):
        return
    text = strict((files.contents(path) or b"").decode("utf-8"))
    lines = {place.where: place.line for place in places(text, depth=2)}
    for number, member in enumerate(loaded):
        spec = member[0] if isinstance(member, list) and member else member
        if isinstance(spec, str) and _names_original(spec, path.parent):
            yield Sighting(path, number, lines.get(("plugin", number)))


def _our_servers(path: Path, found: Mapping[str, object]) -> Iterator[str]:
    servers = found.get("mcp")
    for name, entry in servers.items() if isinstance(servers, Mapping) else ():
        if (
            isinstance(entry, Mapping)
            and entry.get("enabled") is not False
            and is_ours(server_of(entry).command)
        ):
            yield f'"{name}" under "mcp" in {path}'


def _names_original(spec: str, folder: Path) -> bool:
    if _SPEC.search(spec):
        return True
    if spec.startswith("file:"):
        spec = unquote(urlsplit(spec).path)
    return spec.startswith(("/", ".")) and _is_original(folder / spec)


def _is_original(path: Path) -> bool:
    """Tell whether a plugin's file is the original, or a bundle of it."""
    if NAME in Path(os.path.realpath(path)).parts:
        return True
    try:
        data = files.contents(path) or b""
    except OSError:
        return False  # OpenCode can't load it either
    ours = recognised(data.decode("utf-8", "replace"))
    return ours is None and all(sign in data for sign in _SIGNS)


def _take_out(path: Path, numbers: Iterable[int]) -> Path:
    before = files.contents(path) or b""
    text = before.decode("utf-8")
    for number in sorted(numbers, reverse=True):
        text = without(text, ("plugin", number))
    copy = files.keep_copy(path)
    files.replace(path, text.encode("utf-8"), before=before)
    return copy
