"""Text from entries as it is shown: laws that no text may break."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.faces.framing import escape_controls, exact_line, fence, head, is_plain, one_line

ANY = st.characters()
HOSTILE = st.sampled_from(
    "\x00\x07\x1b\r\x7f\x85\x9b\u202e\u2066\ud800\udfff\U000e0041\n\t`~=- aé漢😀"
)
TEXTS = st.text(st.one_of(ANY, HOSTILE), max_size=200)


@given(TEXTS)
def test_nothing_shown_can_act_on_a_terminal_or_break_a_stream(text: str) -> None:
    """Of all control characters only tab and newline are left, and UTF-8 carries the rest."""
    shown = escape_controls(text)
    shown.encode()
    assert {c for c in shown if unicodedata.category(c) == "Cc"} <= {"\t", "\n"}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", shown)


@given(TEXTS)
def test_escaping_twice_is_escaping_once(text: str) -> None:
    """What is shown holds nothing more to escape."""
    assert escape_controls(escape_controls(text)) == escape_controls(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf"], include_characters="\t\n\\")))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    """Text without control characters doesn't change by a byte, backslashes neither."""
    assert escape_controls(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x00b", "a\\x00b"),
        ("a\r\n", "a\\x0d\n"),
        ("\x9b", "\\x9b"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("hi\U000e0068", "hi\\U000e0068"),
        ("\u200e\u200d\u2028\\x1b", "\u200e\u200d\u2028\\x1b"),
    ],
)
def test_escapes_are_spelled_as_in_source_code(text: str, shown: str) -> None:
    """Two, four or eight hexadecimal digits; marks that ordinary text needs are left alone."""
    assert escape_controls(text) == shown


@given(TEXTS)
def test_an_exact_line_is_one_line_and_keeps_its_blanks(text: str) -> None:
    """What can be copied from it is the text itself, if that holds nothing to be spelled out."""
    shown = exact_line(text)
    assert len(shown.splitlines()) <= 1
    assert escape_controls(shown) == shown
    assert "\t" not in shown
    if text.isprintable():
        assert shown == text
    assert exact_line("a  b\u00a0c") == "a  b\u00a0c"


@given(TEXTS, st.integers(3, 300) | st.none())
def test_one_line_is_one_line_within_its_limit(text: str, limit: int | None) -> None:
    """Neither line breaks nor controls are left, and never more characters than allowed."""
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert line == escape_controls(line)
    assert limit is None or len(line) <= limit


def test_one_line_marks_what_it_cuts() -> None:
    """A cut line ends in three dots; one that fits doesn't."""
    assert one_line("a \n b\t\u2028c") == "a b c"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abc..."


@given(st.text("`~=- \nx", max_size=300))
def test_a_fence_stands_nowhere_within_its_text(text: str) -> None:
    """No text can close its own fence, or hold anything that looks like it."""
    border = fence(text)
    assert len(border) >= 3
    assert len(set(border)) == 1
    assert border not in text


@pytest.mark.parametrize(
    ("text", "border"),
    [("", "```"), ("a ``b``", "```"), ("```", "~~~"), ("``` ~~~ ==== ---", "````")],
)
def test_a_fence_is_as_short_as_it_can_be(text: str, border: str) -> None:
    """Another character is taken before a longer run."""
    assert fence(text) == border


@given(TEXTS, st.integers(10, 400))
def test_a_head_fits_and_makes_progress(text: str, limit: int) -> None:
    """It begins the text, takes no more bytes than allowed, and is never empty-handed."""
    piece = head(text, limit)
    assert text.startswith(piece)
    assert len(escape_controls(piece).encode()) <= limit
    assert bool(piece) == bool(text)


@given(TEXTS, st.integers(10, 400))
def test_a_head_is_whole_lines_where_a_line_fits(text: str, limit: int) -> None:
    """It ends at a line's end, unless already the first line is too long; the whole stays whole."""
    piece = head(text, limit)
    if len(escape_controls(text).encode()) <= limit:
        assert piece == text
        return
    more = text[len(piece) :]
    next_line, next_character = more.split("\n", maxsplit=1)[0] + "\n", more[0]
    longer = piece + (next_line if piece.endswith("\n") else next_character)
    assert len(escape_controls(longer).encode()) > limit
    assert piece.endswith("\n") or "\n" not in piece


@given(st.text("ab\n\x1b漢", max_size=400), st.integers(10, 60))
def test_heads_one_after_another_give_the_whole_text(text: str, limit: int) -> None:
    """Reading on where the last piece ended loses nothing and repeats nothing."""
    rest, pieces = text, []
    while rest:
        pieces.append(head(rest, limit))
        rest = rest[len(pieces[-1]) :]
    assert "".join(pieces) == text


def test_no_room_gives_nothing() -> None:
    """A limit below zero is no slice from the end."""
    assert head("abc", -2) == ""


@pytest.mark.parametrize(
    ("text", "is_so"),
    [("a b", True), ("", True), ("漢 é\u200d", True)]
    + [(f"a{odd}b", False) for odd in "\t\n\x1b\x85\u202e"],
)
def test_plain_text_is_shown_as_it_is(text: str, is_so: bool) -> None:  # noqa: FBT001 - a claim
    """What a shell completes and what a tool suggests is one line without controls."""
    assert is_plain(text) is is_so
