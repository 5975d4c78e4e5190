"""What a journal holds already, as far as an import must know it: hashes, not texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime

from agent_journal import entryfile
from agent_journal.errors import EntryNotFoundError, JournalUnavailableError, StorageError
from agent_journal.jsonline import encode, plain
from agent_journal.ledger import hash_of
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Problem,
    Value,
    entry_id_of,
    from_milliseconds,
    instant_of,
    to_milliseconds,
)
from agent_journal.ports import Progress, Store
from agent_journal.removal import hashes_in
from agent_journal.transfer.batch import SOURCE_KEY
from agent_journal.transfer.shape import shape_of

_SOURCE = re.compile(r"((?:memory-block|private-journal|jsonl):.*)#[0-9a-f]{16}", re.DOTALL)
_HASH_BYTES = 16
_ONLY_AN_ID = (
    "jsonl:"  # such a source says what an entry was called, and is no part of what it says
)


class Known:
    """The sources and contents of a journal's entries, about 0.3 kB for each.

    A draft is there already if an entry has the same source, or if one says the very same and was
    created at that instant, or as soon after as an id was free: what is taken moves a draft on.

    Attributes:
        unreadable: entries that could not be read, so that nothing is known of them.
    """

    def __init__(self) -> None:
        self.unreadable: list[Problem] = []
        self._sources: dict[str, EntryId] = {}
        self._names: set[str] = set()
        self._taken: set[int] = set()
        self._created: dict[bytes, list[int]] = {}
        self._odd_ids: dict[tuple[bytes, int], EntryId] = {}  # those that no instant tells
        self._redacted: dict[tuple[str, int], EntryId] = {}
        self._before: dict[str, EntryId] = {}  # by hashes of files that redactions replaced

    @classmethod
    def of(cls, store: Store, progress: Progress | None = None) -> Known:
        """Read every entry of a journal once.

        Args:
            store: the journal's entries; a missing folder holds none.
            progress: told of (done, total) entries.

        Raises:
            JournalUnavailableError: the folder can't be read.
        """
        known = cls()
        try:
            listed = store.listing(thorough=True).versions
        except JournalUnavailableError as error:
            if not error.missing:
                raise
            return known
        for done, entry_id in enumerate(listed, 1):
            try:
                known.add(store.read(entry_id))
            except EntryNotFoundError:
                pass  # removed since
            except StorageError as error:
                known.unreadable.append(Problem(error.path, str(error)))
            if progress:
                progress(done, len(listed))
        return known

    def holds(self, draft: Draft) -> bool:
        """Tell whether a draft has become an entry already."""
        return self.id_of(draft) is not None

    def id_of(self, draft: Draft) -> EntryId | None:
        """Return the id of the entry that a draft has become; None when it has become none."""
        if there := self._sources.get(_source(draft.extra)):
            return there
        if draft.created is None:
            return None
        asked, content = to_milliseconds(draft.created), _content_of(draft)
        for created in self._created.get(content, ()):
            if asked <= created and all(one in self._taken for one in range(asked, created)):
                usual = entry_id_of(from_milliseconds(created))
                return self._odd_ids.get((content, created), usual)
        return None

    def redacted(self, draft: Draft, said_id: str = "") -> EntryId | None:
        """Return the id of a redacted entry that once was what a draft would become again.

        Args:
            draft: what is to be written.
            said_id: the id under which it was exported, if it was.
        """
        if draft.created is None or not self._before:
            return None
        if one := self._redacted.get((said_id, to_milliseconds(draft.created))):
            return one
        return self._before.get(hash_of(entryfile.render(draft.created, draft)))

    def holds_another(self, draft: Draft) -> bool:
        """Tell whether a draft's source was imported before, with another content."""
        return _name(_source(draft.extra)) in self._names

    def add(self, entry: Entry) -> None:
        """Count an entry among those that are there."""
        if entry.id != entry_id_of(entry.created):
            named = instant_of(entry.id)
            if named and entry_id_of(named) == entry.id:
                self._taken.add(to_milliseconds(named))
        content, created = _content_of(entry), to_milliseconds(entry.created)
        if before := hashes_in(entry):
            self._redacted[entry.id, created] = entry.id
            self._before.update(dict.fromkeys(before, entry.id))
        if entry.id != entry_id_of(entry.created):
            self._odd_ids[content, created] = entry.id
        self._add(content, created, _source(entry.extra), entry.id)

    def pretend(self, draft: Draft, created: datetime) -> EntryId:
        """Count a draft among what is there, as if it were written now; return its id."""
        instant = to_milliseconds(created)
        while instant in self._taken:
            instant += 1
        entry_id = entry_id_of(from_milliseconds(instant))
        self._add(_content_of(draft), instant, _source(draft.extra), entry_id)
        return entry_id

    def _add(self, content: bytes, created: int, source: str, entry_id: EntryId) -> None:
        self._taken.add(created)
        self._created.setdefault(content, []).append(created)
        if source:
            self._sources[source] = entry_id
            self._names.add(_name(source))


def _content_of(said: Draft | Entry) -> bytes:
    """Return a hash of all that an entry says, but for when, under or from which id, and of whom.

    What it supersedes and annotates may have another id where it was exported.
    """
    title = said.heading if isinstance(said, Entry) else said.title
    shape = shape_of(said, " ".join(title.split()))
    if _source(said.extra).startswith(_ONLY_AN_ID):
        shape["extra"] = plain({key: said.extra[key] for key in said.extra if key != SOURCE_KEY})
    return hashlib.sha256(encode(shape).encode()).digest()[:_HASH_BYTES]


def _source(extra: Mapping[str, Value]) -> str:
    """Return where an entry was imported from, if it was, and the key is ours and no other's."""
    source = extra.get(SOURCE_KEY)
    return source if isinstance(source, str) and _SOURCE.fullmatch(source) else ""


def _name(source: str) -> str:
    found = _SOURCE.fullmatch(source)
    return found[1] if found else ""
