"""Journal folders with ledgers in tests: machines that write, and what an audit says."""

from __future__ import annotations

from pathlib import Path

from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import FOLDER, Ledgers
from agent_journal.ledger import Line, read_chain

WAIT_S = 0.05
"""How long writers wait here for a lock that nobody will give up."""


def machine(folder: Path, memory: Path, *, wait_s: float = WAIT_S) -> FileStore:
    """Return a store as a machine opens it that remembers its ledger in a file."""
    return FileStore(folder, ledgers=lambda: Ledgers(folder, memory, wait_s=wait_s))


def ledger_files(folder: Path) -> list[Path]:
    """Return all ledgers, the oldest first."""
    return sorted((folder / FOLDER).glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def lines(path: Path) -> list[Line]:
    """Return the lines of a ledger whose chain must be whole."""
    chain = read_chain(path.stem, path.read_bytes())
    assert chain.faults == ()
    return list(chain.lines)


def ledgered(folder: Path) -> list[str]:
    """Return the entries that any ledger has a line for, in the ledgers' order."""
    return [
        line.statement.id for path in ledger_files(folder) for line in lines(path) if line.statement
    ]


def doubts(store: FileStore) -> list[tuple[str, str]]:
    """Return what an audit finds: kinds, with the names of the files."""
    return [(problem.kind, Path(problem.path).name) for problem in store.audit()]
