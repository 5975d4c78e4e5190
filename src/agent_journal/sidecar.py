"""Sidecars: a whole entry's vector as one line of JSON beside the entry's file.

The format is the original's version 2: ``{"v": 2, "model", "dimension", "vector"}``. Its older
form, a bare array of numbers, names no model and is never trusted.
"""

from __future__ import annotations

import json
import math

from agent_journal.errors import InvalidSidecarError
from agent_journal.ports import Sidecar

VERSION = 2

DIMENSION_LIMIT = 65_536
"""No model makes longer vectors; more than this is refused."""

READ_LIMIT_BYTES = 4 * 1024 * 1024
"""No valid sidecar is larger; whoever opens one needs to read no more than one byte beyond it."""

_FLOAT32_MAX = 3.40282347e38  # at nine digits
_FLOAT32_MIN = 1.17549435e-38  # what is smaller may as well be zero


def render(sidecar: Sidecar) -> bytes:
    """Return the file of a sidecar; nine significant digits carry every float32 exactly."""
    numbers = ",".join([f"{number:.9g}" for number in sidecar.vector])
    model = json.dumps(sidecar.model)
    return (
        f'{{"v":{VERSION},"model":{model},"dimension":{len(sidecar.vector)},"vector":[{numbers}]}}'
    ).encode()


def parse(data: bytes, *, path: str) -> Sidecar:
    """Return what a sidecar file holds.

    Args:
        data: the file's content, or its first `READ_LIMIT_BYTES` + 1 bytes.
        path: where the file is, for the error.

    Raises:
        InvalidSidecarError: it is not of version 2, or not exactly `dimension` finite numbers that
            aren't all zero.
    """
    if len(data) > READ_LIMIT_BYTES:
        raise InvalidSidecarError(path, f"it is larger than {READ_LIMIT_BYTES:,} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidSidecarError(path, "it is not JSON") from None
    if isinstance(content, list):
        raise InvalidSidecarError(path, "it is a bare array that names no model (version 1)")
    if not isinstance(content, dict):
        raise InvalidSidecarError(path, "it is no JSON object")
    if type(content.get("v")) is not int or content["v"] != VERSION:
        raise InvalidSidecarError(path, f"its version is not {VERSION}")
    model = content.get("model")
    if not isinstance(model, str) or not model.strip():
        raise InvalidSidecarError(path, "it names no model")
    return Sidecar(model, _vector(content, path))


def _vector(content: dict[str, object], path: str) -> tuple[float, ...]:
    dimension, vector = content.get("dimension"), content.get("vector")
    if type(dimension) is not int or not 0 < dimension <= DIMENSION_LIMIT:
        raise InvalidSidecarError(path, f"its dimension is no number from 1 to {DIMENSION_LIMIT:,}")
    if not isinstance(vector, list) or len(vector) != dimension:
        raise InvalidSidecarError(path, f"its vector is no list of {dimension} numbers")
    if not {type(number) for number in vector} <= {int, float}:
        raise InvalidSidecarError(path, "its vector holds something that is no number")
    try:
        numbers = tuple(map(float, vector))
    except OverflowError:
        raise InvalidSidecarError(path, "its vector holds a number that is too large") from None
    if not all(map(math.isfinite, numbers)):
        raise InvalidSidecarError(path, "its vector is not finite")
    largest = max(map(abs, numbers))
    if largest > _FLOAT32_MAX:
        raise InvalidSidecarError(path, "its vector holds a number beyond float32")
    if largest < _FLOAT32_MIN:
        raise InvalidSidecarError(path, "its vector is all zeros")
    return numbers
