"""A tool call's arguments, read as tolerantly as agents write them, and refused in plain words."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping

from agent_journal.naming import unquoted

_LARGEST = 10**9  # what any index takes; a larger number means no more than this one
_KINDS = {bool: "true or false", list: "a list", dict: "an object", float: "a number"}


class RefusedCallError(Exception):
    """A call's name or arguments can't be understood; the message says what would be."""


class Arguments:
    """The arguments of one call; None and, where a value is optional, '' count as not given.

    Args:
        raw: an object as JSON gives it, JSON text of one, or None for no arguments.
        tool: the tool's name, for messages.
        known: the names that it takes.

    Raises:
        RefusedCallError: it is something else, or holds an unknown argument.
    """

    def __init__(self, raw: object, *, tool: str, known: Collection[str]) -> None:
        self._tool = tool
        self._known = ", ".join(known)
        self._values = self._as_object(raw)
        for name in self._values:
            if name not in known:
                message = f"unknown argument {_brief(name)}; {tool} takes: {self._known}"
                raise RefusedCallError(message)

    def text(self, name: str) -> str:
        """Return an optional text; a number counts as its digits."""
        value = self._values.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RefusedCallError(f"{name} is {_kind(value)}; give a string")
        return str(value)

    def required_text(self, name: str) -> str:
        """Return a text that must be given, though it may be empty."""
        if self._values.get(name) is None:
            raise RefusedCallError(f"{name} is missing; {self._tool} takes: {self._known}")
        return self.text(name)

    def number(self, name: str) -> int | None:
        """Return an optional whole number, also when it comes as text or with a zero fraction."""
        value = self._values.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            number = _whole(value)
            if number is not None:
                return min(max(number, -_LARGEST), _LARGEST)
        raise RefusedCallError(f"{name} is {_brief(value)}; give a whole number")

    def tags(self, name: str) -> list[str]:
        """Return optional tags, given as comma-separated text, as a list, or as JSON text of one.

        The members of a list may hold commas. A ``#`` stays: drafts and queries drop it.
        """
        value = self._values.get(name)
        if isinstance(value, str):
            value = _listed(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            value = [value]
        if value is None:
            return []
        if not isinstance(value, list) or any(
            isinstance(tag, bool) or not isinstance(tag, str | int | float) for tag in value
        ):
            raise RefusedCallError(f"{name} is {_brief(value)}; give comma-separated words")
        return [str(tag) for tag in value]

    def ids(self, name: str) -> list[str]:
        """Return optional ids, given as tags are; each may be quoted, as answers show others'."""
        value = self._values.get(name)
        try:
            found = json.loads(f"[{value}]") if isinstance(value, str) else []
        except (ValueError, RecursionError):
            found = []
        if found and all(isinstance(one, str) for one in found):
            return list(found)
        given = self.tags(name)
        return [one if (inner := unquoted(one)) is None else inner for one in given]

    def _as_object(self, raw: object) -> Mapping[str, object]:
        if isinstance(raw, str):
            try:
                raw = json.loads(raw or "{}")
            except (ValueError, RecursionError):
                raise self._no_object("text") from None
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            raise self._no_object(_kind(raw))
        return raw

    def _no_object(self, kind: str) -> RefusedCallError:
        return RefusedCallError(
            f"the arguments are {kind}; {self._tool} takes an object with: {self._known}"
        )


def _whole(value: str | float) -> int | None:
    try:
        if isinstance(value, str):
            value = float(value) if not value.strip().lstrip("+-").isdigit() else int(value)
        if isinstance(value, float):
            return int(value) if math.isfinite(value) and value == int(value) else None
    except ValueError:
        return None
    return value


def _listed(text: str) -> list[object]:
    if text.lstrip()[:1] in ("[", '"'):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            text = text.strip().strip("[]")  # as YAML writes a list
            return [part.strip().strip("\"'") for part in text.split(",")]
        if isinstance(found, list):
            return found
        text = str(found)
    return list(text.split(","))


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


def _brief(value: object) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."  # noqa: PLR2004 - enough to see
