"""A private, append-only, searchable journal for people who work with coding agents.

from agent_journal import Draft, Query, open_journal

with open_journal("~/notes") as journal:
    entry = journal.write(Draft("Why the build broke", "A stale lock file.", tags=["build"]))
    for hit in journal.search(Query("broken build")).hits:
        print(hit.score, hit.entry.title, hit.snippet)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_journal.assembly import open_journal
    from agent_journal.errors import JournalError
    from agent_journal.journal import Journal
    from agent_journal.model import Draft, Entry, EntryId, Hit, Provenance, SearchPage
    from agent_journal.query import Project, Query

__all__ = [
    "Draft",
    "Entry",
    "EntryId",
    "Hit",
    "Journal",
    "JournalError",
    "Project",
    "Provenance",
    "Query",
    "SearchPage",
    "open_journal",
]

_HOMES = {
    "open_journal": "assembly",
    "JournalError": "errors",
    "Journal": "journal",
    "Project": "query",
    "Query": "query",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: the command line's help needs none of them."""
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module  # noqa: PLC0415 - as lazy as the names

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'model')}"), name)


def __dir__() -> list[str]:
    return __all__
