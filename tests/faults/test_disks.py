"""The system refuses, call by call; disks fill up or turn read-only: told, or done, never neither.

The programs are real, and so are the refusals: the tracer lets a system call fail, or a small file
system in memory is mounted in a namespace of our own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.power import can_trace
from tests.ledgered import doubts, machine
from tests.proven import Trials
from tests.test_store_processes import mounted

from agent_journal.model import Draft, EntryId

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="strace, namespaces")
traced = pytest.mark.skipif(not can_trace(), reason="no strace here")

BOUND_S = 60.0
PROGRAM = (sys.executable, "-m", "agent_journal")
OURS_AND_PYTHONS = {"openat", "newfstatat"}
"""Calls that Python makes for itself as well; those that touch the journal alone are refused."""

BODY = "a line of the entry\n" * 300


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here searches by meaning."""
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")


@dataclass(frozen=True)
class Desk:
    """A home whose journal has an entry.

    Attributes:
        home: the folder.
        before: the entry's id.
    """

    home: Path
    before: str

    @property
    def folder(self) -> Path:
        """The journal."""
        return self.home / "journal"

    def write(self, *start: str) -> tuple[int, str, str]:
        """Write an entry by the command line, started in some way; return how it ended."""
        done = subprocess.run(
            [*start, *PROGRAM, "--journal", self.folder, "write", "Title", BODY],
            capture_output=True,
            text=True,
            check=False,
            timeout=BOUND_S,
        )
        return done.returncode, done.stdout.strip(), done.stderr

    def state(self) -> Path:
        """Return where the machine remembers its ledger."""
        (memory,) = (self.home / ".local" / "state" / "agent-journal" / "ledgers").iterdir()
        return memory


@pytest.fixture
def desk(home: Path) -> Desk:
    """Give a desk."""
    code, entry_id, errors = Desk(home, "").write()
    assert (code, entry_id != "") == (0, True), errors
    return Desk(home, entry_id)


def refuse(desk: Desk, trace: Path, call: str, error: str, nth: int) -> tuple[bool, bool, int]:
    """Write an entry while the nth call of a kind fails.

    Returns whether a call was refused, whether the entry was acknowledged, and how many
    acknowledged ones are lost.
    """
    inject = f"inject={call}:error={error}:when={nth}"
    options = ["-f", "-qq", "-e", f"trace={call}", "-e", inject, "-e", "signal=none"]
    if call in OURS_AND_PYTHONS:
        for place in (desk.folder, desk.folder / ".ledger", desk.state()):
            options += ["-P", str(place)]
    trace.unlink(missing_ok=True)
    store = machine(desk.folder, desk.state())
    there = set(store.listing(thorough=True).versions)
    known = set(doubts(store))
    code, told, errors = desk.write("strace", *options, "-o", str(trace))
    where = f"{call} {nth}: {error}: {code} {told!r} {errors}"
    was_refused = "(INJECTED)" in trace.read_text(encoding="utf-8")
    new = set(store.listing(thorough=True).versions) - there
    assert "Traceback" not in errors, where
    assert all(store.read(one).body == BODY.strip() for one in new), where
    assert all(store.read(one).problems == () for one in new), where
    assert (code == 0) == bool(told), where
    if told:
        assert new == {told}, where
    elif new:
        assert call == "write", where  # the answer itself could not be given
    else:
        assert errors, where
    unproven = set(doubts(store)) - known
    assert unproven <= {("unledgered", f"{one}.md") for one in new}, where
    if told and unproven:
        assert "no line in the ledger" in errors, where
    return was_refused, bool(told), int(bool(told) and told not in new)


def check_refusals(
    trials: Trials, desk: Desk, trace: Path, call: str, errors: tuple[str, ...]
) -> int:
    """Let each call of a kind fail that a write makes, one at a time; return how many."""
    tried = acknowledged = lost = 0
    for error in errors:
        nth = 1
        while True:
            was_refused, is_told, is_lost = refuse(desk, trace, call, error, nth)
            if not was_refused:
                break
            tried, acknowledged, lost = tried + 1, acknowledged + is_told, lost + is_lost
            nth += 1
    trials.report(
        f"the system refuses {call} during a write",
        tried=tried,
        acknowledged=acknowledged,
        lost=lost,
    )
    store = machine(desk.folder, desk.state())
    assert store.append(Draft("goes on")).problems == ()
    store.adopt()
    assert doubts(store) == []
    return tried


@traced
@pytest.mark.parametrize("call", ["fsync", "write", "linkat", "pwrite64"])
def test_a_failing_disk_is_told_or_survived(
    trials: Trials, desk: Desk, tmp_path: Path, call: str
) -> None:
    """An input or output error, at any call: nothing is acknowledged, or the entry is there."""
    assert check_refusals(trials, desk, tmp_path / "trace", call, ("EIO",))


@traced
@pytest.mark.prove
@pytest.mark.parametrize(
    "call",
    ["fsync", "write", "linkat", "pwrite64", "unlinkat", "flock", "openat", "newfstatat"],
)
def test_any_refusal_is_told_or_survived(
    trials: Trials, desk: Desk, tmp_path: Path, call: str
) -> None:
    """The same for full and limited disks, read-only ones, missing rights, and any call."""
    errors = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EOPNOTSUPP")
    check_refusals(trials, desk, tmp_path / "trace", call, errors)


@traced
@pytest.mark.parametrize("error", ["EPERM", "EOPNOTSUPP", "EACCES", "EMLINK"])
def test_without_hard_links_an_exclusive_rename_will_do(
    trials: Trials, desk: Desk, error: str
) -> None:
    """On FAT, some network shares and Android; where there is neither, a write is refused."""
    no_links = ("-e", f"inject=linkat:error={error}")
    start = ("strace", "-f", "-qq", "-e", "trace=linkat,renameat2", *no_links, "-o", os.devnull)
    code, entry_id, errors = desk.write(*start)
    assert code == 0, errors
    store = machine(desk.folder, desk.state())
    names = sorted(path.name for path in desk.folder.glob("*") if path.is_file())
    assert names == [f"{desk.before}.md", f"{entry_id}.md"]
    assert store.read(EntryId(entry_id)).body == BODY.strip()
    assert doubts(store) == []
    code, told, errors = desk.write(*start[:-2], "-e", "inject=renameat2:error=EINVAL", *start[-2:])
    assert (code != 0, told) == (True, "")
    assert "neither hard links nor an exclusive rename" in errors
    assert len(list(desk.folder.iterdir())) == 3
    trials.report("a file system without hard links", tried=2, acknowledged=1)


JOB = """
import json, logging, os, subprocess, sys
from pathlib import Path
from agent_journal import Draft, JournalError, Query, open_journal
logging.disable()
folder, what = Path(sys.argv[1]), sys.argv[2:]
told = []
with open_journal(folder) as journal:
    def write(title):
        try:
            entry = journal.write(Draft(title, ("needle " * 400).strip()))
            found = [hit.entry.id for hit in journal.search(Query("needle", limit=50)).hits]
            told.append([entry.id, [each.kind for each in entry.problems], entry.id in found])
        except JournalError as error:
            told.append([None, str(error), False])
    for each in what:
        if each.startswith("write"):
            write(each)
        else:
            subprocess.run(each, shell=True, check=True)
    there = {}
    for path in folder.glob("*.md"):
        there[path.stem] = journal.read(path.stem).body == ("needle " * 400).strip()
    problems = [[each.kind, Path(each.path).stem] for each in journal.check()]
    notices = list(journal.search(Query("needle")).notices)
print(json.dumps({"told": told, "there": there, "problems": problems, "notices": notices}))
"""
FULL = "head -c 60000 /dev/zero > {place}/.big 2>/dev/null || true"


@pytest.mark.parametrize("place", ["journal", "ledger", "state", "index"])
def test_whichever_disk_is_full(trials: Trials, home: Path, place: str) -> None:
    """Only the journal's own can make a write fail; what else is missing is told."""
    where = {
        "journal": home / "journal",
        "ledger": home / "journal" / ".ledger",
        "state": home / ".local" / "state" / "agent-journal",
        "index": home / ".cache" / "agent-journal",
    }[place]
    where.mkdir(parents=True)
    fill = FULL.format(place=where)
    steps = ("write 1", "write 2", f"rm {where}/.big", "write 3")
    program = [sys.executable, "-c", JOB, str(home / "journal"), *steps]
    done = mounted(where, "size=16k", ["sh", "-c", fill + '; exec "$@"', "sh", *program])
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    acknowledged = [one for one in said["told"] if one[0]]
    lost = sum(not said["there"].get(entry_id) for entry_id, _, _ in acknowledged)
    trials.report(
        f"the disk of the {place} is full", tried=3, acknowledged=len(acknowledged), lost=lost
    )
    assert said["there"].keys() == {entry_id for entry_id, _, _ in acknowledged}
    assert all(found for _, _, found in acknowledged)
    kinds = [kinds if entry_id else "refused" for entry_id, kinds, _ in said["told"]]
    unledgered = [["unledgered"], ["unledgered"], []]
    assert (
        kinds
        == {
            "journal": ["refused", "refused", []],
            "ledger": unledgered,
            "state": unledgered,
            "index": [[], [], []],
        }[place]
    )
    assert len(said["problems"]) == len([one for one in kinds if one == ["unledgered"]])
    assert bool(said["notices"]) == (place == "index")
    refusals = [reason for entry_id, reason, _ in said["told"] if not entry_id]
    assert all("no space left on device" in reason for reason in refusals)


def test_a_disk_that_turns_read_only(trials: Trials, home: Path) -> None:
    """Writes are refused from then on, all else goes on; and writes, once it is mended."""
    where = home / "journal"
    where.mkdir()
    mount = f"mount -o remount,{{}} {where}"
    steps = ("write 1", mount.format("ro"), "write 2", mount.format("rw"), "write 3")
    done = mounted(where, "size=1m", [sys.executable, "-c", JOB, str(where), *steps])
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    first, second, third = said["told"]
    acknowledged = [first[0], third[0]]
    lost = sum(not said["there"].get(entry_id) for entry_id in acknowledged)
    trials.report("the disk turns read-only", tried=3, acknowledged=2, lost=lost)
    assert sorted(said["there"]) == sorted(acknowledged)
    assert (second[0], "read-only file system" in second[1]) == (None, True)
    assert (first[1:], third[1:], said["problems"]) == ([[], True], [[], True], [])
