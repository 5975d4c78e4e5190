"""Installing into a host, uninstalling, and telling what is there: a way for each kind of host."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent_journal.errors import HostError
from agent_journal.faces.hosts import files, opencode, original, servers
from agent_journal.faces.hosts.command import is_ours, is_same, is_startable
from agent_journal.faces.hosts.plugin import recognised, stamped
from agent_journal.faces.hosts.running import gist, run
from agent_journal.faces.hosts.table import (
    COMMAND,
    DEFINITION,
    HOSTS,
    SERVER,
    Host,
    Machine,
)

State = Literal["not found", "not installed", "installed", "out of date", "not ours", "unknown"]
"""Of a host; not found is one that is not on this machine, as far as can be seen."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How the journal stands in a host.

    Attributes:
        host: which.
        program: the path of its command, empty if it isn't on PATH.
        place: the plugin's file, or the file in which the host keeps its MCP servers.
        state: see `State`.
        command: what starts the server, as installed; empty when nothing is.
        version: that of the package which wrote the plugin; empty for other hosts.
        reason: why it is out of date, not ours, or unknown; else empty.
        settings: names of what a person has set beside our command.
    """

    host: Host
    program: str
    place: Path
    state: State
    command: tuple[str, ...] = ()
    version: str = ""
    reason: str = ""
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What installing or uninstalling did.

    Attributes:
        finding: how the journal stands in the host now.
        done: what was changed, each as a sentence; empty if nothing was.
        warnings: what a person should know, each as a sentence.
    """

    finding: Finding
    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def survey(machine: Machine, *, version: str) -> list[Finding]:
    """Return how the journal stands in every known host; no program is started.

    Args:
        machine: whose hosts.
        version: of this package.
    """
    return [examine(host, machine, version=version) for host in HOSTS]


def examine(host: Host, machine: Machine, *, version: str) -> Finding:
    """Return how the journal stands in one host; see `survey`."""
    program, place = machine.program(host), machine.path(host.location)
    is_here = program or place.exists() or (host.way == "paste" and place.parent.is_dir())
    state: State = "not installed" if is_here else "not found"
    nothing = Finding(host, program, place, state)
    try:
        find = _examine_plugin if host.way == "plugin" else _examine_server
        return find(nothing, version)
    except HostError as error:
        return replace(nothing, state="unknown", reason=error.reason)


def install(
    host: Host,
    machine: Machine,
    command: Sequence[str],
    *,
    version: str,
    replaces: bool = False,
    force: bool = False,
    directory: Path | None = None,
) -> Outcome:
    """Let a host start the server; done already, it changes nothing.

    Args:
        host: in which.
        machine: whose.
        command: the words that start the server.
        version: of this package.
        replaces: put the original plugin aside.
        force: replace what isn't ours, or was edited, or has settings of a person's own.
        directory: its project's configuration is looked through as well.

    Raises:
        HostError: it can't be done; what was done until then is in its notes.
    """
    finding = examine(host, machine, version=version)
    _require(finding, force=force, doing="replace")
    if host.way == "plugin":
        return _install_plugin(
            finding, machine, tuple(command), version, replaces=replaces, directory=directory
        )
    if host.way == "program":
        return _install_server(finding, machine, tuple(command), force=force)
    if finding.state == "installed" and is_same(finding.command, command):
        return Outcome(finding)
    message = f"{host.name} can't be told by a program; see what to paste into {finding.place} with"
    raise HostError(host.key, f"{message}: agent-journal install {host.key} --print")


def uninstall(host: Host, machine: Machine, *, version: str, force: bool = False) -> Outcome:
    """Take what `install` made out of a host; whatever else is there stays.

    Raises:
        HostError: it can't be done, or what is there isn't ours.
    """
    finding = examine(host, machine, version=version)
    if finding.state in ("not found", "not installed"):
        return Outcome(finding)
    _require(finding, force=force, doing="remove")
    if host.way == "plugin":
        done = _remove_plugin(finding)
        return Outcome(examine(host, machine, version=version), (done,))
    if not host.removing:
        where = " under ".join(f'"{key}"' for key in (SERVER, *reversed(host.section)))
        message = f"{host.name} has no command for it: delete {where} in {finding.place}"
        raise HostError(host.key, message)
    _run(finding, machine, host.removing, f"delete {SERVER} in {finding.place} by hand")
    now = examine(host, machine, version=version)
    if now.state not in ("not found", "not installed"):
        message = f"{host.name} says that it is gone, and {finding.place} still has it"
        raise HostError(host.key, message)
    return Outcome(now, (f"removed {SERVER} from {finding.place}", *_what_it_was(finding)))


def paste(host: Host, command: Sequence[str], *, version: str) -> str:
    """Return what a person would paste or run to do what `install` does, without a last newline."""
    if host.way == "plugin":
        return stamped(command, version).removesuffix("\n")
    if host.way == "program":
        return shlex.join([host.programs[0], *_expanded(host.adding, command)])
    found: object = {SERVER: {**dict(host.extra), "command": command[0], "args": command[1:]}}
    for key in reversed(host.section):
        found = {key: found}
    return json.dumps(found, indent=2)


def _examine_plugin(nothing: Finding, version: str) -> Finding:
    try:
        data = files.contents(nothing.place)
    except OSError as error:
        reason = f"{nothing.place} can't be read: {error.strerror or error}"
        raise HostError(nothing.host.key, reason) from None
    if data is None:
        return nothing
    text = data.decode("utf-8", "replace")
    ours = recognised(text)
    if ours is None:
        return replace(nothing, state="not ours", reason=f"{nothing.place} is not from here")
    finding = replace(nothing, state="installed", command=ours.command, version=ours.version)
    if ours.is_edited:
        reason = f"{nothing.place} was edited after it had been installed"
        return replace(finding, state="not ours", reason=reason)
    if text != stamped(ours.command, version):
        reason = f"the plugin is of version {ours.version}, this is {version}"
        if ours.version == version:
            reason = f"the plugin is of another build of version {version}"
        return replace(finding, state="out of date", reason=reason)
    return _with_program(finding)


def _examine_server(nothing: Finding, _version: str) -> Finding:
    server = servers.registered(nothing.host, nothing.place)
    if server is None:
        return nothing
    finding = replace(nothing, command=server.command, settings=server.settings)
    if not is_ours(server.command):
        shown = shlex.join(server.command) or "no command"
        reason = f"{SERVER} in {nothing.place} is another server: {shown}"
        return replace(finding, state="not ours", reason=reason)
    return _with_program(replace(finding, state="installed"))


def _with_program(finding: Finding) -> Finding:
    if is_startable(finding.command):
        return finding
    reason = f"there is no program {' '.join(finding.command[:1])} any more"
    return replace(finding, state="out of date", reason=reason)


def _require(finding: Finding, *, force: bool, doing: str) -> None:
    """Refuse to touch what isn't ours.

    Raises:
        HostError: it isn't, or nobody can tell.
    """
    if finding.state == "unknown":
        raise HostError(finding.host.key, f"{finding.reason}; mend it first")
    if finding.state == "not ours" and not force:
        message = f"{finding.reason}; give --force to {doing} it all the same"
        raise HostError(finding.host.key, message)


def _install_plugin(
    finding: Finding,
    machine: Machine,
    command: tuple[str, ...],
    version: str,
    *,
    replaces: bool,
    directory: Path | None,
) -> Outcome:
    host = finding.host
    projects = opencode.around(directory) if directory else []
    warnings = []
    try:
        projects += opencode.remembered_projects(host, machine)
    except HostError as error:
        warnings.append(f"projects that OpenCode remembers were not looked at: {error.reason}")
    found = original.look(host, machine, projects)
    if found.sightings and not replaces:
        where = ", ".join(map(str, found.sightings))
        message = (
            f"OpenCode loads {original.NAME} ({where}), which offers the same tools; give "
            "--replace to put it aside"
        )
        raise HostError(host.key, message)
    done: list[str] = []
    try:
        for sentence in original.put_aside(host, found.sightings):
            done.append(sentence)  # noqa: PERF402 - kept for whoever is told of an error
        done += _write_plugin(finding, stamped(command, version).encode("utf-8"))
    except HostError as error:
        for sentence in done:
            error.add_note(sentence)
        raise
    warnings += found.doubts
    warnings += [f"{where} starts the journal too; take it out there" for where in found.servers]
    if not finding.program:
        warnings.append("there is no program opencode on PATH")
    return Outcome(examine(host, machine, version=version), tuple(done), tuple(warnings))


def _write_plugin(finding: Finding, text: bytes) -> Iterator[str]:
    place = finding.place
    try:
        if finding.state == "not ours":
            yield f"renamed {place} to {files.put_aside(place).name}"
        before = files.contents(place)
        if before != text:
            files.replace(place, text, before=before)
            yield f"wrote {place}"
    except OSError as error:
        message = f"{place} could not be written: {error.strerror or error}"
        raise HostError(finding.host.key, message) from None


def _remove_plugin(finding: Finding) -> str:
    place = finding.place
    try:
        if finding.state == "not ours":
            return f"renamed {place} to {files.put_aside(place).name}"
        files.remove(place)
    except OSError as error:
        message = f"{place} could not be removed: {error.strerror or error}"
        raise HostError(finding.host.key, message) from None
    return f"removed {place}"


def _install_server(
    finding: Finding, machine: Machine, command: tuple[str, ...], *, force: bool
) -> Outcome:
    host = finding.host
    if finding.state == "installed" and is_same(finding.command, command):
        return Outcome(finding)
    if finding.settings and not force:
        message = (
            f"{SERVER} in {finding.place} has settings of yours ({', '.join(finding.settings)}), "
            f"which {host.name} would drop; change its command to {shlex.join(command)} by hand, "
            "or give --force"
        )
        raise HostError(host.key, message)
    by_hand = f"to do it yourself: {paste(host, command, version='')}"
    if not finding.program:
        names = " or ".join(host.programs)
        raise HostError(host.key, f"there is no program {names} on PATH; {by_hand}")
    if finding.command and host.removing and not host.overwrites:
        _run(finding, machine, host.removing, by_hand)
    _run(finding, machine, _expanded(host.adding, command), by_hand)
    now = examine(host, machine, version="")
    warnings = [host.hint] if host.hint else []
    if now.command != command:
        if host.is_tested:
            message = f"{host.name} says that it is done, and {finding.place} hasn't got it"
            raise HostError(host.key, f"{message}; {by_hand}")
        warnings.append(f"{finding.place} doesn't show it; see whether {host.name} has it")
    if not host.is_tested:
        warnings.append(f"installing into {host.name} is not tested")
    done = (f"added {SERVER} to {finding.place}", *_what_it_was(finding))
    return Outcome(now, done, tuple(warnings))


def _what_it_was(finding: Finding) -> list[str]:
    return [finding.reason] if finding.state == "not ours" else []


def _expanded(words: Sequence[str], command: Sequence[str]) -> list[str]:
    expanded: list[str] = []
    for word in words:
        if word == COMMAND:
            expanded += command
        elif word == DEFINITION:
            definition = {"name": SERVER, "command": command[0], "args": list(command[1:])}
            expanded.append(json.dumps(definition))
        else:
            expanded.append(word)
    return expanded


def _run(finding: Finding, machine: Machine, words: Sequence[str], by_hand: str) -> None:
    code, output = run(finding.host, machine, [finding.program, *words])
    if code:
        shown = shlex.join([finding.host.programs[0], *words])
        raise HostError(finding.host.key, f"{shown} failed: {gist(output)}; {by_hand}")
