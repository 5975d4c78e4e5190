"""Measures a journal from within, in a process that has nothing else in its memory."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from made import DIMENSION, PROJECTS, Vocabulary, fill, opened

from agent_journal import passages
from agent_journal.config import Settings, load_settings
from agent_journal.model import Draft
from agent_journal.query import Query

WRITES = 300
QUESTIONS = 100
_SECONDS = 60.0


def main() -> None:
    """Do the named part, with so many entries, where the environment says; print what it took."""
    part, count = sys.argv[1], int(sys.argv[2])
    settings = load_settings(os.environ)
    words = Vocabulary()
    drafts = [words.draft(number) for number in range(count)]
    if part == "make":
        found = make(settings, drafts)
    else:
        found = warm(settings, [words.question() for _ in range(QUESTIONS)])
        found["vectors"] = sum(len(passages.split(draft.body)) + 1 for draft in drafts)
        found["matrix_ms"] = matrix_ms(int(found["vectors"]))
    print(json.dumps(found))


def make(settings: Settings, drafts: Sequence[Draft]) -> dict[str, float]:
    """Write a journal with all that belongs to it, and measure what that takes."""
    found: dict[str, float] = {}
    with opened(settings) as journal:
        settings.folder.parent.mkdir(parents=True, exist_ok=True)
        found["flush_ms"] = flush_ms(settings.folder.parent)
        found["write_ms"] = statistics.median(times(journal.write, drafts[:WRITES]))
        fill(settings, drafts[WRITES:])
        found["listing_s"] = timed(lambda: [each.stat() for each in os.scandir(settings.folder)])
        found["rebuild_s"] = timed(journal.catch_up)
        found["backlog_s"] = timed(lambda: journal.work_backlog(wait_s=_SECONDS))
        found["sidecars_s"] = timed(journal.catch_up)
        found["check_s"] = timed(lambda: _require_nothing(journal.check()))
    return found


def matrix_ms(rows: int) -> float:
    """Return what numpy takes to multiply so many vectors with one."""
    matrix = np.ones((rows, DIMENSION), np.float32)
    matrix *= np.linspace(0, 1, DIMENSION, dtype=np.float32)
    return statistics.median(times(lambda vector: matrix @ vector, [matrix[0]] * 20))


def warm(settings: Settings, questions: Sequence[str]) -> dict[str, float]:
    """Measure searches once everything is in memory, and the memory."""
    found: dict[str, float] = {}
    asked = {
        "hybrid": [Query(text) for text in questions],
        "filtered": [
            Query(text, project=f"/srv/project{number % PROJECTS}")
            for number, text in enumerate(questions)
        ],
        "newest": [Query(tags=[f"tag{number}"]) for number, _ in enumerate(questions, start=1)],
    }
    with opened(settings) as journal:
        found["first_s"] = timed(lambda: journal.search(Query(questions[-1]), wait_s=_SECONDS))
        for name, queries in asked.items():
            for query in queries[:5]:
                journal.search(query)
            taken = sorted(times(journal.search, queries))
            found[f"{name}_p50_ms"] = taken[len(taken) // 2]
            found[f"{name}_p95_ms"] = taken[len(taken) * 95 // 100]
        found["memory_mb"] = resident_mb()
        if journal.search(Query(questions[0])).mode != "hybrid":
            raise RuntimeError("there are no vectors")
        taken = []
        for number, query in enumerate(asked["hybrid"][:10]):
            journal.write(Draft(f"One more, {number}", "than before"))
            taken += times(journal.search, [query])
        found["after_write_ms"] = statistics.median(taken)
    return found


def times(work: Callable[..., object], given: Sequence[object]) -> list[float]:
    """Return how long some work takes with each of what is given, in milliseconds."""
    return [timed(lambda one=one: work(one)) * 1000 for one in given]  # type: ignore[misc] # bound now


def timed(work: Callable[[], object]) -> float:
    """Return how long some work takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def flush_ms(folder: Path) -> float:
    """Return what a file and its folder cost to be made durable here, by any program."""

    def once(number: object) -> None:
        name = folder / f"probe-{number}"
        descriptor = os.open(name, os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"x" * 1000)
        os.fsync(descriptor)
        os.close(descriptor)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        name.unlink()

    return statistics.median(times(once, range(50)))


def resident_mb() -> float:
    """Return how much memory this process has, with what it shares; 0 where that isn't told."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _require_nothing(problems: Sequence[object]) -> None:
    # Those that were written without a line in the ledger are told as one each.
    if any(getattr(problem, "kind", "") != "unledgered" for problem in problems):
        raise RuntimeError("check finds problems")


if __name__ == "__main__":
    main()
