"""The whole journal with the real model: the longest entry, in other words and languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.journal import Journal
from agent_journal.model import ENTRY_LIMIT_BYTES, Draft
from agent_journal.query import Query

FILLER = (
    "The build server compiles every module in a clean container and keeps the artefacts for a "
    "week; a failed step is tried once more before the owner of the module is told about it.\n\n"
)
NEEDLE = (
    "## Il cane\n\nIl cane del vicino si chiama Zefiro e abbaia quando passa il treno delle sette. "
    "Bisogna tenerlo al guinzaglio nel parco.\n"
)
DECOYS = [
    ("Fatture elettroniche", "Il tracciato XML vuole il codice destinatario di sette caratteri."),
    ("Cache of thumbnails", "Thumbnails are made at upload and never expire."),
    ("Wohnungssuche", "Die Miete steigt jedes Jahr um drei Prozent."),
]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    settings = load_settings({"HOME": str(tmp_path)}, journal=str(tmp_path / "journal"))
    with open_journal(settings) as journal:
        yield journal


@pytest.mark.timeout(300)
def test_a_needle_at_the_end_of_the_largest_entry_is_found(journal: Journal) -> None:
    """By a word of it, by its meaning, and by its meaning in another language; and it is quoted."""
    room = ENTRY_LIMIT_BYTES - len(NEEDLE.encode()) - 500
    body = FILLER * (room // len(FILLER)) + NEEDLE
    needle = journal.write(Draft("Notes on the build server", body))
    for title, text in DECOYS:
        journal.write(Draft(title, text))
    assert journal.work_backlog(wait_s=120) == 1 + len(DECOYS)
    for asked, kind in (
        ("Zefiro", "lexical"),
        ("il cagnolino dei vicini fa rumore", "dense"),
        ("the neighbour's dog barks at the train", "dense"),
    ):
        page = journal.search(Query(asked))
        hit = page.hits[0]
        assert (page.mode, hit.entry.id) == ("hybrid", needle.id), asked
        assert kind in hit.found_by, asked
        assert "Zefiro" in hit.snippet, asked
        assert body[hit.offset :].startswith(hit.snippet)
        assert hit.offset > len(body) - 500
