"""A redaction in a folder: the file, what lies beside it, what was made of it, the ledger's line.

The line comes last. Whatever a crash leaves undone shows by a mark in the file that no ledger
knows, and is done by the same call again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from agent_journal import entryfile
from agent_journal.engines.ledgers import Ledgers
from agent_journal.engines.locking import await_lock, has_writer
from agent_journal.engines.placing import (
    Staging,
    flush_folder,
    hash_file,
    holds_file,
    is_temporary,
    names,
    opened,
    read_file,
    reason_of,
)
from agent_journal.engines.scanning import SIDECAR_SUFFIX, printable
from agent_journal.errors import LedgerUnavailableError, StorageError
from agent_journal.ledger import Statement
from agent_journal.ledger_proof import History, histories
from agent_journal.model import Entry, EntryId, timestamp
from agent_journal.redaction import Redacted, Redaction
from agent_journal.removal import is_body_kept, mark_of, reason_in, redact

_MODE = 0o400
_REWRITTEN = (
    "the body is written anew from what could be read of it: "
    "its line ends, and bytes that aren't UTF-8, are not what they were"
)
_WAIT_S = 30.0
"""How long another redaction may take."""


def redact_file(
    path: Path,
    entry_id: EntryId,
    asked: Redaction | None,
    *,
    ledgers: Ledgers | None,
    purge: Callable[[], None],
    at: datetime,
) -> Redacted:
    """Redact the entry in a file; see `Store.redact`.

    Args:
        path: its file.
        entry_id: its id.
        asked: what to remove; None when only traces are to go.
        ledgers: those of its folder; None when none are kept.
        purge: has everything forgotten that was made of its text.
        at: now.
    """
    try:
        with opened(path.parent) as folder:
            _await_others(folder, path)
            leftovers = [name for name in names(folder) if is_temporary(name)]
            entry, data, sha256 = _read(folder, path, entry_id)
            is_unfinished = (  # of one without a mark nothing can be; and ledgers may be long
                ledgers is not None
                and bool(mark_of(entry))
                and not _is_entered(_told(folder, ledgers, entry), sha256)
            )
            new, count = redact(entry, data, asked, was=sha256, at=at, is_unfinished=is_unfinished)
            notices = _keeping(folder, path.name) if count else ()
            if count and asked and asked.text and not is_body_kept(data, new, asked):
                notices += (_REWRITTEN,)
            if count:
                _replace(folder, path.name, new)
                entry, _, now = _read(folder, path, entry_id)
            else:
                now = sha256
            _remove_beside(folder, entry_id, leftovers)
            purge()
            notices += _entered(folder, ledgers, entry, now, at)
    except OSError as error:
        message = f"entry {printable(path)} is not redacted, or not wholly: {reason_of(error)}"
        raise StorageError(printable(path), f"{message}; then run the same again") from error
    if asked and asked.text and asked.pattern.search(entry_id):
        notices += ("the text stands in the entry's id too, and stays there",)
    return Redacted(entry_id, count, sha256 if count else "", notices)


def _await_others(folder: int, path: Path) -> None:
    """Let no two redactions work at once: one would bring back what the other removes.

    And none while somebody puts the text into an index, which would be done too late.
    """
    try:
        await_lock(folder, time.monotonic() + _WAIT_S)
    except TimeoutError:
        message = "another redaction is at work on this journal; nothing was changed, try again"
        raise StorageError(printable(path), message) from None
    except OSError:
        return  # a file system without locks


def _read(folder: int, path: Path, entry_id: EntryId) -> tuple[Entry, bytes, str]:
    """Return an entry, its file as far as it is read, and the hash of all of it."""
    data, mtime = read_file(folder, path.name, limit=entryfile.READ_LIMIT_BYTES + 1)
    entry = entryfile.parse(data, entry_id=entry_id, path=printable(path), mtime=mtime)
    return entry, data, hash_file(folder, path.name)


def _replace(folder: int, name: str, data: bytes) -> None:
    with Staging(folder, _MODE) as staging:
        staging.fill(data, durable=True)
        staging.replace(name)
    flush_folder(folder)


def _keeping(folder: int, name: str) -> tuple[str, ...]:
    """Tell of other names of an entry's file: they keep it, and may be anywhere."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if status.st_nlink == 1:
        return ()
    with os.scandir(folder) as listed:
        same = [
            each.name
            for each in listed
            if each.name != name and os.path.samestat(each.stat(follow_symlinks=False), status)
        ]
    kept = sorted(each for each in same if not is_temporary(each))
    elsewhere = status.st_nlink - 1 - len(same)
    count = elsewhere + len(kept)
    if not count:
        return ()
    what = (
        "name of its file (hard link) keeps"
        if count == 1
        else "names of its file (hard links) keep"
    )
    places = [printable(each) for each in kept]
    if elsewhere:
        find = f"find / -inum {status.st_ino}"
        joined = "and " if places else ""
        places.append(f"{joined}{elsewhere} outside of the journal; to find it: {find}")
    return (f"{count} other {what} the text: {', '.join(places)}",)


def _remove_beside(folder: int, entry_id: EntryId, leftovers: Sequence[str]) -> None:
    """Remove the sidecar, and what crashed writers left: it may hold any text, this one too.

    What came since is none of it: a writer may just have made it, and not have locked it yet.
    """
    left = [name for name in leftovers if not has_writer(folder, name)]
    for name in (entry_id + SIDECAR_SUFFIX, *left):
        if holds_file(folder, name):  # else it is a folder or a link, in which no text of ours is
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    flush_folder(folder)


def _told(folder: int, ledgers: Ledgers, entry: Entry) -> History:
    return histories(ledgers.read(folder).chains).get(entry.id) or History()


def _is_entered(history: History, sha256: str) -> bool:
    return any(said.act == "redact" and said.sha256 == sha256 for said in history.holding.values())


def _entered(
    folder: int, ledgers: Ledgers | None, entry: Entry, sha256: str, at: datetime
) -> tuple[str, ...]:
    """Add the ledger's line, unless it is there; tell when that can't be done."""
    if ledgers is None:
        return ()
    history = _told(folder, ledgers, entry)
    if _is_entered(history, sha256):
        return ()
    line = Statement(
        "redact",
        entry.id,
        sha256,
        over=tuple(history.holding),
        was=mark_of(entry),
        at=timestamp(at),
        reason=reason_in(entry),
    )
    try:
        ledgers.enter(folder, [line])
    except LedgerUnavailableError as error:
        told = "all is removed, but no ledger has a line for it, which check will tell"
        return (f"{told}: {error.reason}; run the same again once that is mended",)
    return ()
