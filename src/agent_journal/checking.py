"""A check: every file is read, and held against what the ledgers say of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_journal.errors import EntryNotFoundError, JournalUnavailableError, StorageError
from agent_journal.model import EntryId, Problem
from agent_journal.ports import Listing, Progress, Store

if TYPE_CHECKING:
    from agent_journal.redaction import Redaction
    from agent_journal.upkeep import Upkeep

_NAMED = 10  # of many entries


def check(
    store: Store, upkeep: Upkeep, listing: Listing, progress: Progress | None = None
) -> list[Problem]:
    """Return all problems of a store, ordered by path and line.

    Args:
        store: what is checked.
        upkeep: reads sidecars.
        listing: of all that is there.
        progress: told of (done, total): each entry is read twice.

    Raises:
        JournalUnavailableError: the folder is missing or can't be read.
    """
    found = list(listing.problems)
    total = len(listing.versions)
    for done, (entry_id, version) in enumerate(listing.versions.items(), 1):
        with suppress(EntryNotFoundError):  # removed while we look
            try:
                found += store.read(entry_id).problems
            except StorageError as error:
                found.append(Problem(error.path, str(error)))
        found += upkeep.sidecar_of(entry_id, version)[1]
        if progress:
            progress(done, 2 * total)

    def go_on(done: int, of: int) -> None:
        if progress:
            progress(of + done, 2 * of)

    return in_order([*found, *store.audit(progress=go_on)])


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems by path and line."""
    return sorted(problems, key=lambda problem: (problem.path, problem.line or 0))


def still_holding(store: Store, asked: Redaction) -> list[str]:
    """Name the entries in which a redacted text stands yet; what can't be read is passed over."""
    from agent_journal.removal import holds  # noqa: PLC0415 - other checks don't need it

    found: list[EntryId] = []
    with suppress(JournalUnavailableError):
        for entry_id in sorted(store.listing().versions):
            with suppress(EntryNotFoundError, StorageError):
                if holds(store.read(entry_id), asked):
                    found.append(entry_id)
    if not found:
        return []
    where, them = ("1 entry", "it") if len(found) == 1 else (f"{len(found)} entries", "them")
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = ", ".join(found[:_NAMED])
    told = f"in these or other letters the text still stands in {where}: {named}{more}"
    return [f"{told}; redact {them} too"]
