"""The way to the MCP server: stdin and stdout are secured before anything slow or native loads."""

from __future__ import annotations

import fcntl
import logging
import os
import sys

from agent_journal.config import Settings

_STDERR = 2
_log = logging.getLogger("agent_journal")


def serve(settings: Settings) -> int:
    """Serve one client until stdin ends, a signal comes, or nobody reads the answers any more.

    stdin and stdout belong to the protocol from here on; whatever else is written to descriptor 1
    goes to stderr. The handshake waits for nothing: the journal is opened, its index brought in
    step and the model loaded in the background once the client has asked for the tools.

    Args:
        settings: what to serve; disabled, or with an error, it offers no tools.

    Returns:
        An exit code. At most 2 s after the end the process leaves in any case, from within this
        call if a thread is still at work.
    """
    try:
        reading, writing = claim_stdio()
    except OSError as error:
        _log.warning("stdin or stdout is closed: %s", error.strerror)
        return 1
    from agent_journal.faces.mcp.server import run  # noqa: PLC0415 - the SDK takes about a second

    return run(settings, reading, writing)


def claim_stdio() -> tuple[int, int]:
    """Take stdin and stdout away from everybody else, native code and children included.

    From now on descriptor 0 reads nothing and what is written to descriptor 1 goes to stderr.

    Returns:
        Descriptors of what they were before.

    Raises:
        OSError: one of them is closed.
    """
    if sys.stdout is not None:  # as it is when the process started without one
        sys.stdout.flush()
    reading = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
    writing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
    for descriptor in (reading, writing):
        os.set_blocking(descriptor, True)
    nothing = os.open(os.devnull, os.O_RDWR)  # it becomes stderr if that is closed
    os.dup2(nothing, 0)
    os.dup2(_STDERR, 1)
    if nothing != _STDERR:
        os.close(nothing)
    return reading, writing
