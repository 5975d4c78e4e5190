"""Journals of private-journal-mcp become entries."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder

from agent_journal.engines.files import FileStore
from agent_journal.errors import ImportUnavailableError
from agent_journal.model import Entry, Provenance
from agent_journal.transfer.batch import UNKNOWN
from agent_journal.transfer.intake import Intake, take_in
from agent_journal.transfer.known import Known
from agent_journal.transfer.private_journal import find

# What its versions have written, letter by letter but for the words of the sections.
THOUGHTS = """---
title: "2:30:45 PM - May 31, 2025"
date: 2025-05-31T12:30:45.123Z
timestamp: 1748694645123
---

## Feelings

The flaky test is gone.

## Technical Insights

It depended on the locale.
"""
FREE = """---
title: "2:30:46 PM - May 31, 2025"
date: 2025-05-31T12:30:46.000Z
timestamp: 1748694646000
---

Just a thought.
"""
FIRST_VERSION = "# 2:30:45 PM - May 27, 2025\n\nThe parser is done.\nNow the tests.\n"


class Places:
    """A private journal and a journal of ours."""

    def __init__(self, home: Path) -> None:
        self.folder = home / ".private-journal"
        self.store = FileStore(home / "journal")

    def put(self, name: str, content: str | bytes) -> Path:
        """Leave a file in it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def take_in(self, path: Path | None = None, origin: Provenance = UNKNOWN) -> Intake:
        """Import all of it."""
        batch = find(path or self.folder, origin)
        taken = take_in(self.store.append, batch, Known.of(self.store))
        assert taken.read == batch.total
        return taken

    def entries(self) -> list[Entry]:
        """Return our journal's entries, ordered by id."""
        return [self.store.read(each) for each in sorted(self.store.listing().versions)]


@pytest.fixture
def places(home: Path) -> Places:
    """Give a home without a private journal."""
    return Places(home)


@pytest.fixture
def rome(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be in another time zone than UTC."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_sections_and_time_are_kept(places: Places) -> None:
    """The title names the sections, since the original's says only when it was."""
    places.put("2025-05-31/14-30-45-123456.md", THOUGHTS)
    places.put("2025-05-31/14-30-45-123456.embedding", '{"embedding": [0.1]}')
    taken = places.take_in()
    assert (taken.read, taken.added, taken.notes) == (1, 1, [])
    (entry,) = places.entries()
    source = entry.extra["source"]
    assert isinstance(source, str)
    assert source.startswith("private-journal:2025-05-31/14-30-45-123456.md#")
    assert entry == Entry(
        id=entry.id,
        title="Private journal: Feelings, Technical Insights",
        body=THOUGHTS.split("---\n\n")[1].rstrip(),
        created=datetime(2025, 5, 31, 12, 30, 45, 123_000, UTC),
        tags=("private-journal",),
        extra={
            "source": source,
            "sections": ["Feelings", "Technical Insights"],
            "original_title": "2:30:45 PM - May 31, 2025",
        },
    )
    assert entry.id == "20250531-123045-123"


def test_a_free_entry_is_called_as_it_begins(places: Places) -> None:
    """There is no better title in it."""
    places.put("2025-05-31/14-30-46-000001.md", FREE)
    places.take_in()
    assert [entry.title for entry in places.entries()] == ["Private journal: Just a thought."]


@pytest.mark.usefixtures("rome")
def test_entries_of_the_first_version_have_the_local_time(places: Places) -> None:
    """It stands in the names of file and folder; summer time counts."""
    places.put("2025-05-27/14-30-45-123456.md", FIRST_VERSION)
    places.put("2025-01-27/14-30-45-123456.md", FIRST_VERSION)
    taken = places.take_in()
    assert (taken.added, taken.notes) == (2, [])
    winter, summer = places.entries()
    assert (winter.id, summer.id) == ("20250127-133045-123", "20250527-123045-123")
    assert summer.title == "Private journal: The parser is done."
    assert summer.body == FIRST_VERSION.rstrip()


def test_importing_twice_adds_nothing(places: Places) -> None:
    """Wherever the journal has been moved to."""
    path = places.put("2025-05-31/14-30-45-123456.md", THOUGHTS)
    assert places.take_in().added == 1
    moved = places.folder.rename(places.folder.parent / "backup")
    assert places.take_in(path=moved).known == 1
    (moved / path.relative_to(places.folder)).write_text(THOUGHTS + "\nAnd more.\n", "utf-8")
    taken = places.take_in(path=moved)
    assert (taken.added, taken.renewed) == (1, 1)
    assert [entry.id for entry in places.entries()] == [
        "20250531-123045-123",
        "20250531-123045-124",
    ]


def test_the_folder_around_it_may_be_given(places: Places) -> None:
    """As a project's, whose entries then belong to it."""
    places.put("2025-05-31/14-30-45-123456.md", THOUGHTS)
    origin = Provenance(project="/srv/shop")
    assert places.take_in(places.folder.parent, origin).added == 1
    assert places.entries()[0].provenance == origin


@pytest.mark.usefixtures("rome")
@pytest.mark.parametrize(
    ("keys", "instant", "kept"),
    [
        ("timestamp: 1748694645123", "2025-05-31T12:30:45.123", {}),
        ("date: 2025-05-31T12:30:45.123Z", "2025-05-31T12:30:45.123", {}),
        (
            "timestamp: 1748694645123\ndate: 2020-01-01",
            "2025-05-31T12:30:45.123",
            {"date": "2020-01-01"},
        ),
        (
            "timestamp: 99999999999999999999\ndate: 2020-01-01T00:00:00Z",
            "2020-01-01T00:00:00",
            {"timestamp": 99999999999999999999},
        ),
        (
            "timestamp: true\ndate: soon",
            "2025-05-31T12:07:08.009",
            {"timestamp": True, "date": "soon"},
        ),
    ],
)
def test_the_best_instant_counts(
    places: Places, keys: str, instant: str, kept: dict[str, object]
) -> None:
    """The exact one, else the date, else the name; what says something else is kept."""
    places.put("2025-05-31/14-07-08-009999.md", f"---\n{keys}\n---\ntext")
    places.take_in()
    (entry,) = places.entries()
    assert entry.created == datetime.fromisoformat(f"{instant}+00:00")
    assert {key: entry.extra[key] for key in entry.extra if key != "source"} == kept


@pytest.mark.parametrize("name", ["2025-02-30/14-30-45-123456.md", "2025-05-31/notes.md"])
def test_without_any_instant_the_last_change_counts(places: Places, name: str) -> None:
    """As for every file."""
    path = places.put(name, "text")
    os.utime(path, (1_750_000_000, 1_750_000_000))
    places.take_in()
    assert places.entries()[0].created == datetime.fromtimestamp(1_750_000_000, UTC)


def test_entries_without_words_become_nothing(places: Places) -> None:
    """A heading that only says the time is none."""
    places.put("2025-05-31/14-30-45-000001.md", THOUGHTS.split("## ", maxsplit=1)[0])
    places.put("2025-05-31/14-30-45-000002.md", "# 2:30:45\u202fPM - May 27, 2025\n\n\n")
    places.put("2025-05-31/14-30-45-000003.md", "")
    taken = places.take_in()
    assert (taken.read, taken.empty, taken.added) == (3, 3, 0)


def test_many_sections_fit_into_a_title(places: Places) -> None:
    """All of them are in the frontmatter; one that appears twice is named once."""
    sections = [f"Section {number}" for number in range(50)]
    body = "\n\n".join(f"## {name}\n\ntext" for name in [*sections, "Section 0"])
    places.put("2025-05-31/14-30-45-123456.md", body)
    places.take_in()
    (entry,) = places.entries()
    assert len(entry.title) == 300
    assert entry.title.endswith("...")
    assert entry.extra["sections"] == sections


def test_bad_files_are_named_and_the_rest_goes_on(places: Places) -> None:
    """As for memory blocks."""
    places.put("2025-05-30/14-30-45-000001.md", b"\xff")
    places.put("2025-05-31/14-30-45-000001.md", "a\0b")
    places.put("2025-05-31/14-30-45-000002.md", "good")
    places.put("2025-06-01", "a file, no folder")
    places.put("notes.md", "not in a day")
    taken = places.take_in()
    assert (taken.read, taken.added, taken.refused) == (4, 1, 3)
    names = [Path(problem.path).relative_to(places.folder) for problem in taken.refusals]
    assert list(map(str, names)) == [
        "2025-06-01",
        "2025-05-30/14-30-45-000001.md",
        "2025-05-31/14-30-45-000001.md",
    ]


def test_what_is_no_private_journal_is_an_error(places: Places) -> None:
    """Nothing is guessed at."""
    with pytest.raises(ImportUnavailableError, match="no such file or directory"):
        find(places.folder)
    places.put("notes.md", "x")
    with pytest.raises(ImportUnavailableError, match="no folder named as a day") as caught:
        find(places.folder)
    assert caught.value.path == str(places.folder)
    with pytest.raises(ImportUnavailableError, match="not a directory"):
        find(places.folder / "notes.md")


def test_a_folder_that_cannot_be_opened_is_an_error() -> None:
    """Unless it is that of one day, which is named."""
    with open_folder() as folder:
        told = run_as_nobody(
            """
from pathlib import Path
from agent_journal.errors import ImportUnavailableError
from agent_journal.transfer.private_journal import find
root = Path(sys.argv[1])
with dropped():
    (root / "2025-05-31").mkdir(0)
    batch = find(root)
    print(batch.total, *(problem for each in batch.found for problem in each.problems))
    root.chmod(0)
    try:
        find(root)
    except ImportUnavailableError as error:
        print(error)
    root.chmod(0o700)
    (root / "2025-05-31").chmod(0o700)
""",
            folder,
        )
    assert told.splitlines() == [
        f"1 {folder}/2025-05-31:1: the folder can't be read: permission denied",
        f"{folder} can't be imported: permission denied",
    ]
