"""A home with a secret in its journal, for tests of redaction; run as a program it kills them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.ledgered import machine

from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.placing import TEMPORARY_PREFIX, TEMPORARY_SUFFIX
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.journal import Journal
from agent_journal.model import Draft, EntryId, Problem, Provenance
from agent_journal.query import Query
from agent_journal.removal import is_tombstone

TRACE = b"zyx"
"""Every word of the secret begins so, and no other; in whatever case."""

CREATED = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=UTC)
HOME_OF_SECRETS = "20260131-120000-007"
_SECRET = Draft(
    "The zyxtitle of Ada",
    "Her zyxquokka lives\nin Turin, zyxlast.",
    ["kept", "ZYXtag"],
    Provenance(project="/src/zyxproject"),
    created=CREATED,
    extra={"note": ["zyxvalue"]},
)


class Home:
    """A journal with its index, its state and its leftovers, below one folder."""

    created = CREATED
    secret = EntryId(HOME_OF_SECRETS)

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "journal"
        self.memory = root / "state" / "here"
        self.store = machine(self.folder, self.memory)
        self.index = SqliteIndex(root / "cache" / "0123-v2.2.sqlite3", timeout_s=2)
        self.journal = Journal(
            self.store, self.index, BackgroundLoader(HashingEmbedder), fallback=MemoryIndex
        )

    def open(self) -> Journal:
        """Open the journal as another process does."""
        return Journal(
            machine(self.folder, self.memory, wait_s=10),
            SqliteIndex(self.root / "cache" / "0123-v2.2.sqlite3", timeout_s=10),
            BackgroundLoader(HashingEmbedder),
        )

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def fill(self) -> None:
        """Write entries, have them searched by words and meaning, and leave things behind."""
        self.journal.write(Draft("A zebra", "grazes"))
        assert self.journal.write(_SECRET).id == self.secret
        for number in range(5):
            self.journal.write(Draft(f"Entry {number}", f"plain words {number}"))
        self.journal.work_backlog(wait_s=60)
        assert self.journal.search(Query("zyxquokka"), wait_s=60).hits[0].entry.id == self.secret
        path = self.folder / f"{self.secret}.md"
        os.link(path, self.folder / f"{TEMPORARY_PREFIX}1-a{TEMPORARY_SUFFIX}")
        half = self.folder / f"{TEMPORARY_PREFIX}2-b{TEMPORARY_SUFFIX}"
        half.write_bytes(path.read_bytes()[:-1])
        cache = self.root / "cache"
        with closing(sqlite3.connect(self.index.location)) as live:
            for name in ("0123-v1.1.sqlite3", "4567-v2.2.sqlite3"):
                with closing(sqlite3.connect(cache / name)) as copy:
                    live.backup(copy)
        (cache / "89ab-v1.1.sqlite3-wal").write_bytes(self.secret.encode() + b" zyxhalf")

    def problems(self) -> list[Problem]:
        """Return what a check finds in the ledgers and the files."""
        return self.journal.check()

    def others(self) -> dict[str, bytes]:
        """Return the file of each entry but the secret one, by name."""
        paths = self.folder.glob("*.md")
        return {path.name: path.read_bytes() for path in paths if path.stem != self.secret}

    def leftovers(self) -> list[Path]:
        """Return the temporary files in the folder."""
        return sorted(self.folder.glob(f"{TEMPORARY_PREFIX}*"))

    def touch(self) -> None:
        """Make all entries look changed, as a clone does."""
        for path in self.folder.glob("*.md"):
            os.utime(path, (2_000_000_000, 2_000_000_000))

    def content(self) -> dict[str, bytes]:
        """Return each entry's and each ledger's bytes."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }


def mentions(root: Path) -> list[str]:
    """Return the files below a folder that hold a word of the secret, in any case."""
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and TRACE in path.read_bytes().lower()
    )


class _Steps:
    """Counts calls to the system and to SQLite, and dies at one of them."""

    def __init__(self, fatal: int) -> None:
        self.taken = 0
        self._fatal = fatal

    def step(self) -> None:
        """Take one more."""
        if self.taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.taken += 1

    def watch(self) -> None:
        """Count what is called from now on, before and after each call."""
        for name in ("write", "pwrite", "fsync", "rename", "unlink", "link", "open"):
            setattr(os, name, self._watched(getattr(os, name)))
        steps, real = self, sqlite3.connect

        class Connection(sqlite3.Connection):
            def execute(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as they come
                steps.step()
                result = super().execute(*args)
                steps.step()
                return result

        def connect(*args: Any, **given: Any) -> sqlite3.Connection:  # noqa: ANN401 - as they come
            return real(*args, factory=Connection, **given)

        defaults = SqliteIndex.__init__.__kwdefaults__
        assert defaults is not None
        defaults["connect"] = connect

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401 - any call
            self.step()
            result = real(*args, **given)
            self.step()
            return result

        return call


def _redact(root: Path, fatal: int) -> int | None:
    """Redact in a child that dies at a step; return how many it took if it lived."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        steps, report = _Steps(fatal), os.write
        steps.watch()
        home = Home(root)
        home.journal.redact(home.secret, reason="why")
        report(writing, str(steps.taken).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or not os.WEXITSTATUS(status), status
    return int(said) if said else None


def main(folder: str, first: int, step: int) -> None:
    """Kill redactions at steps `first`, `first` + `step`, ..., and finish each."""
    logging.disable()
    ground = Path(folder)
    template = ground / "template"
    home = Home(template)
    home.fill()
    before = home.store.read(home.secret)
    others = home.others()
    home.close()
    counts = {"steps": 0, "killed": 0, "unfinished": 0, "untouched": 0, "finished": 0}
    counts |= {"acknowledged": 0, "lost": 0, "altered": 0}
    fatal = first
    while True:
        root = ground / f"at{fatal}"
        shutil.copytree(template, root, copy_function=_copy)
        taken = _redact(root, fatal)
        if taken is not None:
            counts["steps"] = taken
            break
        counts["killed"] += 1
        home = Home(root)
        entry = home.store.read(home.secret)
        kinds = [problem.kind for problem in home.problems()]
        if entry == before:
            assert kinds == [], kinds
            counts["untouched"] += 1
        elif kinds:
            assert kinds == ["unfinished"], kinds
            counts["unfinished"] += 1
        else:
            assert mentions(root) == [], mentions(root)
            counts["finished"] += 1
        home.journal.redact(home.secret, reason="why")
        assert mentions(root) == [], (fatal, mentions(root))
        assert home.problems() == []
        assert home.leftovers() == []
        left = home.others()
        counts["acknowledged"] += len(others) + 1
        counts["lost"] += len(others.keys() - left.keys())
        counts["lost"] += not is_tombstone(home.store.read(home.secret))
        counts["altered"] += sum(others[name] != data for name, data in left.items())
        home.close()
        shutil.rmtree(root)
        fatal += step
    print(json.dumps(counts))  # noqa: T201 - a program's answer


def _copy(source: str, target: str) -> None:
    """Copy a file; leftovers that are linked to the entry are so in the copy, too."""
    shutil.copy2(source, target)
    with suppress(FileNotFoundError):
        if Path(target).name == f"{TEMPORARY_PREFIX}1-a{TEMPORARY_SUFFIX}":
            entry = Path(target).with_name(f"{HOME_OF_SECRETS}.md")
            if entry.exists():
                Path(target).unlink()
                os.link(entry, target)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
