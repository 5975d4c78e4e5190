"""The whole journal with the real model: long entries, other languages, two processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.journal import Journal
from agent_journal.model import ENTRY_LIMIT_BYTES, Draft, Query

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


def test_two_processes_share_the_backlog(journal: Journal, tmp_path: Path) -> None:
    """Everything is embedded once but for a batch a process, and both see all of it."""
    for number in range(120):
        journal.write(Draft(f"Entry {number}", f"It speaks of the number {number} and its square."))
    journal.catch_up()
    code = (
        "import sys\n"
        "from agent_journal.assembly import open_journal\n"
        "from agent_journal.config import load_settings\n"
        "settings = load_settings({'HOME': sys.argv[1]}, journal=sys.argv[2])\n"
        "with open_journal(settings) as journal:\n"
        "    print(journal.work_backlog(wait_s=60), journal.status().backlog)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "journal")]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="ascii")
        for _ in range(2)
    ]
    results = [worker.communicate(timeout=100)[0].split() for worker in workers]
    done = sum(int(count) for count, _ in results)
    assert 120 <= done <= 120 + 2 * 16, results
    assert journal.status(wait_s=60).backlog == 0
    sidecars = list((tmp_path / "journal").glob("*.embedding"))
    assert len(sidecars) == 120
    assert {json.loads(file.read_bytes())["dimension"] for file in sidecars} == {512}
