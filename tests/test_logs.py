from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drop import NOBODY

from agent_journal.config import Settings, load_settings
from agent_journal.errors import EntryNotFoundError
from agent_journal.faces import logs

LOGGER = logging.getLogger("agent_journal.test")


@pytest.fixture
def settings(home: Path) -> Iterator[Settings]:
    settings = load_settings({"HOME": str(home)})
    yield settings
    for handler in logs._own_handlers():
        logs._LOGGER.removeHandler(handler)


def log_path(settings: Settings) -> Path:
    assert settings.state_folder is not None
    return settings.state_folder / "log"


def test_a_warning_goes_to_stderr_and_to_the_file(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each warning is one plain line on stderr and one dated line in the file; less is dropped."""
    logs.set_up(settings)
    LOGGER.warning("the index of %s is damaged", "a journal")
    LOGGER.info("nobody needs to know")
    assert capsys.readouterr().err == "agent-journal: warning: the index of a journal is damaged\n"
    (line,) = log_path(settings).read_text(encoding="utf-8").splitlines()
    moment, rest = line.split(" ", 1)
    assert rest == f"warning agent_journal.test[{os.getpid()}]: the index of a journal is damaged"
    assert moment.endswith("Z")


def test_setting_up_again_replaces_what_was_set_up(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However often it is set up, a warning appears once, in the latest folder."""
    logs.set_up(settings)
    logs.set_up(settings)
    elsewhere = dataclasses.replace(settings, state_folder=tmp_path / "elsewhere")
    logs.set_up(elsewhere)
    LOGGER.warning("once")
    assert capsys.readouterr().err.count("once") == 1
    assert not log_path(settings).exists()
    assert log_path(elsewhere).read_text(encoding="utf-8").count("once") == 1


def test_a_quiet_run_leaves_no_trace(settings: Settings, home: Path) -> None:
    """Until something is logged nothing is created, and there is nothing to show."""
    assert logs.latest(5) == []
    logs.set_up(settings)
    assert logs.latest(5) == []
    assert list(home.iterdir()) == []


def test_the_file_and_its_folders_are_private(settings: Settings, home: Path) -> None:
    """The file is created 0600 and every new folder above it 0700, whatever the umask allows."""
    before = os.umask(0)
    try:
        logs.set_up(settings)
        LOGGER.warning("private")
    finally:
        os.umask(before)
    assert log_path(settings).stat().st_mode & 0o777 == 0o600
    for folder in (".local", ".local/state", ".local/state/agent-journal"):
        assert (home / folder).stat().st_mode & 0o777 == 0o700


def test_the_file_stays_small_and_keeps_the_latest(settings: Settings) -> None:
    """However much is logged, two bounded files remain, and the latest records are among them."""
    logs.set_up(settings)
    lengths = [1_500] * 500
    for number, length in enumerate(lengths):
        LOGGER.warning("%s number %d", "x" * length, number)
    path = log_path(settings)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["log", "log.1"]
    for file in files:
        assert file.stat().st_size <= logs.SIZE_LIMIT_BYTES
        assert file.stat().st_mode & 0o777 == 0o600
    shown = logs.latest(200)
    assert len(shown) == 200
    assert shown[-1].endswith("number 499")
    assert shown[0].endswith("number 300")
    assert logs.latest(0) == []


def test_two_processes_do_not_throw_away_each_others_file(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When another process has put the full file aside just before, its new file stays."""
    logs.set_up(settings)
    path = log_path(settings)
    path.parent.mkdir(parents=True)
    path.write_text("2026-01-01T00:00:00Z old\n" * 11_000, encoding="utf-8")
    assert path.stat().st_size > logs.SIZE_LIMIT_BYTES
    real_fstat = os.fstat

    def fstat_then_lose_the_race(file: int) -> os.stat_result:
        found = real_fstat(file)
        if found.st_size > logs.SIZE_LIMIT_BYTES:  # the other process rotates at this instant
            path.replace(path.with_name("log.1"))
            path.write_text("2026-01-01T00:00:00Z theirs\n", encoding="utf-8")
        return found

    monkeypatch.setattr(os, "fstat", fstat_then_lose_the_race)  # no two processes meet on demand
    LOGGER.warning("ours")
    assert [line.split()[-1] for line in logs.latest(3)] == ["old", "theirs", "ours"]


def test_many_processes_may_log_at_once(settings: Settings) -> None:
    """Records of several processes arrive whole, none within another."""
    program = (
        "import logging, os\n"
        "from agent_journal.config import load_settings\n"
        "from agent_journal.faces import logs\n"
        "logs.set_up(load_settings(os.environ))\n"
        "for number in range(100):\n"
        "    logging.getLogger('agent_journal').warning('%d %s', number, 'y' * 300)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    logs.set_up(settings)
    shown = logs.latest(1_000)
    assert len(shown) == 300
    assert all(line.endswith(" " + "y" * 300) for line in shown)


@pytest.mark.parametrize("obstacle", ["file", "folder", "pipe", "long name", "no home"])
def test_a_place_that_cannot_be_written_fails_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str], obstacle: str
) -> None:
    """Whatever is in the log's way, the program goes on and stderr has the warning."""
    path = log_path(settings)
    if obstacle == "file":
        path.parent.parent.mkdir(parents=True)
        path.parent.write_text("in the way", encoding="utf-8")
    elif obstacle == "folder":
        path.mkdir(parents=True)
    elif obstacle == "pipe":
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
    elif obstacle == "long name":
        settings = dataclasses.replace(settings, state_folder=path.parent / ("x" * 300))
    else:
        settings = dataclasses.replace(settings, state_folder=None)
    logs.set_up(settings)
    LOGGER.warning("still said")
    assert capsys.readouterr().err == "agent-journal: warning: still said\n"
    assert logs.latest(5) == []


def test_a_folder_without_permission_fails_nothing(tmp_path: Path) -> None:
    """A user who may not write the state folder gets the warning on stderr and no error."""
    tmp_path.chmod(0o555)
    program = (
        "import os\n"
        "if os.getuid() == 0:\n"
        f"    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "logs.set_up(settings)\n"
        "logging.getLogger('agent_journal').warning('still said')\n"
        "print(logs.latest(5))\n"
    )
    ready = (
        "import logging, os\n"
        "from agent_journal.config import load_settings\n"
        "from agent_journal.faces import logs\n"
        "settings = load_settings(os.environ)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", ready + program],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == "agent-journal: warning: still said\n"
    assert done.stdout == "[]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_lost_stderr_fails_nothing(redirection: str) -> None:
    """With stderr closed or full the program goes on, and the file has the warning."""
    program = (
        "import logging, os\n"
        "from agent_journal.config import load_settings\n"
        "from agent_journal.faces import logs\n"
        "logs.set_up(load_settings(os.environ))\n"
        "logging.getLogger('agent_journal').warning('still kept')\n"
        "print(logs.latest(1)[0].rpartition(': ')[2])\n"
    )
    command = f'"$0" -c "$1" {redirection}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, program],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "still kept\n"


def test_control_characters_and_length_are_tamed(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message stays one line that acts on no terminal, and is cut where it is very long."""
    logs.set_up(settings)
    LOGGER.warning("a\x1b[31mb\nc\ud800\u2028\u202e%s", "z" * 10_000)
    error = capsys.readouterr().err
    assert error.startswith(r"agent-journal: warning: a\x1b[31mb\nc\ud800\u2028\u202ezzz")
    assert error.endswith("zzz...\n")
    assert len(error) < logs.MESSAGE_LIMIT + 100
    assert len(logs.latest(5)) == 1


def test_arguments_that_do_not_fit_are_no_error(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip in a logging call shows its bare message and raises nothing."""
    logs.set_up(settings)
    record = LOGGER.makeRecord("x", logging.WARNING, "x", 1, "%d entries", ("many",), None)
    for handler in logs._own_handlers():  # pytest's own would fail
        handler.handle(record)
    assert capsys.readouterr().err == "agent-journal: warning: %d entries\n"


def fail(text: str) -> None:
    raise ValueError(text)


def test_of_an_exception_the_places_are_kept_but_no_text(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exception's class and places are logged; its message, which may quote an entry, isn't."""
    logs.set_up(settings)
    try:
        fail("SECRET of an entry")
    except ValueError:
        LOGGER.exception("unexpected")
    assert capsys.readouterr().err == "agent-journal: error: unexpected (ValueError)\n"
    text = log_path(settings).read_text(encoding="utf-8")
    assert "SECRET" not in text
    assert "    ValueError\n" in text
    assert f"        {__file__}:" in text
    assert text.rstrip().endswith(" in fail")
    assert len(logs.latest(9)) == 1


def test_causes_members_and_known_messages_are_kept(settings: Settings) -> None:
    """Causes, contexts and a group's members are logged, with the messages known to be harmless."""
    logs.set_up(settings)
    refused = PermissionError(13, "Permission denied", "/a/path")
    missing = EntryNotFoundError("20260101-000000-000")
    cause = KeyError("SECRET")
    missing.__cause__ = cause
    cause.__context__ = missing  # a circle, which must end
    hidden = RuntimeError("SECRET")
    hidden.__context__ = TypeError("SECRET")
    hidden.__suppress_context__ = True
    lasting = LookupError("SECRET")
    lasting.__context__ = OverflowError("SECRET")
    group = BaseExceptionGroup("SECRET", [refused, missing, hidden, lasting])
    LOGGER.error("unexpected", exc_info=group)
    head, *lines = log_path(settings).read_text(encoding="utf-8").splitlines()
    assert head.endswith(f"error agent_journal.test[{os.getpid()}]: unexpected")
    assert lines == [
        "    ExceptionGroup",
        "    PermissionError: Permission denied: /a/path",
        "    EntryNotFoundError: no entry '20260101-000000-000'; search for it to get its id",
        "    KeyError",
        "    RuntimeError",
        "    LookupError",
        "    OverflowError",
    ]


def test_an_endless_recursion_leaves_a_short_trace(settings: Settings) -> None:
    """Of a deep stack only the innermost places are kept."""
    logs.set_up(settings)

    def endless() -> None:
        endless()

    try:
        endless()
    except RecursionError:
        LOGGER.exception("unexpected")
    lines = log_path(settings).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + logs.FRAME_LIMIT
