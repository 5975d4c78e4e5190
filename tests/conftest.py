"""What every test gets: a home of its own, and Hypothesis without a clock."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from tests.proven import KEY, Trials

_XDG = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
_numbers = itertools.count()

# How long an example takes depends on the machine, and no test may.
settings.register_profile("journal", deadline=None)
settings.load_profile("journal")


@pytest.fixture(autouse=True, scope="session")
def _signals() -> None:
    """Give the programs that tests start the signals of an interactive shell.

    What nohup or a job in the background ignores, they would ignore as well, and never end.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            is_int = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_int else signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Make room for what trials report."""
    config.stash[KEY] = Trials()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what was tried, and what came of it."""
    if table := config.stash[KEY].table():
        terminalreporter.section("what was tried")
        for line in table:
            terminalreporter.write_line(line)


@pytest.fixture
def trials(pytestconfig: pytest.Config) -> Trials:
    """Give what collects the trials of this run for the table at its end."""
    return pytestconfig.stash[KEY]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder in which the tests' home directories are."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test, and the programs it starts, an empty home and none of our variables.

    None of git's either: in a hook they speak of a repository that tests must not touch.
    """
    folder = homes / str(next(_numbers))
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(("AGENT_JOURNAL_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    for name, place in _XDG.items():
        monkeypatch.setenv(name, str(folder / place))
    return folder
