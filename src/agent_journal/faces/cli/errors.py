"""What a command's end means: one table from errors to exit codes."""

from __future__ import annotations

from collections.abc import Mapping

from agent_journal.errors import (
    AmbiguousIdError,
    ConfigError,
    DimensionMismatchError,
    EmbedderUnavailableError,
    EntryNotFoundError,
    HostError,
    ImportUnavailableError,
    IndexUnavailableError,
    InvalidDraftError,
    InvalidQueryError,
    JournalError,
    ModelUnavailableError,
    RedactionRefusedError,
    StorageError,
)

OK = 0
NOTHING = 1
USAGE = 2
REFUSED = 3
NOT_FOUND = 4
STORAGE = 5
CONFIG = 6
INTERNAL = 7
HOST = 8
INTERRUPTED = 130
PIPE_CLOSED = 141

MEANINGS: Mapping[int, str] = {
    OK: "done",
    NOTHING: "nothing found, problems found (check, doctor), not all taken over (import, export), "
    "or nothing written (write, editor)",
    USAGE: "the command line is wrong",
    REFUSED: "the draft, the query or the redaction is refused: a field breaks a rule",
    NOT_FOUND: "no entry has this id, or several ids start with what was given",
    STORAGE: "the journal folder, the index, the model, the output or what to import can't be used",
    CONFIG: "the configuration file, a flag or an environment variable can't be used",
    INTERNAL: "an error in agent-journal itself; the log has the details",
    HOST: "the host is missing or refuses, or holds something that isn't ours",
    INTERRUPTED: "interrupted by Ctrl-C",
    PIPE_CLOSED: "whoever read the output went away, as with `| head`",
}

EXIT_CODES: Mapping[type[JournalError], int] = {
    InvalidDraftError: REFUSED,
    InvalidQueryError: REFUSED,
    RedactionRefusedError: REFUSED,
    EntryNotFoundError: NOT_FOUND,
    AmbiguousIdError: NOT_FOUND,
    StorageError: STORAGE,
    ImportUnavailableError: STORAGE,
    IndexUnavailableError: STORAGE,
    ModelUnavailableError: STORAGE,
    EmbedderUnavailableError: STORAGE,
    ConfigError: CONFIG,
    DimensionMismatchError: INTERNAL,
    HostError: HOST,
}
"""The code of a class counts for its subclasses too."""


class OutputFailedError(StorageError):
    """What should have been printed could not be, as on a full disk."""

    def __init__(self, reason: str, place: str = "stdout") -> None:
        where = "" if place == "stdout" else f" to {place}"
        super().__init__(place, f"output could not be written{where}: {reason}")
        self.reason = reason


def exit_code(error: JournalError) -> int:
    """Return the exit code of an error: that of its class, or of the nearest one above it."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
