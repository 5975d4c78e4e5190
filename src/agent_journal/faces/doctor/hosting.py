"""The hosts: what is installed in each, whether it is of this version, and whether it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from agent_journal.faces.doctor.serving import Served
from agent_journal.faces.doctor.verdict import Verdict, note, ok, problem
from agent_journal.faces.hosts import opencode, original
from agent_journal.faces.hosts.command import doubts
from agent_journal.faces.hosts.installing import Finding
from agent_journal.faces.hosts.table import Machine, host_called

Start: TypeAlias = tuple[str, ...]
"""The words that start a server, without options that say where its journal is."""


def start_of(command: Iterable[str]) -> Start:
    """Return what starts a server, up to and with ``mcp``; nothing if it doesn't start ours."""
    words = tuple(command)
    return words[: words.index("mcp") + 1] if "mcp" in words else ()


def verdicts(
    findings: Iterable[Finding],
    machine: Machine,
    served: Mapping[Start, Served],
    *,
    is_on: bool,
    directory: Path | None,
) -> Iterator[Verdict]:
    """Judge how the journal stands in each host.

    Args:
        findings: of all hosts.
        machine: whose they are.
        served: how the servers did that are installed.
        is_on: the configuration turns the journal on.
        directory: its project's configuration of OpenCode is looked through, too.
    """
    without = []
    is_anywhere = False
    for finding in findings:
        host = finding.host
        if finding.state == "not installed":
            without.append(host.name)
        elif finding.state == "not ours":
            advice = f"agent-journal install {host.key} --force puts the journal in its place"
            yield note(host.name, finding.reason, advice)
        elif finding.state == "unknown":
            yield problem(host.name, finding.reason, f"mend {finding.place}")
        elif finding.state != "not found":
            is_anywhere = True
            yield from _installed(finding, machine, served, is_on=is_on)
        if host.key == "opencode" and finding.state != "not found":
            yield from _rivals(machine, directory, is_installed=bool(finding.command))
    if without:
        advice = "agent-journal install HOST, where agents shall have it"
        yield note("hosts", f"the journal is not installed in {', '.join(without)}", advice)
    elif not is_anywhere:
        advice = "agent-journal install HOST, once there is one; agent-journal hosts lists them"
        yield note("hosts", "none of those that are known is found here", advice)


def _installed(
    finding: Finding, machine: Machine, served: Mapping[Start, Served], *, is_on: bool
) -> Iterator[Verdict]:
    host = finding.host
    again = f"agent-journal install {host.key}, and restart {host.name}"
    if finding.state == "out of date":
        yield problem(host.name, finding.reason, again)
        return
    start = start_of(finding.command)
    found = served.get(start, Served())
    if found.failure:
        yield problem(host.name, f"{' '.join(start)}: {found.failure}", again)
        return
    if not is_on and "--config" not in finding.command:
        yield problem(host.name, "it has the journal, which is turned off", again)
        return
    yield ok(host.name, f"{' '.join(start)} lists its tools in {found.took_s:.1f} s")
    for doubt in doubts(start, machine.environ):
        yield note(host.name, doubt, again)


def _rivals(machine: Machine, directory: Path | None, *, is_installed: bool) -> Iterator[Verdict]:
    host = host_called("opencode")
    found = original.look(host, machine, opencode.around(directory) if directory else [])
    if found.sightings:
        where = ", ".join(map(str, found.sightings))
        message = f"it loads {original.NAME} ({where}), which offers the same tools"
        advice = "agent-journal install opencode --replace puts that aside"
        yield (problem if is_installed else note)(host.name, message, advice)
    if is_installed:
        for where in found.servers:
            message = f"{where} starts the journal a second time"
            yield problem(host.name, message, "take it out there")
    for doubt in found.doubts:
        yield note(host.name, doubt, "mend it, or see for yourself that it is in order")
