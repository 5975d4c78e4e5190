"""What a person wants removed from an entry, and what became of that."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from agent_journal.errors import RedactionRefusedError
from agent_journal.model import FORBIDDEN, EntryId

MARKER = "[redacted]"
"""Stands where text was removed."""

REASON_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Redaction:
    """What a person wants removed.

    White-space runs in the reason are made one space.

    Attributes:
        reason: why; kept for good, so it must not say what is removed.
        text: what to remove wherever it stands in the entry; empty means all of the entry. Runs of
            white space match one another, and composed characters match decomposed ones.

    Raises:
        RedactionRefusedError: the reason is missing, too long or gives the text away, or the text
            is blank or a part of the marker.
    """

    reason: str
    text: str = ""

    def __post_init__(self) -> None:
        """Check both."""
        reason = " ".join(self.reason.split())
        if not reason:
            raise RedactionRefusedError("reason", "reason is empty; say why, but not what it was")
        if len(reason) > REASON_LIMIT:
            message = f"reason has {len(reason):,} characters, the limit is {REASON_LIMIT}"
            raise RedactionRefusedError("reason", message)
        if FORBIDDEN.search(reason):
            message = "reason holds NUL or a lone surrogate; remove it"
            raise RedactionRefusedError("reason", message)
        if self.text and not self.text.strip():
            raise RedactionRefusedError("text", "text is blank; give what is to be removed")
        if self.text and self.pattern.search(f"{MARKER} {MARKER}{MARKER}"):
            message = f"text is a part of {MARKER}, which would stand in its place; give more of it"
            raise RedactionRefusedError("text", message)
        if self.text and self.pattern.search(reason):
            message = "reason holds the very text that is to be removed; say it otherwise"
            raise RedactionRefusedError("reason", message)
        object.__setattr__(self, "reason", reason)

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the text looks like."""
        forms = {unicodedata.normalize(form, self.text) for form in ("NFC", "NFD")} | {self.text}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        return re.compile(
            "|".join(r"\s+".join(map(re.escape, each.split())) for each in longest_first)
        )


@dataclass(frozen=True, slots=True)
class Redacted:
    """What a redaction did.

    Attributes:
        id: the entry's.
        count: how many places the text stood in; 0 when all was done before but for traces.
        was: the hash of the file that was replaced; empty when none was replaced now.
        notices: what else the person should know.
    """

    id: EntryId
    count: int
    was: str
    notices: tuple[str, ...] = ()
