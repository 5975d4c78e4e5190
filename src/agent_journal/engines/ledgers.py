"""The ledgers in a journal folder: this machine adds to its own, and reads all of them.

Which one is its own stands outside the journal, in a file of this machine that also remembers the
last line. So a ledger that was copied, restored or cut is never gone on with: another machine may
be doing the same. That file is small and overwritten at once; losing it costs no more than a new
ledger.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agent_journal.engines.locking import locked
from agent_journal.engines.placing import (
    create_folder_within,
    flush,
    flush_folder,
    names,
    open_private,
    read_file,
    reason_of,
    write_whole,
)
from agent_journal.engines.scanning import printable
from agent_journal.errors import LedgerUnavailableError
from agent_journal.ledger import (
    SUFFIX,
    Chain,
    Line,
    Statement,
    beginning,
    ends,
    hash_of,
    is_machine,
    read_chain,
    read_line,
    write_lines,
)
from agent_journal.model import Problem

FOLDER = ".ledger"
WAIT_S = 2.0
"""How long a writer waits for others before it gives up and says so."""

SIZE_LIMIT_BYTES = 1 << 30
_TAIL_BYTES = 4096
_TAIL_LIMIT_BYTES = 1 << 20
"""A last line that is longer is none of ours."""


class _Memory(NamedTuple):
    """What a machine remembers: its name, and the last line, or two while one is being added."""

    machine: str
    known: tuple[str, str]

    def written(self) -> bytes:
        """Return it as a line, always of the same length."""
        return json.dumps({"machine": self.machine, "known": list(self.known)}).encode() + b"\n"


_MEMORY_BYTES = len(_Memory("0" * 32, ("0" * 64,) * 2).written())


@dataclass(frozen=True, slots=True)
class _Own:
    """This machine's ledger, open at its end.

    Attributes:
        machine: its name.
        number: that of the last line; 0 when there is none.
        last: the last line's hash.
        is_torn: what follows the last line has no end: a crash came in between.
        is_new: the ledger was made just now.
    """

    descriptor: int
    machine: str
    number: int
    last: str
    is_torn: bool = False
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Books:
    """All ledgers of a folder as they were at one moment.

    Attributes:
        chains: those that can be read.
        problems: what is wrong with them, and which can't be read or are none.
    """

    chains: tuple[Chain, ...]
    problems: tuple[Problem, ...]


class Ledgers:
    """The ledgers of one journal folder; may be used from several threads and processes.

    Args:
        folder: the journal folder.
        memory: where this machine remembers which ledger is its own, outside of that folder; its
            folder is made when it is missing. None when there is no such place: then nothing is
            entered.
        wait_s: the longest wait for other writers.
    """

    def __init__(self, folder: Path, memory: Path | None, *, wait_s: float = WAIT_S) -> None:
        self._folder = folder
        self._memory = memory
        self._wait_s = wait_s

    @property
    def location(self) -> str:
        """Where the ledgers are."""
        return printable(self._folder / FOLDER)

    def enter(self, folder: int, statements: Sequence[Statement]) -> None:
        """Add lines to this machine's ledger; they are durable when this returns.

        Args:
            folder: the journal folder, open.
            statements: what to say, at least one thing.

        Raises:
            LedgerUnavailableError: they were not added, or not all of them.
        """
        with (
            self._telling(),
            self._remembering() as memory,
            _opened(folder, create=True) as ledgers,
            _own(memory, ledgers) as own,
        ):
            lines = write_lines(statements, own.number, own.last)
            last = hash_of(lines[-1])
            # Both are good until the line is there: a crash may come before or after it.
            os.pwrite(memory, _Memory(own.machine, (own.last, last)).written(), 0)
            torn_end = b"\n" if own.is_torn else b""
            write_whole(own.descriptor, torn_end + b"".join(line + b"\n" for line in lines))
            flush(own.descriptor)
            if own.is_new:
                flush_folder(ledgers)
            os.pwrite(memory, _Memory(own.machine, (last, last)).written(), 0)

    def read(self, folder: int) -> Books:
        """Return what all ledgers say, and hold their ends against what this machine remembers.

        Args:
            folder: the journal folder, open.
        """
        chains: dict[str, Chain] = {}
        problems: list[Problem] = []
        remembered = self._remembered(problems)  # first: a ledger only gets longer
        try:
            with _opened(folder, create=False) as ledgers:
                for name in names(ledgers):
                    if name.endswith(SUFFIX):
                        self._read(ledgers, name, chains, problems)
        except FileNotFoundError:
            pass  # nothing has been entered yet, or all is lost; the machine remembers which
        except OSError as error:
            problems.append(Problem(self.location, f"it can't be read: {reason_of(error)}"))
        for machine, known in remembered:
            if fault := ends(chains.get(machine), machine, known):
                problems.append(Problem(self._path(machine), fault.reason, None, fault.kind))
        return Books(tuple(chains.values()), tuple(dict.fromkeys(problems)))

    def forget(self, folder: int) -> None:
        """Remember no longer how ledgers ended that have lost their end.

        Args:
            folder: the journal folder, open.

        Raises:
            LedgerUnavailableError: what is remembered can't be changed.
        """
        if self._memory is None or not self._memory.exists():
            return
        with (
            self._telling(),
            self._remembering() as memory,
            _opened(folder, create=True) as ledgers,
        ):
            known = _all_memories(memory)
            own = _resumed(ledgers, known[0]) if known else None
            if own is not None:
                os.close(own.descriptor)
            os.ftruncate(memory, 0 if own is None else _MEMORY_BYTES)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerUnavailableError(self.location, reason_of(error)) from error

    @contextmanager
    def _remembering(self) -> Iterator[int]:
        """Hold what this machine remembers, alone."""
        if self._memory is None:
            raise LedgerUnavailableError(self.location, "no home directory is known to remember it")
        with locked(self._memory, wait_s=self._wait_s) as memory:
            yield memory

    def _remembered(self, problems: list[Problem]) -> list[_Memory]:
        if self._memory is None:
            return []
        try:
            descriptor = open_private(self._memory, os.O_RDONLY)
        except FileNotFoundError:
            return []
        except OSError as error:
            reason = f"it can't be read: {reason_of(error)}; so no ledger's end can be checked"
            problems.append(Problem(printable(self._memory), reason))
            return []
        try:
            found = _all_memories(descriptor)
            if not found and os.fstat(descriptor).st_size:
                reason = "it is damaged, so no ledger's end can be checked; the next write mends it"
                problems.append(Problem(printable(self._memory), reason))
            return found
        finally:
            os.close(descriptor)

    def _read(
        self, ledgers: int, name: str, chains: dict[str, Chain], problems: list[Problem]
    ) -> None:
        machine = name.removesuffix(SUFFIX)
        if not is_machine(machine):
            reason = "foreign: it is named like a ledger and is none; move it away"
            problems.append(Problem(self._path(machine), reason, None, "foreign"))
            return
        try:
            data, _ = read_file(ledgers, name, limit=SIZE_LIMIT_BYTES)
        except OSError as error:
            problems.append(Problem(self._path(machine), f"it can't be read: {reason_of(error)}"))
            return
        chain = chains[machine] = read_chain(machine, data)
        problems += [
            Problem(self._path(machine), fault.reason, fault.line, fault.kind)
            for fault in chain.faults
        ]

    def _path(self, machine: str) -> str:
        return printable(self._folder / FOLDER / f"{machine}{SUFFIX}")


@contextmanager
def _opened(folder: int, *, create: bool) -> Iterator[int]:
    """Hold the folder of ledgers open."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(FOLDER, flags, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
        create_folder_within(folder, FOLDER)
        descriptor = os.open(FOLDER, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _own(memory: int, ledgers: int) -> Iterator[_Own]:
    """Open this machine's ledger: the one that it remembers, if that ends as remembered."""
    known = _all_memories(memory)
    own = _resumed(ledgers, known[0]) if known else None
    if own is None:
        machine = secrets.token_hex(16)
        start = beginning(machine)
        if known:
            os.pwrite(memory, known[0].written(), os.fstat(memory).st_size)
        os.pwrite(memory, _Memory(machine, (start, start)).written(), 0)
        own = _made(ledgers, machine)
    try:
        yield own
    finally:
        os.close(own.descriptor)


def _resumed(ledgers: int, memory: _Memory) -> _Own | None:
    """Open a ledger at its end; None when it doesn't end as remembered."""
    start = beginning(memory.machine)
    flags = os.O_RDWR | os.O_APPEND
    try:
        descriptor = open_private(memory.machine + SUFFIX, flags, folder=ledgers)
    except FileNotFoundError:
        return _made(ledgers, memory.machine) if start in memory.known else None
    try:
        line, is_torn = _last_line(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    last = line.hash if line else start
    if last in memory.known:
        return _Own(descriptor, memory.machine, line.number if line else 0, last, is_torn)
    os.close(descriptor)
    return None


def _made(ledgers: int, machine: str) -> _Own:
    flags = os.O_RDWR | os.O_APPEND
    descriptor = open_private(machine + SUFFIX, flags, folder=ledgers, create=True)
    return _Own(descriptor, machine, 0, beginning(machine), is_new=True)


def _last_line(descriptor: int) -> tuple[Line | None, bool]:
    """Return a ledger's last line, and whether something without an end follows; reads the end."""
    start = os.fstat(descriptor).st_size
    tail = b""
    while start and len(tail) < _TAIL_LIMIT_BYTES:
        step = min(start, max(_TAIL_BYTES, len(tail)))
        start -= step
        tail = os.pread(descriptor, step, start) + tail
        whole = tail.split(b"\n")[1 if start else 0 :]  # the first one may have begun earlier
        for text in reversed(whole):
            if line := read_line(text):
                return line, not tail.endswith(b"\n")
    return None, bool(tail) and not tail.endswith(b"\n")


def _all_memories(memory: int) -> list[_Memory]:
    """Return what is remembered: the present ledger, then those that were not gone on with."""
    size = os.fstat(memory).st_size
    found = []
    for number, text in enumerate(os.pread(memory, size, 0).splitlines()):
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(text)
            machine, (one, other) = said["machine"], said["known"]
            if is_machine(machine):
                found.append(_Memory(machine, (str(one), str(other))))
        if not (number or found):
            return []  # what comes first can't be read: another ledger is begun
    return found
