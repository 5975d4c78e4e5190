"""What the journal speaks of: entries, drafts and hits, as values that do no I/O."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, NewType

from agent_journal.errors import (
    ForbiddenCharacterError,
    InvalidFieldError,
    TitleMissingError,
    TitleTooLongError,
)
from agent_journal.firstline import first_line

TITLE_LIMIT = 300
ENTRY_LIMIT_BYTES = 1024 * 1024

EntryId = NewType("EntryId", str)
"""The stem of an entry's file: ``YYYYMMDD-HHMMSS-mmm`` in UTC for ours, any name for others."""

Mode = Literal["hybrid", "lexical"]
FoundBy = Literal["title", "lexical", "dense"]
Scalar = str | int | float | bool | None
Value = Scalar | Sequence["Value"] | Mapping[str, "Value"]
"""What a frontmatter key beyond ours may hold."""

FRONTMATTER_KEYS = frozenset(
    {"title", "created", "project", "repo", "model", "provider", "agent", "session_id", "tags"}
    | {"supersedes", "annotates"}
)
"""Our own keys; whatever else frontmatter holds is an entry's `extra`."""

FORBIDDEN = re.compile("[\x00\ud800-\udfff]")
"""NUL and lone surrogates: what no UTF-8 text file carries faithfully."""

_HEADING_LIMIT = 80
_ID_INSTANT = re.compile(r"(\d{8}-\d{6}-\d{3})(?!\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an entry comes from; an empty string means that it is not known.

    Attributes:
        project: the project's directory, or whatever else names it.
        model: the language model that wrote the entry.
        provider: who served that model.
        agent: the agent's name within its host, or the host's.
        session: the host's id of the conversation (``session_id`` in frontmatter).
        repo: the project's repository, under the same name on every machine: its remote as
            ``host/path``, or the id of its first commit.
    """

    project: str = ""
    model: str = ""
    provider: str = ""
    agent: str = ""
    session: str = ""
    repo: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller wants written; a draft that exists keeps the rules of an entry.

    Titles have their white-space runs made one space. Bodies lose surrounding blank lines, and
    CRLF and CR become LF. Tags are trimmed, empty ones dropped, and those that differ only in case
    joined under their first spelling; a leading ``#`` is no part of one.

    Attributes:
        created: when it happened, for imports (UTC unless it says otherwise); None means now.
        extra: further frontmatter, kept as it is; none of our own keys.
        supersedes: the id of the entry that this one takes the place of, or the ids of several.
        annotates: the id of the entry that this one says something about, or the ids of several.

    Raises:
        InvalidDraftError: a subclass of it names the field and the limit.
    """

    title: str
    body: str = ""
    tags: Sequence[str] = ()
    provenance: Provenance = Provenance()
    created: datetime | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)
    supersedes: str | Sequence[str] = ()
    annotates: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check every field and put it into its one form."""
        for name in ("title", "body"):
            _require_text(name, getattr(self, name))
        for name in Provenance.__slots__:
            _require_text(name, getattr(self.provenance, name))
        title = " ".join(self.title.split())
        if not title:
            raise TitleMissingError
        if len(title) > TITLE_LIMIT:
            raise TitleTooLongError(len(title), TITLE_LIMIT)
        for key in self.extra:
            _require_text("extra", key)
            if not key or key in FRONTMATTER_KEYS:
                message = f"extra has the key {key!r}; use the draft's own field, or another key"
                raise InvalidFieldError("extra", message)
        _require_values("extra", self.extra)
        set_field = object.__setattr__
        set_field(self, "title", title)
        set_field(self, "body", normalise_body(self.body))
        set_field(self, "tags", normalise_tags(self.tags))
        set_field(self, "extra", dict(self.extra))
        for name in ("supersedes", "annotates"):
            set_field(self, name, normalise_references(name, getattr(self, name)))
        if self.created is not None:
            set_field(self, "created", to_utc(self.created))


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that can't be read fully: listed, never fatal.

    Attributes:
        path: the file, absolute.
        line: where in it, counted from 1; None when it concerns the whole file.
        reason: what is wrong, in one lower-case sentence.
        kind: one word for what is wrong with a ledger, or with a file as ledgers know it; empty for
            everything else.
    """

    path: str
    reason: str
    line: int | None = None
    kind: str = ""

    def __str__(self) -> str:
        """``path:line: reason``, as compilers print it."""
        return f"{self.path}:{self.line or 1}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Screening:
    """What in a draft looked like secrets: how many of each kind, never what they were.

    Attributes:
        masked: what stands as ``[masked:kind]`` in the entry now, and is kept nowhere.
        suspected: what may be secret and was left as it is.
    """

    masked: Mapping[str, int] = field(default_factory=dict)
    suspected: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, as its file says it.

    Attributes:
        created: aware, UTC, whole milliseconds.
        title: empty when the file gives none; see `heading`.
        extra: every frontmatter key that isn't ours, in the file's order.
        supersedes: the entries whose place it takes; they need not exist any more.
        annotates: the entries that it says something about; neither need they.
        problems: what could not be read; not part of the entry's value.
        screening: what was found in its draft, when it was just written; empty when it was read.
    """

    id: EntryId
    title: str
    body: str
    created: datetime
    tags: tuple[str, ...] = ()
    provenance: Provenance = Provenance()
    extra: Mapping[str, Value] = field(default_factory=dict)
    supersedes: tuple[EntryId, ...] = ()
    annotates: tuple[EntryId, ...] = ()
    problems: tuple[Problem, ...] = field(default=(), compare=False)
    screening: Screening = field(default=Screening(), compare=False)

    @property
    def heading(self) -> str:
        """The title; for a file without one its first line (at most 80 characters), else its id."""
        if self.title:
            return self.title
        return first_line(self.body, _HEADING_LIMIT) or self.id


@dataclass(frozen=True, slots=True)
class Relations:
    """How an entry stands to others, in both directions.

    Attributes:
        supersedes, annotates: as the entry says.
        superseded_by: every entry that supersedes it, directly or by way of others; those that are
            superseded themselves come after what supersedes them.
        annotated_by: the entries that annotate it, newest first.
    """

    supersedes: tuple[EntryId, ...] = ()
    annotates: tuple[EntryId, ...] = ()
    superseded_by: tuple[EntryId, ...] = ()
    annotated_by: tuple[EntryId, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of an entry that is embedded and quoted: ``body[start:end]``, in characters."""

    ordinal: int
    start: int
    end: int
    text: str


class Reasons(NamedTuple):
    """What an entry's score is made of.

    Attributes:
        words: the share of the query that its words cover, rare ones counting most; above 1 when it
            repeats them.
        cosine: between the query and its nearest passage or title; None when none was compared.
        meaning: by how many deviations that cosine is above the ordinary one; 0 when it is below.
        title: the query is, holds, or is held by its title.
        exact: it holds an identifier of the query, or what the query quotes.
        is_weak: so much is often found by chance, and may have nothing to do with the query.
        recency: what the entry's age adds to words and meaning; 0 unless that is asked for.
    """

    words: float = 0.0
    cosine: float | None = None
    meaning: float = 0.0
    title: bool = False
    exact: bool = False
    is_weak: bool = False
    recency: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry that answers a query.

    Attributes:
        score: in [0, 1], comparable within one answer only; None when the query had no text.
        snippet: the passage that matched, or a part of it: always a substring of the entry's body.
        offset: where the snippet starts in the body, in characters.
        found_by: the kinds of evidence; empty when the query had no text.
        reasons: what the score is made of; None when the query had no text.
        superseded_by: as `Relations` has it; those of them that are hits come before this one.
    """

    entry: Entry
    score: float | None
    snippet: str
    offset: int
    found_by: tuple[FoundBy, ...] = ()
    reasons: Reasons | None = None
    superseded_by: tuple[EntryId, ...] = ()

    @property
    def is_weak(self) -> bool:
        """Whether so much is often found by chance; see `Reasons`."""
        return self.reasons is not None and self.reasons.is_weak


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of an answer, and how it was found.

    Attributes:
        hits: best first, but what supersedes a hit comes before it if it is one, too; newest first
            without a text. An entry appears once.
        total: hits in the whole filtered journal, whatever the page.
        offset: the page's first hit within them.
        tags: every tag in the journal with the number of entries that carry it, most used first;
            none when they weren't asked for.
        mode: ``hybrid`` when words and meaning were both used.
        reason: why the mode isn't hybrid; empty when it is.
        backlog: entries that have no vector yet, so that only their words can be found; 0 while
            there is no model, since `reason` says then that none is used.
        notices: what else the user should know, such as a folder that can't be read.
    """

    hits: tuple[Hit, ...]
    total: int
    offset: int
    tags: Mapping[str, int]
    mode: Mode
    reason: str
    backlog: int
    notices: tuple[str, ...] = ()


def fold_case(text: str) -> str:
    """Return the form under which filters compare: without case and surrounding blanks."""
    return text.strip().casefold()


def project_name(project: str) -> str:
    """Return the last part of a project's path, whichever way its slashes lean."""
    return re.split(r"[/\\]", project.rstrip("/\\"))[-1]


def normalise_body(body: str) -> str:
    """Return a body as it is stored: LF line ends, no blank lines around it."""
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", len(text.rstrip()))
    return text[start : end if end >= 0 else len(text)] if text.strip() else ""


def normalise_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Trim tags, drop empty ones, and join those that differ only in case; order is kept.

    A leading ``#``, as people write tags, is no part of one.

    Raises:
        InvalidFieldError: a single string was given, or something that is no string.
    """
    if isinstance(tags, str):
        raise InvalidFieldError("tags", "tags is one string; give a list of strings")
    first_spelling: dict[str, str] = {}
    for tag in tags:
        _require_text("tags", tag)
        trimmed = " ".join(tag.split()).lstrip("# ")
        if trimmed:
            first_spelling.setdefault(fold_case(trimmed), trimmed)
    return tuple(first_spelling.values())


def normalise_references(name: str, references: str | Iterable[str]) -> tuple[EntryId, ...]:
    """Trim ids of other entries, and drop empty ones and repetitions; order is kept.

    Args:
        name: what they are called in an error.
        references: one id, or any number of them.

    Raises:
        InvalidFieldError: one of them is no string.
        ForbiddenCharacterError: one of them holds what no file's name of ours can.
    """
    given = [references] if isinstance(references, str) else references
    found: dict[EntryId, None] = {}
    for reference in given:
        _require_text(name, reference)
        found[EntryId(reference.strip())] = None
    found.pop(EntryId(""), None)
    return tuple(found)


def to_utc(instant: datetime) -> datetime:
    """Return an instant in UTC, cut to whole milliseconds; without a zone it counts as UTC.

    Raises:
        InvalidFieldError: it lies outside the calendar in UTC.
    """
    try:
        aware = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except OverflowError:
        message = f"created is {instant}, which lies outside the years 1 to 9999 in UTC"
        raise InvalidFieldError("created", message) from None
    return aware.replace(microsecond=aware.microsecond // 1000 * 1000)


def to_milliseconds(instant: datetime) -> int:
    """Return an aware instant as whole milliseconds since the epoch."""
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def from_milliseconds(milliseconds: int) -> datetime:
    """Return the aware UTC instant of some milliseconds since the epoch."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def entry_id_of(instant: datetime) -> EntryId:
    """Return the id that an entry created at an aware UTC instant asks for."""
    year = f"{instant.year:04d}"  # %Y doesn't fill up the years before 1000 everywhere
    return EntryId(f"{year}{instant:%m%d-%H%M%S}-{instant.microsecond // 1000:03d}")


def instant_of(entry_id: str) -> datetime | None:
    """Return the instant that an id starts with; None when it is no id of our pattern."""
    if named := _ID_INSTANT.match(entry_id):
        with contextlib.suppress(ValueError):
            return datetime.strptime(f"{named[1]}000+0000", "%Y%m%d-%H%M%S-%f%z")
    return None


def timestamp(instant: datetime) -> str:
    """Return an aware instant as frontmatter holds it: ISO 8601, UTC, milliseconds, Z."""
    return to_utc(instant).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _require_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidFieldError(name, f"{name} is {type(text).__name__}; give a string")
    if found := FORBIDDEN.search(text):
        raise ForbiddenCharacterError(name, found[0], found.start())


def _require_values(name: str, value: object) -> None:
    if isinstance(value, str):
        _require_text(name, value)
    elif isinstance(value, Mapping):
        for key, member in value.items():
            _require_text(name, key)
            _require_values(name, member)
    elif isinstance(value, list | tuple):
        for member in value:
            _require_values(name, member)
    elif not (value is None or isinstance(value, bool | int | float)):
        message = f"{name} holds {type(value).__name__}; give text, numbers, lists or mappings"
        raise InvalidFieldError(name, message)
