"""Wherever it runs: homes, locales, Pythons, libraries, and file systems that fold case."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.proven import Trials

from agent_journal.engines.files import FileStore
from agent_journal.engines.loading import NoEmbedder
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.faces.mcp import tools
from agent_journal.journal import Journal
from agent_journal.model import Draft, Provenance
from agent_journal.query import Query

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("main_job.py")
BOUND_S = 300.0
UNREACHABLE = re.compile(r"dns|connect|network|offline|timed out|tunnel", re.IGNORECASE)
ASCII = {"LC_ALL": "POSIX", "LANG": "C", "PYTHONIOENCODING": "ascii"}


def do_the_main_job(
    environment: Mapping[str, str | None],
    trials: Trials,
    fault: str,
    *,
    python: Path = Path(sys.executable),
    cwd: Path,
) -> Path:
    """Run the main job with some variables changed or, for None, unset; return the journal."""
    changed = {name: text for name, text in environment.items() if text is not None}
    kept = {name: text for name, text in os.environ.items() if name not in environment}
    done = subprocess.run(
        [sys.executable, str(JOB), str(python), "-m", "agent_journal"],
        env={**kept, **changed},
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=BOUND_S,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    told = json.loads(done.stdout)
    folder = Path(told["journal"])
    there = FileStore(folder).listing().versions
    lost = sum(one not in there for one in told["ids"])
    trials.report(fault, tried=1, acknowledged=len(told["ids"]), lost=lost)
    return folder


def at_home(home: Path) -> dict[str, str | None]:
    """Return an environment in which all that programs know of places is a home."""
    xdg = ("CACHE", "CONFIG", "DATA", "STATE")
    words = {"AGENT_JOURNAL_MODEL": "none", "HOME": str(home)}
    return {**words, **dict.fromkeys(f"XDG_{name}_HOME" for name in xdg)}


HOMES = ["with blanks è 東京", "new\nline", 'quote\'s "double" $HOME `x` ; & | #', "-rf", "%s~"]


def test_an_odd_home_and_an_ascii_terminal_do_no_harm(tmp_path: Path, trials: Trials) -> None:
    """Blanks, quotes, a newline and other alphabets in the home's name, in the POSIX locale."""
    home = tmp_path / "a b'c\"d\n$è 東"
    home.mkdir()
    folder = do_the_main_job({**at_home(home), **ASCII}, trials, "odd home", cwd=tmp_path)
    assert folder.is_relative_to(home)


@pytest.mark.prove
@pytest.mark.parametrize("name", HOMES, ids=range(len(HOMES)))
def test_any_home_will_do(tmp_path: Path, name: str, trials: Trials) -> None:
    """Each oddity by itself; the home need not exist before."""
    home = tmp_path / name
    folder = do_the_main_job(at_home(home), trials, "odd home", cwd=tmp_path)
    assert folder == home / ".config" / "opencode" / "journal"


@pytest.mark.prove
@pytest.mark.parametrize(
    "more",
    [
        {"LC_ALL": "C"},
        ASCII,
        {"LC_ALL": "it_IT.ISO-8859-1"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"},
    ],
    ids=lambda more: " ".join(f"{name}={text}" for name, text in more.items()),
)
def test_any_locale_will_do(tmp_path: Path, more: Mapping[str, str], trials: Trials) -> None:
    """What the terminal can't show is shown escaped; what is kept is UTF-8 always."""
    do_the_main_job({**at_home(tmp_path / "h"), **more}, trials, "odd locale", cwd=tmp_path)


@pytest.mark.prove
def test_no_home_is_needed_when_places_are_named(tmp_path: Path, trials: Trials) -> None:
    """Without HOME, as some services start programs, the variables of ours are enough."""
    named: dict[str, str | None] = {
        "HOME": None,
        "AGENT_JOURNAL_DIR": str(tmp_path / "j"),
        "AGENT_JOURNAL_INDEX": str(tmp_path / "i"),
        "AGENT_JOURNAL_CONFIG": str(tmp_path / "c.json"),
        "XDG_STATE_HOME": str(tmp_path / "s"),
    }
    do_the_main_job({**at_home(tmp_path), **named}, trials, "no home", cwd=tmp_path)


# File systems that fold case


def journal_in(folder: Path) -> Journal:
    """Open a journal whose index is beside its folder."""
    return Journal(FileStore(folder), SqliteIndex(folder.parent / "i.sqlite3"), NoEmbedder("none"))


FOREIGN = {
    "A.md": "upper alpha",
    "a.md": "lower alpha",
    "Straße.md": "sharp",
    "STRASSE.md": "flat",
    "é.md": "composed",
    "e\u0301.md": "decomposed",
    "blank .md": "trailing blank",
    "blank.md": "no blank",
}


def test_names_that_differ_by_case_alone_are_entries_of_their_own(
    tmp_path: Path, trials: Trials
) -> None:
    """None hides another, in listing, index, search and by id; what only looks like ours stays."""
    folder = tmp_path / "journal"
    folder.mkdir()
    for name, body in FOREIGN.items():
        (folder / name).write_text(body, encoding="utf-8")
    for name in ("x.MD", "A.EMBEDDING", "README"):
        (folder / name).write_text("[1]", encoding="utf-8")
    (folder / ".LEDGER").mkdir()
    there = {name: body for name, body in FOREIGN.items() if (folder / name).exists()}
    bodies = [(folder / name).read_text(encoding="utf-8") for name in there]
    if len(set(bodies)) < len(FOREIGN):
        pytest.skip("this file system folds names itself")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with journal_in(folder) as journal:
        written = journal.write(Draft("T", "ours")).id
        for name, body in FOREIGN.items():
            entry_id = name.removesuffix(".md")
            hits = journal.search(Query(body)).hits
            assert entry_id in [hit.entry.id for hit in hits]
            assert journal.read(entry_id).body == body
            answer = tools.call("journal_read", {"id": entry_id}, lambda: journal, Provenance)
            assert body in answer.text
        assert journal.status().entries == len(FOREIGN) + 1
        assert journal.read(written).body == "ours"
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    altered = sum(after.get(name) != was for name, was in before.items())
    trials.report("names that differ by case", tried=1, acknowledged=1, altered=altered)
    assert list((folder / ".LEDGER").iterdir()) == []


class Folding:
    """Lets calls of `os` within a folder take names as a file system does that folds case.

    No such file system can be mounted everywhere; this stands for it, for this process.
    """

    NAMES = ("open", "stat", "link", "rename", "replace", "unlink", "mkdir", "scandir", "listdir")

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.folded = 0
        self._listdir = os.listdir
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self._folding(getattr(os, name)))

    def _folding(self, real: Callable[..., Any]) -> Callable[..., Any]:  # any os call
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any os call
            return real(*(self._there(one) for one in args), **kwargs)

        return call

    def _there(self, path: object) -> object:
        """Return a path whose names are those that are there, whatever case was asked for."""
        if not isinstance(path, str | Path) or isinstance(path, int):
            return path
        parts = Path(path).parts
        place = self._folder
        if Path(path).is_absolute():
            if not Path(path).is_relative_to(self._folder):
                return path
            parts = Path(path).relative_to(self._folder).parts
        names = []
        for part in parts:
            known = self._listdir(place) if place.is_dir() else []
            same = [name for name in known if name.casefold() == part.casefold()]
            self.folded += bool(same) and part not in known
            names.append(same[0] if same else part)
            place /= names[-1]
        found = Path(*names) if names else Path()
        return str(self._folder / found) if Path(path).is_absolute() else str(found)


def test_a_file_system_that_folds_case_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    """Entries, sidecars and ledger of another case are the same file there: nothing is replaced."""
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / "ABC.md").write_text("foreign words", encoding="utf-8")
    (folder / "ABC.EMBEDDING").write_text("[1]", encoding="utf-8")
    (folder / ".LEDGER").mkdir()
    before = {path.name: path.read_bytes() for path in folder.glob("ABC.*")}
    folding = Folding(folder, monkeypatch)
    with journal_in(folder) as journal:
        ids = [journal.write(Draft(f"T {number}", f"needle{number}")).id for number in range(20)]
        assert journal.read("abc").body == "foreign words"
        for number, entry_id in enumerate(ids):
            assert journal.search(Query(f"needle{number}")).hits[0].entry.id == entry_id
        assert [hit.entry.id for hit in journal.search(Query("foreign")).hits] == ["ABC"]
        assert journal.status().entries == 21
        journal.reindex()
        journal.check(fix=True)
        assert journal.status().entries == 21
    monkeypatch.undo()
    assert folding.folded
    after = {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}
    trials.report(
        "a file system that folds case, injected",
        tried=len(ids),
        acknowledged=len(ids),
        lost=sum(f"{one}.md" not in after for one in ids),
        altered=sum(after.get(name) != was for name, was in before.items()),
    )


# Pythons and libraries


def interpreters() -> list[str]:
    """Return an interpreter of each version that we allow and that is found here.

    On the path, and beside the one that runs this, where tools that manage several put them.
    """
    found = {}
    for minor in range(11, 20):
        name = f"python3.{minor}"
        beside = sorted(Path(sys.base_prefix).parent.glob(f"*/bin/{name}"))
        for path in (*map(str, beside), shutil.which(name)):
            if path and minor not in found and starts(path):
                found[minor] = path
    return list(found.values())


def starts(path: str) -> bool:
    """Tell whether an interpreter runs: some names lead to none."""
    return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package as it is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def install(wheel: Path, interpreter: str, folder: Path, *options: str) -> Path:
    """Install the package into an environment of its own, and return its Python."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run(
        [*uv, "venv", "--quiet", "--python", interpreter, str(folder)],
        check=True,
        capture_output=True,
    )
    python = folder / "bin" / "python"
    done = subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", str(python), *options, str(wheel)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip(f"the package registry can't be reached: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    return python


@pytest.mark.prove
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("resolution", ["highest", "lowest-direct"])
@pytest.mark.parametrize("interpreter", interpreters(), ids=lambda path: Path(path).name)
def test_each_python_does_the_main_job(
    tmp_path: Path, wheel: Path, interpreter: str, resolution: str, trials: Trials
) -> None:
    """Installed as people do, with the newest and with the oldest libraries that are allowed."""
    python = install(wheel, interpreter, tmp_path / "venv", "--resolution", resolution)
    environment = {**at_home(tmp_path / "home"), "AGENT_JOURNAL_MODEL": None, "PYTHONPATH": None}
    do_the_main_job(
        environment,
        trials,
        f"{Path(interpreter).name}, {resolution} libraries",
        python=python,
        cwd=tmp_path,
    )
