"""The installed command: ends quietly on Ctrl-C from its first moment, while still loading."""

from __future__ import annotations

import gc
import sys

_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> int:
    """Run the command line with the process's arguments; return the exit code."""
    try:
        from agent_journal.faces.cli.edge import run  # noqa: PLC0415 - the first 0.1 s count too
        from agent_journal.faces.cli.output import prepare_streams  # noqa: PLC0415 - as above

        # Facts of 10,000 entries are a hundred thousand objects and no garbage: looking through
        # them again and again took 50 of a cold search's 460 ms.
        gc.freeze()
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        prepare_streams()
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
