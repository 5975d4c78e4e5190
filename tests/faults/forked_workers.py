"""Eight workers forked from one process that has the journal open, one killed again and again.

Run as a script: journal folder, folder for what they say, how many are to be killed and how many
entries acknowledged at least before it ends, seed. Each worker writes, searches, reads and
rebuilds, and says what came of it in a file of its own, a line at a time. What it says was given to
the kernel by then, so that no kill takes it back.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_journal import Draft, Query, open_journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_journal import Journal

WORKERS = 8
EVERY_S = 0.5
"""Between two kills, on average."""

WRITES, SEARCHES = 0.6, 0.8
"""Where the shares of what they do end; the rest are reads."""

REBUILDS = 25
"""What each does so many times for every rebuild."""


def draft(name: str) -> Draft:
    """Return the entry of a name: its text, length and tags follow from the name."""
    chance = random.Random(name)  # noqa: S311 - no secret
    words = " ".join(f"w{chance.randrange(500)}" for _ in range(chance.randrange(5, 300)))
    return Draft(f"Entry {name}", f"{name} {words}", tags=[f"tag{chance.randrange(9)}", name])


class Worker:
    """One of them, from its fork to its death.

    Args:
        journal: the one that the parent has opened.
        folder: the journal's.
        said: where it says what it does.
        name: its own.
    """

    def __init__(self, journal: Journal, folder: Path, said: Path, name: str) -> None:
        self._journal = journal
        self._folder = folder
        self._said = os.open(said / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._name = name
        self._chance = random.Random(name)  # noqa: S311 - no secret
        self._written: list[tuple[str, str]] = []

    def work(self, stop: Path) -> None:
        """Do one thing after the other until a file is there, or the parent isn't."""
        number = 0
        parent = os.getppid()
        while not stop.exists() and os.getppid() == parent:
            number += 1
            what = self._chance.random()
            try:
                if number % REBUILDS == REBUILDS // 5:
                    self._journal.reindex()
                    self._say("rebuilt")
                elif what < WRITES or not self._written:
                    self._write(f"{self._name}x{number}")
                elif what < SEARCHES:
                    self._search()
                else:
                    self._read()
            except BaseException as error:  # noqa: BLE001 - whatever a caller would meet is told
                self._say("failed", error=f"{type(error).__name__}: {error}")
        self._say("done")

    def _write(self, name: str) -> None:
        entry = self._journal.write(draft(name))
        digest = hashlib.sha256((self._folder / f"{entry.id}.md").read_bytes()).hexdigest()
        problems = [problem.kind or problem.reason for problem in entry.problems]
        self._say("wrote", id=entry.id, name=name, sha256=digest, problems=problems)
        self._written.append((entry.id, name))

    def _search(self) -> None:
        entry_id, name = self._chance.choice(self._written)
        page = self._journal.search(Query(name, limit=3))
        found = entry_id in [hit.entry.id for hit in page.hits]
        self._say("searched", found=found, notices=page.notices)

    def _read(self) -> None:
        entry_id, name = self._chance.choice(self._written)
        entry = self._journal.read(entry_id)
        self._say("read", same=(entry.body, entry.tags) == (draft(name).body, draft(name).tags))

    def _say(self, what: str, **more: object) -> None:
        os.write(self._said, json.dumps({"what": what, **more}).encode() + b"\n")


def fork(work: Callable[[], None]) -> int:
    """Do some work in a child of this process, as it is now, and return the child's number."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def main() -> None:
    """Keep them working, and kill one of them every half second; print how many were killed."""
    folder, said = map(Path, sys.argv[1:3])
    wanted_kills, wanted_entries = map(int, sys.argv[3:5])
    stop = said / "stop"
    chance = random.Random(sys.argv[5])  # noqa: S311 - no secret
    kills = 0
    with open_journal(folder) as journal:
        journal.write(draft("parent"))
        journal.search(Query("parent"))  # the index is open when they are forked

        def start(name: str) -> int:
            return fork(lambda: Worker(journal, folder, said, name).work(stop))

        alive = [start(f"worker{number}") for number in range(WORKERS)]
        next_at = time.monotonic()
        while kills < wanted_kills or len(list(folder.glob("*.md"))) < wanted_entries + kills:
            next_at += EVERY_S
            at_random = next_at - chance.random() * EVERY_S
            time.sleep(max(at_random - time.monotonic(), 0.0))
            at = chance.randrange(WORKERS)
            os.kill(alive[at], signal.SIGKILL)
            os.waitpid(alive[at], 0)
            kills += 1
            alive[at] = start(f"replacement{kills}")
        stop.touch()
        for child in alive:
            os.waitpid(child, 0)
    print(kills)  # noqa: T201


if __name__ == "__main__":
    main()
