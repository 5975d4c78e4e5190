"""Names that others gave, as our own sentences say them: no name can leave its quotes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_framing import TEXTS

from agent_journal.faces.framing import escape_controls, exact_line
from agent_journal.model import EntryId
from agent_journal.naming import is_ours, quoted, said_id, said_path, unquoted

OURS = "20260131-120000-007"


@given(TEXTS, st.integers(20, 300))
def test_a_quoted_name_is_one_string_that_shows_all(text: str, limit: int) -> None:
    """It says the text, keeps to one line, hides nothing, and is cut outside of an escape."""
    shown = quoted(text)
    said = json.loads(shown)
    assert unquoted(shown) == said
    # two halves of one character, apart, are that character to JSON
    assert said.encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")
    assert escape_controls(shown) == exact_line(shown) == shown
    cut = quoted(text, limit)
    assert len(cut.encode()) <= limit
    assert cut == shown or shown.startswith(cut.removesuffix('"...'))
    assert unquoted(cut.removesuffix("...")) is not None


@pytest.mark.parametrize(
    "name",
    ["", "x", "20260131-120000-0070", f"{OURS} ", f"{OURS}-1", "20261331-120000-007", f"{OURS}\n"],
)
def test_only_an_instant_is_ours(name: str) -> None:
    """All else is quoted, wherever it is said."""
    assert is_ours(OURS)
    assert not is_ours(name)
    assert said_id(EntryId(OURS), 20) == OURS
    assert said_id(EntryId(name)) == quoted(name)
    assert said_path(f"/journal/{OURS}.md") == f"/journal/{OURS}.md"
    assert said_path(f"/journal/{name}.md") == f"{quoted(f'{name}.md')} in /journal"


@pytest.mark.parametrize("text", ["", "x", "1", "null", "[]", '"', '"a" "b"', "[" * 100_000])
def test_what_is_no_string_says_nothing(text: str) -> None:
    """A text that isn't quoted is taken as it stands."""
    assert unquoted(text) is None
