"""The journal: writes entries, and finds and reads what any process has written."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from agent_journal import answering, checking
from agent_journal.corrections import Corrections
from agent_journal.errors import (
    AmbiguousIdError,
    EmbedderUnavailableError,
    EntryNotFoundError,
    IndexUnavailableError,
    JournalUnavailableError,
    ReferenceNotFoundError,
)
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Problem,
    Relations,
    SearchPage,
)
from agent_journal.naming import said_path
from agent_journal.ports import (
    EmbedderLoader,
    Index,
    Listing,
    Progress,
    Store,
)
from agent_journal.query import Filters, Query
from agent_journal.recency import Recency
from agent_journal.upkeep import Changes, Upkeep

if TYPE_CHECKING:
    from agent_journal.redaction import Redacted
    from agent_journal.secrets.policy import Policy

MODEL_WAIT_S = 2.0
"""How long a search waits for the model unless it is told otherwise."""

_NOT_THERE = "the text doesn't stand in the entry now; was it removed before, or spelled otherwise?"
_INCOMPLETE = "others make the index anew again and again; entries may be missing, search again"
_MORE_ATTEMPTS = 5  # to search, each after catching up again
_STALE_S = 86_400.0  # a temporary file older than a day has no writer
_log = logging.getLogger("agent_journal")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Status:
    """How a journal is doing.

    Attributes:
        location: the journal folder.
        index_location: where the index is.
        entries: entries in the journal.
        tags: different tags in use.
        model: the embedder's name; empty when there is none yet.
        reason: why there is no embedder; empty when there is one.
        backlog: entries without a vector of it; None when there is no embedder.
        problems: files that can't be read fully, ordered by path and line.
        notices: what else the user should know.
    """

    location: str
    index_location: str
    entries: int
    tags: int
    model: str
    reason: str
    backlog: int | None
    problems: tuple[Problem, ...]
    notices: tuple[str, ...]


class Journal:
    """One journal: a store of entries, an index over it, and a model that may still be loading.

    May be used from several threads, and by several processes at once. Close it, or use it as a
    context manager.

    Args:
        store: where the entries are.
        index: what is searched; any index, however stale or empty.
        loader: hands out the embedder.
        fallback: makes the index that takes over when `index` can't be used any more.
        notices: what the user should know about how this journal was put together.
        secrets: what happens to drafts with secrets, unless a write says otherwise.
        recency: searches prefer newer entries a little, half as much after so many days.
        clock: the present instant, aware.
    """

    def __init__(
        self,
        store: Store,
        index: Index,
        loader: EmbedderLoader,
        *,
        fallback: Callable[[], Index] | None = None,
        notices: Iterable[str] = (),
        secrets: Policy = "mask",
        recency: float | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._index = index
        self._loader = loader
        self._fallback = fallback
        self._notices = list(notices)
        self._secrets = secrets
        self._recency = recency
        self._clock = clock
        self._upkeep = Upkeep(store, index)
        self._used = [index]
        self._swapping = threading.Lock()

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the journal."""
        self.close()

    def close(self) -> None:
        """Release files and memory; idempotent. What was written stays written."""
        self._index.close()

    def write(
        self, draft: Draft, *, secrets: Policy | None = None, may_dangle: bool = False
    ) -> Entry:
        """Store a new entry; it is durable when this returns, and found by the next search.

        Args:
            draft: what to write.
            secrets: what happens if it holds secrets; None means what the journal does.
            may_dangle: what it supersedes or annotates need not be here, as in an import.

        Returns:
            The entry as it is stored; its `screening` tells what was masked or suspected.

        Raises:
            SecretsFoundError: it holds secrets, and they are refused.
            EntryTooLargeError: the entry would be larger than the limit.
            ReferenceNotFoundError: it supersedes or annotates what isn't here.
            JournalUnavailableError: whether that is here can't be told.
            WriteFailedError: it could not be made durable; nothing is left of it.
        """
        if not may_dangle and (draft.supersedes or draft.annotates):
            self._require_there(draft)
        from agent_journal.secrets.screening import (  # noqa: PLC0415 - 15 ms that searches spare
            screen,
        )

        screened, found = screen(draft, secrets or self._secrets)
        return replace(self._store.append(screened), screening=found)

    def read(self, entry_id: str) -> Entry:
        """Return the entry with this id.

        Raises:
            EntryNotFoundError: there is none.
            StorageError: its file can't be read.
        """
        return self._store.read(EntryId(entry_id))

    def resolve(self, prefix: str) -> EntryId:
        """Return the id that equals a prefix, else the only one that starts with it.

        Raises:
            EntryNotFoundError: there is none.
            AmbiguousIdError: there are several.
            JournalUnavailableError: the folder is missing or can't be read.
        """
        known = self._store.listing().versions
        if EntryId(prefix) in known:
            return EntryId(prefix)
        matches = sorted(entry_id for entry_id in known if prefix and entry_id.startswith(prefix))
        if not matches:
            raise EntryNotFoundError(prefix)
        if len(matches) > 1:
            raise AmbiguousIdError(prefix, matches)
        return matches[0]

    def relations(self, entry: Entry) -> Relations:
        """Return how an entry stands to others, after catching up.

        While the folder can't be read, only what the entry itself says is known.
        """

        def work() -> Relations:
            found = Corrections() if self._step_in() else self._index.corrections()
            return Relations(
                supersedes=entry.supersedes,
                annotates=entry.annotates,
                superseded_by=found.superseded_by(entry.id),
                annotated_by=found.annotated_by(entry.id),
            )

        return self._degrading(work)

    def search(
        self, query: Query, *, wait_s: float = MODEL_WAIT_S, with_tags: bool = True
    ) -> SearchPage:
        """Answer a query over everything that any process has written until now.

        Nothing is raised for a folder that is missing, unreadable or empty all of a sudden, nor for
        a model or an index that can't be used: `SearchPage` says so.

        Args:
            query: what to look for.
            wait_s: the longest wait for the model; without it the answer is lexical.
            with_tags: fill `SearchPage.tags`, which a process that asks once can feel.

        Raises:
            InvalidDateError: since or until is no date.
        """
        now = self._clock()
        filters = Filters.of(query, now)
        recency = None if self._recency is None else Recency.at(now, self._recency)
        return self._degrading(
            lambda: self._search(query, filters, recency, wait_s, with_tags=with_tags)
        )

    def catch_up(self, *, thorough: bool = False, progress: Progress | None = None) -> Changes:
        """Bring the index in step with the entries' text; doing it twice changes nothing more.

        Entries of a folder that is suddenly empty stay indexed, since a failed mount looks like
        that; `reindex` forgets them.

        Args:
            thorough: look at every file, trusting no earlier listing.
            progress: told of (done, total) entries.

        Raises:
            JournalUnavailableError: the folder is missing or can't be read.
        """
        return self._degrading(lambda: self._upkeep.catch_up(thorough=thorough, progress=progress))

    def reindex(self, *, progress: Progress | None = None) -> Changes:
        """Forget the index, vectors too, and make it anew from the entries' text.

        The vectors are left to `work_backlog`.

        Returns:
            Entries indexed now, and how many fewer than before.

        Raises:
            JournalUnavailableError: the folder can't be read; a missing one empties the index.
        """
        return self._degrading(lambda: self._reindex(progress))

    def work_backlog(
        self,
        *,
        wait_s: float = MODEL_WAIT_S,
        limit_s: float | None = None,
        stop: threading.Event | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Embed entries that have no vectors yet, and return how many were done.

        Processes share the work: each takes a few entries at a time.

        Args:
            wait_s: the longest wait for the model.
            limit_s: stop after about so long; None means when nothing is left.
            stop: stop soon after it is set.
            progress: told of (done, total) entries.

        Raises:
            EmbedderUnavailableError: there is no model.
            JournalUnavailableError: the folder is missing or can't be read.
        """
        embedder = self._loader.get(wait_s)
        ends = None if limit_s is None else time.monotonic() + limit_s

        def is_over() -> bool:
            if stop is not None and stop.is_set():
                return True
            return ends is not None and time.monotonic() >= ends

        def work() -> int:
            self._upkeep.catch_up()
            return self._upkeep.work_backlog(embedder, is_over, progress)

        return self._degrading(work)

    def check(self, *, fix: bool = False, progress: Progress | None = None) -> list[Problem]:
        """Read every entry, sidecar and ledger, and return all problems, ordered by path and line.

        The index is looked through as well; a damaged one is replaced and makes no problem.

        Args:
            fix: remove temporary files that crashed writers left more than a day ago.
            progress: told of (done, total); each entry is read twice.

        Raises:
            JournalUnavailableError: the folder is missing or can't be read.
        """
        if fix:
            self._store.sweep(older_than_s=_STALE_S)
        listing = self._store.listing(thorough=True)
        found = checking.check(self._store, self._upkeep, listing, progress)
        self._degrading(lambda: self._index.verify())  # noqa: PLW0108 - the fallback is another
        if notice := self._degrading(lambda: self._emptied(listing)):
            found.append(Problem(self._store.location, notice))
        return checking.in_order(found)

    def adopt(
        self, ids: Collection[str] = (), *, progress: Progress | None = None
    ) -> list[EntryId]:
        """Say in the ledger that entries belong here as they are now; for a person to decide.

        Args:
            ids: altered, restored or missing entries, too; without any, all that have no line, and
                lost ends of ledgers are no longer told.
            progress: told of (done, total) entries.

        Returns:
            The entries that got a line.

        Raises:
            EntryNotFoundError: an id is neither here nor in a ledger; nothing was entered.
            JournalUnavailableError: the folder is missing or can't be read.
            LedgerUnavailableError: lines could not be added, or not all of them.
        """
        return self._store.adopt([EntryId(each) for each in ids], progress=progress)

    def redact(self, entry_id: str, *, reason: str = "", text: str = "") -> Redacted:
        """Remove text from an entry for good, and from all that was made of it; for a person to do.

        What an agent wrote is never gone from backups, from the history of a repository or from
        other machines' copies by this. After a crash or an error the same call does what is left.

        Args:
            entry_id: the entry.
            reason: why; kept in the entry and the ledger. Its secrets are masked or refused, as a
                draft's are. Without it and without a text only what an earlier redaction left
                undone is done.
            text: what to remove, wherever it stands in the entry; empty means all of the entry.

        Raises:
            EntryNotFoundError: there is no such entry.
            RedactionRefusedError: there is nothing to remove, or a rule is broken.
            SecretsFoundError: the reason holds secrets, and they are refused.
            StorageError: it was not done, or not all of it.
            IndexUnavailableError: the entry is redacted, but an index may still hold its words.
        """

        def purge() -> None:
            for index in self._used:  # one that could not be used is still on the disk
                index.purge([EntryId(entry_id)])

        from agent_journal.redaction import Redaction  # noqa: PLC0415 - searches redact nothing
        from agent_journal.secrets.screening import screen_text  # noqa: PLC0415 - nor screen they
        from agent_journal.secrets.telling import sentences_on_reason  # noqa: PLC0415 - as above

        reason, found = screen_text("reason", reason, self._secrets)
        asked = Redaction(reason, text) if reason or text else None
        done = self._store.redact(EntryId(entry_id), asked, purge)
        told = sentences_on_reason(found)
        if asked is not None and asked.text:
            told += [] if done.count else [_NOT_THERE]
            told += checking.still_holding(self._store, asked)
        return replace(done, notices=(*done.notices, *told))

    def tags(self) -> dict[str, int]:
        """Return every tag with the number of entries that carry it, most used first."""
        return self._degrading(lambda: {} if self._step_in() else self._index.tags())

    def status(self, *, wait_s: float = 0.0) -> Status:
        """Return how the journal is doing, after catching up.

        Args:
            wait_s: the longest wait for the model.
        """
        return self._degrading(lambda: self._status(wait_s))

    def warm_up(self) -> None:
        """Start loading the model in the background, if that has not begun."""
        with contextlib.suppress(EmbedderUnavailableError):
            self._loader.get(0.0)

    def _degrading(self, work: Callable[[], _T]) -> _T:
        """Do some work; when the index can't be used, say so once and do it with the fallback."""
        index = self._index
        try:
            return work()
        except IndexUnavailableError as error:
            with self._swapping:
                if self._index is index:
                    if self._fallback is None:
                        raise
                    index.close()
                    self._index, self._fallback = self._fallback(), None
                    self._used.append(self._index)
                    self._upkeep = Upkeep(self._store, self._index)
                    self._notices.append(f"{error}; searching from memory until restart")
                    _log.warning(self._notices[-1])
            return work()

    def _require_there(self, draft: Draft) -> None:
        try:
            known = self._store.listing().versions
        except JournalUnavailableError as error:
            if not error.missing:
                raise
            known = {}
        for name in ("supersedes", "annotates"):
            for reference in getattr(draft, name):
                if reference not in known:
                    raise ReferenceNotFoundError(name, reference)

    def _step_in(self) -> str:
        """Catch up; return why nothing can be found now, or an empty string."""
        try:
            self._upkeep.catch_up()
        except JournalUnavailableError as error:
            if error.missing:
                return f"there is no journal at {error.path} yet; the first write creates it"
            return str(error)
        listing = self._upkeep.listing
        return self._emptied(listing) if listing else ""

    def _emptied(self, listing: Listing) -> str:
        """Say so when the folder holds nothing though the index does; else an empty string."""
        if listing.versions or not self._index.count():
            return ""
        return (
            f"journal folder {self._store.location} is empty, but its index knows entries; "
            "is it mounted? if they are gone for good, run: agent-journal reindex"
        )

    def _search(
        self,
        query: Query,
        filters: Filters,
        recency: Recency | None,
        wait_s: float,
        *,
        with_tags: bool,
    ) -> SearchPage:
        incomplete: tuple[str, ...] = (_INCOMPLETE,)
        for wait in (wait_s, *[0.0] * _MORE_ATTEMPTS):
            if notice := self._step_in():
                return self._nothing(query, notice)
            origin = self._upkeep.origin
            found = answering.answer(
                query, filters, self._store, self._index, self._loader, wait, recency
            )
            if found.known >= self._upkeep.expected and self._index.origin() == origin:
                incomplete = ()
                break  # else another process has emptied the index since, to make it anew
        return SearchPage(
            hits=found.hits,
            total=found.total,
            offset=query.offset,
            tags=self._index.tags() if with_tags else {},
            mode="lexical" if found.reason else "hybrid",
            reason=found.reason,
            backlog=found.backlog,
            notices=(*self._notices, *self._unreadable(), *incomplete),
        )

    def _unreadable(self) -> list[str]:
        """Say how many entries could not even be opened, so that nothing can be found in them."""
        found = self._upkeep.unreadable
        if not found:
            return []
        count = "1 entry" if len(found) == 1 else f"{len(found)} entries"
        return [
            f"{count} can't be read, {said_path(found[0].path)} for one; see: agent-journal check"
        ]

    def _nothing(self, query: Query, notice: str) -> SearchPage:
        return SearchPage(
            hits=(),
            total=0,
            offset=query.offset,
            tags={},
            mode="lexical",
            reason=notice,
            backlog=0,
            notices=(*self._notices, notice),
        )

    def _reindex(self, progress: Progress | None) -> Changes:
        try:
            self._store.listing(thorough=True)
        except JournalUnavailableError as error:
            if not error.missing:
                raise
            before = self._index.count()
            self._index.clear()
            return Changes(removed=before)
        before = self._index.count()
        self._index.clear()
        added = self._upkeep.catch_up(thorough=True, progress=progress).added
        return Changes(added=added, removed=max(before - added, 0))

    def _status(self, wait_s: float) -> Status:
        notice = self._step_in()
        model, reason, backlog = "", "", None
        try:
            embedder = self._loader.get(wait_s)
        except EmbedderUnavailableError as error:
            reason = error.reason
        else:
            model, backlog = embedder.name, self._index.backlog(embedder.identity)
        found = [*self._index.problems(), *self._upkeep.unreadable]
        if self._upkeep.listing:
            found += self._upkeep.listing.problems
        return Status(
            location=self._store.location,
            index_location=self._index.location,
            entries=0 if notice else self._index.count(),
            tags=0 if notice else len(self._index.tags()),
            model=model,
            reason=reason,
            backlog=backlog,
            problems=tuple(checking.in_order(found)),
            notices=(*self._notices, notice) if notice else tuple(self._notices),
        )
