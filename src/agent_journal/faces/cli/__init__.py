"""The installed command: ends quietly on Ctrl-C from its first moment, while still loading."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line with the process's arguments; return the exit code."""
    try:
        from agent_journal.faces.cli.edge import run  # noqa: PLC0415 - the first 0.1 s count too
        from agent_journal.faces.cli.output import prepare_streams  # noqa: PLC0415 - as above

        prepare_streams()
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
