"""Markdown files of other tools, read with care: no link to a file is followed, no byte guessed."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_journal import entryfile
from agent_journal.engines.placing import names, opened, read_file, reason_of
from agent_journal.engines.scanning import ENTRY_SUFFIX, printable
from agent_journal.model import ENTRY_LIMIT_BYTES, Entry, EntryId, Problem

READ_LIMIT_BYTES = 2 * ENTRY_LIMIT_BYTES
"""A larger file could not become an entry, whatever of it is frontmatter."""

_EXPECTED = frozenset({entryfile.NO_FRONTMATTER, entryfile.NO_TITLE})
"""Problems of an entry that are none of a file which isn't one yet."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that could be read.

    Attributes:
        name: its name in its folder.
        content: its bytes.
        entry: what it would be as an entry. Its id is empty, and `created` is what its frontmatter
            says, else the time of its last change.
    """

    name: str
    content: bytes
    entry: Entry


def document_names(folder: Path) -> list[str]:
    """Return the names of a folder's Markdown files, sorted; none starts with a dot.

    Raises:
        OSError: the folder is missing or can't be read.
    """
    with opened(folder) as descriptor:
        return [
            name
            for name in names(descriptor)
            if name.endswith(ENTRY_SUFFIX) and not name.startswith(".")
        ]


def documents(folder: Path, wanted: Sequence[str]) -> Iterator[Document | Problem]:
    """Yield each file of a folder, or why it can't be read.

    Raises:
        OSError: the folder is gone.
    """
    with opened(folder) as descriptor:
        for name in wanted:
            path = printable(folder / name)
            try:
                content, mtime = read_file(descriptor, name, limit=READ_LIMIT_BYTES + 1)
            except OSError as error:
                yield Problem(path, _refusal(error))
                continue
            if reason := _objection(content):
                yield Problem(path, reason)
                continue
            entry = entryfile.parse(content, entry_id=EntryId(""), path=path, mtime=mtime)
            problems = tuple(each for each in entry.problems if each.reason not in _EXPECTED)
            yield Document(name, content, replace(entry, problems=problems))


def _refusal(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a symbolic link, which is never followed; put the file itself here"
    return f"it can't be read: {reason_of(error)}"


def _objection(content: bytes) -> str:
    if len(content) > READ_LIMIT_BYTES:
        return (
            f"it is larger than {READ_LIMIT_BYTES:,} bytes, the limit of an entry is "
            f"{ENTRY_LIMIT_BYTES:,}; split it"
        )
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return (
            f"byte 0x{content[error.start]:02x} at position {error.start} is not UTF-8; "
            "convert it, for example with iconv -f LATIN1 -t UTF-8"
        )
    return ""
