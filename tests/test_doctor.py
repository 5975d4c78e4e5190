"""What doctor looks at and tries, thing by thing."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.drop import run_as_nobody
from tests.folders import LONG_AGO, open_folder

from agent_journal.assembly import open_journal, open_store
from agent_journal.config import Settings
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.errors import ConfigError, EmbedderUnavailableError, IndexUnavailableError
from agent_journal.faces.doctor import entries, hosting, places, serving, trial
from agent_journal.faces.doctor.serving import Served, try_server
from agent_journal.faces.doctor.trial import Trial
from agent_journal.faces.doctor.verdict import Verdict
from agent_journal.faces.hosts.installing import install, survey
from agent_journal.faces.hosts.table import Machine, host_called
from agent_journal.model import Draft, EntryId, Provenance
from agent_journal.ports import Sidecar
from agent_journal.upkeep import SEED_MODEL

SERVER = (sys.executable, "-m", "agent_journal", "mcp")


@pytest.fixture
def settings(home: Path) -> Settings:
    """Give settings of a home in which nothing exists yet."""
    return Settings(
        folder=home / "journal",
        index_folder=home / "cache",
        config_path=home / "config.json",
        state_folder=home / "state",
    )


def told(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return what is said of each subject, once of each, with its level."""
    found = list(verdicts)
    assert all(verdict.advice or verdict.level == "ok" for verdict in found)
    assert len({verdict.subject for verdict in found}) == len(found)
    return {verdict.subject: f"{verdict.level}: {verdict.message}" for verdict in found}


class TestPlaces:
    """Configuration, folders and room."""

    def test_the_configuration_turns_the_journal_on_or_not(self, settings: Settings) -> None:
        """A file that can't be used is a problem, a missing one is not."""
        path = settings.config_path
        assert told([places.configuration(settings)]) == {
            "config": f"note: {path} is missing, which means that agents get no tools"
        }
        path.write_text("{}", "ascii")
        assert told([places.configuration(settings)]) == {
            "config": f"note: {path} says that agents get no tools"
        }
        on = replace(settings, enabled=True)
        assert told([places.configuration(on)]) == {"config": f"ok: {path} turns the journal on"}
        error = ConfigError(str(path), "journal.enabled", "must be true or false", 2)
        broken = places.configuration(replace(settings, error=error))
        assert broken.level == "problem"
        assert broken.message.startswith(f"{path}:2: journal.enabled: must be true or false; ")
        assert broken.advice == f"mend {path}"

    def test_folders_may_be_missing(self, settings: Settings) -> None:
        """They are made when they are needed, and not by looking."""
        assert told(places.folders(settings, lambda: 0)) == {
            "journal folder": f"note: {settings.folder} is missing so far",
            "index folder": f"ok: {settings.index_folder} is made when it is needed",
            "log folder": f"ok: {settings.state_folder} is made when it is needed",
        }
        assert not settings.folder.exists()
        without = replace(settings, state_folder=None)
        assert "log folder" not in told(places.folders(without, lambda: 0))

    def test_folders_that_are_there_are_fine(self, settings: Settings) -> None:
        """If they can be read and written."""
        for folder in (settings.folder, settings.index_folder):
            folder.mkdir(mode=0o700)
        (settings.folder / "x.md").write_text("x", "ascii")
        found = told(places.folders(settings, lambda: 0))
        assert found["journal folder"] == f"ok: {settings.folder} can be read and written"
        assert found["index folder"] == f"ok: {settings.index_folder} can be read and written"

    @pytest.mark.parametrize("is_there", [True, False])
    def test_a_journal_that_was_there_once_is_missed(
        self, settings: Settings, *, is_there: bool
    ) -> None:
        """Its index tells: it may belong to a disk that isn't mounted."""
        if is_there:
            settings.folder.mkdir()
        verdict = next(iter(places.folders(settings, lambda: 2)))
        state = "is empty" if is_there else "is missing"
        assert (verdict.subject, verdict.level) == ("journal folder", "problem")
        assert verdict.message == (
            f"{settings.folder} {state}, and its search index knows 2 entries"
        )
        assert "mount it" in verdict.advice

    def test_what_is_no_folder_is_a_problem(self, settings: Settings) -> None:
        """Nor is a link that leads nowhere."""
        settings.folder.write_text("a file", "ascii")
        settings.index_folder.symlink_to("nowhere")
        found = told(places.folders(settings, lambda: 0))
        assert found["journal folder"] == f"problem: {settings.folder} is no folder"
        assert found["index folder"] == (
            f"problem: {settings.index_folder} is a link that leads nowhere"
        )

    def test_folders_that_cannot_be_used_are_problems(self) -> None:
        """Each with the way out, which depends on whose folder it is."""
        with open_folder() as folder:
            printed = run_as_nobody(
                """
import os
from pathlib import Path
from agent_journal.config import Settings
from agent_journal.faces.doctor.places import folders, room
root = Path(sys.argv[1])
with dropped():
    closed, fixed, locked = root / "closed", root / "fixed", root / "locked"
    closed.mkdir(0)
    fixed.mkdir(0o500)
    locked.mkdir(0o500)
    settings = Settings(closed, fixed, root / "c", state_folder=locked / "state")
    for verdict in folders(settings, lambda: 0):
        print(verdict.level, verdict.message, "->", verdict.advice)
    for verdict in folders(Settings(closed / "in" / "it", fixed, root / "c"), lambda: 0):
        print(verdict.level, verdict.message, "->", verdict.advice)
        break
    for verdict in folders(Settings(Path("/etc"), fixed, root / "c"), lambda: 0):
        print(verdict.level, verdict.message, "->", verdict.advice)
        break
    print({verdict.level for verdict in room(settings)})
    closed.chmod(0o700)
""",
                folder,
            )
        closed, fixed, locked = folder / "closed", folder / "fixed", folder / "locked"
        journal = "or choose another with --journal or AGENT_JOURNAL_DIR"
        index = "or choose another with --index or AGENT_JOURNAL_INDEX"
        denied = "can't be read: permission denied"
        gone = f"{locked}/state is missing and can't be made, since {locked} can't be written"
        deep = f"{closed}/in/it"
        assert printed.splitlines() == [
            f"problem {closed} {denied} -> chmod u+rwx {closed}, {journal}",
            f"problem {fixed} can't be written -> chmod u+rwx {fixed}, {index}",
            f"problem {gone} -> chmod u+rwx {locked}, or choose another with XDG_STATE_HOME",
            f"problem {deep} {denied} -> ask its owner for access to {deep}, {journal}",
            f"problem /etc can't be written -> ask its owner for access to /etc, {journal}",
            "{'ok'}",
        ]

    def test_a_journal_that_others_can_read_is_a_problem(self, settings: Settings) -> None:
        """If they can get to it."""
        with open_folder() as around:
            folder = around / "journal"
            folder.mkdir()
            (folder / "x.md").write_text("x", "ascii")
            shared = replace(settings, folder=folder)
            for mode, above, who in (
                (0o755, 0o755, "its group and everybody"),
                (0o770, 0o710, "its group"),
                (0o770, 0o701, "its group"),
                (0o704, 0o711, "everybody"),
                (0o777, 0o700, ""),
                (0o700, 0o755, ""),
            ):
                folder.chmod(mode)
                around.chmod(above)
                found = told(places.folders(shared, lambda: 0))
                assert found.get("privacy") == (
                    f"problem: {folder} is open to {who}" if who else None
                ), (oct(mode), oct(above))

    def test_little_room_is_a_problem(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So are no inodes. A full disk can't be had here, so the system's answer is set."""
        assert set(told(places.room(settings))) == {"room"}
        real = os.statvfs

        class Answer(NamedTuple):
            f_bavail: int
            f_frsize: int
            f_files: int
            f_favail: int

        monkeypatch.setattr(os, "statvfs", lambda path: real(path) and Answer(3, 4096, 9, 9))
        (verdict,) = places.room(settings)
        assert (verdict.level, verdict.advice != "") == ("problem", True)
        assert verdict.message.startswith("0 MB are left for entries, indexes")
        monkeypatch.setattr(os, "statvfs", lambda _: Answer(10**9, 4096, 9, 0))
        (verdict,) = places.room(settings)
        assert verdict.message.startswith("no more files can be made for entries")
        monkeypatch.setattr(os, "statvfs", lambda _: Answer(10**9, 4096, 0, 0))
        (verdict,) = places.room(settings)
        assert verdict.message.startswith("4,096.0 GB are free for entries, indexes")


class TestEntries:
    """Entries, projects and vectors."""

    def test_what_check_finds_is_one_problem(self, settings: Settings) -> None:
        """With one of them for an example."""
        store = open_store(settings)
        store.append(Draft("T"))
        found = entries.survey(settings)
        assert told(entries.verdicts(found)) == {"entries": "ok: 1 entry, and no problem in them"}
        (settings.folder / "x.md").write_text("no frontmatter", "ascii")
        (settings.folder / "y.md").symlink_to("nowhere")
        (settings.folder / "x.embedding").write_text("[1, 2]", "ascii")
        said = told(entries.verdicts(entries.survey(settings)))["entries"]
        one = re.escape(f"problems in 2 entries, for one {settings.folder}/x.")
        assert re.match(rf"problem: \d {one}", said)

    def test_no_index_is_made(self, settings: Settings) -> None:
        """Nor anything else."""
        open_store(settings).append(Draft("T"))
        before = sorted(settings.folder.parent.rglob("*"))
        entries.survey(settings)
        assert sorted(settings.folder.parent.rglob("*")) == before

    def test_a_vector_that_goes_meanwhile_is_none(self, settings: Settings) -> None:
        """It was listed, and is gone when its turn comes."""
        store = open_store(settings)
        for number in range(3):
            entry = store.append(Draft(f"T{number}"))
            store.write_sidecar(entry.id, Sidecar("ours", (1.0,)))

        def remove(_done: int, _total: int) -> None:
            for path in settings.folder.glob("*.embedding"):
                path.unlink()

        assert len(entries.survey(settings, progress=remove).models) < 3

    def test_what_crashed_writers_left_is_noted(self, settings: Settings) -> None:
        """Once it is old enough to have no writer."""
        settings.folder.mkdir()
        for name in ("old", "new"):
            path = settings.folder / f".agent-journal-{name}.tmp"
            path.write_text("half", "ascii")
        os.utime(settings.folder / ".agent-journal-old.tmp", LONG_AGO)
        (settings.folder / ".agent-journal-old").write_text("something else", "ascii")
        verdicts = list(entries.verdicts(entries.survey(settings)))
        assert [verdict.message for verdict in verdicts if verdict.level == "note"] == [
            "1 temporary file left behind by writers that crashed"
        ]

    def test_projects_that_are_gone_are_noted(self, settings: Settings) -> None:
        """The most used first; a name that is no path can't be gone."""
        store = open_store(settings)
        here = str(settings.folder.parent)
        for project in ["/gone/1", "/gone/2", "/gone/2", "/gone/3", "/gone/4", here, "name", ""]:
            store.append(Draft("T", provenance=Provenance(project=project)))
        said = told(entries.verdicts(entries.survey(settings)))["projects"]
        assert said == (
            "note: 5 entries belong to 4 folders that are not on this machine (any more): "
            "/gone/2, /gone/1, /gone/3, ..."
        )
        one = entries.Survey(1, [], Counter(["/gone"]), {}, 0)
        assert told(entries.verdicts(one))["projects"] == (
            "note: 1 entry belongs to 1 folder that is not on this machine (any more): /gone"
        )

    def test_vectors_are_told_by_their_models(self) -> None:
        """Ours, the original's, which are left alone, those of others, and none."""
        ids = [EntryId(str(number)) for number in range(6)]
        models = dict(zip(ids, ["ours", "ours", SEED_MODEL, "b", "a"], strict=False))
        found = entries.Survey(6, [], Counter(), models, 0)
        assert [verdict.message for verdict in entries.vectors(found, "ours", 2, ids[:1])] == [
            "1 vector is of another text than the entry has now: 0",
            "2 vectors are of models that aren't used here: a, b",
            "beside 1 entry lies no valid vector; words alone may find what has none",
        ]
        found = entries.Survey(3, [], Counter(), dict(list(models.items())[:3]), 0)
        assert told(entries.vectors(found, "ours", 2, [])) == {
            "vectors": "ok: every entry has one beside it, 1 of them the original plugin's; "
            "2 were made anew and are the same"
        }
        nothing = entries.Survey(0, [], Counter(), {}, 0)
        assert told(entries.vectors(nothing, "ours", 0, [])) == {}
        theirs = entries.Survey(1, [], Counter(), {ids[0]: SEED_MODEL}, 0)
        assert told(entries.vectors(theirs, "ours", 0, []))["vectors"].startswith(
            "ok: every entry has one beside it, 1 of them the original"
        )

    def test_vectors_that_may_be_stale_are_compared_first(self, settings: Settings) -> None:
        """Those of entries that were changed later, then the newest; long ones are left out."""
        store = open_store(settings)
        written = [store.append(Draft(f"T{number}")) for number in range(entries.COMPARED + 2)]
        long = store.append(Draft("long", "x" * 4000))
        foreign = settings.folder / "untitled.md"
        foreign.write_text("no title", "ascii")
        for entry_id in [*(entry.id for entry in [*written, long]), EntryId("untitled")]:
            store.write_sidecar(entry_id, Sidecar("ours", (1.0,)))
            os.utime(settings.folder / f"{entry_id}.md", LONG_AGO)
        os.utime(settings.folder / f"{written[0].id}.md")
        os.utime(settings.folder / f"{written[0].id}.embedding", LONG_AGO)
        found = entries.survey(settings)
        (settings.folder / f"{written[-1].id}.md").unlink()  # gone since
        chosen = entries.to_compare(settings, found, "ours")
        newest = [entry.title for entry in reversed(written[:-1])]
        assert [entry.title for entry, _ in chosen] == ["T0", *newest[: entries.COMPARED - 1]]
        assert entries.to_compare(settings, found, "another") == []


class TestTrial:
    """A temporary journal."""

    def test_the_model_embeds_and_an_entry_is_found_by_meaning(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        """With the real model, in another language than the entry's."""
        tried = Trial(settings, tmp_path)
        said = told(tried.run())
        assert said["trial"] == (
            "ok: in a temporary journal an entry was written, found by meaning across languages "
            "and read"
        )
        assert said["model"].startswith(f"ok: {tried.model} embedded 2 entries, ")
        assert tried.model == "google/universal-sentence-encoder-multilingual-v3"
        assert not settings.folder.exists()

    def test_stale_vectors_are_known_by_making_them_anew(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An entry that was edited, a vector of another length; no draft, no vector."""
        monkeypatch.setattr("agent_journal.engines.use.load_use", lambda *_: HashingEmbedder())
        store = open_store(settings)
        with open_journal(settings) as journal:
            good, edited = journal.write(Draft("good", "as ever")), journal.write(Draft("T", "old"))
            journal.work_backlog(wait_s=60)
        sidecars = [store.read_sidecar(entry.id) for entry in (good, edited)]
        assert sidecars[0] is not None
        assert sidecars[1] is not None
        changed = replace(edited, body="new words altogether")
        samples = [(good, sidecars[0]), (changed, sidecars[1])]
        samples += [(replace(good, id=EntryId("short")), Sidecar("x", (1.0,)))]
        samples += [(replace(good, body="a\0b"), sidecars[0])]
        assert Trial(settings, tmp_path).stale(samples) == [edited.id, "short"]

    def test_without_a_model_words_are_tried(self, settings: Settings, tmp_path: Path) -> None:
        """It is meant so, which is worth a note."""
        tried = Trial(replace(settings, model="none"), tmp_path)
        assert told(tried.run()) == {
            "model": "note: none is used, as configured: words alone are compared",
            "trial": "ok: in a temporary journal an entry was written, found by words and read",
        }
        assert tried.model == ""

    def test_a_model_that_cannot_be_loaded_is_a_problem(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Words are tried all the same."""

        def fail(*_: object) -> HashingEmbedder:
            raise EmbedderUnavailableError("the model's weights are missing")

        monkeypatch.setattr("agent_journal.engines.use.load_use", fail)
        assert told(Trial(settings, tmp_path).run()) == {
            "model": "problem: the model's weights are missing",
            "trial": "ok: in a temporary journal an entry was written, found by words and read",
        }

    def test_an_index_that_cannot_be_kept_is_a_problem(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As where SQLite lacks what it needs, which can't be had here."""

        def fail(*_: object, **__: object) -> None:
            raise IndexUnavailableError("/x", "SQLite has no FTS5")

        monkeypatch.setattr("agent_journal.engines.sqlite.SqliteIndex.generation", fail)
        verdicts = list(Trial(replace(settings, model="none"), tmp_path).run())
        assert [verdict.level for verdict in verdicts] == ["note", "ok", "problem"]
        assert verdicts[2].message.startswith("search index /x can't be used: SQLite has no FTS5")

    def test_a_journal_that_loses_what_it_is_given_is_a_problem(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing else would tell; it can only be made up."""
        monkeypatch.setattr(trial, "_BY_WORDS", (("by words", "nothing of the kind"),))
        without = replace(settings, model="none")
        said = told(Trial(without, tmp_path / "a").run())["trial"]
        assert said == "problem: an entry isn't found by words, or isn't read as it was written"
        (tmp_path / "b").write_text("a file", "ascii")
        said = told(Trial(without, tmp_path / "b").run())["trial"]
        assert said.startswith("problem: a temporary journal fails: could not write ")


def python(folder: Path, code: str) -> tuple[str, ...]:
    """Return what starts a server of a few lines, which passes over its options."""
    path = folder / "server.py"
    path.write_text(f"import json, sys\n{code}", encoding="utf-8")
    return (sys.executable, str(path))


ANSWERS = """
def answer(line, result):
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], **result}), flush=True)
lines = iter(sys.stdin.readline, "")
answer(next(lines), {"result": {}})
next(lines)
tools = [{"name": name} for name in ("journal_write", "journal_search", "journal_read")]
"""


class TestServing:
    """The MCP server as a process."""

    def test_the_real_one_lists_its_tools_and_ends(self, tmp_path: Path) -> None:
        """Everything that it makes is in the temporary folder."""
        served = try_server(SERVER, tmp_path)
        assert served.failure == ""
        assert served.took_s > 0
        assert {path.name for path in tmp_path.iterdir()} >= {"config.json"}

    @pytest.mark.parametrize(
        ("code", "failure"),
        [
            ("sys.exit('it is broken')", "it ended before it had answered initialize; it said: it"),
            ("sys.stdin.readline()", "it ended before it had answered initialize"),
            (
                (
                    "line = sys.stdin.readline()\n"
                    "print(json.dumps({'id': 1, 'error': {'message': 'no'}}), flush=True)\n"
                    "sys.stdin.read()"
                ),
                "it answers initialize with an error: {'message': 'no'}",
            ),
            (ANSWERS + "answer(next(lines), {'result': {'tools': []}})", "it offers no tools"),
            (
                ANSWERS + "answer(next(lines), {'result': {'tools': tools[:1]}})",
                "it offers journal_write",
            ),
            (ANSWERS + "answer(next(lines), {'result': {}})", "it offers no tools"),
            (
                ANSWERS + "answer(next(lines), {'result': {'tools': tools}})\n"
                "answer(next(lines), {'result': {'isError': True, 'content': 'oh no'}})\n",
                "a search in an empty journal fails: oh no",
            ),
            ("import time\ntime.sleep(60)", "it hasn't answered initialize in time"),
        ],
    )
    def test_one_that_fails_is_told_with_its_last_words(
        self, tmp_path: Path, code: str, failure: str
    ) -> None:
        """Whatever it does instead."""
        limit_s = 0.5 if "sleep" in code else serving.START_LIMIT_S
        served = try_server(python(tmp_path, code), tmp_path, limit_s=limit_s)
        assert served.failure.startswith(failure)

    def test_one_that_goes_on_is_ended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Hosts would leave it behind."""
        monkeypatch.setattr(serving, "END_LIMIT_S", 0.1)
        code = f"""{ANSWERS}
print("no message", flush=True)
print("[]", flush=True)
print(json.dumps({{"jsonrpc": "2.0", "method": "notifications/x"}}), flush=True)
answer(next(lines), {{"result": {{"tools": tools}}}})
answer(next(lines), {{"result": {{}}}})
import os, time
open("pid", "w").write(str(os.getpid()))
time.sleep(60)
"""
        served = try_server(python(tmp_path, code), tmp_path)
        assert served.failure == "it goes on running after its stdin has ended"
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text("ascii")), 0)

    def test_a_program_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        """By the system's reason."""
        served = try_server(("/nowhere/agent-journal", "mcp"), tmp_path)
        assert (
            served.failure == "/nowhere/agent-journal can't be started: No such file or directory"
        )


class TestHosting:
    """What is installed in hosts."""

    @pytest.fixture
    def machine(self, home: Path) -> Machine:
        """A home without hosts, and with a program of ours."""
        folder = home / "bin"
        folder.mkdir()
        (folder / "agent-journal").write_text("#!/bin/sh\n", "ascii")
        (folder / "agent-journal").chmod(0o755)
        return Machine({"PATH": str(folder)}, home, "linux")

    def judged(
        self,
        machine: Machine,
        served: dict[hosting.Start, Served] | None = None,
        *,
        is_on: bool = True,
        directory: Path | None = None,
    ) -> list[str]:
        """Return what is said of all hosts."""
        found = hosting.verdicts(
            survey(machine, version="1"), machine, served or {}, is_on=is_on, directory=directory
        )
        verdicts = list(found)
        assert all(verdict.advice or verdict.level == "ok" for verdict in verdicts)
        return [f"{each.level} {each.subject}: {each.message}" for each in verdicts]

    def test_none_is_a_note(self, machine: Machine) -> None:
        """As is one that hasn't got the journal."""
        assert self.judged(machine) == ["note hosts: none of those that are known is found here"]
        (machine.home / ".cursor").mkdir()
        (machine.home / ".codex").mkdir()
        (machine.home / ".codex" / "config.toml").write_text("", "ascii")
        assert self.judged(machine) == ["note hosts: the journal is not installed in Codex, Cursor"]

    def test_one_that_has_the_journal_starts_it(self, machine: Machine) -> None:
        """Or doesn't; or it is turned off, or the program won't last."""
        command: hosting.Start = (str(machine.home / "bin" / "agent-journal"), "mcp")
        install(host_called("opencode"), machine, (*command, "--journal", "/j"), version="1")
        good = {command: Served(took_s=1.26)}
        starts = f"ok OpenCode: {' '.join(command)} lists its tools in 1.3 s"
        assert self.judged(machine, good)[0] == starts
        assert self.judged(machine, {command: Served("it is broken")})[0] == (
            f"problem OpenCode: {' '.join(command)}: it is broken"
        )
        assert self.judged(machine, good, is_on=False)[0] == (
            "problem OpenCode: it has the journal, which is turned off"
        )
        install(host_called("opencode"), machine, (*command, "--config", "/c"), version="1")
        assert self.judged(machine, good, is_on=False)[0] == starts
        assert "is temporary and may be gone tomorrow" in self.judged(machine, good)[1]

    def test_a_plugin_of_another_version_is_a_problem(self, machine: Machine) -> None:
        """It works as ever, and lacks what is new."""
        command = (str(machine.home / "bin" / "agent-journal"), "mcp")
        install(host_called("opencode"), machine, command, version="0")
        assert self.judged(machine) == ["problem OpenCode: the plugin is of version 0, this is 1"]

    def test_what_is_not_ours_or_cannot_be_read(self, machine: Machine) -> None:
        """The one is a note, the other a problem."""
        config = {"mcpServers": {"journal": {"command": "other"}}}
        (machine.home / ".claude.json").write_text(json.dumps(config), "ascii")
        (machine.home / ".cursor").mkdir()
        (machine.home / ".cursor" / "mcp.json").write_text("{", "ascii")
        code, cursor, *_ = self.judged(machine)
        assert code.startswith("note Claude Code: journal in ")
        assert cursor.startswith("problem Cursor: ")

    def test_the_original_beside_ours_is_a_problem(self, machine: Machine) -> None:
        """And a second start of ours; without ours the original is a note."""
        project = machine.home / "shop"
        (project / ".git").mkdir(parents=True)
        ours = str(machine.home / "bin" / "agent-journal")
        config = {
            "plugin": ["opencode-agent-memory@0.5.1"],
            "mcp": {"j": {"type": "local", "command": [ours, "mcp"]}},
        }
        (project / "opencode.json").write_text(json.dumps(config), "ascii")
        (machine.home / ".config" / "opencode").mkdir(parents=True)
        (machine.home / ".config" / "opencode" / "opencode.json").write_text("{", "ascii")
        assert self.judged(machine, directory=None) == [
            "note hosts: none of those that are known is found here"
        ]
        path = machine.path(host_called("opencode").location)
        path.parent.mkdir()
        path.write_text("// another plugin\n", "ascii")
        before = self.judged(machine, directory=project)
        assert [line for line in before if "opencode-agent-memory" in line] == [
            (
                f"note OpenCode: it loads opencode-agent-memory ({project}/opencode.json:1), "
                "which offers the same tools"
            )
        ]
        path.unlink()
        (project / "opencode.json").rename(project / "aside.json")
        install(host_called("opencode"), machine, (ours, "mcp"), version="1")
        (project / "aside.json").rename(project / "opencode.json")
        after = self.judged(machine, {(ours, "mcp"): Served()}, directory=project)
        assert [line for line in after if line.startswith("problem")] == [
            (
                f"problem OpenCode: it loads opencode-agent-memory ({project}/opencode.json:1), "
                "which offers the same tools"
            ),
            (
                f'problem OpenCode: "j" under "mcp" in {project}/opencode.json starts the journal '
                "a second time"
            ),
        ]
        assert any("opencode.json" in line for line in after if line.startswith("note OpenCode"))

    def test_only_the_beginning_of_a_command_counts(self) -> None:
        """Options that say where the journal is don't; what starts no server is nothing."""
        assert hosting.start_of(["a", "-m", "b", "mcp", "--journal", "x"]) == (
            "a",
            "-m",
            "b",
            "mcp",
        )
        assert hosting.start_of(["a"]) == ()
