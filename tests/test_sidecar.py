"""The format of sidecars: version 2 is trusted, anything else is refused with its reason."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal import sidecar
from agent_journal.errors import InvalidSidecarError
from agent_journal.ports import Sidecar

PATH = "/journal/x.embedding"
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)
VECTORS = st.lists(FLOATS, min_size=1, max_size=40).filter(any)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name.strip() != ""
)


def parse(content: object) -> Sidecar:
    """Parse a sidecar that holds this JSON."""
    return sidecar.parse(json.dumps(content).encode(), path=PATH)


def valid(**changes: object) -> dict[str, object]:
    """Return a valid sidecar's content with some of its keys changed."""
    return {"v": 2, "model": "m", "dimension": 2, "vector": [0.5, -1], **changes}


def test_a_sidecar_reads_like_this() -> None:
    """It is one line of compact JSON under the original's keys."""
    assert sidecar.render(Sidecar("a/b", (0.1, -1.0, 3e-9))) == (
        b'{"v":2,"model":"a/b","dimension":3,"vector":[0.1,-1,3e-09]}'
    )


@given(NAMES, VECTORS)
def test_what_is_written_is_read_back(name: str, vector: list[float]) -> None:
    """Every float32 comes back bit for bit (zero without its sign), and the model's name."""
    read = sidecar.parse(sidecar.render(Sidecar(name, tuple(vector))), path=PATH)
    assert read.model == name
    layout = f"{len(vector)}f"
    assert struct.pack(layout, *read.vector) == struct.pack(layout, *(n + 0.0 for n in vector))


def test_the_originals_sidecars_are_read() -> None:
    """Blanks, other key orders, integers and unknown keys do no harm."""
    text = b'{ "vector": [0.25, 1], "dimension": 2,\n "v": 2, "model": "Xenova/m", "by": "x" }\n'
    assert sidecar.parse(text, path=PATH) == Sidecar("Xenova/m", (0.25, 1.0))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([0.5, 1], "bare array"),
        ("text", "no JSON object"),
        (valid(v=1), "version is not 2"),
        (valid(v=2.0), "version is not 2"),
        (valid(v="2"), "version is not 2"),
        (valid(model=None), "no model"),
        (valid(model=" "), "no model"),
        (valid(dimension=True, vector=[1]), "dimension is no number from 1"),
        (valid(dimension=0, vector=[]), "dimension is no number from 1"),
        (valid(dimension=65_537), "dimension is no number from 1"),
        (valid(dimension=2.0), "dimension is no number from 1"),
        (valid(dimension=3), "no list of 3 numbers"),
        (valid(vector={"0": 1, "1": 2}), "no list of 2 numbers"),
        (valid(vector=[1, True]), "no number"),
        (valid(vector=[1, "1"]), "no number"),
        (valid(vector=[1, None]), "no number"),
        (valid(vector=[1, [1]]), "no number"),
        (valid(vector=[1, math.nan]), "not finite"),
        (valid(vector=[1, math.inf]), "not finite"),
        (valid(vector=[1e200, 1e200]), "float32"),
        (valid(vector=[1, 10**400]), "too large"),
        (valid(vector=[0, -0.0]), "all zeros"),
        (valid(vector=[0, 1e-60]), "all zeros"),
    ],
)
def test_what_is_not_version_2_is_refused(content: object, reason: str) -> None:
    """Each rule has its own reason, and the error names the file."""
    with pytest.raises(InvalidSidecarError, match=reason) as caught:
        parse(content)
    assert caught.value.path == PATH


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"v":2,"vector":[' + b"9" * 5000 + b"]}", "not JSON"),
        (b" " * (sidecar.READ_LIMIT_BYTES + 1), "larger than"),
    ],
)
def test_garbage_is_refused(data: bytes, reason: str) -> None:
    """Truncated, deep, endless and oversized files are refused, never an accident."""
    with pytest.raises(InvalidSidecarError, match=reason):
        sidecar.parse(data, path=PATH)


@given(st.one_of(st.binary(max_size=60), st.integers(0, 50)))
def test_any_bytes_are_a_sidecar_or_refused(damage: bytes | int) -> None:
    """Nothing but `InvalidSidecarError` is ever raised."""
    file = sidecar.render(Sidecar("m", (0.5, -1.0)))
    data = file[:damage] if isinstance(damage, int) else damage
    with pytest.raises(InvalidSidecarError):
        sidecar.parse(data, path=PATH)
