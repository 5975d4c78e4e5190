"""Many processes, sudden deaths and full disks: what was acknowledged is proven by its ledger."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.ledgered import doubts, ledger_files, ledgered, lines, machine
from tests.test_store_processes import mounted

from agent_journal.model import Draft

ROOT = Path(__file__).parents[1]

WRITER = """
import logging, sys
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.model import Draft
folder, memory, name, count = sys.argv[1:]
store = FileStore(Path(folder), ledgers=lambda: Ledgers(Path(folder), Path(memory), wait_s=60))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(count)):
    entry = store.append(Draft(f"{name} {number}", "x" * 300))
    print(entry.id, *(problem.reason for problem in entry.problems), flush=True)
print("done", flush=True)
"""


class Writer:
    """A process that appends, and says each id once the entry is acknowledged."""

    def __init__(self, folder: Path, memory: Path, name: str, count: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(memory), name, str(count)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        assert self._output.readline() == "ready\n"
        self.acknowledged: list[str] = []

    def run(self, kill_after: int | None = None) -> None:
        """Let it write to its end, or until it is killed right after so many."""
        self._input.write("\n")
        self._input.flush()
        for line in self._output:
            if line == "done\n" or not line.endswith("\n"):
                break
            self.acknowledged.append(line.strip())
            if len(self.acknowledged) == kill_after:
                self._process.send_signal(signal.SIGKILL)
        self._process.communicate(timeout=60)


def run_all(writers: list[Writer], kill_after: list[int | None]) -> None:
    """Let all of them write at once."""
    threads = [
        threading.Thread(target=writer.run, args=(after,))
        for writer, after in zip(writers, kill_after, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_processes(home: Path, count: int) -> None:
    """Let eight processes append at once; each entry has its line, and the chain is whole."""
    folder, memory = home / "journal", home / "state" / "here"
    writers = [Writer(folder, memory, f"writer {n}", count) for n in range(8)]
    run_all(writers, [None] * 8)
    acknowledged = [one for writer in writers for one in writer.acknowledged]
    assert len(acknowledged) == 8 * count
    (path,) = ledger_files(folder)
    assert [line.number for line in lines(path)] == list(range(1, 8 * count + 1))
    assert sorted(ledgered(folder)) == sorted(acknowledged)
    assert machine(folder, memory).audit() == []


def test_processes_that_append_at_once_share_one_chain(tmp_path: Path) -> None:
    """None is left without a line, and no line breaks the chain."""
    check_processes(tmp_path, 40)


@pytest.mark.prove
def test_4000_acknowledgements_are_4000_lines(tmp_path: Path) -> None:
    """The same with 8 processes of 500 entries each."""
    check_processes(tmp_path, 500)


def test_an_audit_among_writers_doubts_nothing(tmp_path: Path) -> None:
    """An entry whose line is on its way is no doubt, nor is a line whose file came after."""
    folder, memory = tmp_path / "journal", tmp_path / "here"
    writers = [Writer(folder, memory, f"writer {n}", 60) for n in range(4)]
    thread = threading.Thread(target=run_all, args=(writers, [None] * 4))
    thread.start()
    store = machine(folder, memory)
    looks = 0
    while thread.is_alive():
        if folder.exists():
            assert store.audit() == []
            looks += 1
    thread.join()
    assert looks
    assert store.audit() == []
    assert len(ledgered(folder)) == 240


def check_kills(home: Path, seed: int) -> None:
    """Kill four writers at random points; at most one entry each is left without a line."""
    points = random.Random(seed)  # noqa: S311 - no secret
    folder, memory = home / "journal", home / "state" / "here"
    writers = [Writer(folder, memory, f"writer {n}", 10_000) for n in range(4)]
    run_all(writers, [points.randrange(1, 40) for _ in writers])
    acknowledged = {one for writer in writers for one in writer.acknowledged}
    store = machine(folder, memory)
    found = doubts(store)
    assert {kind for kind, _ in found} <= {"unledgered"}
    assert len(found) <= len(writers)
    assert acknowledged <= set(ledgered(folder))
    after = Writer(folder, memory, "after", 3)
    after.run()
    assert doubts(store) == found
    assert len(store.adopt()) == len(found)
    assert store.audit() == []
    assert set(after.acknowledged) <= set(ledgered(folder))


def test_killed_writers_leave_whole_ledgers(tmp_path: Path) -> None:
    """What was acknowledged is proven, whatever kill -9 interrupts."""
    check_kills(tmp_path, 1)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(2, 22))
def test_killed_writers_leave_whole_ledgers_many_times(tmp_path: Path, seed: int) -> None:
    """The same at many more points."""
    check_kills(tmp_path, seed)


SUICIDE = """
import os, signal, sys
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.model import Draft
folder, memory, name, nth, when = sys.argv[1:]
real, left = getattr(os, name), int(nth)
def call(*args, **kwargs):
    global left
    left -= 1
    if not left and when == "halfway":
        real(args[0], bytes(args[1])[: len(args[1]) // 2])
    if not left and when != "after":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **kwargs)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(os, name, call)
FileStore(Path(folder), ledgers=lambda: Ledgers(Path(folder), Path(memory))).append(Draft("dies"))
"""


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize(
    ("name", "nth", "when"),
    [
        *(("pwrite", nth, when) for nth in (1, 2) for when in ("before", "after")),
        *(("write", 2, when) for when in ("before", "halfway", "after")),
        *(("fsync", 3, when) for when in ("before", "after")),
    ],
)
def test_death_at_any_step_costs_at_most_the_line(
    tmp_path: Path, name: str, nth: int, when: str, *, is_first: bool
) -> None:
    """Between the file and the end of its line nothing is broken, and the next write goes on."""
    folder, memory = tmp_path / "journal", tmp_path / "state" / "here"
    store = machine(folder, memory)
    folder.mkdir()
    if not is_first:
        store.append(Draft("before"))
    command = [sys.executable, "-c", SUICIDE, str(folder), str(memory), name, str(nth), when]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
    entries = len(store.listing(thorough=True).versions)
    assert entries == 1 + (not is_first)
    has_line = len(ledgered(folder)) == entries
    found = doubts(store)
    assert {kind for kind, _ in found} == (set() if has_line else {"unledgered"})
    store.append(Draft("after"))
    store.append(Draft("after"))
    assert len(doubts(store)) == (not has_line)
    assert len(ledger_files(folder)) == 1
    assert len(store.adopt()) == (not has_line)
    assert store.audit() == []


FORK = """
import os, sys
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.model import Draft
folder, memory = map(Path, sys.argv[1:])
store = FileStore(folder, ledgers=lambda: Ledgers(folder, memory, wait_s=60))
store.append(Draft("parent"))
children = []
for number in range(8):
    child = os.fork()
    if not child:
        for _ in range(10):
            assert store.append(Draft(f"child {number}")).problems == ()
        os._exit(0)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
assert store.append(Draft("parent")).problems == ()
print(*store.audit())
"""


def test_a_store_may_be_used_after_a_fork(tmp_path: Path) -> None:
    """Nothing is held between writes that children could share by mistake."""
    folder = tmp_path / "journal"
    command = [sys.executable, "-c", FORK, str(folder), str(tmp_path / "here")]
    done = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    (path,) = ledger_files(folder)
    assert len(lines(path)) == 82


FILL = """
import logging, sys
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.errors import WriteFailedError
from agent_journal.model import Draft
logging.disable()
folder, memory = Path(sys.argv[1]), Path(sys.argv[2])
store = FileStore(folder, ledgers=lambda: Ledgers(folder, memory))
told = saved = 0
try:
    while saved < 2000:
        entry = store.append(Draft("t", "x" * int(sys.argv[3])))
        saved += 1
        told += bool(entry.problems)
except WriteFailedError as error:
    print(error.reason)
(big,) = folder.glob(".big")
big.unlink()
found = store.audit()
assert {problem.kind for problem in found} <= {"unledgered"}, found
assert len(found) == told, (told, found)
assert store.append(Draft("again")).problems == ()
assert len(store.adopt()) == told
assert store.audit() == []
print(saved > 5)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mount namespaces are Linux's")
@pytest.mark.parametrize("size", [10, 3_000, 3_900, 4_000])
def test_a_full_disk_costs_at_most_lines(tmp_path: Path, size: int) -> None:
    """Every entry that found its place is proven or named, and all goes on once there is room."""
    folder = tmp_path / "journal"
    folder.mkdir()
    fill = f'head -c 60000 /dev/zero > {folder}/.big; exec "$@"'
    program = [sys.executable, "-c", FILL, str(folder), str(tmp_path / "here"), str(size)]
    done = mounted(folder, "size=256k", ["sh", "-c", fill, "sh", *program])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "no space left on device\nTrue\n"
