"""A JSON configuration file that knows where each of its values stands."""

from __future__ import annotations

import json
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from agent_journal.errors import ConfigError
from agent_journal.jsontext import Where, places
from agent_journal.model import FORBIDDEN

SIZE_LIMIT_BYTES = 1024 * 1024
DEPTH = 4
"""Lines are known for keys down to here: ``journal.tags[0].name``."""

_T = TypeVar("_T", dict[str, object], list[object], str, bool, float)
_NOUNS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class ConfigFile:
    """A parsed file that names key and line of whatever is wrong in it.

    Attributes:
        path: where the file is.
        source: its text.
    """

    def __init__(self, path: Path, text: str, keys: Collection[tuple[str, ...]]) -> None:
        """Parse a file's text.

        Args:
            path: for messages.
            text: what the file holds.
            keys: the keys that mean something, without list indexes, at most `DEPTH` deep.

        Raises:
            ConfigError: it is not JSON, or one of the keys stands in it twice.
        """
        self.path = path
        self.source = text
        self._lines: dict[Where, int] = {}
        try:
            # As floats, numbers can't be too long to convert.
            self._root: object = json.loads(text, parse_int=float, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            reason = f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]}, column {error.colno}"
            if not text.strip():
                reason = "is empty; put {} there, or remove it"
            raise ConfigError(str(path), "", reason, error.lineno) from None
        except ValueError as error:
            raise ConfigError(str(path), "", f"is not JSON: {error}") from None
        except RecursionError:
            raise ConfigError(str(path), "", "is nested too deeply") from None
        for place in places(text, depth=DEPTH):
            where, line = place.where, place.line
            names = tuple(part for part in where if isinstance(part, str))
            if where in self._lines and names in keys:
                raise ConfigError(str(path), _dotted(where), "stands here a second time", line)
            self._lines[where] = line

    def get(self, where: Where, kind: type[_T]) -> _T | None:
        """Return a value, or None when it or what should hold it is absent.

        Raises:
            ConfigError: it is of another kind.
        """
        value: Any = self._root  # any JSON value; narrowed below
        for part in where:
            if isinstance(part, str) and (not isinstance(value, dict) or part not in value):
                return None
            value = value[part]
        if not isinstance(value, kind):
            self.fail(where, f"is {_NOUNS[type(value)]}; it must be {_NOUNS[kind]}")
        return value

    def text(self, where: Where) -> str | None:
        """Return a string that can be shown and sent, or None when it is absent."""
        value = self.get(where, str)
        if value is not None:
            try:
                require_clean(value)
            except ValueError as error:
                self.fail(where, str(error))
        return value

    def fail(self, where: Where, reason: str) -> NoReturn:
        """Raise the error of a value, with its line, or that of what should hold it."""
        line = self._lines.get(where) or self._lines.get(where[:-1])
        raise ConfigError(str(self.path), _dotted(where), reason, line)


def read(path: Path, keys: Collection[tuple[str, ...]]) -> ConfigFile | None:
    """Return a parsed file, or None when there is none; it is never created or changed.

    Args:
        path: where to look.
        keys: those that mean something, as for `ConfigFile`.

    Raises:
        ConfigError: it is there and can't be used.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe could wait for ever
            raise ConfigError(str(path), "", "is not a file")
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError(str(path), "", "is a link to a file that is missing") from None
        return None
    except OSError as error:
        raise ConfigError(str(path), "", f"can't be read: {error.strerror}") from None
    if len(data) > SIZE_LIMIT_BYTES:
        raise ConfigError(str(path), "", f"is larger than {SIZE_LIMIT_BYTES:,} bytes")
    if data.startswith(b"\xef\xbb\xbf"):
        reason = "starts with a byte order mark; save it as UTF-8 without one"
        raise ConfigError(str(path), "", reason, 1)
    try:
        return ConfigFile(path, data.decode("utf-8"), keys)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), "", "is not UTF-8", line) from None


def require_clean(text: str) -> None:
    """Refuse what neither a path nor a message can carry.

    Raises:
        ValueError: the text holds NUL or a lone surrogate.
    """
    if found := FORBIDDEN.search(text):
        reason = f"holds U+{ord(found[0]):04X}; remove NUL characters and lone surrogates"
        raise ValueError(reason)


def _dotted(where: Where) -> str:
    """``journal.tags[1].name``, as people write it."""
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in where
    ).removeprefix(".")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
