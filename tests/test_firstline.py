"""What stands for a title: the first line of a body that says something."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.firstline import first_line

BODIES = st.lists(
    st.one_of(
        st.characters(), st.sampled_from("\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029# -_aé٣²\0")
    )
).map("".join)


def spelled_out(body: str) -> str:
    """Say the same line by line and sign by sign."""
    for line in body.splitlines():
        if any(character.isalnum() for character in line):
            return line.strip().lstrip("#").strip()[:80]
    return ""


@given(BODIES)
def test_it_is_the_first_line_that_says_something(body: str) -> None:
    """Whatever ends the lines, and whatever stands before a word."""
    assert first_line(body, 80) == spelled_out(body)


@pytest.mark.parametrize("unit", ["\0", "-", "\n", "- \n", "#", "_"], ids=ascii)
def test_a_body_of_signs_takes_little_time(unit: str) -> None:
    """Less than it takes to look at each sign."""
    body = unit * (2**18 // len(unit)) + "x"

    def look(text: str) -> bool:
        return any(character.isalnum() for character in text)

    def seconds(work: Callable[[], object]) -> float:
        begun = time.thread_time()
        work()
        return time.thread_time() - begun

    assert first_line(body, len(body))[-1] == "x"
    took = min(seconds(lambda: first_line(body, 80)) for _ in range(3))
    assert took < max(seconds(lambda: look(body)) for _ in range(3))
