"""The door that every draft passes before it is written: secrets are masked, refused or allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from agent_journal.errors import SecretsFoundError
from agent_journal.model import Draft, Provenance, Screening, Value
from agent_journal.secrets.finding import mask
from agent_journal.secrets.policy import Policy
from agent_journal.secrets.suspicion import suspect


def screen(draft: Draft, policy: Policy) -> tuple[Draft, Screening]:
    """Return a draft as it may be written, and what was found in it.

    Every text in it counts: title, body, tags, provenance and extra, the keys of extra too. What is
    only suspected stays.

    Raises:
        SecretsFoundError: there are secrets, and the policy is to refuse them.
        InvalidDraftError: the title is too long once its secrets are masked.
    """
    if policy == "allow":
        return draft, Screening()
    desk = _Desk()
    title, body = desk.text("title", draft.title), desk.text("body", draft.body)
    tags = tuple(desk.text("tags", tag) for tag in draft.tags)
    known = {
        name: desk.text("provenance", getattr(draft.provenance, name))
        for name in Provenance.__slots__
    }
    extra = desk.mapping(draft.extra)
    found = desk.found(policy)
    if not desk.masked:
        return draft, found
    origin = Provenance(**known)
    return replace(draft, title=title, body=body, tags=tags, provenance=origin, extra=extra), found


def screen_text(field: str, text: str, policy: Policy) -> tuple[str, Screening]:
    """Return a text that is no draft's as it may be kept, and what was found in it.

    Raises:
        SecretsFoundError: there are secrets, and the policy is to refuse them.
    """
    if policy == "allow":
        return text, Screening()
    desk = _Desk()
    screened = desk.text(field, text)
    return screened, desk.found(policy)


class _Desk:
    """Looks at texts, such as those of one draft, and counts what it finds.

    Attributes:
        field: where the first secret was.
    """

    def __init__(self) -> None:
        self.masked: Counter[str] = Counter()
        self.suspected: Counter[str] = Counter()
        self.field = ""

    def text(self, field: str, text: str, name: str = "") -> str:
        """Return a text without its secrets; some are known by a name that stands before them."""
        before = f"{name}=" if name else ""
        masked, counts = mask(before + text)
        if not masked.startswith(before):
            before = ""
            masked, counts = mask(text)
        if counts:
            self.field = self.field or field
            self.masked.update(counts)
        self.suspected.update(suspect(masked))
        return masked[len(before) :]

    def found(self, policy: Policy) -> Screening:
        """Return what was found in all of them.

        Raises:
            SecretsFoundError: there are secrets, and the policy is to refuse them.
        """
        if self.masked and policy == "refuse":
            raise SecretsFoundError(self.field, dict(self.masked))
        return Screening(masked=dict(self.masked), suspected=dict(self.suspected))

    def mapping(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Return a mapping without its secrets, in names and values at any depth."""
        kept: dict[str, Value] = {}
        for name, value in given.items():
            masked = key = self.text("extra", name)
            number = 1
            while key in kept:  # two names that differ in a secret alone
                number += 1
                key = f"{masked} {number}"
            kept[key] = self._value(value, masked)
        return kept

    def _value(self, value: Value, name: str = "") -> Value:
        if isinstance(value, str):
            return self.text("extra", value, name)
        if isinstance(value, Mapping):
            return self.mapping(value)
        if isinstance(value, list | tuple):
            return [self._value(member, name) for member in value]
        return value
