"""The whole examination, one verdict after the other; it changes nothing of the user's."""

from __future__ import annotations

import atexit
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent_journal.assembly import count_indexed
from agent_journal.config import Settings
from agent_journal.errors import JournalError, JournalUnavailableError
from agent_journal.faces.doctor import entries, hosting, places
from agent_journal.faces.doctor.hosting import Start, start_of
from agent_journal.faces.doctor.serving import Served, try_server
from agent_journal.faces.doctor.trial import Trial
from agent_journal.faces.doctor.verdict import Verdict, ok, problem
from agent_journal.faces.hosts.installing import survey
from agent_journal.faces.hosts.table import Machine
from agent_journal.ports import Progress

_STARTS_AT_ONCE = 2  # servers; each takes a second of a processor


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined.

    Attributes:
        settings: of the journal.
        machine: whose hosts.
        version: of this package.
        start: what starts our own server.
        directory: the working directory; None when it is gone.
    """

    settings: Settings
    machine: Machine
    version: str
    start: Start
    directory: Path | None


@dataclass(frozen=True, slots=True)
class Shows:
    """How a person is told what goes on: both are given a label.

    Attributes:
        bar: gives a function to be told of (done, total), or None.
        waiting: says that something is waited for.
    """

    bar: Callable[[str], AbstractContextManager[Progress | None]]
    waiting: Callable[[str], AbstractContextManager[None]]


def examine(patient: Patient, shows: Shows) -> Generator[Verdict]:
    """Look at everything and try everything; servers start meanwhile.

    Close it if it isn't taken to its end, so that nothing is left running or lying about.
    """
    where = f"Python {platform.python_version()} in {sys.prefix}"
    yield ok("program", f"agent-journal {patient.version}, {where}")
    yield places.configuration(patient.settings)
    try:
        folder = Path(tempfile.mkdtemp(prefix="agent-journal-doctor-"))
    except OSError as error:
        message = f"no temporary folder can be made: {error.strerror}"
        yield problem("trial", message, "make room for temporary files, or set TMPDIR")
        yield from places.folders(patient.settings, lambda: 0)
        yield from places.room(patient.settings)
        return
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(remove)  # after Ctrl-C a thread that was just starting may still be at work
    try:
        scratch = folder / "index"
        scratch.mkdir()
        indexed = partial(count_indexed, patient.settings, scratch)
        yield from places.folders(patient.settings, indexed)
        yield from places.room(patient.settings)
        with ThreadPoolExecutor(_STARTS_AT_ONCE) as pool:
            findings = survey(patient.machine, version=patient.version)
            starts = [patient.start]
            starts += [start_of(each.command) for each in findings if each.state == "installed"]
            trying = {
                start: pool.submit(_try, start, folder / f"server-{number}")
                for number, start in enumerate(dict.fromkeys(filter(None, starts)))
            }
            yield from _journal(patient.settings, folder / "trial", shows)
            with shows.waiting("Starting the server"):
                served = {start: future.result() for start, future in trying.items()}
        yield _server(patient.start, served[patient.start])
        is_on = patient.settings.enabled or patient.settings.error is not None
        yield from hosting.verdicts(
            findings, patient.machine, served, is_on=is_on, directory=patient.directory
        )
    finally:
        remove()


def _journal(settings: Settings, folder: Path, shows: Shows) -> Iterator[Verdict]:
    """Judge the real entries and their vectors, and try everything on a temporary journal."""
    found = None
    try:
        with shows.bar("Reading the entries") as progress:
            found = entries.survey(settings, progress)
    except JournalUnavailableError:
        pass  # of the folder it has been told
    else:
        yield from entries.verdicts(found)
    folder.mkdir()
    trial = Trial(settings, folder)
    with shows.waiting("Trying the model"):
        tried = list(trial.run())
    yield from tried
    if found is None or not trial.model:
        return
    with shows.waiting("Comparing vectors"):
        samples = entries.to_compare(settings, found, trial.model)
        try:
            stale = trial.stale(samples)
        except JournalError as error:
            yield problem("vectors", f"they can't be compared: {error}", "see the verdicts above")
            return
    yield from entries.vectors(found, trial.model, len(samples), stale)


def _try(start: Start, folder: Path) -> Served:
    folder.mkdir()
    return try_server(start, folder)


def _server(start: Start, served: Served) -> Verdict:
    words = " ".join(start)
    if served.failure:
        advice = "hosts get no tools from it; try it by hand, or install agent-journal anew"
        return problem("server", f"{words}: {served.failure}", advice)
    return ok("server", f"{words} lists its tools in {served.took_s:.1f} s, and ends with its host")
