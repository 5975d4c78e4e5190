"""What upkeep makes of an entry, and what it asks of an index."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from agent_journal.entryfile import parse
from agent_journal.model import EntryId
from agent_journal.ports import Version
from agent_journal.upkeep import ANALYSIS_VERSION, analyse

GOLDEN = Path(__file__).parent / "golden"


def test_the_analysis_has_the_version_it_says() -> None:
    """A changed analysis would search old indexes wrongly: raise ANALYSIS_VERSION with it.

    The golden entries and the benchmark's, all scripts and forms among them, stand for all text.
    """
    digest = hashlib.sha256()
    entries = [
        parse(file.read_bytes(), entry_id=EntryId(file.stem), path=str(file), mtime=0)
        for file in sorted((GOLDEN / "entries").glob("*.md"))
    ]
    bench = json.loads(
        (GOLDEN.parent.parent / "bench" / "sets" / "journal-dev.json").read_text(encoding="utf-8")
    )
    entries += [
        parse(
            f"---\ntitle: {json.dumps(entry['title'])}\n---\n{entry['body']}".encode(),
            entry_id=EntryId(entry["id"]),
            path="",
            mtime=0,
        )
        for entry in bench["entries"]
    ]
    assert len(entries) > 180
    for entry in entries:
        found = analyse(entry, Version("v"), None)
        digest.update(repr((found.id, found.title_key, found.passages)).encode())
    assert (ANALYSIS_VERSION, digest.hexdigest()[:16]) == (1, "c591ba69dc6b41ed")
