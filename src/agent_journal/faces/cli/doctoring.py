"""The command that looks at everything and tries everything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_journal.faces.cli import layout, shapes
from agent_journal.faces.cli.call import Call
from agent_journal.faces.cli.errors import NOTHING, OK
from agent_journal.faces.cli.output import package_version, print_lines, progress_bar, waiting
from agent_journal.faces.cli.shared import shared_options

if TYPE_CHECKING:
    from agent_journal.config import Settings
    from agent_journal.faces.doctor.examination import Patient


@click.command(
    epilog="\b\nExamples:\n"
    "  agent-journal doctor\n"
    "  agent-journal doctor --json | jq '.verdicts[] | select(.level == \"problem\")'\n"
)
@shared_options(listed=False)
@click.pass_context
def doctor(context: click.Context) -> int:
    """See whether everything works, by trying it.

    The configuration, the folders, all entries and their vectors, the model, the MCP server and the
    hosts; each finding says what to do. Nothing of yours is changed.
    """
    from agent_journal.faces.doctor.examination import Shows, examine  # noqa: PLC0415 - slow

    call = Call(context)
    patient = _patient(call.settings(quiet=True))
    verdicts = []
    with _no_log(), closing(examine(patient, Shows(progress_bar, waiting))) as examined:
        for verdict in examined:
            verdicts.append(verdict)
            if not call.as_json:
                print_lines(layout.verdict_lines([verdict]))
    call.answer(shapes.verdicts_shape(verdicts), layout.summary_lines(verdicts))
    return NOTHING if any(verdict.level == "problem" for verdict in verdicts) else OK


def _patient(settings: Settings) -> Patient:
    from agent_journal.faces.doctor.examination import Patient  # noqa: PLC0415 - as above
    from agent_journal.faces.hosts.command import (  # noqa: PLC0415 - as above
        running_program,
        server_command,
    )
    from agent_journal.faces.hosts.table import this_machine  # noqa: PLC0415 - as above

    directory = None
    with suppress(OSError):
        directory = Path.cwd()
    return Patient(
        settings=settings,
        machine=this_machine(os.environ),
        version=package_version(),
        start=server_command(running_program(sys.argv[0]), ()),
        directory=directory,
    )


@contextmanager
def _no_log() -> Iterator[None]:
    """Keep warnings out of the log and off the screen: what is wrong is told as a verdict."""
    import logging  # noqa: PLC0415 - not needed for --help

    log = logging.getLogger("agent_journal")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
