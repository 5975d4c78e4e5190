"""The ledger: what was written, a line each, bound to the line before by that one's hash.

Each machine that writes has a ledger of its own, so that merged folders never conflict. A line
can't be changed, moved or taken out of the middle without the next one showing it; the end of a
ledger is vouched for by the machine alone that remembers its last line.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from agent_journal.jsonline import Json, encode
from agent_journal.model import EntryId

SUFFIX = ".jsonl"

Act = Literal["write", "adopt", "gone", "redact"]
"""An entry was written; a person said that it belongs here, that it is gone for good, or what is
to be read in its place."""

ACTS: tuple[Act, ...] = get_args(Act)

_HASH = re.compile(r"[0-9a-f]{64}")
_MACHINE = re.compile(r"[0-9a-f]{32}")
_NO_NAME = re.compile("[/\x00\ud800-\udfff]")
"""What no file's name holds: ledgers come from anywhere, and ids become paths in messages."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What one line says of one entry.

    Attributes:
        act: what was done.
        id: the entry's.
        sha256: of the bytes of its file from then on; empty when it is gone.
        over: the hashes of the lines that no longer hold because of this one.
        was: the hash of the file that a redaction replaced.
        at: when a person did it, as frontmatter holds instants; empty for what was written.
        reason: why it was redacted.
    """

    act: Act
    id: EntryId
    sha256: str
    over: tuple[str, ...] = ()
    was: str = ""
    at: str = ""
    reason: str = ""


class Line(NamedTuple):
    """A line that can be read.

    Attributes:
        place: which line of the file it is, counted from 1.
        number: which one it says it is; what crashes left in between has none.
        before: the hash of the line before, as it says.
        hash: its own.
        statement: None when a later version of this program wrote it.
    """

    place: int
    number: int
    before: str
    hash: str
    statement: Statement | None


FaultKind = Literal["altered", "missing", "reordered", "truncated", "foreign", "unknown"]


class Fault(NamedTuple):
    """Something that no writer does to a ledger, at a line of it; None means its end."""

    kind: FaultKind
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """A whole ledger.

    Attributes:
        machine: whose it is.
        lines: all that can be read, in the file's order.
        faults: where the chain is broken.
    """

    machine: str
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]


def is_machine(name: str) -> bool:
    """Tell whether a name can be a machine's: 32 hexadecimal digits."""
    return bool(_MACHINE.fullmatch(name))


def hash_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def beginning(machine: str) -> str:
    """Return what stands in the first line for the hash of the one before."""
    return hash_of(machine.encode())


def write_lines(statements: Sequence[Statement], number: int, before: str) -> list[bytes]:
    """Return the lines, without line ends, that say some things after a line.

    Args:
        statements: what to say.
        number: that of the line before; 0 when there is none.
        before: its hash.
    """
    lines = []
    for statement in statements:
        number += 1
        line = _written(statement, number, before)
        before = hash_of(line)
        lines.append(line)
    return lines


def read_line(data: bytes, place: int = 0) -> Line | None:
    """Return what a line says; None when it isn't a whole line of a ledger.

    Args:
        data: the line, without its end.
        place: which one of its file it is.
    """
    try:
        said = json.loads(data)
        number, before = said["n"], said["prev"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    if type(number) is not int or number < 1 or not _is_hash(before):
        return None
    act = said.get("op")
    if isinstance(act, str) and act not in ACTS:
        return Line(place, number, before, hash_of(data), None)
    statement = _statement(said)
    return Line(place, number, before, hash_of(data), statement) if statement else None


def read_chain(machine: str, data: bytes) -> Chain:
    """Return what a ledger says, and where it isn't as its machine wrote it.

    Args:
        machine: the name of its file.
        data: the file's content.
    """
    lines: list[Line] = []
    broken: list[tuple[int, int]] = []  # places that can't be read, with the lines read before
    for place, text in enumerate(data.split(b"\n"), 1):
        if line := read_line(text, place):
            lines.append(line)
        elif text:
            broken.append((place, len(lines)))
    return Chain(machine, tuple(lines), tuple(_faults(machine, lines, broken)))


def ends(chain: Chain | None, machine: str, known: Collection[str]) -> Fault | None:
    """Tell whether a ledger has lost its end, or is gone altogether.

    Args:
        chain: the ledger; None when there is none.
        machine: whose it would be.
        known: the last line's hash as its machine remembers it: two while it was being written.
    """
    there = {line.hash for line in chain.lines} if chain else set()
    if not known or not there.union({beginning(machine)}).isdisjoint(known):
        return None
    what = "it doesn't end as this machine left it" if chain else "it is gone"
    return Fault(
        "truncated",
        f"truncated: {what}; put the ledger back from a backup; without one, run: "
        "agent-journal check --adopt",
    )


def _written(statement: Statement, number: int, before: str) -> bytes:
    said: dict[str, Json] = {
        "n": number,
        "op": statement.act,
        "id": statement.id,
        "sha256": statement.sha256,
    }
    said |= {name: value for name in ("was", "at", "reason") if (value := getattr(statement, name))}
    if statement.over:
        said["over"] = list(statement.over)
    return encode({**said, "prev": before}).encode()


def _statement(said: dict[str, object]) -> Statement | None:
    act, entry_id, sha256 = said.get("op"), said.get("id"), said.get("sha256")
    over = said.get("over", [])
    texts = [said.get(name, "") for name in ("was", "at", "reason")]
    if act not in ACTS or not isinstance(over, list):
        return None
    if not isinstance(entry_id, str) or not entry_id or _NO_NAME.search(entry_id):
        return None
    if not (_is_hash(sha256) or (act == "gone" and sha256 == "")):
        return None
    if not all(map(_is_hash, over)) or not all(isinstance(text, str) for text in texts):
        return None
    was, at, reason = map(str, texts)
    return Statement(act, EntryId(entry_id), str(sha256), tuple(over), was, at, reason)


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and bool(_HASH.fullmatch(value))


def _faults(
    machine: str, lines: Sequence[Line], broken: Sequence[tuple[int, int]]
) -> Iterator[Fault]:
    """Find where lines don't follow one another.

    A line that can't be read is what a crash left, if the next one goes on as if it were not there.
    """
    known = {line.hash for line in lines}
    damaged: dict[int, int] = {}  # a place, by the number of lines read before
    for place, read in broken:
        damaged.setdefault(read, place)
    last: Line | None = None
    before = beginning(machine)
    for position, line in enumerate(lines):
        if line.before != before:
            if position in damaged:
                yield _fault("altered", "it can't be read", damaged[position])
            else:
                following = lines[position + 1] if position + 1 < len(lines) else None
                is_sound = following is None or following.before == line.hash
                yield _break(last, line, known, is_sound=is_sound)
        if line.statement is None:
            reason = "unknown: a later version of agent-journal wrote it; use that one to check"
            yield Fault("unknown", reason, line.place)
        last, before = line, line.hash


def _break(last: Line | None, line: Line, known: Collection[str], *, is_sound: bool) -> Fault:
    """Say why a line doesn't follow the one before.

    Args:
        last: the line before; None for the first line.
        line: the line.
        known: the hashes of all lines.
        is_sound: nothing speaks against the line itself.
    """
    number = last.number if last else 0
    missing = line.number - number - 1
    if missing < 0 or (missing and line.before in known):
        reason = f"it says that it is line {line.number:,}, and stands after line {number:,}"
        return _fault("reordered", reason, line.place)
    if missing:
        lines = (
            f"{number + 1:,} to {line.number - 1:,} are" if missing > 1 else f"{number + 1:,} is"
        )
        return _fault(
            "missing", f"line{'s' * (missing > 1)} {lines} gone before this one", line.place
        )
    if last is None:
        reason = "another machine wrote it, or the file had another name"
        return _fault("foreign", reason, line.place)
    if is_sound:
        return _fault(
            "altered", "it isn't the line that the next one was written after", last.place
        )
    return _fault("altered", "it wasn't written after the line before it", line.place)


def _fault(kind: FaultKind, what: str, line: int) -> Fault:
    mend = "put the ledger back from a backup; without one, move it away and run: "
    return Fault(kind, f"{kind}: {what}; {mend}agent-journal check --adopt", line)
