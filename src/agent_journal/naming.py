"""Names that others gave to files, as our own sentences say them: quoted, and cut when long."""

from __future__ import annotations

import json
import re

from agent_journal.model import EntryId, entry_id_of, instant_of

NAME_LIMIT_BYTES = 80
"""What a quoted name takes at most in a sentence that nobody copies it from."""

_SEEN_BY_NOBODY = re.compile(  # though Python calls them printable
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

_BLANKS = frozenset("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))


def is_ours(entry_id: str) -> bool:
    """Tell whether an id is no more than an instant, as we give them; others may say something."""
    instant = instant_of(entry_id)
    return instant is not None and entry_id == entry_id_of(instant)


def quoted(text: str, limit_bytes: int | None = None) -> str:
    """Return a text as a JSON string, on one line; all that can't be seen in it is escaped.

    Args:
        text: any text.
        limit_bytes: what the string takes at most as UTF-8, at least 20; what is longer is cut,
            and three dots follow the closing quote.
    """
    parts = [_part(character) for character in text]
    whole = f'"{"".join(parts)}"'
    if limit_bytes is None or len(whole.encode()) <= limit_bytes:
        return whole
    kept, room = [], limit_bytes - len('""...')
    for part in parts:
        room -= len(part.encode())
        if room < 0:
            break
        kept.append(part)
    return f'"{"".join(kept)}"...'


def unquoted(text: str) -> str | None:
    """Return what a JSON string says; None when a text is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def said_id(entry_id: EntryId, limit_bytes: int | None = None) -> str:
    """Return an id for a sentence: as it is when it is ours, else `quoted`."""
    return entry_id if is_ours(entry_id) else quoted(entry_id, limit_bytes)


def said_path(path: str) -> str:
    """Return the path of a file in the journal for a sentence: others' names quoted and cut."""
    folder, _, name = path.rpartition("/")
    if is_ours(name.rpartition(".")[0]):
        return path
    return f"{quoted(name, NAME_LIMIT_BYTES)} in {folder or '/'}"


def _part(character: str) -> str:
    is_shown = character in _BLANKS or character.isprintable()
    is_shown = is_shown and not _SEEN_BY_NOBODY.match(character)
    return json.dumps(character, ensure_ascii=not is_shown)[1:-1]
