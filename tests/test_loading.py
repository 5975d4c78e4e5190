"""Loading in the background: nobody waits longer than they want to, and failures pass."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import RETRY_S, BackgroundLoader, NoEmbedder
from agent_journal.errors import EmbedderUnavailableError
from agent_journal.ports import Embedder, EmbedderLoader

PATIENCE_S = 30.0


class Gate:
    """A load that goes on when it is told to, and then gives or raises what it is told to."""

    def __init__(self) -> None:
        self.loads = 0
        self.started = threading.Event()
        self.go = threading.Event()
        self.outcome: Embedder | Exception = HashingEmbedder()

    def __call__(self) -> Embedder:
        """Load."""
        self.loads += 1
        self.started.set()
        assert self.go.wait(PATIENCE_S)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Return a load under the test's control, and never leave its thread behind."""
    gate = Gate()
    yield gate
    gate.go.set()


def failure_of(loader: EmbedderLoader, wait_s: float = PATIENCE_S) -> EmbedderUnavailableError:
    """Return the error that getting the embedder raises."""
    with pytest.raises(EmbedderUnavailableError) as caught:
        loader.get(wait_s)
    return caught.value


def test_nothing_is_loaded_before_it_is_asked_for(gate: Gate) -> None:
    """Making a loader costs nothing."""
    gate.go.set()
    loader = BackgroundLoader(gate)
    assert gate.loads == 0
    assert loader.get(PATIENCE_S) is gate.outcome
    assert gate.loads == 1


@pytest.mark.parametrize("wait_s", [0.0, -1.0, 0.01])
def test_a_caller_waits_no_longer_than_asked(gate: Gate, wait_s: float) -> None:
    """While it is loading the error says so; asking again later gives the embedder."""
    loader = BackgroundLoader(gate)
    error = failure_of(loader, wait_s)
    assert error.loading
    assert error.reason == "the model is still loading"
    assert gate.started.wait(PATIENCE_S)
    gate.go.set()
    assert loader.get(PATIENCE_S) is gate.outcome


def test_many_callers_share_one_load(gate: Gate) -> None:
    """Threads that ask at once get the same embedder from a single load."""
    loader = BackgroundLoader(gate)
    found: list[Embedder] = []
    threads = [
        threading.Thread(target=lambda: found.append(loader.get(PATIENCE_S))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    assert gate.started.wait(PATIENCE_S)
    gate.go.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [gate.outcome] * 16
    assert gate.loads == 1


def test_a_failure_is_tried_again_but_not_at_once(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """Until 30 s have passed the old reason is given; then a new load may succeed."""
    now = [1000.0]
    loader = BackgroundLoader(gate, clock=lambda: now[0])
    gate.go.set()
    gate.outcome = EmbedderUnavailableError("the model's file is damaged")
    with caplog.at_level(logging.WARNING, logger="agent_journal"):
        error = failure_of(loader)
    assert (error.reason, error.loading) == ("the model's file is damaged", False)
    assert [record.getMessage() for record in caplog.records] == ["the model's file is damaged"]

    gate.outcome = HashingEmbedder()
    now[0] += RETRY_S - 0.1
    assert failure_of(loader).reason == "the model's file is damaged"
    assert gate.loads == 1

    now[0] += 0.1
    assert loader.get(PATIENCE_S) is gate.outcome
    assert gate.loads == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "the model can't be loaded: MemoryError"),
        (ValueError("bad magic"), "the model can't be loaded: bad magic"),
    ],
)
def test_any_failure_has_a_reason_and_a_traceback_in_the_log(
    gate: Gate, caplog: pytest.LogCaptureFixture, error: Exception, reason: str
) -> None:
    """What nobody foresaw is told in a sentence, and logged in full."""
    gate.go.set()
    gate.outcome = error
    with caplog.at_level(logging.WARNING, logger="agent_journal"):
        assert failure_of(BackgroundLoader(gate)).reason == reason
    (record,) = caplog.records
    assert record.exc_info is not None


def test_a_process_can_leave_while_loading() -> None:
    """The loading thread never keeps a process alive."""
    program = (
        "import threading\n"
        "from agent_journal.engines.loading import BackgroundLoader\n"
        "from agent_journal.errors import EmbedderUnavailableError\n"
        "started = threading.Event()\n"
        "def load():\n"
        "    started.set()\n"
        "    threading.Event().wait()\n"
        "try:\n"
        "    BackgroundLoader(load).get(0)\n"
        "except EmbedderUnavailableError as error:\n"
        "    assert started.wait(30)\n"
        "    print('left', error.loading)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.stdout, finished.stderr, finished.returncode) == ("left True\n", "", 0)


def test_no_embedder_says_why() -> None:
    """Where there is none on purpose, nobody waits and the reason is given."""
    loader: EmbedderLoader = NoEmbedder("embeddings are turned off in the settings")
    error = failure_of(loader)
    assert (error.reason, error.loading) == ("embeddings are turned off in the settings", False)
