"""Queries and filters: what is clamped, understood or refused, and whom a project lets pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_journal.errors import InvalidDateError
from agent_journal.model import Provenance, to_milliseconds, to_utc
from agent_journal.query import Filters, Project, Query

NOW = datetime(2026, 3, 4, 5, 6, 7, 890_123, tzinfo=UTC)


def test_a_query_is_clamped_and_none_filters_nothing() -> None:
    """Agents send null, blanks and silly numbers."""
    query = Query(None, None, None, limit=999, offset=-3)  # type: ignore[arg-type] # as agents do
    assert (query.text, query.project, query.tags) == ("", "", ())
    assert (query.limit, query.offset) == (50, 0)
    assert Query(limit=-1).limit == 1
    assert Query().limit == 20
    assert Filters.of(query, NOW) == Filters()


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T10:00+02:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        (" 7d ", NOW - timedelta(days=7)),
        ("2W", NOW - timedelta(days=14)),
        ("3h", NOW - timedelta(hours=3)),
        (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_dates_and_ages_are_understood(since: str | datetime, expected: datetime) -> None:
    """ISO dates and times and ages mean what they say."""
    assert Filters.of(Query(since=since), NOW).since == to_milliseconds(to_utc(expected))


def test_a_day_given_as_the_end_is_included() -> None:
    """`until` a day means its last millisecond; a time means itself."""
    day = Filters.of(Query(until="2026-03-01"), NOW).until
    assert day == to_milliseconds(datetime(2026, 3, 1, 23, 59, 59, 999_000, tzinfo=UTC))
    time = Filters.of(Query(until="2026-03-01T10:00"), NOW).until
    assert time == to_milliseconds(datetime(2026, 3, 1, 10, tzinfo=UTC))
    assert Filters.of(Query(until=" "), NOW).until is None


@pytest.mark.parametrize("value", ["soon", "7", "d", "0001-01-01T00:00+01:00", "1-1-1", "999999w"])
def test_anything_else_is_an_error(value: str) -> None:
    """What is no date is named, never ignored."""
    with pytest.raises(InvalidDateError) as refused:
        Filters.of(Query(until=value), NOW)
    assert (refused.value.field, refused.value.value) == ("until", value)


@pytest.mark.parametrize(
    ("wanted", "stored", "passes"),
    [
        ("shop", "/srv/Shop", True),
        ("SHOP", "/srv/shop/", True),
        ("/srv/shop", "/SRV/shop", True),
        ("hop", "/srv/shop", False),
        ("views", "/srv/interviews", False),
        ("srv/shop", "/opt/srv/shop", False),
        (r"C:\Users\me\app", r"c:\users\me\app", True),
        ("app", r"C:\Users\me\app", True),
        ("/srv/shop/", "/srv/shop", True),
        ("shop/", "/srv/shop", True),
        ("/", "/srv/shop", False),
        ("/", "/", True),
        ("shop", "", False),
    ],
)
def test_a_project_is_a_path_or_its_last_part(wanted: str, stored: str, *, passes: bool) -> None:
    """Never a substring."""
    filters = Filters.of(Query(project=wanted), NOW)
    assert filters.accepts(0, Provenance(project=stored), ()) is passes


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ("shop", True),
        ("GitHub.com/acme/SHOP", True),
        ("old", True),
        ("acme/shop", False),
        ("acme", False),
        ("hop", False),
        ("github.com", False),
    ],
)
def test_a_project_is_also_its_repository_or_the_last_part(wanted: str, *, passes: bool) -> None:
    """Whatever its folder is called by now; never a substring."""
    filters = Filters.of(Query(project=wanted), NOW)
    origin = Provenance(project="/srv/old", repo="github.com/Acme/shop")
    assert filters.accepts(0, origin, ()) is passes


def test_what_a_repository_holds_is_told_by_its_name_alone() -> None:
    """In one folder, different repositories may have stood; young ones change their name."""
    here = Project(repo="h/shop", folders=["/srv/shop"], tree="/srv/shop")
    there = Provenance(project="/elsewhere", repo="H/Shop")
    assert here.holds(there)
    assert not here.holds(Provenance(project="/srv/shop", repo="h/other"))
    assert here.holds(Provenance(project="/srv/shop", repo="0123abcd"))
    assert here.holds(Provenance(project="/srv/shop/cart"))
    assert not here.holds(Provenance(project="/srv/shop/cart", repo="0123abcd"))
    assert not here.holds(Provenance(project="/elsewhere", repo="0123abcd"))
    assert not Project().holds(Provenance())
    assert Filters.of(Query(project=here), NOW).accepts(0, there, ())
