"""How a journal is put together: which index it gets, and what a broken configuration means."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder

from agent_journal.assembly import index_path, open_journal
from agent_journal.config import load_settings
from agent_journal.engines import loading
from agent_journal.errors import ConfigError, WriteFailedError
from agent_journal.faces.mcp import server
from agent_journal.journal import MODEL_WAIT_S
from agent_journal.model import Draft
from agent_journal.query import Query


def place(folder: Path) -> Path:
    """Return where a folder's index would be."""
    return index_path(load_settings(os.environ, journal=str(folder)))


def test_one_journal_has_one_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link, a relative path and the folder itself share an index; another folder has its own."""
    folder = tmp_path / "journal"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    assert place(folder) == place(tmp_path / "link") == place(Path("journal"))
    assert place(folder) != place(tmp_path)


@pytest.mark.parametrize(
    "constant",
    [
        "agent_journal.engines.sqlite_tables.SCHEMA_VERSION",
        "agent_journal.assembly.ANALYSIS_VERSION",
    ],
)
def test_versions_do_not_share_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constant: str
) -> None:
    """Hosts with different versions of this package never rebuild each other's."""
    before = place(tmp_path)
    monkeypatch.setattr(constant, 99)
    assert place(tmp_path) != before
    assert place(tmp_path).parent == before.parent


def test_indexes_unused_for_thirty_days_go(tmp_path: Path) -> None:
    """Opening any journal removes what nobody opened for so long, and nothing younger."""
    files = {}
    for days in (29, 31):
        with open_journal(tmp_path / str(days)) as journal:
            journal.write(Draft("a title"))
            journal.catch_up()
        files[days] = place(tmp_path / str(days))
        long_ago = time.time() - days * 86_400
        os.utime(files[days], (long_ago, long_ago))
    open_journal(tmp_path / "another").close()
    assert {days: file.exists() for days, file in files.items()} == {29: True, 31: False}


@pytest.mark.parametrize("name", ["loop", "loop/within", "x" * 10_000, "d/" * 5_000])
def test_a_place_that_no_system_takes_is_told(tmp_path: Path, name: str) -> None:
    """It opens, as any missing folder does; the search says why, the write is refused."""
    (tmp_path / "loop").symlink_to("loop")
    with open_journal(tmp_path / name) as journal:
        assert "can't be read" in journal.search(Query("x"), wait_s=0).reason
        with pytest.raises(WriteFailedError):
            journal.write(Draft("a title"))
    settings = load_settings(
        {"HOME": "/"}, journal=str(tmp_path / "journal"), index=str(tmp_path / name), model="none"
    )
    with open_journal(settings) as journal:
        entry = journal.write(Draft("a title"))
        page = journal.search(Query("title"), wait_s=0)
    assert [hit.entry.id for hit in page.hits] == [entry.id]
    assert "searching from memory" in page.notices[0]


def test_what_lies_in_a_closed_folder_is_told() -> None:
    """Neither the journal nor the index needs a folder above it that lets anyone in."""
    script = """
from pathlib import Path
from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.engines import memory_index, sqlite
from agent_journal.journal import MODEL_WAIT_S
from agent_journal.model import Draft
from agent_journal.query import Query

top = Path(sys.argv[1])
with dropped():
    closed = top / "closed"
    closed.mkdir()
    (top / "link").symlink_to(closed / "journal")
    closed.chmod(0)
    for journal in (closed / "journal", top / "link", top / "journal"):
        settings = load_settings(
            {"HOME": "/"}, journal=str(journal), index=str(closed / "index"), model="none"
        )
        with open_journal(settings) as opened:
            if journal == top / "journal":
                opened.write(Draft("a title"))
            page = opened.search(Query("title"), wait_s=0)
            print(page.total, page.reason.rpartition(": ")[2])
    closed.chmod(0o700)
"""
    with open_folder() as folder:
        printed = run_as_nobody(script, folder).splitlines()
    assert printed == [*["0 permission denied"] * 2, "1 only words are compared, as asked"]


def test_a_broken_configuration_is_never_passed_over(home: Path, tmp_path: Path) -> None:
    """Without a folder it is raised, since yours may be another; with one, every answer says so."""
    config = home / ".config" / "opencode" / "agent-memory.json"
    config.parent.mkdir(parents=True)
    config.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not JSON"):
        open_journal()
    with open_journal(tmp_path / "journal") as journal:
        journal.write(Draft("a title"))
        (notice,) = journal.search(Query("title"), wait_s=0).notices
    assert str(config) in notice
    assert "is not JSON" in notice


def test_waits_are_as_short_as_promised() -> None:
    """A search waits 2 s for a model, roots 1 s; a server is gone 2 s after its end."""
    assert MODEL_WAIT_S <= 2.0
    assert server._ROOTS_WAIT_S <= 1.0
    assert server._GRACE_S + server._UPKEEP_GRACE_S + server._THREADS_GRACE_S <= 2.0
    assert loading.RETRY_S <= 60.0
