"""A journal folder's surroundings in tests: clocks, failing calls, and what is written."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.drop import NOBODY

from agent_journal.engines.files import FileStore
from agent_journal.model import Draft, EntryId
from agent_journal.ports import Sidecar

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=UTC)
DRAFT = Draft(title="t", body="b", created=NOON)
NOON_ID = EntryId("20260131-120000-007")
SIDECAR = Sidecar("some/model", (0.5, 1.0))
LONG_AGO = (1_000_000_000, 1_000_000_000)


class Clock:
    """The one clock of a scanner that runs only when told to; it starts at the real time."""

    def __init__(self) -> None:
        self.ns = time.time_ns()

    def pass_by(self, seconds: float) -> None:
        """Let some time pass."""
        self.ns += int(seconds * 1e9)

    def store(self, folder: Path) -> FileStore:
        """Return a store that lives by this clock."""
        return FileStore(folder, now_ns=lambda: self.ns, monotonic=lambda: self.ns / 1e9)


class Calls:
    """Counts and records calls of functions of `os`, and can make one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.made: list[str] = []
        for name in names:
            monkeypatch.setattr(os, name, self._recording(name, getattr(os, name)))

    def _recording(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:  # any os call
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any os call
            what = name
            if name == "fsync":
                what = "fsync folder" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "fsync file"
            self.made.append(what)
            return real(*args, **kwargs)

        return call


def fail(monkeypatch: pytest.MonkeyPatch, name: str, code: int, **when: bool) -> None:
    """Let a function of `os` fail, for folders only or for files only."""
    real: Callable[..., Any] = getattr(os, name)  # any os call

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any os call
        if "folders" in when and when["folders"] != stat.S_ISDIR(os.fstat(args[0]).st_mode):
            return real(*args, **kwargs)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, name, call)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Give a folder that belongs to nobody, reachable without root's powers."""
    folder = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield folder
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
