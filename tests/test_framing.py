"""Text from entries as it is shown: laws that no text may break."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.faces.framing import (
    escape_controls,
    exact_line,
    fence,
    head,
    is_plain,
    one_line,
    rule,
)

ANY = st.characters()
HOSTILE = st.sampled_from(
    "\u200b\u200c\u200d\u200e\u00ad\u2060\ufe0f\ufe00\U000e0100\ufeff\u3164\U000e007f\U0001f3f4"
    "\x00\x07\x1b\r\x7f\x85\x9b\u202e\u2066\ud800\udfff\U000e0041\n\t`~=- aé漢😀"
)
UNSEEN = {chr(code) for code in (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)} | {
    chr(code) for first, last in ((0x180B, 0x1810), (0xFE00, 0xFE10), (0xE0100, 0xE01F0))
    for code in range(first, last)
}  # fmt: skip
# Joined, since st.text merges what it is given into one set of characters, without their weights.
TEXTS = st.lists(st.one_of(ANY, HOSTILE), max_size=200).map("".join)
ORDINARY = st.characters(exclude_categories=["Cc", "Cn", "Cs", "Cf"]).filter(
    lambda character: character not in UNSEEN
)


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


@given(st.lists(st.one_of(ORDINARY, st.sampled_from("\t\n\\x"))).map("".join))
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
        ("\u200ea\u2028\\x1b", "\u200ea\u2028\\x1b"),
    ],
)
def test_escapes_are_spelled_as_in_source_code(text: str, shown: str) -> None:
    """Two, four or eight hexadecimal digits; marks that ordinary text needs are left alone."""
    assert escape_controls(text) == shown


NEVER_SHOWN = [
    *(("\x00", "\x08"), ("\x0b", "\x1f"), ("\x7f", "\x9f")),
    *(("\u202a", "\u202e"), ("\u2066", "\u2069")),
    *(("\U000e0000", "\U000e00ff"), ("\U000e01f0", "\U000e0fff")),
    *((one, one) for one in "\u115f\u1160\u17b4\u17b5\u3164\uffa0"),
    *(("\u2061", "\u2065"), ("\u206a", "\u206f"), ("\ufeff", "\ufeff"), ("\ufff0", "\ufffb")),
    *(("\U0001bca0", "\U0001bca3"), ("\U0001d173", "\U0001d17a")),
    ("\ud800", "\udfff"),
]


@pytest.mark.parametrize("ends", NEVER_SHOWN, ids=ascii)
def test_what_acts_or_hides_is_spelled_out_wherever_it_stands(ends: tuple[str, str]) -> None:
    """Every character of each range: after nothing, a letter of any script, a sign, another one."""
    first, last = map(ord, ends)
    for odd in map(chr, range(first, last + 1)):
        digits = next(width for width in (2, 4, 8) if ord(odd) < 16**width)
        spelled = f"\\{'xuU'[digits // 4]}{ord(odd):0{digits}x}"
        for before in ("", "a", "1", "é", "漢", "😀", "🏴", "\n"):
            assert escape_controls(f"{before}{odd}b") == f"{before}{spelled}b"
        assert escape_controls(odd + odd) == spelled + spelled


UNITS = {
    "NUL": "\0",
    "NUL among letters": "a\0",
    "NUL in a script": "é" + "\0" * 999,
    "orders": "\u202e",
    "tags": "\U000e0041",
    "joiners": "\u200d",
    "bits": "\u200b\u200c",
    "selectors": "\ufe0f\u200d",
}


@pytest.mark.parametrize("name", UNITS)
def test_spelling_out_takes_linear_time_and_little(name: str) -> None:
    """As much a sign for many as for few, and less than bare Python takes."""
    small, large = (UNITS[name] * (size // len(UNITS[name])) for size in (2**14, 2**18))

    def spell(text: str) -> str:
        return "".join(f"\\U{ord(character):08x}" for character in text)

    def seconds(work: Callable[[str], str], text: str) -> float:
        begun = time.thread_time()
        work(text)
        return time.thread_time() - begun

    escape_controls(large)
    took = min(seconds(escape_controls, large) for _ in range(3))
    assert took < 4 * 16 * max(min(seconds(escape_controls, small) for _ in range(3)), 0.001)
    assert took < max(seconds(spell, large) for _ in range(3))


@given(TEXTS)
def test_an_exact_line_is_one_line_and_keeps_its_blanks(text: str) -> None:
    """What can be copied from it is the text itself, if that holds nothing to be spelled out."""
    shown = exact_line(text)
    assert len(shown.splitlines()) <= 1
    assert escape_controls(shown) == shown
    assert "\t" not in shown
    if text.isprintable() and not UNSEEN & set(text):
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


@given(st.lists(st.text("-=~`\nx", max_size=300), max_size=4))
def test_a_rule_stands_nowhere_within_the_texts(texts: list[str]) -> None:
    """None can imitate what parts them; without reason it is 40 dashes."""
    border = rule(texts)
    assert len(border) >= 40
    assert len(set(border)) == 1
    assert not any(border in text for text in texts)
    assert rule([]) == "-" * 40
    assert rule(["-" * 40, "=" * 39]) == "=" * 40
    assert rule([character * 50 for character in "-=~`"]) == "-" * 51


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


KEPT = {
    "family": "👩\u200d👩\u200d👧\u200d👦",
    "heart on fire": "❤\ufe0f\u200d🔥",
    "rainbow flag": "🏳\ufe0f\u200d🌈",
    "skin and work": "👩🏽\u200d💻",
    "keycap": "1\ufe0f\u20e3 #\ufe0f\u20e3 *\ufe0f\u20e3",
    "text and emoji style": "☎\ufe0e ☎\ufe0f ©\ufe0f ™\ufe0e",
    "Wales": "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbwls\x7f"),
    "Scotland twice": 2 * ("🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbsct\x7f")),
    "Persian": "\u0645\u06cc\u200c\u062e\u0648",
    "Sinhala": "ශ්\u200dරී",
    "Malayalam": "നന്\u200dമ",
    "variant of an ideograph": "葛\U000e0100飾",
    "Mongolian": "ᠠ\u180b ᠨ\u180eᠠ",
    "Hebrew with C++": "בשפת C++\u200e ולא ב-C",
    "Arabic mark": "\u061cنص",
    "Thai": "ภาษา\u200bไทย",
    "German": "Stra\u00dfe, Gru\u00df\u00adwort",
}
HIDING = {
    "tags": "look" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey me"),
    "tags after a flag": "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey\x7f"),
    "a flag of nobody's": "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng"),
    "selectors after an emoji": "😀" + "".join(chr(0xE0100 + byte) for byte in b"obey me"),
    "selectors after an ideograph": "漢" + "".join(chr(0xE0100 + byte) for byte in b"obey me"),
    "selectors after letters": "".join(f"a{chr(0xFE00 + half)}" for half in (6, 15, 6, 2)),
    "bits of two joiners": "é" + "".join("\u200b\u200c"[int(bit)] for bit in "0110111101100010"),
    "bits of marks": "é" + "".join("\u200e\u200f"[int(bit)] for bit in "01101111"),
    "a split word": "pass\u200bword and ig\u00adnore",
    "joiners at the start": "\u200d\ufe0fx",
    "joiners after a blank": "a \u200db",
    "fillers": "a\u3164\u3164\uffa0\u115f",
    "a mark of byte order": "a\ufeffb",
    "invisible sums": "f\u2061(x)\u2062y",
}


@pytest.mark.parametrize("name", KEPT)
def test_scripts_and_emoji_keep_what_they_need(name: str) -> None:
    """Joiners, variants and marks stay where something is written with them."""
    assert escape_controls(KEPT[name]) == KEPT[name]


@pytest.mark.parametrize("name", HIDING)
def test_nothing_hides_in_what_cannot_be_seen(name: str) -> None:
    """Where nothing needs them they are spelled out; at most one is left, after what it belongs to.

    A letter or an emoji may have one of its own; a message takes more.
    """
    shown = escape_controls(HIDING[name])
    unseen = [
        character
        for character in shown
        if character in UNSEEN
        or (character in "".join(HIDING.values()) and not character.isprintable())
    ]
    assert len(unseen) <= 1
    assert "\\" in shown


@given(TEXTS, TEXTS)
def test_a_text_shows_the_same_whatever_follows(text: str, more: str) -> None:
    """Only what stands before decides, so that a text may be shown in pieces."""
    assert escape_controls(text + "\n" + more) == escape_controls(text + "\n") + escape_controls(
        more
    )
