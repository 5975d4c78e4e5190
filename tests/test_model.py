"""Drafts: what is put into its one form, and what is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.errors import (
    ForbiddenCharacterError,
    InvalidDraftError,
    InvalidFieldError,
    TitleMissingError,
    TitleTooLongError,
)
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Provenance,
    entry_id_of,
    from_milliseconds,
    normalise_body,
    project_name,
    timestamp,
    to_milliseconds,
    to_utc,
)


def test_a_draft_is_put_into_its_one_form() -> None:
    """Titles, bodies, tags and instants that mean the same become the same."""
    draft = Draft(
        "  A\n title\t here ",
        "\r\n \n  first\rlast  \r\n\r\n",
        [" #Bug ", "bug", "", "#", "new  tag", "BUG", "c#"],
        created=datetime(2026, 1, 1, 2, 0, 0, 1999, tzinfo=timezone(timedelta(hours=2))),
    )
    assert draft.title == "A title here"
    assert draft.body == "  first\nlast  "
    assert draft.tags == ("Bug", "new tag", "c#")
    assert draft.created == datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"title": " \n "}, TitleMissingError, "title"),
        ({"title": "x" * 301}, TitleTooLongError, "title"),
        ({"title": "a\0b"}, ForbiddenCharacterError, "title"),
        ({"title": "t", "body": "a\ud800"}, ForbiddenCharacterError, "body"),
        ({"title": "t", "tags": ["\0"]}, ForbiddenCharacterError, "tags"),
        ({"title": "t", "tags": "a, b"}, InvalidFieldError, "tags"),
        ({"title": "t", "tags": [1]}, InvalidFieldError, "tags"),
        ({"title": 7}, InvalidFieldError, "title"),
        ({"title": "t", "body": None}, InvalidFieldError, "body"),
        ({"title": "t", "extra": {"title": "x"}}, InvalidFieldError, "extra"),
        ({"title": "t", "extra": {"": "x"}}, InvalidFieldError, "extra"),
        ({"title": "t", "extra": {"x": object()}}, InvalidFieldError, "extra"),
        ({"title": "t", "extra": {"x": ["\ud800"]}}, ForbiddenCharacterError, "extra"),
        ({"title": "t", "extra": {"x": {1: "y"}}}, InvalidFieldError, "extra"),
        ({"title": "t", "provenance": Provenance(agent="\0")}, ForbiddenCharacterError, "agent"),
        (
            {"title": "t", "created": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
            InvalidFieldError,
            "created",
        ),
    ],
)
def test_a_bad_draft_is_refused_by_name(
    fields: dict[str, object], error: type[InvalidDraftError], field: str
) -> None:
    """Each violation has its own error, which names the field."""
    with pytest.raises(error) as refused:
        Draft(**fields)  # type: ignore[arg-type] # wrong on purpose
    assert refused.value.field == field
    assert field in str(refused.value)


def test_a_title_at_the_limit_is_accepted() -> None:
    """300 characters are allowed, 301 are not."""
    assert len(Draft("x" * 300).title) == 300


@given(st.text(st.sampled_from("a \n\r\t")))
def test_a_body_has_one_form(text: str) -> None:
    """Normalising twice changes nothing more, and only blank lines and CR go."""
    body = normalise_body(text)
    assert normalise_body(body) == body
    assert "\r" not in body
    assert body.split() == text.split()
    assert not body or (body.split("\n")[0].strip() and body.split("\n")[-1].strip())


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001 - zones come from the code under test
def test_instants_survive_their_forms(instant: datetime) -> None:
    """Milliseconds, timestamp and id all carry the same instant, and sort like it."""
    utc = to_utc(instant)
    assert from_milliseconds(to_milliseconds(utc)) == utc
    assert datetime.fromisoformat(timestamp(utc)) == utc
    assert re.fullmatch(r"\d{8}-\d{6}-\d{3}", entry_id_of(utc))
    later = utc + timedelta(milliseconds=1)
    assert entry_id_of(utc) < entry_id_of(later)


def test_project_names() -> None:
    """The last part, whichever way the slashes lean."""
    assert [project_name(p) for p in ("/a/b", "/a/b/", r"c:\x\y", "plain", "")] == [
        "b",
        "b",
        "y",
        "plain",
        "",
    ]


@pytest.mark.parametrize(
    ("title", "body", "heading"),
    [
        ("T", "b", "T"),
        ("", "\n---\n# The first line\n", "The first line"),
        ("", "x" * 100, "x" * 80),
        ("", "--- ***", "an-id"),
    ],
)
def test_every_entry_has_a_heading(title: str, body: str, heading: str) -> None:
    """A file without a title is shown by its first line, else by its id."""
    assert Entry(EntryId("an-id"), title, body, datetime(2026, 3, 4, tzinfo=UTC)).heading == heading
