"""A disk that keeps only what it was told to flush, fed by a trace of what a program really did."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

CALLS = (
    "open,openat,creat,mkdir,mkdirat,write,pwrite64,writev,pwritev,fsync,fdatasync,link,linkat,"
    "rename,renameat,renameat2,unlink,unlinkat,rmdir,truncate,ftruncate"
)

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<.*>)?(?: .*)?$")
_BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_ENDED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_PLACE = re.compile(r"^(?:AT_FDCWD|\d+)<(.*)>$")
_TEXT = re.compile(r'^"((?:\\x[0-9a-f]{2})*)"$')


def traced(trace: Path) -> list[str]:
    """Return the start of a command whose work on files is recorded, with its children's."""
    options = ("-f", "-y", "-qq", "-xx", "-s", "1000000", "-e", "signal=none")
    return ["strace", *options, "-e", f"trace={CALLS}", "-o", str(trace)]


@cache
def can_trace() -> bool:
    """Tell whether there is a tracer here, and it may be used."""
    try:
        done = subprocess.run([*traced(Path(os.devnull)), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that succeeded.

    Attributes:
        name: which.
        arguments: each as it was traced.
        result: what it returned.
    """

    name: str
    arguments: tuple[str, ...]
    result: int

    def path(self, at: int) -> Path:
        """Return the open file, or the folder, that an argument names."""
        place = _PLACE.match(self.arguments[at])
        return Path(_decoded(place[1])) if place else Path("/nowhere")

    def data(self, at: int) -> bytes:
        """Return the bytes that an argument holds."""
        text = _TEXT.match(self.arguments[at])
        return bytes.fromhex(text[1].replace("\\x", "")) if text else b""

    def joined(self, at: int) -> Path:
        """Return the path that a folder and a name give, or a name alone."""
        if self.name.endswith(("at", "at2")):
            return self.path(at) / os.fsdecode(self.data(at + 1))
        return Path(os.fsdecode(self.data(at)))

    def target(self) -> Path:
        """Return the new path of two."""
        return self.joined(2 if self.name.endswith(("at", "at2")) else 1)


def _decoded(text: str) -> str:
    if "\\x" not in text:
        return text
    return os.fsdecode(bytes.fromhex(text.replace("\\x", "")))


def calls(trace: Path) -> Iterator[Call]:
    """Yield what was done, in the order in which it ended; what was said, when it began."""
    begun: dict[str, str] = {}
    for line in trace.read_text(encoding="ascii").splitlines():
        if found := _BEGUN.match(line):
            begun[found[1]] = line.removesuffix(" <unfinished ...>")
            continue
        whole = line
        if found := _ENDED.match(line):
            whole = begun.pop(found[1]) + found[3]
        if (found := _LINE.match(whole)) and int(found[4]) >= 0:
            yield Call(found[2], tuple(found[3].split(", ")), int(found[4]))


@dataclass(eq=False, slots=True)
class _Node:
    """A file or a folder: what it holds now, and what would be left of it without power."""

    is_folder: bool
    now: bytearray = field(default_factory=bytearray)
    kept: bytes = b""
    names: dict[str, _Node] = field(default_factory=dict)
    kept_names: dict[str, _Node] = field(default_factory=dict)

    def flush(self) -> None:
        self.kept = bytes(self.now)
        self.kept_names = dict(self.names)


Eager = Callable[[Path], bool]
"""Tells of which files and folders the disk keeps all at once, unasked."""


Tree: TypeAlias = dict[Path, bytes | None]
"""Files with what they hold, and folders, by their paths within the outermost folder."""


def lay_out(tree: Tree, target: Path) -> None:
    """Make folders and files, below a folder that isn't there yet."""
    for path, data in tree.items():
        if data is None:
            (target / path).mkdir()
        else:
            (target / path).write_bytes(data)


class Disk:
    """A folder, as the disk has it.

    Args:
        root: the folder; all that is in it now is on the disk.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._top = _loaded(root)
        self._ends: dict[Path, int] = {}
        effects: dict[str, Callable[[Call], bool]] = {
            "open openat creat": self._opened,
            "mkdir mkdirat": lambda call: self._put(call.joined(0), _Node(is_folder=True)),
            "write": self._written,
            "pwrite64": self._written_at,
            "writev pwritev truncate": self._unknown,
            "ftruncate": self._cut,
            "fsync fdatasync": self._flushed,
            "link linkat": lambda call: self._put(call.target(), self._find(call.joined(0))),
            "rename renameat renameat2": self._renamed,
            "unlink unlinkat rmdir": lambda call: self._remove(call.joined(0)),
        }
        self._effects = {name: do for names, do in effects.items() for name in names.split()}

    def apply(self, call: Call) -> bool:
        """Do what a call did; tell whether it had to do with this folder."""
        return self._effects[call.name](call)

    def left(self, *, names: Eager, data: Eager, both: bool = False) -> Tree:
        """Return what is left after the power failed.

        Args:
            names: which folders are kept as they are now.
            data: which files are.
            both: names that were given or taken away since are there, all of them.
        """
        tree: Tree = {}

        def lay(node: _Node, path: Path) -> None:
            if not node.is_folder:
                tree[path] = bytes(node.now) if data(path) else node.kept
                return
            tree[path] = None
            there = node.names if names(path) else node.kept_names
            if both:
                there = {**node.kept_names, **node.names}
            for name, member in sorted(there.items()):
                lay(member, path / name)

        lay(self._top, Path())
        return tree

    def _parts(self, path: Path) -> Sequence[str] | None:
        return path.relative_to(self.root).parts if path.is_relative_to(self.root) else None

    def _find(self, path: Path) -> _Node | None:
        parts = self._parts(path)
        if parts is None:
            return None
        node: _Node | None = self._top
        for part in parts:
            node = node.names.get(part) if node else None
        return node

    def _put(self, path: Path, node: _Node | None) -> bool:
        folder = self._find(path.parent)
        if folder is None or node is None:
            return False
        folder.names[path.name] = node
        return True

    def _remove(self, path: Path) -> bool:
        folder = self._find(path.parent)
        return folder is not None and folder.names.pop(path.name, None) is not None

    def _opened(self, call: Call) -> bool:
        path = call.joined(0)
        flags = call.arguments[2 if call.name == "openat" else 1]
        node = self._find(path)
        is_new = node is None and "O_CREAT" in flags
        if is_new:
            node = _Node(is_folder=False)
            self._put(path, node)
        if node is None or node.is_folder:
            return False
        if "O_TRUNC" in flags:
            node.now.clear()
        self._ends[path] = len(node.now) if "O_APPEND" in flags else 0
        return is_new or "O_TRUNC" in flags

    def _written(self, call: Call) -> bool:
        path = call.path(0)
        at = self._ends.get(path, 0)
        self._ends[path] = at + call.result
        return self._fill(path, call.data(1)[: call.result], at)

    def _written_at(self, call: Call) -> bool:
        return self._fill(call.path(0), call.data(1)[: call.result], int(call.arguments[3]))

    def _fill(self, path: Path, data: bytes, at: int) -> bool:
        node = self._find(path)
        if node is None:
            return False
        node.now.extend(bytes(max(at - len(node.now), 0)))
        node.now[at : at + len(data)] = data
        return True

    def _unknown(self, call: Call) -> bool:
        assert self._find(call.path(0)) is None, f"{call.name} isn't followed here"
        return False

    def _cut(self, call: Call) -> bool:
        node = self._find(call.path(0))
        if node is None:
            return False
        size = int(call.arguments[1])
        node.now[size:] = bytes(max(size - len(node.now), 0))
        return True

    def _flushed(self, call: Call) -> bool:
        node = self._find(call.path(0))
        if node is None:
            return False
        node.flush()
        return True

    def _renamed(self, call: Call) -> bool:
        node = self._find(call.joined(0))
        return self._remove(call.joined(0)) and self._put(call.target(), node)


def _loaded(path: Path) -> _Node:
    if not path.is_dir():
        node = _Node(is_folder=False, now=bytearray(path.read_bytes()))
    else:
        node = _Node(is_folder=True, names={one.name: _loaded(one) for one in path.iterdir()})
    node.flush()
    return node
