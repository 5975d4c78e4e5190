"""The power fails at any moment: what was acknowledged is on the disk, by the calls really made.

The programs run under a tracer. What they did is done again to a model of a disk that keeps nothing
unless it was flushed, or keeps some kinds of things at once, as disks may; and after each step we
look at what is left with a journal of our own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.power import Call, Disk, Eager, calls, can_trace, lay_out, traced
from tests.ledgered import doubts, machine
from tests.proven import Trials
from tests.redacted import mentions

from agent_journal.engines.loading import NoEmbedder
from agent_journal.engines.placing import TEMPORARY_PREFIX, TEMPORARY_SUFFIX
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import JournalUnavailableError
from agent_journal.journal import Journal
from agent_journal.model import Draft, EntryId

BOUND_S = 120.0
PROGRAM = (sys.executable, "-m", "agent_journal")
TITLE, BODY = "What the power must not take", "Grüße 東京\n\n---\n" + "line\n" * 2_000

LIBRARY = """
import os, sys
from agent_journal import Draft, open_journal
with open_journal() as journal:
    entry = journal.write(Draft(*sys.argv[1:]))
    os.write(1, entry.id.encode())
"""


def _all(_path: Path) -> bool:
    return True


def _none(_path: Path) -> bool:
    return False


def _journal(path: Path) -> bool:
    return path.parts[:1] == ("journal",)


def _rest(path: Path) -> bool:
    return not _journal(path)


ENTRIES = ("journal", ".local")
"""Where in a home entries and their proofs are."""


@dataclass(frozen=True)
class Kind:
    """What a disk keeps unasked: of which folders the names, and of which files the data."""

    names: Eager
    data: Eager
    both: bool = False


DISKS = {
    "only what was flushed": Kind(_none, _none),
    "all names": Kind(_all, _none),
    "all names, old ones too": Kind(_all, _none, both=True),
    "all data": Kind(_none, _all),
    "all of the journal": Kind(_journal, _journal),
    "all but the journal": Kind(_rest, _rest),
    "all": Kind(_all, _all),
}


pytestmark = pytest.mark.skipif(not can_trace(), reason="no strace here")


class Desk:
    """A home in which programs run under the tracer."""

    def __init__(self, home: Path, trace: Path) -> None:
        self.home = home
        self._trace = trace
        self.environment = {
            **os.environ,
            "AGENT_JOURNAL_DIR": str(home / "journal"),
            "AGENT_JOURNAL_MODEL": "none",
        }

    def run(self, *command: str, stdin: str = "", watch: bool = True) -> str:
        """Run a program to its good end, and return what it prints."""
        done = subprocess.run(
            [*(traced(self._trace) if watch else ()), *command],
            input=stdin.encode(),
            capture_output=True,
            env=self.environment,
            cwd=self.home,
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def moments(self, disk: Disk, told: str) -> Iterator[tuple[Call, bool]]:
        """Let the disk live through it again; yield each step, and whether it was told by then."""
        is_told = False
        for call in calls(self._trace):
            is_output = call.name == "write" and not call.path(0).is_relative_to(self.home)
            is_told = is_told or (is_output and told.encode() in call.data(1))
            if disk.apply(call) or (is_told and is_output):
                yield call, is_told


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Desk:
    """Give a desk whose journal is enabled."""
    config = home / ".config" / "opencode" / "agent-memory.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    return Desk(home, tmp_path / "trace")


def by_library(desk: Desk) -> str:
    """Write an entry, and return its id."""
    return desk.run(sys.executable, "-c", LIBRARY, TITLE, BODY)


def by_command(desk: Desk) -> str:
    """Write an entry, and return its id."""
    return desk.run(*PROGRAM, "write", TITLE, BODY).strip()


def by_server(desk: Desk) -> str:
    """Write an entry, and return its id."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "power", "version": "1"},
    }
    call = {"name": "journal_write", "arguments": {"title": TITLE, "body": BODY}}
    messages: Sequence[Mapping[str, object]] = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    )
    lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages]
    answers = map(json.loads, desk.run(*PROGRAM, "mcp", stdin="".join(lines)).splitlines())
    (said,) = [one["result"] for one in answers if one.get("id") == 2]
    assert not said.get("isError"), said
    return str(said["content"][0]["text"]).split("id: ")[1].split()[0]


@dataclass(frozen=True)
class Left:
    """What is left on a disk after the power failed.

    Attributes:
        whole: the titles and bodies of entries that can be read fully.
        others: names of entries that can't.
        doubts: what a check finds.
        worse: kinds of doubts that a check finds after the next write, beyond that.
    """

    whole: dict[str, tuple[str, str]]
    others: list[str]
    doubts: set[tuple[str, str]]
    worse: set[str]


def look(left: Path, memory: Path) -> Left:
    """Look at a journal as the next process does, and write on.

    Args:
        left: the home.
        memory: where its machine remembers its ledger, within the home.
    """
    store = machine(left / "journal", left / memory)
    try:
        ids = list(store.listing(thorough=True).versions)
    except JournalUnavailableError:
        return Left({}, [], set(), set())
    entries = [store.read(entry_id) for entry_id in ids]
    found = set(doubts(store))
    assert store.append(Draft("after the power came back")).problems == ()
    return Left(
        {entry.id: (entry.title, entry.body) for entry in entries if not entry.problems},
        [entry.id for entry in entries if entry.problems],
        found,
        {kind for kind, _ in doubts(store)} - {kind for kind, _ in found},
    )


def memory_in(home: Path) -> Path:
    """Return where a machine remembers its ledger, within its home."""
    (memory,) = (home / ".local" / "state" / "agent-journal" / "ledgers").iterdir()
    return memory.relative_to(home)


WRITERS = {
    "the library": by_library,
    "the command line": by_command,
    "the MCP server": by_server,
}


def lives(
    desk: Desk, disk: Disk, told: str, scratch: Path, *, places: Sequence[str] = ENTRIES
) -> Iterator[tuple[Path, bool, str]]:
    """Let the power fail after each step, on each kind of disk.

    Yields a home as it is then, whether the program had told of its work by then, and the moment in
    words. What differs from what was seen before in none of some places isn't shown again.
    """
    seen: set[tuple[str, bool]] = set()
    for at, (call, is_told) in enumerate(desk.moments(disk, told)):
        for kind, keeps in DISKS.items():
            tree = disk.left(names=keeps.names, data=keeps.data, both=keeps.both)
            matters = {
                path: data
                for path, data in tree.items()
                if path.parts[:1] and path.parts[0] in places
            }
            if (key := (repr(matters), is_told)) not in seen:
                seen.add(key)
                home = scratch / f"{at} {kind}"
                lay_out(tree, home)
                yield home, is_told, f"after {call.name} ({at}), on a disk that keeps {kind}"
                shutil.rmtree(home)
    assert any(is_told for _, is_told in seen)


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("way", WRITERS)
def test_an_acknowledged_entry_survives_a_power_failure(
    trials: Trials, desk: Desk, tmp_path: Path, way: str, *, is_first: bool
) -> None:
    """At each moment nothing is there or all of it; once it was told, all of it, and proven."""
    before = set() if is_first else {desk.run(*PROGRAM, "write", "Before", watch=False).strip()}
    disk = Disk(desk.home)
    entry_id = WRITERS[way](desk)
    memory = memory_in(desk.home)
    tried = lost = acknowledged = 0
    for home, is_told, where in lives(desk, disk, entry_id, tmp_path):
        seen = look(home, memory)
        tried += 1
        acknowledged += is_told
        lost += is_told and entry_id not in seen.whole
        assert seen.others == [], where
        assert before <= seen.whole.keys() <= {*before, entry_id}, where
        assert seen.whole.get(entry_id, (TITLE, BODY.strip())) == (TITLE, BODY.strip()), where
        assert {kind for kind, _ in seen.doubts} <= (set() if is_told else {"unledgered"}), where
        assert seen.worse == set(), where
    trials.report(
        f"power fails during and after a write by {way}",
        tried=tried,
        acknowledged=acknowledged,
        lost=lost,
    )


NEVER_FLUSHED = "import os; os.fsync = lambda descriptor: None\n"


@pytest.mark.parametrize("program", [LIBRARY, NEVER_FLUSHED + LIBRARY], ids=["ours", "careless"])
def test_the_disk_takes_what_was_not_flushed(desk: Desk, tmp_path: Path, program: str) -> None:
    """Else the tests here would prove nothing: a program that flushes nothing loses its entry."""
    disk = Disk(desk.home)
    entry_id = desk.run(sys.executable, "-c", program, TITLE, BODY)
    memory = memory_in(desk.home)
    seen = [
        look(home, memory) for home, is_told, _ in lives(desk, disk, entry_id, tmp_path) if is_told
    ]
    is_careful = program == LIBRARY
    assert all(entry_id in one.whole for one in seen) == is_careful
    assert any(one.others for one in seen) != is_careful


def test_a_redaction_survives_a_power_failure(trials: Trials, desk: Desk, tmp_path: Path) -> None:
    """The entry is as it was or redacted, never gone; once it was told, no word is on the disk."""
    secret = desk.run(*PROGRAM, "write", "Zyxname", "her zyxnumber", watch=False).strip()
    desk.run(*PROGRAM, "search", "zyxnumber", watch=False)
    left = desk.home / "journal" / f"{TEMPORARY_PREFIX}1-0{TEMPORARY_SUFFIX}"
    left.write_bytes((desk.home / "journal" / f"{secret}.md").read_bytes())
    disk = Disk(desk.home)
    desk.run(*PROGRAM, "redact", secret, "--reason", "a name", "--yes")
    memory = memory_in(desk.home)
    tried = told = lost = 0
    for home, is_told, where in lives(desk, disk, f"{secret} is redacted", tmp_path):
        tried += 1
        told += is_told
        store = machine(home / "journal", home / memory)
        title = store.read(EntryId(secret)).title
        lost += title != "[redacted]" and (is_told or title != "Zyxname")
        found = {kind for kind, _ in doubts(store)}
        assert found <= (set() if is_told else {"unfinished"}), where
        if is_told:
            (path,) = (home / ".cache" / "agent-journal").glob("*.sqlite3") or [home / "index"]
            with Journal(store, SqliteIndex(path), NoEmbedder("none")) as journal:
                journal.catch_up()
            assert mentions(home) == [], where
    trials.report(
        "power fails during and after a redaction", tried=tried, acknowledged=told, lost=lost
    )


@pytest.mark.parametrize("is_there", [True, False], ids=["folder", "no folder"])
def test_an_installation_survives_a_power_failure(
    trials: Trials, desk: Desk, tmp_path: Path, *, is_there: bool
) -> None:
    """The host's file is as it was or as it was to be; once it was told, as it was to be."""
    path = Path(".config") / "opencode" / "plugin" / "agent-journal.js"
    if is_there:
        desk.run(*PROGRAM, "install", "opencode", watch=False)
        desk.run(*PROGRAM, "--journal", "elsewhere", "install", "opencode", watch=False)
    before = (desk.home / path).read_bytes() if is_there else None
    disk = Disk(desk.home)
    desk.run(*PROGRAM, "install", "opencode")
    after = (desk.home / path).read_bytes()
    assert after != before
    tried = told = lost = 0
    for home, is_told, _ in lives(desk, disk, "wrote ", tmp_path, places=[".config"]):
        tried += 1
        told += is_told
        there = (home / path).read_bytes() if (home / path).exists() else None
        lost += there != after and (is_told or there != before)
    trials.report(
        "power fails during and after an installation into a host",
        tried=tried,
        acknowledged=told,
        lost=lost,
    )
