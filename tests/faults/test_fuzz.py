"""Whatever a folder holds and whatever is asked: no crash, no file changed, every word found."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.faults import fuzzed
from tests.proven import Trials
from tests.test_cli_process import Program
from tests.test_mcp import Server, text_of

from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import InvalidDraftError
from agent_journal.faces.mcp import tools
from agent_journal.journal import Journal
from agent_journal.model import Draft, EntryId, Provenance
from agent_journal.query import Query

# Words that people look for, each in an entry of its own.
LITERALS = [
    "quokka", "parse_url", "parseUrlFast", "ConnectionResetError", "v2.14.3", "2026.4.10",
    "moment.js", "feature-flag", "E0277", "C++20", "x86_64", "/usr/lib/ssl", "0xdeadbeef",
    "città", "straße", "東京", "缓存失效", "데이터베이스", "кэширование", "σφάλμα", "שגיאה", "خطأ",
    "त्रुटि", "ข้อผิดพลาด", "user@example.org", "SQLITE_BUSY", "a1b2c3d4", "node_modules",
]  # fmt: skip
SYNTAX = [
    '"', '""', "'", "*", "^", "(", ")", "{", "}", "[", "]", ":", "-", "+", ",", ";", "--", "/*",
    "\\", "|", "&", "~", "!", "?", "<", ">", "=", "%", "$", "#", "@", "`", "…", "“", "”", "«", "»",
    "、", "。", "\t", "\n", "\r\n", "\x00", "\x1b[31m", "\u202e", "\ufeff", "\ud800", "👩‍👩‍👧",
]  # fmt: skip
KEYWORDS = ["AND", "OR", "NOT", "NEAR(", "NEAR/3", "terms:", "rowid:", "{terms} :", "MATCH", "NULL"]
BETWEEN = st.lists(st.sampled_from(SYNTAX), max_size=4).map("".join)
APART = st.lists(st.sampled_from(KEYWORDS) | st.text(max_size=6), max_size=3).map(" ".join)


Desk = tuple[Journal, dict[str, EntryId]]


@pytest.fixture(scope="module")
def literals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Give a journal with an entry for each literal, and their ids."""
    home = tmp_path_factory.mktemp("literals")
    with opened(home) as journal:
        ids = {
            word: journal.write(Draft(f"Note {number}", f"We met {word} in the logs today.")).id
            for number, word in enumerate(LITERALS)
        }
        journal.work_backlog(wait_s=60)
        yield journal, ids


def opened(home: Path) -> Journal:
    """Open a journal as programs do, with a model that is quick."""
    return Journal(
        FileStore(home / "journal"),
        SqliteIndex(home / "i.sqlite3"),
        BackgroundLoader(HashingEmbedder),
        fallback=MemoryIndex,
    )


def check_queries(literals: Desk, trials: Trials, examples: int) -> None:
    """Ask that often, and expect to find each literal whatever stands around it."""
    journal, ids = literals
    asked = [0]

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(LITERALS), APART, BETWEEN, BETWEEN, APART)
    def find(word: str, first: str, before: str, after: str, last: str) -> None:
        asked[0] += 1
        page = journal.search(Query(f"{first} {before}{word}{after} {last}"), wait_s=60)
        assert page.notices == ()
        assert ids[word] in [hit.entry.id for hit in page.hits]

    @settings(max_examples=examples // 4, suppress_health_check=list(HealthCheck))
    @given(
        st.text(st.characters(), max_size=60),
        st.lists(st.text(max_size=9), max_size=3),
        st.integers(-9, 99),
        st.integers(-9, 99),
    )
    def survive(text: str, tags: list[str], limit: int, offset: int) -> None:
        asked[0] += 1
        try:
            query = Query(
                text, project=text[:9], tags=tags, agent=text[9:12], limit=limit, offset=offset
            )
        except InvalidDraftError:
            return  # a NUL or a lone surrogate, refused by name
        journal.search(query, wait_s=60)

    try:
        find()
        survive()
    finally:
        there = {entry_id for entry_id in ids.values() if journal.read(entry_id).body}
        trials.report(
            "fuzzed queries", tried=asked[0], acknowledged=len(ids), lost=len(ids) - len(there)
        )


def test_a_word_is_found_in_any_query(literals: Desk, trials: Trials) -> None:
    """Signs that are some search engine's syntax never hide it, and never break anything."""
    check_queries(literals, trials, 100)


@pytest.mark.prove
def test_a_word_is_found_in_any_of_many_queries(literals: Desk, trials: Trials) -> None:
    """The same, a thousand times and more."""
    check_queries(literals, trials, 1_500)


State = dict[bytes, tuple[str, int, int]]


def state_of(folder: Path) -> State:
    """Return what each file holds, when it was written, and who may read it."""
    found: State = {}
    for entry in os.scandir(os.fsencode(folder)):
        if entry.is_file(follow_symlinks=False):
            with open(entry.path, "rb") as file:  # noqa: PTH123 - names that are bytes
                digest = hashlib.sha256(file.read()).hexdigest()
            status = entry.stat()
            found[entry.name] = (digest, status.st_mtime_ns, status.st_mode)
    return found


def is_text(stem: str) -> bool:
    """Tell whether a file's name is UTF-8; others are named as problems, and are no entries."""
    return stem.isascii() or stem == stem.encode(errors="replace").decode()


@pytest.mark.parametrize(
    ("files", "seed"),
    [(150, 1), pytest.param(10_000, 2, marks=[pytest.mark.prove, pytest.mark.timeout(3600)])],
)
def test_any_file_is_listed_found_read_and_left_alone(
    tmp_path: Path, files: int, seed: int, trials: Trials
) -> None:
    """Random bytes, broken frontmatter, odd encodings and names: all is served, nothing touched."""
    folder = tmp_path / "journal"
    folder.mkdir()
    stems = [fuzzed.write(folder, number, seed) for number in range(files)]
    before = state_of(folder)
    named = {stem for stem in stems if is_text(stem)}
    hidden: list[str] = []
    with opened(tmp_path) as journal:
        journal.check()
        journal.work_backlog(wait_s=60)
        for number, stem in enumerate(stems):
            if stem not in named:
                continue
            assert journal.read(stem).id == stem
            tools.call("journal_read", {"id": stem}, lambda: journal, Provenance).text.encode()
            page = journal.search(Query(fuzzed.word(number), limit=3), wait_s=60)
            if stem not in [hit.entry.id for hit in page.hits]:
                hidden.append(stem)
        status = journal.status()
        journal.tags()
        journal.search(Query(limit=50, offset=files // 2))
        journal.reindex()
        journal.check(fix=True)
    after = state_of(folder)
    trials.report(
        "fuzzed files",
        tried=files,
        acknowledged=files,
        lost=len(before.keys() - after.keys()),
        altered=sum(after.get(name, was) != was for name, was in before.items()),
    )
    assert hidden == []
    assert status.entries == len(named)
    assert sum("no valid UTF-8" in one.reason for one in status.problems) >= files - len(named)
    assert all(name.endswith(b".embedding") for name in after.keys() - before.keys())


def test_programs_serve_any_file(home: Path, trials: Trials) -> None:
    """Command line and server show such files without an error, and change none."""
    program = Program(home)
    program.folder.mkdir()
    stems = [fuzzed.write(program.folder, number, 3) for number in range(60)]
    before = state_of(program.folder)
    for arguments, codes in [
        (("search", fuzzed.word(7)), {0}),
        (("recent", "-n", "50", "--json"), {0}),
        (("check",), {1}),
        (("status",), {0}),
        (("tags",), {0}),
        (("export",), {0, 1}),
        (("reindex",), {0}),
    ]:
        done = program(*arguments)
        assert done.returncode in codes, (arguments, done.stderr)
        assert b"Traceback" not in done.stderr
        assert b"internal error" not in done.stderr
        done.stdout.decode()
    config = home / "config.json"
    config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    with Server(env={**program.env, "AGENT_JOURNAL_CONFIG": str(config)}) as server:
        server.initialize()
        for number, stem in enumerate(stems):
            if not is_text(stem):
                continue
            result = server.call("journal_read", {"id": stem})
            assert not result.get("isError"), result
            text = text_of(server.call("journal_search", {"text": fuzzed.word(number)}))
            assert "No entry" not in text
        assert server.leave() == 0
    after = state_of(program.folder)
    trials.report(
        "fuzzed files, by programs",
        tried=len(stems),
        acknowledged=len(stems),
        lost=len(before.keys() - after.keys()),
        altered=sum(after.get(name, was) != was for name, was in before.items()),
    )


@pytest.mark.prove
def test_a_server_survives_any_query(
    home: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    """A thousand odd requests over the pipe: each is answered, and none ends it."""
    config = home / ".config" / "opencode" / "agent-memory.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"journal": {"enabled": True}}), encoding="utf-8")
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
    asked = [0]
    with Server() as server:
        server.initialize()
        server.call("journal_write", {"title": "T", "body": "a quokka"})

        @settings(max_examples=1_000, suppress_health_check=list(HealthCheck))
        @given(APART, BETWEEN, BETWEEN, st.text(max_size=20))
        def survive(first: str, before: str, after: str, tag: str) -> None:
            asked[0] += 1
            text = f"{first} {before}quokka{after}"
            answer = text_of(server.call("journal_search", {"text": text}))
            assert "1 entry matches" in answer
            server.call("journal_search", {"text": tag, "tags": tag, "limit": tag, "since": tag})
            server.call("journal_read", {"id": text})

        survive()
        assert server.leave() == 0
    trials.report("fuzzed queries to a server", tried=3 * asked[0], acknowledged=1)
