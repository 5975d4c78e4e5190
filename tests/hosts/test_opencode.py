"""The journal in the real OpenCode: what it writes down, what models get, and who may do what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.hosts.opencode import OpenCode
from tests.hosts.scripted import ScriptedModel, script

from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.model import Entry
from agent_journal.query import Query

NAMES = ["journal_read", "journal_search", "journal_write"]


@pytest.fixture
def opencode(programs: Path, host_home: Path, model: ScriptedModel) -> OpenCode:
    """Give an OpenCode with our plugin."""
    opencode = OpenCode(programs / "opencode", host_home, model)
    opencode.add_plugin()
    return opencode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a folder that is no repository."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def entries() -> list[Entry]:
    """Return what is in the journal, the oldest first."""
    with open_journal(load_settings(os.environ)) as journal:
        return [hit.entry for hit in journal.search(Query()).hits][::-1]


def offered(model: ScriptedModel) -> list[str]:
    """Return the journal's tools that models were offered."""
    return sorted({name for each in model.requests for name in each.tools if "journal" in name})


def test_an_entry_is_written_found_and_read(opencode: OpenCode, project: Path) -> None:
    """The file says who has written it, and where; what was written comes back."""
    model = opencode.model
    opencode.run(
        script(
            ("journal_write", {"title": "Carts are stale", "body": "Bump\u2028it.", "tags": "bug"}),
            ("journal_search", {"text": "stale carts"}),
        ),
        project=project,
    )
    (entry,) = entries()
    assert entry.title == "Carts are stale"
    assert entry.body == "Bump\u2028it."
    assert entry.tags == ("bug",)
    said = entry.provenance
    assert (said.project, said.model, said.provider) == (str(project), "one", "scripted")
    assert said.agent == "build"
    assert said.session.startswith("ses_")
    written, found = model.results
    assert f"id: {entry.id}" in written
    assert f"1. {entry.id}" in found
    assert offered(model) == NAMES

    opencode.run(script(("journal_read", {"id": entry.id})), project=project)
    (shown,) = model.results
    assert "Bump\u2028it." in shown
    assert f"session: {said.session}" in shown
