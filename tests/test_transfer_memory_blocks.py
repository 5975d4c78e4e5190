"""Memory blocks of opencode-agent-memory 0.4 become entries."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder

from agent_journal.engines.files import FileStore
from agent_journal.model import Entry, Provenance
from agent_journal.transfer.intake import Intake, take_in
from agent_journal.transfer.known import Known
from agent_journal.transfer.memory_blocks import BlockFolder, find

# As the original's YAML library writes it: keys sorted, quoted only where it must be.
HUMAN = """---
description: 'The human block: key details about the person'
label: human
limit: 5000
read_only: false
---
Prefers short answers.

- speaks Italian
"""
EMPTY = "---\ndescription: ''\nlabel: persona\nlimit: 5000\nread_only: false\n---\n\n"
CHANGED_AT = datetime(2026, 3, 4, 5, 6, 7, 891_000, UTC)


class Places:
    """A home with global blocks, a project with its own, and a journal."""

    def __init__(self, home: Path) -> None:
        self.everywhere = home / ".config" / "opencode" / "memory"
        self.project = home / "shop"
        self.within = self.project / ".opencode" / "memory"
        self.origin = Provenance(project=str(self.project), repo="example.com/me/shop")
        self.store = FileStore(home / "journal")

    def put(self, folder: Path, name: str, content: str | bytes) -> Path:
        """Leave a block in a folder, changed last at one moment."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        nanoseconds = int(CHANGED_AT.timestamp() * 1000) * 1_000_000
        os.utime(path, ns=(nanoseconds, nanoseconds))
        return path

    def take_in(self) -> Intake:
        """Import all blocks."""
        folders = [BlockFolder(self.everywhere), BlockFolder(self.within, self.origin)]
        batch = find(folders)
        taken = take_in(self.store.append, batch, Known.of(self.store))
        assert taken.read == batch.total
        return taken

    def entries(self) -> list[Entry]:
        """Return the journal's entries, ordered by id."""
        return [self.store.read(each) for each in sorted(self.store.listing().versions)]


@pytest.fixture
def places(home: Path) -> Places:
    """Give a home without any blocks."""
    return Places(home)


def test_a_block_becomes_an_entry_with_scope_and_label(places: Places) -> None:
    """Under the time of its last change; everything that it says of itself is kept."""
    places.put(places.everywhere, "human.md", HUMAN)
    assert places.take_in().added == 1
    (entry,) = places.entries()
    source = entry.extra["source"]
    assert isinstance(source, str)
    assert source.startswith("memory-block:global/human#")
    assert entry == Entry(
        id=entry.id,
        title="Memory block human (global)",
        body="Prefers short answers.\n\n- speaks Italian",
        created=CHANGED_AT,
        tags=("memory-block",),
        extra={
            "source": source,
            "scope": "global",
            "label": "human",
            "description": "The human block: key details about the person",
            "limit": 5000,
            "read_only": False,
        },
    )
    assert entry.id == "20260304-050607-891"


def test_a_projects_block_belongs_to_the_project(places: Places) -> None:
    """So that it is found among the project's entries."""
    places.put(places.within, "project.md", HUMAN.replace("label: human", "label: project"))
    places.take_in()
    (entry,) = places.entries()
    assert entry.title == "Memory block project (project shop)"
    assert entry.provenance == places.origin
    assert entry.extra["scope"] == "project"
    assert str(entry.extra["source"]).startswith(f"memory-block:{places.project}/project#")


def test_blocks_of_one_moment_become_one_entry_each(places: Places) -> None:
    """Their ids move on by a millisecond, as ever."""
    for name in ("a", "b", "c"):
        places.put(places.everywhere, f"{name}.md", f"text {name}")
    places.take_in()
    assert [(entry.id[-3:], entry.body) for entry in places.entries()] == [
        ("891", "text a"),
        ("892", "text b"),
        ("893", "text c"),
    ]


def test_empty_blocks_become_nothing(places: Places) -> None:
    """The original makes them for everybody; they are counted."""
    places.put(places.everywhere, "persona.md", EMPTY)
    places.put(places.everywhere, "blank.md", " \n\n")
    taken = places.take_in()
    assert (taken.read, taken.empty, taken.added) == (2, 2, 0)
    assert not Path(places.store.location).exists()


def test_importing_twice_adds_nothing(places: Places) -> None:
    """Touched or not."""
    path = places.put(places.everywhere, "human.md", HUMAN)
    places.put(places.within, "human.md", HUMAN)  # the same text is another project's knowledge
    assert places.take_in().added == 2
    os.utime(path)
    taken = places.take_in()
    assert (taken.added, taken.known) == (0, 2)


def test_a_block_that_changed_is_added_anew(places: Places) -> None:
    """The entry that was made of it stays."""
    places.put(places.everywhere, "human.md", HUMAN)
    places.take_in()
    places.put(places.everywhere, "human.md", HUMAN + "- and German\n")
    taken = places.take_in()
    assert (taken.added, taken.renewed) == (1, 1)
    first, second = places.entries()
    assert second.body == f"{first.body}\n- and German"


def test_frontmatter_may_be_missing_or_broken(places: Places) -> None:
    """The label is then the file's name; what is broken is noted, and the text imported."""
    places.put(places.everywhere, "plain.md", "just text\n")
    broken = places.put(places.everywhere, "broken.md", "---\nlabel: [x\n---\nits text\n")
    taken = places.take_in()
    assert (taken.added, taken.refused) == (2, 0)
    assert [note.path for note in taken.notes] == [str(broken)]
    assert {entry.extra["label"]: entry.body for entry in places.entries()} == {
        "[x": "its text",
        "plain": "just text",
    }


def test_no_key_is_lost(places: Places) -> None:
    """Whoever wrote it: keys that an entry has itself count as its own, the rest is frontmatter."""
    keys = "title: T\nsource: a book\nlabel: 5\ntags: [x]\nproject: /other\nmood: calm"
    places.put(places.within, "x.md", f"---\n{keys}\n---\ntext")
    places.take_in()
    (entry,) = places.entries()
    assert entry.tags == ("memory-block", "x")
    assert entry.provenance.project == str(places.project)
    assert {key: entry.extra[key] for key in entry.extra if key not in ("source", "scope")} == {
        "label": "x",
        "original_title": "T",
        "original_source": "a book",
        "original_label": 5,
        "original_project": "/other",
        "mood": "calm",
    }


def test_a_long_label_fits_into_the_title(places: Places) -> None:
    """All of it is in the frontmatter."""
    places.put(places.everywhere, "x.md", f"---\nlabel: {'y' * 400}\n---\ntext")
    places.take_in()
    (entry,) = places.entries()
    assert entry.title == f"Memory block {'y' * 100} (global)"
    assert entry.extra["label"] == "y" * 400


def test_bad_files_are_named_and_the_rest_goes_on(places: Places) -> None:
    """Nothing is followed, cut or guessed at."""
    folder = places.everywhere
    places.put(folder, "good.md", "text")
    places.put(folder, "latin.md", b"caf\xe9")
    places.put(folder, "nul.md", "a\0b")
    places.put(folder, "huge.md", "x" * (2 * 1024 * 1024 + 1))
    places.put(folder, "large.md", "x" * 1024 * 1024)
    places.put(folder, ".human.md.tmp", "half")
    places.put(folder, ".gitignore", "*\n")
    places.put(folder, "notes.txt", "none of ours")
    places.put(folder.parent, "secret", "a key")
    (folder / "link.md").symlink_to(folder.parent / "secret")
    (folder / "folder.md").mkdir()
    taken = places.take_in()
    assert (taken.read, taken.added, taken.refused) == (7, 1, 6)
    assert [entry.body for entry in places.entries()] == ["text"]
    reasons = {Path(problem.path).name: problem.reason for problem in taken.refusals}
    assert {problem.path for problem in taken.refusals} == {str(folder / name) for name in reasons}
    large = reasons.pop("large.md")
    assert large.startswith("entry is 1,048,")
    assert reasons == {
        "folder.md": "it can't be read: not a regular file",
        "huge.md": (
            "it is larger than 2,097,152 bytes, the limit of an entry is 1,048,576; split it"
        ),
        "latin.md": (
            "byte 0xe9 at position 3 is not UTF-8; "
            "convert it, for example with iconv -f LATIN1 -t UTF-8"
        ),
        "link.md": "it is a symbolic link, which is never followed; put the file itself here",
        "nul.md": "body holds U+0000 at position 1; remove NUL characters and lone surrogates",
    }


def test_what_cannot_be_opened_is_named() -> None:
    """A folder or a file; the other folder is imported."""
    with open_folder() as folder:
        told = run_as_nobody(
            """
import _strptime
from pathlib import Path
from agent_journal.transfer.memory_blocks import BlockFolder, find
closed, opened = Path(sys.argv[1], "closed"), Path(sys.argv[1], "opened")
with dropped():
    for each in (closed, opened):
        each.mkdir()
        (each / "x.md").write_text("text")
        (each / "y.md").write_text("text")
    (opened / "y.md").chmod(0)
    closed.chmod(0)
    batch = find([BlockFolder(closed), BlockFolder(opened), BlockFolder(opened / "x.md")])
    found = list(batch.found)
    print(batch.total, len(found), sum(each.draft is not None for each in found))
    print(*(problem for each in found for problem in each.problems), sep="\\n")
    closed.chmod(0o700)
""",
            folder,
        )
    assert told.splitlines() == [
        "4 4 1",
        f"{folder}/closed:1: the folder can't be read: permission denied",
        f"{folder}/opened/x.md:1: the folder can't be read: not a directory",
        f"{folder}/opened/y.md:1: it can't be read: permission denied",
    ]


def test_folders_that_are_missing_hold_nothing(places: Places) -> None:
    """And stay missing, the journal too."""
    assert places.take_in() == Intake()
    assert not places.everywhere.exists()
    assert not places.within.exists()


def test_nothing_is_written_but_entries(places: Places) -> None:
    """The blocks and all around them stay as they are."""
    places.put(places.everywhere, "human.md", HUMAN)
    places.put(places.within, "latin.md", b"\xe9")
    home = places.project.parent

    def state() -> dict[Path, tuple[int, int]]:
        paths = (path for path in home.rglob("*") if "journal" not in path.parts)
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}

    before = state()
    places.take_in()
    assert state() == before
