"""Ids are handed out once each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.engines import instants
from agent_journal.model import to_milliseconds


class TestInstants:
    """Ids are handed out once each, in any order of requests, in linear time."""

    @given(st.lists(st.integers(0, 30), max_size=200))
    def test_gives_the_first_free_one(self, asked: list[int]) -> None:
        """The answers are those of the simplest search."""
        given_out: set[int] = set()
        handing = instants.Instants()
        for instant in asked:
            free = instant
            while free in given_out:
                free += 1
            given_out.add(free)
            assert to_milliseconds(handing.take(instant)) == free

    def test_memory_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that runs for years doesn't remember every write."""
        monkeypatch.setattr(instants, "_REMEMBERED", 10)
        handing = instants.Instants()
        for instant in range(100):
            handing.take(instant * 1000)
        assert len(handing._following) <= 12
