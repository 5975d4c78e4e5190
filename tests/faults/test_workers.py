"""Workers of all kinds in one journal, one of them killed again and again."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.forked_workers import WORKERS, draft
from tests.proven import Trials

from agent_journal.assembly import open_journal
from agent_journal.journal import Journal
from agent_journal.model import EntryId
from agent_journal.query import Query

SCRIPT = Path(__file__).with_name("forked_workers.py")
BOUND_S = 600.0


@dataclass(frozen=True)
class Day:
    """What a troop of workers did, as they told it themselves.

    Attributes:
        kills: how many were killed.
        said: all that they told, but for what a kill cut off.
    """

    kills: int
    said: list[dict[str, Any]]  # whatever JSON holds

    def of(self, what: str) -> list[dict[str, Any]]:  # as above
        """Return all that they told of one kind."""
        return [each for each in self.said if each["what"] == what]


def let_work(home: Path, kills: int, entries: int, seed: int) -> Day:
    """Let eight workers use a journal until so many were killed, and entries written."""
    said = home / "said"
    said.mkdir()
    done = subprocess.run(
        [sys.executable, SCRIPT, home / "journal", said, str(kills), str(entries), str(seed)],
        check=False,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    whole = [line for path in said.glob("*.jsonl") for line in path.read_bytes().split(b"\n")[:-1]]
    return Day(int(done.stdout), [json.loads(line) for line in whole])


def is_whole(journal: Journal, folder: Path, told: dict[str, Any]) -> bool:  # as above
    """Tell whether an entry is there as it was given, and its file as it was then."""
    given = draft(told["name"])
    entry = journal.read(told["id"])
    digest = hashlib.sha256((folder / f"{told['id']}.md").read_bytes()).hexdigest()
    return (entry.title, entry.body, entry.tags, entry.problems, digest) == (
        given.title,
        given.body,
        given.tags,
        (),
        told["sha256"],
    )


def check_workers(trials: Trials, home: Path, kills: int, entries: int, seed: int) -> Day:
    """Let them work; then everything that was acknowledged is there, known and proven."""
    folder = home / "journal"
    day = let_work(home, kills, entries, seed)
    wrote = day.of("wrote")
    there = {path.stem for path in folder.glob("*.md")}
    with open_journal(folder) as journal:
        journal.catch_up()  # once, and by nothing else
        indexed = set(journal._index.listing())
        listed = [one for one in wrote if one["id"] in there]
        trials.report(
            "8 forked workers write, search, read and rebuild; one is killed every 0.5 s",
            tried=day.kills,
            acknowledged=len(wrote),
            lost=len(wrote) - len(listed),
            altered=sum(not is_whole(journal, folder, one) for one in listed),
        )
        assert indexed == there
        found = journal.check()
        assert [journal.search(Query(one["name"])).hits[0].entry.id for one in wrote[::50]] == [
            one["id"] for one in wrote[::50]
        ]
    assert {problem.kind for problem in found} <= {"unledgered"}, found
    unproven = {EntryId(Path(problem.path).stem) for problem in found}
    told = {one["id"] for one in wrote if one["problems"] == ["unledgered"]}
    assert told <= unproven
    assert unproven & {one["id"] for one in wrote} == told
    assert len(unproven - told) <= day.kills
    assert [one["problems"] for one in wrote if one["problems"] not in ([], ["unledgered"])] == []
    return day


def check_callers(day: Day) -> None:
    """Nobody met an error, a lock, an answer without the entry, or a text that isn't its own."""
    assert day.of("failed") == []
    assert [one for one in day.of("searched") if one["notices"] or not one["found"]] == []
    assert [one for one in day.of("read") if not one["same"]] == []
    assert len(day.of("done")) == WORKERS
    assert min(len(day.of(what)) for what in ("wrote", "searched", "read", "rebuilt")) > 0


def test_whoever_is_killed_nothing_acknowledged_is_lost(trials: Trials, tmp_path: Path) -> None:
    """What was acknowledged is whole, indexed and proven, and no caller met an error or a lock."""
    day = check_workers(trials, tmp_path, 6, 60, 1)
    check_callers(day)
    assert day.kills >= 6


@pytest.mark.prove
@pytest.mark.parametrize("seed", [2, 3])
def test_2000_acknowledgements_survive_the_kills(trials: Trials, tmp_path: Path, seed: int) -> None:
    """The same for about a minute."""
    day = check_workers(trials, tmp_path, 100, 2_100, seed)
    check_callers(day)
    assert day.kills >= 100
    assert len(day.of("wrote")) >= 2_000
