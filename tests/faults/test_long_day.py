"""A day of one server in minutes: it doesn't grow, leaves the processor alone, and ends with stdin.

The journal grows during the day, and an index in memory with it. So searches are compared among
themselves, once nothing is written any more; and at last the server with one that starts fresh.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path
from statistics import median

import pytest
from tests.proven import Trials
from tests.test_mcp import Server, text_of

from agent_journal.engines.files import FileStore
from agent_journal.model import EntryId

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")

AT_ONCE = 4  # calls that a host has in flight
WORDS = [
    *("cache", "deadlock", "replica", "gatto", "errore", "città", "東京", "缓存", "死锁", "кэш"),
    *("token_bucket", "parseUrl", "ConnectionResetError", "v2.14.3", "moment.js", "E0277"),
    *(
        "".join(syllables) + end
        for syllables in product(("ba", "ko", "lim", "tor", "ve", "su"), repeat=3)
        for end in ("", "n", "ra", "tis", "x")
    ),
]
RANKS = list(accumulate(1 / (rank + 4) for rank in range(len(WORDS))))  # as in any language
SAVED = re.compile(r"^id: (\S+)$", re.MULTILINE)
TAGS = ("perf", "build", "bug")
MORE: list[dict[str, object]] = [{}, {}, {}, {"tags": ["perf"]}, {"limit": 20}, {"offset": 5}]


@dataclass(frozen=True)
class Day:
    """How much is asked of the server.

    Attributes:
        writes: entries written, beside as many of the searches.
        searches: all with a question of their own.
        warm_up: searches before anything counts.
        every: searches between two looks at the process.
        idle_s: how long it is watched while nobody asks.
        end_s: how long it may take to end.
    """

    writes: int
    searches: int
    warm_up: int
    every: int
    idle_s: float
    end_s: float


SHORT = Day(writes=20, searches=60, warm_up=20, every=4, idle_s=0.5, end_s=30)
LONG = Day(writes=10_000, searches=100_000, warm_up=2_000, every=250, idle_s=3, end_s=2)


@dataclass(frozen=True)
class Look:
    """What a process uses at one moment."""

    rss_kib: int
    descriptors: int
    threads: int

    @classmethod
    def at(cls, pid: int) -> Look:
        """Look at a process."""
        status = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        )
        return cls(
            int(status["VmRSS"].split()[0]),
            len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208 - names are enough
            int(status["Threads"]),
        )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Turn a journal on, with the bundled model, and give its folder."""
    config = tmp_path / "agent-memory.json"
    config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    monkeypatch.setenv("AGENT_JOURNAL_CONFIG", str(config))
    monkeypatch.setenv("AGENT_JOURNAL_DIR", str(tmp_path / "journal"))
    return tmp_path / "journal"


def writes(chance: random.Random) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield calls that write, all of them different."""
    number = 0
    while True:
        number += 1
        body = " ".join(chance.choices(WORDS, cum_weights=RANKS, k=chance.choice([8, 40, 40, 200])))
        title = f"Note {number} on {chance.choice(WORDS)}"
        yield "journal_write", {"title": title, "body": body, "tags": [chance.choice(TAGS)]}


def searches(chance: random.Random) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield calls that search, all of them different, some with filters or a later page."""
    number = 0
    while True:
        number += 1
        text = " ".join(
            [*chance.choices(WORDS, cum_weights=RANKS, k=chance.randrange(1, 8)), f"n{number}"]
        )
        yield "journal_search", {"text": text, **chance.choice(MORE)}


def ask(server: Server, calls: list[tuple[str, dict[str, object]]]) -> list[str]:
    """Send some calls at once, and return their answers in order; none is an error."""
    sent = [server.send_call(name, arguments) for name, arguments in calls]
    answers = {}
    for _ in sent:
        message = server.receive()
        assert not message["result"].get("isError"), message
        answers[message["id"]] = text_of(message["result"])
    return [answers[one] for one in sent]


def lay_out_the_model() -> None:
    """Let another server load the model before: the first ever unpacks it, which leaves its mark.

    A day is compared with a fresh server, and both are to find what that first one leaves behind.
    """
    with Server() as server:
        server.initialize()
        ask(server, [("journal_write", {"title": "Before", "body": "the day"})])
        wait_for_the_backlog(server)
        assert server.leave() == 0


def begin(day: Day, seed: int) -> tuple[Server, Iterator[tuple[str, dict[str, object]]]]:
    """Start a server and search until it is warm; return it with the searches to come."""
    server = Server()
    server.initialize()
    questions = searches(random.Random(seed))  # noqa: S311 - no secret
    for _ in range(day.warm_up // AT_ONCE):
        ask(server, [next(questions) for _ in range(AT_ONCE)])
    return server, questions


def wait_for_the_backlog(server: Server) -> None:
    """Ask until every entry has its vectors."""
    until = time.monotonic() + 600
    while time.monotonic() < until:
        (answer,) = ask(server, [("journal_search", {"text": "cache"})])
        if "Mode: hybrid." in answer and "Backlog" not in answer:
            return
    pytest.fail("the backlog is never worked off")


def processor_ticks(pid: int) -> int:
    """Return how long a process has computed so far, usually in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def lost(folder: Path, acknowledged: dict[str, str]) -> int:
    """Return how many acknowledged entries are not there with their titles."""
    store = FileStore(folder)
    there = store.listing().versions
    return sum(
        one not in there or store.read(EntryId(one)).title != title
        for one, title in acknowledged.items()
    )


@pytest.mark.parametrize(
    "day", [SHORT, pytest.param(LONG, marks=[pytest.mark.prove, pytest.mark.timeout(14_400)])]
)
def test_a_server_lives_through_a_day(folder: Path, day: Day, trials: Trials) -> None:
    """No descriptor and no thread more, no processor time when idle, and an end at stdin's end.

    Memory, in the long form: within 5 % over all searches after the last write, and within 5 % of
    what a fresh server needs for the same entries, once it has searched and written as well.
    """
    chance = random.Random(1)  # noqa: S311 - no secret
    drafts, acknowledged = writes(chance), dict[str, str]()
    lay_out_the_model()
    server, questions = begin(day, seed=2)
    with server:
        pid, looks = server.process.pid, [Look.at(server.process.pid)]
        asked, last_write = 0, 0
        while asked < day.searches:
            batch = [next(questions) for _ in range(AT_ONCE)]
            saved = [next(drafts) for _ in range(min(AT_ONCE, day.writes - len(acknowledged)))]
            answers = ask(server, [*batch, *saved])
            asked += len(batch)
            for (_, draft), answer in zip(saved, answers[len(batch) :], strict=True):
                match = SAVED.search(answer)
                assert match, answer
                acknowledged[match[1]] = str(draft["title"])
                last_write = len(looks)
            if asked % day.every < AT_ONCE:
                looks.append(Look.at(pid))
                if saved and len(acknowledged) == day.writes:
                    wait_for_the_backlog(server)
        wait_for_the_backlog(server)
        before, since = processor_ticks(pid), time.monotonic()
        while time.monotonic() < since + day.idle_s:
            time.sleep(day.idle_s)  # nothing to wait for: it is to do nothing
        idle = processor_ticks(pid) - before
        since = time.monotonic()
        assert server.leave() == 0
        ended_s = time.monotonic() - since
    quiet = looks[last_write + 1 :]
    tenth = max(len(quiet) // 10, 3)
    early, late = (median(one.rss_kib for one in part) for part in (quiet[:tenth], quiet[-tenth:]))
    fresh = fresh_rss_kib(day, seed=3) if day is LONG else late
    figures = {
        "acknowledged": len(acknowledged),
        "RSS KiB early, late, fresh": [early, late, fresh],
        "RSS KiB over the day": [one.rss_kib for one in looks[:: max(len(looks) // 20, 1)]],
        "descriptors": [looks[0].descriptors, max(one.descriptors for one in quiet)],
        "threads": [looks[0].threads, max(one.threads for one in quiet)],
        "idle ticks": idle,
        "seconds to the end": round(ended_s, 2),
    }
    print(json.dumps(figures))  # noqa: T201 - shown by -rP
    trials.report(
        "one server for a day",
        tried=asked + len(acknowledged),
        acknowledged=len(acknowledged),
        lost=lost(folder, acknowledged),
    )
    assert len(acknowledged) == day.writes
    assert idle <= 1, figures
    assert ended_s < day.end_s, figures
    assert quiet[-1].descriptors <= quiet[0].descriptors, figures
    assert quiet[-1].threads <= quiet[0].threads, figures
    if day is LONG:
        assert late <= 1.05 * early, figures
        assert late <= 1.05 * fresh, figures


def fresh_rss_kib(day: Day, seed: int) -> float:
    """Return what a new server needs for what is there, once it is warm.

    It has to have written, too: to embed entries takes memory that searches never need.
    """
    server, questions = begin(day, seed)
    drafts = writes(random.Random(seed))  # noqa: S311 - no secret
    with server:
        for _ in range(day.writes // 100 // AT_ONCE):
            ask(server, [next(drafts) for _ in range(AT_ONCE)])
        wait_for_the_backlog(server)
        looks = []
        for _ in range(
            day.searches // 10 // AT_ONCE
        ):  # what it keeps of searches grows ever slower
            ask(server, [next(questions) for _ in range(AT_ONCE)])
            looks.append(Look.at(server.process.pid).rss_kib)
        assert server.leave() == 0
    return median(looks[-len(looks) // 10 :])
