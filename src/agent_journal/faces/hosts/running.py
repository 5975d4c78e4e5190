"""A host's own program, run to its end: with a time limit, and with nobody to answer questions."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent_journal.errors import HostError
from agent_journal.faces.hosts.table import Host, Machine

LIMIT_S = 60.0
"""The slowest takes 3 s where these are measured; a busy machine may take far longer."""

_SHOWN = 300


def run(
    host: Host, machine: Machine, words: Sequence[str], *, limit_s: float = LIMIT_S
) -> tuple[int, str]:
    """Run a host's program; return its exit code and all that it said on both streams.

    It runs in the home folder, so that no project's settings count. When its time is up it is
    ended, with whatever it has started.

    Raises:
        HostError: it can't be started, or takes too long.
    """
    with tempfile.TemporaryFile() as output:  # a pipe could be held open by what it leaves behind
        process = None
        try:
            with _interrupted_later():
                process = subprocess.Popen(  # noqa: S603 - the host's program, as PATH has it
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=machine.home if machine.home.is_dir() else "/",
                    env={**machine.environ, "PWD": str(machine.home)},
                    start_new_session=True,
                )
            code = process.wait(limit_s)
        except OSError as error:
            raise HostError(host.key, f"{words[0]} can't be started: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            message = f"{' '.join(words[:3])} ... has not ended after {limit_s:.0f} s"
            raise HostError(host.key, message) from None
        finally:
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return code, output.read(1024 * 1024).decode("utf-8", "replace")


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Let Ctrl-C take effect only at the block's end: a program being started could get lost.

    It would go on, since the terminal's signal doesn't reach its session.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # which alone gets signals
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)


def gist(output: str) -> str:
    """Return what a program that failed said, short enough to be part of a sentence.

    Traces of where it went wrong come last and are no part of it.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    start = next((n for n, line in enumerate(lines) if line.lower().startswith("error")), 0)
    end = next((n for n, line in enumerate(lines) if "backtrace" in line), len(lines))
    return " ".join(lines[start:end])[:_SHOWN] or "it said nothing"
