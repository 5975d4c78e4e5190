"""Many processes, sudden deaths and full disks against one real folder."""

from __future__ import annotations

import random
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest
from tests.proven import Trials

from agent_journal.engines.files import FileStore
from agent_journal.model import EntryId

ROOT = Path(__file__).parents[1]

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.model import Draft
folder, name, count, instant = sys.argv[1:]
created = datetime.fromisoformat(instant) if instant else None
store = FileStore(Path(folder))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(count)):
    body = f"{name} {number} " + "x" * 3000
    print(store.append(Draft(title=f"{name} {number}", body=body, created=created)).id, flush=True)
print("done", flush=True)
"""


class Writer:
    """A process that appends, and says each id once the entry is acknowledged."""

    def __init__(self, folder: Path, name: str, count: int, instant: str = "") -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), name, str(count), instant],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._output.readline() == "ready\n"
        self.acknowledged: list[EntryId] = []
        self.finished = False

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def start(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def follow(self, *, kill_after: int | None = None) -> None:
        """Collect what it acknowledges, until it ends or is killed right after so many."""
        for line in self._output:
            if not line.endswith("\n"):
                break  # killed while it spoke: not acknowledged
            if line == "done\n":
                self.finished = True
                break
            self.acknowledged.append(EntryId(line.strip()))
            if len(self.acknowledged) == kill_after:
                self._process.send_signal(signal.SIGKILL)

    def end(self) -> str:
        """Wait for its end and return what it complained of."""
        _, complaints = self._process.communicate(timeout=60)
        return complaints


def run_all(writers: Sequence[Writer], kill_after: Sequence[int | None]) -> None:
    """Start all at once and follow each to its end."""
    followers = [
        threading.Thread(target=writer.follow, kwargs={"kill_after": after})
        for writer, after in zip(writers, kill_after, strict=True)
    ]
    for follower in followers:
        follower.start()
    for writer in writers:
        writer.start()
    for follower in followers:
        follower.join()


def check_whole(folder: Path, writers: Sequence[Writer]) -> None:
    """Every acknowledged entry is there as it was given, and every listed one is whole."""
    store = FileStore(folder)
    listing = store.listing()
    assert listing.problems == ()
    for writer in writers:
        for number, entry_id in enumerate(writer.acknowledged):
            assert store.read(entry_id).title == f"{writer.name} {number}"
    for entry_id in listing.versions:
        entry = store.read(entry_id)
        assert entry.problems == ()
        assert entry.body == f"{entry.title} " + "x" * 3000
        assert stat.S_IMODE((folder / f"{entry_id}.md").stat().st_mode) == 0o400


def check_processes(trials: Trials, folder: Path, count: int, instant: str) -> None:
    """Let eight processes append at once and count."""
    writers = [Writer(folder, f"writer {n}", count, instant) for n in range(8)]
    run_all(writers, [None] * 8)
    assert [writer.end() for writer in writers] == [""] * 8
    assert all(writer.finished for writer in writers)
    ids = [entry_id for writer in writers for entry_id in writer.acknowledged]
    lost = len(ids) - len(set(ids).intersection(FileStore(folder).listing().versions))
    trials.report("8 processes append at once", tried=1, acknowledged=len(ids), lost=lost)
    assert len(ids) == len(set(ids)) == 8 * count
    assert {file.name for file in folder.iterdir()} == {f"{entry_id}.md" for entry_id in ids}
    check_whole(folder, writers)


INSTANTS = pytest.mark.parametrize(
    "instant", ["", "2026-01-31T12:00:00+00:00"], ids=["now", "one instant"]
)


@INSTANTS
def test_processes_that_append_at_once_lose_nothing(
    trials: Trials, tmp_path: Path, instant: str
) -> None:
    """Each acknowledgement is a file of its own, all of one instant too."""
    check_processes(trials, tmp_path, 40, instant)


@pytest.mark.prove
@INSTANTS
def test_4000_acknowledgements_are_4000_files(trials: Trials, tmp_path: Path, instant: str) -> None:
    """The same with 8 processes of 500 entries each."""
    check_processes(trials, tmp_path, 500, instant)


def check_kills(trials: Trials, folder: Path, seed: int) -> None:
    """Kill four writers at random points, and write on."""
    points = random.Random(seed)  # noqa: S311 - no secret
    writers = [Writer(folder, f"writer {n}", 10_000, "2026-01-31T12:00:00Z") for n in range(4)]
    run_all(writers, [points.randrange(1, 40) for _ in writers])
    assert not any(writer.finished for writer in writers)
    assert [writer.end() for writer in writers] == [""] * 4
    assert all(writer.acknowledged for writer in writers)
    there = FileStore(folder).listing().versions
    lost = sum(entry_id not in there for writer in writers for entry_id in writer.acknowledged)
    acknowledged = sum(len(writer.acknowledged) for writer in writers)
    trials.report("writers killed at random", tried=4, acknowledged=acknowledged, lost=lost)
    check_whole(folder, writers)
    listed = len(FileStore(folder).listing().versions)
    assert acknowledged <= listed <= acknowledged + len(writers)
    FileStore(folder).sweep(older_than_s=-60)
    assert len(list(folder.iterdir())) == listed
    after = Writer(folder, "after", 3, "2026-01-31T12:00:00Z")
    run_all([after], [None])
    assert after.end() == ""
    check_whole(folder, [*writers, after])


def test_killed_writers_lose_nothing_acknowledged(trials: Trials, tmp_path: Path) -> None:
    """Whatever kill -9 interrupts, what was acknowledged is whole, and so is what is listed."""
    check_kills(trials, tmp_path, seed=1)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(2, 22))
def test_killed_writers_lose_nothing_many_times(trials: Trials, tmp_path: Path, seed: int) -> None:
    """The same at many more points."""
    check_kills(trials, tmp_path, seed)


SUICIDE = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.model import Draft
folder, name, nth, when = sys.argv[1:]
store, real, left = FileStore(Path(folder)), getattr(os, name), int(nth)
def call(*args, **kwargs):
    global left
    left -= 1
    if not left and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **kwargs)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(os, name, call)
store.append(Draft(title="writer 0", body="writer 0 " + "x" * 3000))
"""


@pytest.mark.parametrize(
    ("name", "nth", "listed"),
    [("write", 1, 0), ("fsync", 1, 0), ("unlink", 1, 1), ("fsync", 2, 1)],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_death_at_any_step_leaves_a_whole_entry_or_none(
    tmp_path: Path, name: str, nth: int, listed: int, when: str
) -> None:
    """Dying between two steps leaves at most a temporary file, never half an entry."""
    command = [sys.executable, "-c", SUICIDE, str(tmp_path), name, str(nth), when]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
    check_whole(tmp_path, [])
    store = FileStore(tmp_path)
    assert len(store.listing().versions) == listed
    tidied = (name == "unlink" and when == "after") or (name, nth) == ("fsync", 2)
    assert len(store.sweep(older_than_s=-60)) == (not tidied)
    check_whole(tmp_path, [])
    assert len(list(tmp_path.iterdir())) == listed


FILL = """
import resource, signal, sys
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.errors import WriteFailedError
from agent_journal.model import Draft
folder, limit, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
store = FileStore(folder)
written = 0
try:
    while written < 1000:
        entry = store.append(Draft(title="big", body="x" * size))
        written += 1
except WriteFailedError as error:
    print(error.reason)
names = [path.name for path in folder.iterdir()]
assert len(names) == written, names
assert all(store.read(name[:-3]).body == "x" * size for name in names)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)  # for coverage
print(written)
"""


def test_file_too_large_for_the_process_leaves_nothing(tmp_path: Path) -> None:
    """A limit that cuts a write short halfway is an error, not half an entry."""
    command = [sys.executable, "-c", FILL, str(tmp_path), "5000", "20000"]
    done = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("file too large\n0\n", "")


def mounted(folder: Path, options: str, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that alone sees a small file system in memory mounted on a folder."""
    script = 'mount -t tmpfs -o "$1" none "$2" || exit 77; shift 2; exec "$@"'
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount"),
            *("sh", "-c", script, "sh", options, str(folder), *command),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode in {1, 77} and not done.stdout:  # pragma: no cover - depends on the kernel
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    return done


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mount namespaces are Linux's")
def test_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    """Entries written before are whole, the one that found no space is not there at all."""
    done = mounted(tmp_path, "size=256k", [sys.executable, "-c", FILL, str(tmp_path), "0", "20000"])
    reason, written = done.stdout.splitlines()
    assert reason == "no space left on device"
    assert 5 <= int(written) <= 13
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mount namespaces are Linux's")
def test_read_only_file_system_is_told(tmp_path: Path) -> None:
    """A journal on a medium that can't be written to says so."""
    done = mounted(tmp_path, "ro", [sys.executable, "-c", FILL, str(tmp_path), "0", "10"])
    assert (done.stdout, done.stderr) == ("read-only file system\n0\n", "")
