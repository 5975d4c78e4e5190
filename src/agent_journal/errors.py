"""Everything that can go wrong, as one tree; a face maps each class to its own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class JournalError(Exception):
    """Root of every error raised on purpose; its message is one sentence a user can act on."""


class InvalidDraftError(JournalError):
    """A draft breaks a rule; nothing was written.

    Attributes:
        field: the draft's field that is wrong, such as ``title``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class TitleMissingError(InvalidDraftError):
    """The title is empty once blanks are trimmed."""

    def __init__(self) -> None:
        super().__init__("title", "title is empty; give the entry a title of 1 to 300 characters")


class TitleTooLongError(InvalidDraftError):
    """The title is longer than the limit."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            "title",
            f"title has {length:,} characters, the limit is {limit}; "
            "shorten it and move the rest into the body",
        )
        self.length = length
        self.limit = limit


class EntryTooLargeError(InvalidDraftError):
    """The entry's file would be larger than the limit."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            "body",
            f"entry is {size_bytes:,} bytes as a file, the limit is {limit_bytes:,}; "
            "shorten the body or split it into several entries",
        )
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class ForbiddenCharacterError(InvalidDraftError):
    """A field holds a character that no UTF-8 text file can carry faithfully."""

    def __init__(self, field: str, character: str, position: int) -> None:
        super().__init__(
            field,
            f"{field} holds U+{ord(character):04X} at position {position}; "
            "remove NUL characters and lone surrogates",
        )
        self.character = character
        self.position = position


class InvalidFieldError(InvalidDraftError):
    """A field has a type or a value that frontmatter can't hold."""


class SecretsFoundError(InvalidDraftError):
    """A draft holds credentials, and `journal.secrets` says to refuse them; they are told nowhere.

    Attributes:
        kinds: how many of each kind.
    """

    def __init__(self, field: str, kinds: Mapping[str, int]) -> None:
        found = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        super().__init__(
            field,
            f"{field} holds what looks like a secret ({found}); nothing was written; take it out, "
            "and write where it is kept instead",
        )
        self.kinds = dict(kinds)


class InvalidQueryError(JournalError):
    """A query can't be understood.

    Attributes:
        field: the query's field that is wrong, such as ``since``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidDateError(InvalidQueryError):
    """A date is neither ISO 8601 nor an age such as ``7d`` or ``2w``."""

    def __init__(self, field: str, value: str) -> None:
        super().__init__(
            field,
            f"{field} is {value[:80]!r}, which is no date; use 2026-01-31, 2026-01-31T18:00Z, "
            "or an age: 12h, 7d, 2w",
        )
        self.value = value


class EntryNotFoundError(JournalError):
    """No entry has this id."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"no entry {reference[:80]!r}; search for it to get its id")
        self.reference = reference


class ReferenceNotFoundError(EntryNotFoundError):
    """A draft is about an entry that isn't there; nothing was written.

    Attributes:
        field: the draft's field that names it, such as ``supersedes``.
    """

    def __init__(self, field: str, reference: str) -> None:
        super().__init__(reference)
        message = f"{field} names {reference[:80]!r}, which is no entry; nothing was written"
        self.args = (f"{message}; search for it to get its id",)
        self.field = field


class AmbiguousIdError(JournalError):
    """Several entries' ids start with what was given."""

    def __init__(self, prefix: str, matches: Sequence[str]) -> None:
        shown = ", ".join([*matches[:3], *(["..."] if matches[3:] else [])])
        super().__init__(f"{prefix!r} starts {len(matches)} ids ({shown}); give more of it")
        self.prefix = prefix
        self.matches = tuple(matches)


class StorageError(JournalError):
    """The journal folder did not do what was asked of it.

    Attributes:
        path: the file or folder concerned.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class WriteFailedError(StorageError):
    """An entry could not be made durable; it was not acknowledged and left nothing behind."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, f"could not write {path}: {reason}; nothing was saved")
        self.reason = reason


class JournalUnavailableError(StorageError):
    """The journal folder is missing or can't be read.

    Attributes:
        missing: the folder does not exist, as before the first write.
    """

    def __init__(self, path: str, reason: str, *, missing: bool = False) -> None:
        super().__init__(path, f"journal folder {path} can't be read: {reason}")
        self.reason = reason
        self.missing = missing


class InvalidSidecarError(StorageError):
    """An ``.embedding`` file is not a valid version 2 sidecar; it is ignored."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, f"sidecar {path} is ignored: {reason}")
        self.reason = reason


class LedgerUnavailableError(StorageError):
    """No line could be added to this machine's ledger; entries themselves are not affected."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, f"ledger {path} can't be written: {reason}")
        self.reason = reason


class RedactionRefusedError(JournalError):
    """An entry can't be redacted as asked; nothing was changed.

    Attributes:
        field: what is wrong with what was asked, such as ``reason``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class ImportUnavailableError(JournalError):
    """What is to be imported is not there, or can't be read; nothing was imported.

    Attributes:
        path: where it was looked for.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} can't be imported: {reason}")
        self.path = path
        self.reason = reason


class ConfigError(JournalError):
    """The configuration can't be used.

    Attributes:
        path: the configuration file, or the environment variable's name.
        key: the dotted key that is wrong, empty when the whole file is.
        line: the line in the file, when it is known.
    """

    def __init__(self, path: str, key: str, reason: str, line: int | None = None) -> None:
        where = f"{path}:{line}" if line else path
        super().__init__(f"{where}: {key}: {reason}" if key else f"{where}: {reason}")
        self.path = path
        self.key = key
        self.reason = reason
        self.line = line


class IndexUnavailableError(JournalError):
    """The search index can't be kept on disk; the journal itself is not affected."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"search index {path} can't be used: {reason}")
        self.path = path
        self.reason = reason


class EmbedderUnavailableError(JournalError):
    """No vectors can be made now; search goes on by words alone.

    Attributes:
        loading: the model is on its way and nothing is wrong.
    """

    def __init__(self, reason: str, *, loading: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.loading = loading


class ModelUnavailableError(JournalError):
    """A model can't be installed, removed or chosen; what was there before still is.

    Attributes:
        model: what it is called on the command line; empty when it isn't about one of them.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: {reason}" if model else reason)
        self.model = model
        self.reason = reason


class DimensionMismatchError(JournalError):
    """A vector has another length than its embedder says."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"vector has {actual} dimensions, its embedder makes {expected}")
        self.expected = expected
        self.actual = actual


class HostError(JournalError):
    """A host can't be installed into or asked, or holds what isn't ours.

    Attributes:
        host: what it is called on the command line.
    """

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(reason)
        self.host = host
        self.reason = reason
