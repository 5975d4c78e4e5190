"""What answers a query: evidence from an index, ranked, and the page's entries read and quoted."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from agent_journal import passages, ranking, words
from agent_journal.corrections import Corrections
from agent_journal.errors import (
    DimensionMismatchError,
    EmbedderUnavailableError,
    EntryNotFoundError,
    StorageError,
)
from agent_journal.model import Entry, EntryId, Hit, Problem, from_milliseconds, instant_of
from agent_journal.ports import Embedder, EmbedderLoader, Index, QueryVector, Store
from agent_journal.query import Filters, Query
from agent_journal.recency import Recency

SNIPPET_WIDTH = 300
"""The longest snippet, in characters."""


class Found(NamedTuple):
    """The answer to a query.

    Attributes:
        hits: those of the page asked for.
        total: how many there are.
        reason: why vectors had no part in it; empty when they had.
        backlog: entries that had no vector.
        known: entries in the index.
    """

    hits: tuple[Hit, ...]
    total: int
    reason: str
    backlog: int
    known: int


def answer(
    query: Query,
    filters: Filters,
    store: Store,
    index: Index,
    loader: EmbedderLoader,
    wait_s: float,
    recency: Recency | None = None,
) -> Found:
    """Answer a query from an index as it is.

    Args:
        query: what to look for.
        filters: the query's.
        store: where the entries are.
        index: what is searched.
        loader: hands out the embedder.
        wait_s: the longest wait for it.
        recency: as `ranking.rank` has it.
    """
    if query.text:
        return _matching(query, filters, store, index, loader, wait_s, recency)
    hits, total = _newest(query, filters, store, index)
    reason = "no text to compare: newest first"
    return Found(hits, total, reason, _backlog(index, loader), index.count())


def _newest(
    query: Query, filters: Filters, store: Store, index: Index
) -> tuple[tuple[Hit, ...], int]:
    page = index.select(filters, limit=query.limit, offset=query.offset)
    corrections = index.corrections()
    hits = []
    for entry_id in page.ids:
        if (entry := _read_hit(store, entry_id)) is not None:
            snippet, offset = _snippet(entry, 0, 0, ())
            by = corrections.superseded_by(entry_id)
            hits.append(Hit(entry, None, snippet, offset, superseded_by=by))
    return tuple(hits), page.total


def _matching(
    query: Query,
    filters: Filters,
    store: Store,
    index: Index,
    loader: EmbedderLoader,
    wait_s: float,
    recency: Recency | None,
) -> Found:
    terms, phrases = words.query_terms(query.text), words.phrases(query.text)
    vector, embedder, reason = _query_vector(query.text, loader, wait_s)
    # Before the evidence: what gets its vector in between has not counted.
    backlog = index.backlog(embedder.identity) if embedder else 0
    try:
        evidence = index.evidence(terms, filters, vector, phrases)
    except DimensionMismatchError as error:
        embedder, reason, backlog = None, str(error), 0
        evidence = index.evidence(terms, filters, phrases=phrases)
    if embedder and not evidence.compared and backlog:
        reason = "no entry that passes has a vector yet"
    ranked = ranking.rank(
        evidence,
        terms,
        words.title_key(query.text),
        embedder.baseline if embedder else None,
        words.identifiers(query.text),
        recency,
    )
    corrections = index.corrections()
    hits = []
    for found in _page(query, ranked, corrections):
        if (entry := _read_hit(store, found.id)) is not None:
            snippet, offset = _snippet(entry, found.start, found.end, terms)
            by = corrections.superseded_by(found.id)
            hits.append(Hit(entry, found.score, snippet, offset, found.found_by, found.reasons, by))
    return Found(tuple(hits), len(ranked), reason, backlog, evidence.entry_count)


def _page(query: Query, ranked: ranking.Ranking, corrections: Corrections) -> list[ranking.Ranked]:
    """Return the page asked for, of hits of which none comes before one that supersedes it."""
    start, stop = query.offset, query.offset + query.limit
    if not corrections.superseding:
        return ranked[start:stop]
    places = ranked.places()
    return [ranked[places[one]] for one in islice(corrections.arranged(places), start, stop)]


def _query_vector(
    text: str, loader: EmbedderLoader, wait_s: float
) -> tuple[QueryVector | None, Embedder | None, str]:
    try:
        embedder = loader.get(wait_s)
    except EmbedderUnavailableError as error:
        return None, None, error.reason
    vector = embedder.embed_query(text)
    return QueryVector(embedder.name, embedder.identity, vector, embedder.floor), embedder, ""


def _backlog(index: Index, loader: EmbedderLoader) -> int:
    try:
        return index.backlog(loader.get(0.0).identity)
    except EmbedderUnavailableError:
        return 0


def _read_hit(store: Store, entry_id: EntryId) -> Entry | None:
    """Read an entry that was found; None when it is gone since."""
    try:
        return store.read(entry_id)
    except EntryNotFoundError:
        return None
    except StorageError as error:
        created = instant_of(entry_id) or from_milliseconds(0)
        problem = Problem(error.path, str(error))
        return Entry(entry_id, "", "", created, problems=(problem,))


def _snippet(entry: Entry, start: int, end: int, terms: Collection[str]) -> tuple[str, int]:
    """Return the part of a passage that shows best why it was found, and its offset."""
    end = min(end or len(entry.body), len(entry.body))
    start = min(start, end)
    is_cut = end - start > SNIPPET_WIDTH  # else all of it is shown, wherever the terms stand
    focus = start + words.locate(entry.body[start:end], terms) if is_cut else start
    return passages.excerpt(entry.body, start, end, focus=focus, width=SNIPPET_WIDTH)
