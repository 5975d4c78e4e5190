"""Passages hold all of a body, cut where a reader would cut, and excerpts never misquote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.passages import PASSAGE_CHARS, embedding_text, embedding_texts, excerpt, split

SHORT = (
    "word ",
    "a",
    "\n",
    "\n\n",
    "# Head\n",
    "```\n",
    "```py\n",
    "~~~\n",
    "  ",
    "End. ",
    "。",
    "\t",
)
LONG = ("e\u0301", "…!? ", "語" * 40, "several words. " * 9, "x" * 300, "- thing\n" * 30, "\u00a0")
PIECES = st.sampled_from((*SHORT, *LONG))
BODIES = st.lists(PIECES, max_size=60).map("".join)
SENTENCES = "The build broke because the lock file was stale. " * 60


@given(BODIES)
def test_passages_hold_all_text_in_order(body: str) -> None:
    """Nothing but white space stands between passages, and each is what its borders say."""
    position = 0
    for ordinal, passage in enumerate(split(body)):
        assert passage.ordinal == ordinal
        assert passage.text == body[passage.start : passage.end]
        assert not body[position : passage.start].strip()
        assert passage.text.strip() == passage.text
        assert len(passage.text) <= PASSAGE_CHARS
        assert passage.text or not body.strip()
        position = passage.end
    assert not body[position:].strip()


@given(BODIES)
def test_splitting_is_deterministic(body: str) -> None:
    """The same body always gives the same passages."""
    assert split(body) == split(body)


@pytest.mark.parametrize("body", ["", " ", "\n\n\n"])
def test_a_body_without_text_is_one_empty_passage(body: str) -> None:
    """There is always a passage, so that a title alone can be found by meaning."""
    (passage,) = split(body)
    assert (passage.ordinal, passage.start, passage.end, passage.text) == (0, 0, 0, "")


def test_a_short_body_stays_whole() -> None:
    """What fits isn't cut, whatever borders it has."""
    body = "# One\n\nText. More.\n\n# Two\n\n```\ncode\n```\nEnd."
    assert [passage.text for passage in split(body)] == [body]


def test_a_heading_is_the_best_place_to_cut() -> None:
    """A heading begins a passage even when paragraphs end nearer to the limit."""
    body = "intro " * 80 + "\n\n# Causes\n\n" + "Some words.\n\n" * 60
    assert split(body)[1].text.startswith("# Causes")


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ("A line of text\n" * 100, "text"),
        ("Line one. Line two\n\n" * 90, "two"),
        (SENTENCES, "stale."),
        ("ja. " * 350 + "x" * 600, "ja."),
        ("これは文です。" * 200, "。"),
        ("word " * 400, "word"),
    ],
)
def test_cuts_fall_on_the_strongest_border_there_is(body: str, ends: str) -> None:
    """Paragraphs, lines, sentences and words stay in one piece where the text allows it."""
    passages = split(body)
    assert len(passages) > 1
    assert all(passage.text.endswith(ends) for passage in passages[:-1])


def test_text_without_any_border_is_cut_at_the_limit() -> None:
    """One endless word doesn't become one endless passage."""
    assert [len(passage.text) for passage in split("x" * 2000)] == [900, 900, 200]


@pytest.mark.parametrize("before", [100, 400, 700])
@pytest.mark.parametrize("mark", ["```", "~~~~"])
def test_a_code_block_that_fits_is_kept_together(before: int, mark: str) -> None:
    """A fenced block of up to a passage's length is never torn, even where that leaves room."""
    block = f"{mark}sh\n" + "\n\n".join(f"step {at}" for at in range(80)) + f"\n{mark}"
    assert len(block) <= PASSAGE_CHARS
    body = "w" * before + "\n" + block + "\n" + "after " * 100
    assert sum(block in passage.text for passage in split(body)) == 1


def test_a_code_block_that_cannot_fit_is_cut_at_its_lines() -> None:
    """A long block is cut between lines, and what is inside a fence closes no other fence."""
    body = "````\n```\n" + "some code\n" * 300 + "```\n````\n"
    passages = split(body)
    assert len(passages) > 2
    assert all(passage.text.endswith("some code") for passage in passages[:-1])


def test_a_fence_that_is_never_closed_is_ordinary_text() -> None:
    """One stray fence doesn't turn the rest of an entry into a block."""
    body = "```\n" + SENTENCES
    assert all(passage.text.endswith("stale.") for passage in split(body))


@pytest.mark.parametrize(
    "unit", ["x", "\n", "```\n", ". ", ".", "語", "。", "# h\n", " a", "\n\n a"]
)
def test_a_mebibyte_of_any_shape_is_split(unit: str) -> None:
    """Extreme shapes give as many passages as their text needs and lose none of it."""
    body = unit * (1024 * 1024 // len(unit))
    passages = split(body)
    assert "".join("".join(passage.text.split()) for passage in passages) == "".join(body.split())
    assert len(passages) <= 2 + 3 * len(body) // PASSAGE_CHARS


def test_a_passage_is_embedded_under_its_title() -> None:
    """The title stands on a line of its own before the text."""
    assert embedding_text("Title", "text") == "Title\ntext"


@given(
    BODIES, st.sampled_from(("", "T", "A short title", "a long title " * 20)), st.integers(9, 950)
)
def test_parts_of_a_passage_hold_all_of_it(body: str, title: str, room: int) -> None:
    """They are in order, each within the model's reach, under the title or its beginning."""
    for passage in split(body):
        texts = embedding_texts(title, passage.text, lambda text: min(len(text), room))
        whole = embedding_text(title, passage.text)
        assert (texts == [whole]) == (len(whole) <= room)
        position = 0
        for text in texts:
            head, _, part = text.partition("\n")
            assert len(text) <= room
            assert title.startswith(head)
            position = passage.text.index(part, position) + len(part)
        assert not passage.text[position:].strip()


def test_parts_of_a_passage_end_on_borders_and_are_of_one_length() -> None:
    """No part is a rest of some words, and none starts within a sentence."""
    (passage, *_) = split(SENTENCES)
    texts = embedding_texts("Title", passage.text, lambda text: min(len(text), 500))
    assert len(texts) == 2
    assert all(text.startswith("Title\nThe build") and text.endswith("stale.") for text in texts)
    assert min(map(len, texts)) > 350
    assert " ".join(text.removeprefix("Title\n") for text in texts) == passage.text


@given(BODIES, st.data(), st.integers(1, 300))
def test_an_excerpt_is_a_true_quote(body: str, data: st.DataObject, width: int) -> None:
    """It is a piece of the passage at the offset it names, no longer than asked for."""
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, len(body)))
    focus = data.draw(st.integers(0, len(body) + 5))
    text, offset = excerpt(body, start, end, focus=focus, width=width)
    assert text == body[offset : offset + len(text)]
    assert start <= offset
    assert offset + len(text) <= end
    assert len(text) <= width
    assert text == text.strip()


def test_an_excerpt_shows_the_focus_in_whole_words() -> None:
    """What matched is seen, and no word at the edges is torn."""
    body = "alpha beta " * 50 + "needle here " + "gamma delta " * 50
    focus = body.index("needle")
    text, offset = excerpt(body, 0, len(body), focus=focus, width=100)
    assert offset <= focus < offset + len(text)
    assert set(text.split()) <= {"alpha", "beta", "needle", "here", "gamma", "delta"}
    assert len(text) > 60


def test_an_excerpt_without_blanks_is_cut_at_the_width() -> None:
    """Text without words is still quoted around its focus."""
    text, offset = excerpt("語" * 500, 0, 500, focus=300, width=40)
    assert len(text) == 40
    assert offset <= 300 < offset + 40


def test_a_short_passage_is_quoted_whole() -> None:
    """An excerpt wider than the passage is the passage, without its surrounding blanks."""
    assert excerpt("one  two three\n four", 4, 15, focus=8, width=80) == ("two three", 5)
    assert excerpt("", 0, 0, focus=0, width=80) == ("", 0)


def test_a_section_does_not_share_a_passage_with_what_comes_before() -> None:
    """A heading after a third of the room starts a passage, in the last piece of a body too."""
    before, section = "alpha beta. " * 30, "# Gamma\n\ndelta"
    assert [part.text for part in split(f"{before}\n\n{section}")] == [before.strip(), section]
    short = "alpha beta. " * 3
    assert len(split(f"{short}\n\n{section}")) == 1


def test_a_comment_in_a_code_block_is_no_heading() -> None:
    """A block that fits isn't cut at a line that only looks like a heading."""
    block = "```sh\nmake clean\n# and then\nmake\n```"
    body = "alpha beta. " * 30 + "\n\n" + block + "\n\n" + "gamma delta. " * 10
    assert any(block in part.text for part in split(body))
