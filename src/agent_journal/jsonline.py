"""Values as one line of JSON that any terminal and any pipe carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


def encode(shape: Json) -> str:
    """Return one line of JSON in plain ASCII without control characters, for any terminal."""
    import json  # noqa: PLC0415 - not needed for --help

    return json.dumps(shape, allow_nan=False).replace("\x7f", "\\u007f")


def plain(value: object) -> Json:
    """Return a value as JSON can hold it; what JSON lacks, such as NaN, as a string."""
    if isinstance(value, Mapping):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    return value if value is None or isinstance(value, str | int) else str(value)
