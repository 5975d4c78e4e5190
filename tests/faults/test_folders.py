"""A folder in use moves, is emptied, closed or merged, and the clock goes back."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder
from tests.ledgered import doubts, ledger_files, machine
from tests.proven import Trials
from tests.test_mcp import Server, text_of

from agent_journal.assembly import journal_over
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.model import Draft
from agent_journal.query import Query


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enable a journal without a model, and give its folder."""
    config = home / ".config" / "opencode" / "agent-memory.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    monkeypatch.setenv("AGENT_JOURNAL_DIR", str(home / "journal"))
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
    return home / "journal"


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    """Give a server of it."""
    assert folder
    with Server() as started:
        started.initialize()
        yield started


def write(server: Server, title: str) -> str:
    """Write an entry that must be accepted, and return its id."""
    result = server.call("journal_write", {"title": title, "body": f"body of {title}"})
    assert not result.get("isError"), result
    return text_of(result).split("id: ")[1].split()[0]


def search(server: Server, text: str) -> str:
    """Search, which must be no error, and return the answer."""
    result = server.call("journal_search", {"text": text})
    assert not result.get("isError"), result
    return text_of(result)


def proven(folder: Path) -> list[tuple[str, str]]:
    """Return what a check of a folder doubts, whoever asks."""
    return doubts(FileStore(folder, ledgers=lambda: Ledgers(folder, None)))


def test_the_folder_is_moved_while_a_server_runs(
    trials: Trials, server: Server, folder: Path
) -> None:
    """Searches say that there is none, a write begins a new one, and both can be put together."""
    before = write(server, "zebra")
    away = folder.rename(folder.with_name("away"))
    assert "no journal" in search(server, "zebra")
    after = write(server, "quokka")
    assert (folder / f"{after}.md").exists()
    assert after in search(server, "quokka")
    shutil.copytree(away, folder, dirs_exist_ok=True)
    lost = sum(one not in search(server, "zebra quokka") for one in (before, after))
    trials.report("the folder is moved under a server", tried=1, acknowledged=2, lost=lost)
    assert proven(folder) == []
    assert server.leave() == 0


def test_an_empty_disk_takes_the_folders_place_while_a_server_runs(
    trials: Trials, server: Server, folder: Path
) -> None:
    """It is told; what the index knows stays; what is written there is there, and found."""
    before = [write(server, f"zebra {number}") for number in range(3)]
    assert before[0] in search(server, "zebra")
    away = folder.rename(folder.with_name("away"))
    folder.mkdir()
    for _ in range(2):
        assert "is it mounted?" in search(server, "zebra")
    meanwhile = write(server, "quokka")
    assert meanwhile in search(server, "quokka")
    empty = folder.rename(folder.with_name("empty"))
    away.rename(folder)
    found = search(server, "zebra")
    lost = sum(one not in found for one in before)
    lost += not (empty / f"{meanwhile}.md").exists()
    trials.report("an empty disk is mounted over the folder", tried=1, acknowledged=4, lost=lost)
    assert proven(folder) == []
    assert proven(empty) == []
    assert server.leave() == 0


def test_two_servers_keep_each_others_entries(trials: Trials, server: Server, folder: Path) -> None:
    """Calls that both have in hand at once are all answered, and each finds all of it."""
    with Server() as other:
        other.initialize()
        for number in range(30):
            for each in (server, other):
                each.send_call("journal_write", {"title": f"zebra {number}", "body": "b"})
        answers = [each.receive()["result"] for each in (server, other) for _ in range(30)]
        ids = [text_of(answer).split("id: ")[1].split()[0] for answer in answers]
        there = {path.stem for path in folder.glob("*.md")}
        lost = len(ids) - len(there.intersection(ids))
        trials.report("two servers write at once", tried=1, acknowledged=len(ids), lost=lost)
        assert all("60 entries match" in search(each, "zebra") for each in (server, other))
    assert proven(folder) == []


RIGHTS = """
import json, os
from pathlib import Path
from agent_journal import Draft, JournalError, Query, open_journal
from agent_journal.query import Filters
folder = Path(sys.argv[1]) / "journal"
os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = sys.argv[1]
os.environ["AGENT_JOURNAL_MODEL"] = "none"
import agent_journal.engines.sqlite, agent_journal.answering, agent_journal.checking
told = []
def step(mode):
    folder.chmod(mode)
    try:
        told.append(journal.write(Draft("zebra", "body")).id)
    except JournalError as error:
        told.append(str(error))
    page = journal.search(Query("zebra"))
    told.append([page.total, *page.notices])
with open_journal(folder) as journal, dropped():
    folder.mkdir(0o700)
    for mode in (0o700, 0o500, 0o700, 0o000, 0o300, 0o700):
        step(mode)
    print(json.dumps([told, sorted(path.stem for path in folder.glob("*.md"))]))
"""


def test_rights_are_lost_while_it_runs(trials: Trials) -> None:
    """Writes are refused and searches say why, until the rights are back."""
    with open_folder() as place:
        told, there = json.loads(run_as_nobody(RIGHTS, place))
    written, found = told[::2], told[1::2]
    ids = [written[at] for at in (0, 2, 5)]
    lost = sum(entry_id not in there for entry_id in ids)
    trials.report("rights on the folder are lost", tried=6, acknowledged=3, lost=lost)
    assert there == ids
    assert all("permission denied" in written[at] for at in (1, 3, 4))
    assert [found[at] for at in (0, 1, 2, 5)] == [[1], [1], [2], [3]]
    assert all("permission denied" in found[at][-1] for at in (3, 4))


class Machine:
    """A computer with a copy of the journal, and its own memory of its ledger."""

    def __init__(self, home: Path, clock: datetime) -> None:
        self.folder = home / "journal"
        self.store = machine(self.folder, home / "state" / "here")
        self._clock = clock

    def write(self, count: int) -> set[str]:
        """Write so many entries at its own time, and return their ids."""
        draft = Draft(f"zebra of {self.folder.parent.name}", "b", created=self._clock)
        return {str(self.store.append(draft).id) for _ in range(count)}

    def take(self, other: Machine) -> None:
        """Copy what the other has and this one hasn't, and what has grown there, as a sync does."""
        for path in (*other.folder.glob("*.md"), *ledger_files(other.folder)):
            target = self.folder / path.relative_to(other.folder)
            if not target.exists() or target.stat().st_size < path.stat().st_size:
                shutil.copyfile(path, target)


def test_folders_of_two_machines_are_merged(trials: Trials, tmp_path: Path) -> None:
    """Both ways, again and again, with writes in between: all is there, proven, on both."""
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    one = Machine(tmp_path / "one", noon)
    two = Machine(tmp_path / "two", noon + timedelta(seconds=1))  # not the same millisecond
    ids: set[str] = set()
    for _ in range(4):
        ids |= one.write(6)
        ids |= two.write(6)
        one.take(two)
        two.take(one)
    lost = 0
    for each in (one, two):
        assert len(ledger_files(each.folder)) == 2
        assert doubts(each.store) == []
        with journal_over(each.store) as journal:
            pages = [journal.search(Query("zebra", limit=50, offset=at)) for at in (0, 50)]
            lost += len(ids - {hit.entry.id for page in pages for hit in page.hits})
    trials.report("two machines' folders are merged", tried=4, acknowledged=len(ids), lost=lost)


def test_the_clock_is_set_back_between_writes(trials: Trials, tmp_path: Path) -> None:
    """No id comes twice, nothing is replaced, and the newest is whatever the clock says is."""
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    jumps = [timedelta(), timedelta(days=-1), timedelta(milliseconds=1), timedelta(days=-400)]
    times = itertools.chain.from_iterable([noon + jump] * 3 for jump in jumps * 2)
    folder, memory = tmp_path / "journal", tmp_path / "here"
    told = []
    for number, now in enumerate(times):
        # Each by a process of its own, as it were: no writer remembers what another has used.
        store = FileStore(
            folder,
            ledgers=lambda: Ledgers(folder, memory),
            now_ns=lambda now=now: int(now.timestamp() * 1e9),  # type: ignore[misc]  # a default binds it
        )
        told.append(store.append(Draft(f"zebra {number}", "b")).id)
    with journal_over(machine(folder, memory)) as journal:
        found = [hit.entry for hit in journal.search(Query(limit=50)).hits]
        assert journal.check() == []
    lost = len(set(told) - {entry.id for entry in found}) + len(told) - len(set(told))
    trials.report("the clock is set back", tried=len(told), acknowledged=len(told), lost=lost)
    assert [entry.created for entry in found] == sorted(
        (entry.created for entry in found), reverse=True
    )
