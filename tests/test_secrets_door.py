"""Every way into the journal leads through the door that masks secrets, and none tells them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.secrets.caught import Draw
from tests.shell import Shell

from agent_journal.assembly import open_journal
from agent_journal.config import Settings, load_settings
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.memory import MemoryStore
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.errors import ConfigError, SecretsFoundError
from agent_journal.faces.mcp import tools
from agent_journal.journal import Journal
from agent_journal.model import Draft, Provenance
from agent_journal.query import Query
from agent_journal.secrets.policy import POLICIES, Policy

KEY = "gh" + "p_" + Draw(1)(36)
PASSWORD = Draw(2)(14)
REMOTE = f"https://jane:{PASSWORD}@git.shop.test/a.git"
MASK = "[masked:github-token]"
BODY = f"export GITHUB_TOKEN={KEY}\ngit remote add origin {REMOTE}"
MASKED = (
    f"export GITHUB_TOKEN={MASK}\n"
    "git remote add origin https://jane:[masked:url-password]@git.shop.test/a.git"
)
TOLD = (
    "1 github-token, 1 url-password looked like secrets and were masked: [masked:KIND] stands in "
    "their place, and what they were is not in the journal"
)


def leaks(*secrets: str, under: Path) -> list[Path]:
    """Return the files in a folder that hold eight characters of a secret in a row."""
    parts = [secret[start : start + 8] for secret in secrets for start in range(4, len(secret) - 8)]
    return [
        path
        for path in under.rglob("*")
        if path.is_file() and any(part.encode() in path.read_bytes() for part in parts)
    ]


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a command line with an empty home, an unborn journal, and no model."""
    monkeypatch.delenv("AGENT_JOURNAL_SECRETS", raising=False)
    return Shell(home, monkeypatch)


@pytest.fixture
def journal() -> Iterator[Journal]:
    """Give a journal in memory."""
    with Journal(MemoryStore(), MemoryIndex(), BackgroundLoader(HashingEmbedder)) as opened:
        yield opened


class TestLibrary:
    """`Journal.write`."""

    def test_masks_and_tells(self, journal: Journal) -> None:
        """The entry that comes back, and the one that is read, are the masked one."""
        entry = journal.write(Draft("Set up", BODY))
        assert entry.body == MASKED
        assert entry.screening.masked == {"github-token": 1, "url-password": 1}
        assert journal.read(entry.id) == entry
        assert not journal.read(entry.id).screening.masked
        assert journal.search(Query(KEY)).total == journal.search(Query(PASSWORD)).total == 0

    def test_each_write_may_have_its_own_policy(self, journal: Journal) -> None:
        """It wins over the journal's."""
        assert journal.write(Draft("a", BODY), secrets="allow").body == BODY
        with pytest.raises(SecretsFoundError):
            journal.write(Draft("a", BODY), secrets="refuse")
        with Journal(
            MemoryStore(), MemoryIndex(), BackgroundLoader(HashingEmbedder), secrets="refuse"
        ) as strict:
            with pytest.raises(SecretsFoundError):
                strict.write(Draft("a", BODY))
            assert strict.write(Draft("a", BODY), secrets="mask").body == MASKED
            assert strict.search(Query()).total == 1

    @pytest.mark.parametrize("policy", POLICIES)
    def test_a_journal_does_as_its_settings_say(self, tmp_path: Path, policy: Policy) -> None:
        """All three policies, on files."""
        settings = Settings(tmp_path / "j", tmp_path / "i", tmp_path / "c", secrets=policy)
        with open_journal(settings) as opened:
            if policy == "refuse":
                with pytest.raises(SecretsFoundError):
                    opened.write(Draft("a", BODY))
                assert not (tmp_path / "j").exists()
            else:
                body = opened.write(Draft("a", BODY)).body
                assert body == (MASKED if policy == "mask" else BODY)


class TestReasons:
    """`Journal.redact`: what is said of a redaction is kept for good, too."""

    @pytest.mark.parametrize("text", ["", "harmless"])
    def test_masks_and_tells(self, home: Path, text: str) -> None:
        """Neither the entry nor the ledger holds what stood in the reason."""
        with open_journal(load_settings({"HOME": str(home)}, model="none")) as opened:
            entry = opened.write(Draft("T", "harmless words"))
            done = opened.redact(entry.id, reason=f"leaked {KEY}, pwd: hunter2x9", text=text)
            assert done.count
            masked, suspected = done.notices[-2:]
        assert masked.startswith("1 github-token in the reason looked like secrets and were masked")
        assert suspected.startswith("1 named-secret in the reason may be secrets; it stays as it")
        assert leaks(KEY, under=home) == []
        kept = [path for path in home.rglob("*") if path.is_file()]
        assert sum(f"leaked {MASK}".encode() in path.read_bytes() for path in kept) >= 2

    def test_does_as_the_journal_does(self) -> None:
        """Refused, nothing is changed; allowed, nothing is looked for."""
        with Journal(
            MemoryStore(), MemoryIndex(), BackgroundLoader(HashingEmbedder), secrets="refuse"
        ) as strict:
            entry = strict.write(Draft("T", "harmless"))
            with pytest.raises(SecretsFoundError, match="reason holds"):
                strict.redact(entry.id, reason=f"leaked {KEY}")
            assert strict.read(entry.id) == entry
        with Journal(
            MemoryStore(), MemoryIndex(), BackgroundLoader(HashingEmbedder), secrets="allow"
        ) as lax:
            entry = lax.write(Draft("T", "harmless"))
            assert lax.redact(entry.id, reason=f"leaked {KEY}").notices == ()


class TestConfiguration:
    """`journal.secrets`, its variable and its flag."""

    def test_a_flag_wins_over_the_environment_and_that_over_the_file(self, home: Path) -> None:
        """Masking is what happens unless something is said."""
        path = home / "c.json"
        environ = {"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(path)}
        assert load_settings(environ).secrets == "mask"
        path.write_text('{"journal": {"secrets": "refuse"}}', encoding="utf-8")
        assert load_settings(environ).secrets == "refuse"
        environ["AGENT_JOURNAL_SECRETS"] = "allow"
        assert load_settings(environ).secrets == "allow"
        assert load_settings(environ, secrets="mask").secrets == "mask"
        environ["AGENT_JOURNAL_SECRETS"] = ""
        assert load_settings(environ).secrets == "refuse"

    def test_a_wrong_policy_is_named(self, home: Path) -> None:
        """In a flag, in the variable, and in the file with its line; then nothing in it counts."""
        environ = {"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(home / "c.json")}
        reason = "is 'Mask'; it must be one of: mask, refuse, allow"
        with pytest.raises(ConfigError, match=f"^--secrets: {reason}$"):
            load_settings(environ, secrets="Mask")
        with pytest.raises(ConfigError, match=f"^AGENT_JOURNAL_SECRETS: {reason}$"):
            load_settings({**environ, "AGENT_JOURNAL_SECRETS": "Mask"})
        for value, told in (('"Mask"', reason), ("true", "is true or false; it must be a string")):
            text = f'{{"journal": {{"enabled": true,\n"secrets": {value}}}}}'
            (home / "c.json").write_text(text, encoding="utf-8")
            settings = load_settings(environ)
            assert str(settings.error) == f"{home / 'c.json'}:2: journal.secrets: {told}"
            assert (settings.secrets, settings.enabled) == ("mask", False)


class TestCommandLine:
    """`write` and `import`."""

    def test_write_masks_and_says_so(self, shell: Shell) -> None:
        """On stderr, and in JSON; no file under the home holds any of it, nor does the output."""
        outcome = shell("write", f"Use {KEY}", BODY, "-t", KEY, "--session", f"s{PASSWORD}")
        assert outcome.code == 0
        assert "warning: 3 github-token, 1 url-password looked like secrets" in outcome.err
        entry = shell.entry(outcome.out.strip())
        assert (entry["title"], entry["body"], entry["tags"]) == (f"Use {MASK}", MASKED, [MASK])
        assert shell("search", "GITHUB_TOKEN").code == 0
        assert KEY[4:] not in outcome.out + outcome.err
        written = shell("write", "T", BODY, "--json").json
        assert written["masked"] == {"github-token": 1, "url-password": 1}
        assert written["suspected"] == {}
        assert leaks(KEY, under=shell.home) == []

    def test_a_reason_is_masked(self, shell: Shell) -> None:
        """And that is said."""
        entry_id = shell("write", "T", "B").out.strip()
        outcome = shell("redact", entry_id, "--reason", f"leaked {KEY}", "--yes")
        assert outcome.code == 0
        assert "warning: 1 github-token in the reason looked like secrets" in outcome.err
        assert leaks(KEY, under=shell.home) == []

    def test_suspicion_is_told(self, shell: Shell) -> None:
        """The text stays as it is."""
        outcome = shell("write", "T", "password = 'hunter2x9'")
        told = "1 named-secret may be secrets and were left as they are; if they are, a person can "
        assert f"warning: {told}remove them: agent-journal redact ID" in outcome.err
        assert shell.entry(outcome.out.strip())["body"] == "password = 'hunter2x9'"
        assert shell("write", "T", "pwd: hunter2x9", "--json").json["suspected"] == {
            "named-secret": 1
        }

    def test_a_person_may_allow_or_refuse(self, shell: Shell) -> None:
        """Whatever the configuration says."""
        shell.config.parent.mkdir(parents=True)
        shell.config.write_text('{"journal": {"secrets": "refuse"}}', encoding="utf-8")
        refused = shell("write", "T", BODY)
        assert refused.code == 3
        assert "body holds what looks like a secret (1 github-token, 1 url-password)" in refused.err
        assert shell.files() == []
        error = shell("write", "T", BODY, "--json").json["error"]
        assert error["details"]["kinds"] == {"github-token": 1, "url-password": 1}
        assert KEY[4:] not in json.dumps(error)
        assert leaks(KEY, PASSWORD, under=shell.home) == []
        allowed = shell("write", "T", BODY, "--secrets", "allow")
        assert shell.entry(allowed.out.strip())["body"] == BODY
        masked = shell("write", "T", BODY, env={"AGENT_JOURNAL_SECRETS": "mask"})
        assert shell.entry(masked.out.strip())["body"] == MASKED
        assert shell("write", "T", "B", "--secrets", "no").code == 6

    def lines(self, *bodies: str) -> bytes:
        """Return lines as `export` writes them."""
        return b"".join(
            json.dumps(
                {"title": "T", "body": body, "created": f"2026-01-0{day}T00:00:00Z"}
            ).encode()
            + b"\n"
            for day, body in enumerate(bodies, 1)
        )

    def test_imports_pass_the_same_door(self, shell: Shell) -> None:
        """Each once, though what is in the journal isn't what is in the file."""
        lines = self.lines(BODY, "harmless")
        for options in (["--dry-run"], []):
            outcome = shell("import", "jsonl", "-", *options, stdin=lines)
            assert outcome.code == 0
            note, count, told = outcome.out.splitlines()
            assert note == f"stdin:1: {TOLD} (imported all the same)"
            assert count.startswith("2 read: 2 ")
            assert told == TOLD
        again = shell("import", "jsonl", "-", stdin=lines)
        assert again.out == "2 read: 0 added, 2 there already\n"
        assert leaks(KEY, PASSWORD, under=shell.home) == []
        printed = shell("import", "jsonl", "-", "--json", stdin=self.lines("x", f"y {KEY}")).json
        assert printed["masked"] == {"github-token": 1}

    def test_imports_may_allow_or_refuse(self, shell: Shell) -> None:
        """What is refused is named; what was allowed once isn't imported anew with masks."""
        lines = self.lines(BODY, "harmless")
        refused = shell("import", "jsonl", "-", "--secrets", "refuse", stdin=lines)
        assert refused.code == 1
        assert "stdin:1: body holds what looks like a secret" in refused.out
        assert "2 read: 1 added, 1 refused" in refused.out
        allowed = shell("import", "jsonl", "-", "--secrets", "allow", stdin=lines)
        assert allowed.out == "2 read: 1 added, 1 there already\n"
        assert (
            shell("import", "jsonl", "-", stdin=lines).out == "2 read: 0 added, 2 there already\n"
        )


class TestAgents:
    """`journal_write`."""

    def call(self, journal: Journal, **arguments: str) -> tools.Answer:
        """Write as an agent does."""
        caller = Provenance(project=f"/src/{KEY}", session="s")
        return tools.call("journal_write", arguments, lambda: journal, lambda: caller)

    def test_masks_and_tells(self, journal: Journal) -> None:
        """The agent hears what was masked and how often, and is told no secret."""
        answer = self.call(journal, title=f"T {KEY}", body=BODY, tags=f"a,{KEY}")
        assert not answer.is_error
        assert f"title: T {MASK}" in answer.text
        assert answer.text.endswith("Notice: " + TOLD.replace("1 github-token", "4 github-token"))
        (hit,) = journal.search(Query()).hits
        assert hit.entry.body == MASKED
        assert hit.entry.provenance.project == f"/src/{MASK}"

    def test_tells_a_suspicion(self, journal: Journal) -> None:
        """The text stays."""
        caller = Provenance()
        arguments = {"title": "T", "body": "token: q8Kd02mZx7"}
        answer = tools.call("journal_write", arguments, lambda: journal, lambda: caller)
        assert "Notice: 1 named-secret may be secrets and were left as they are" in answer.text

    def test_refuses_in_words(self, caplog: pytest.LogCaptureFixture) -> None:
        """Neither the answer nor the log holds any of it."""
        caplog.set_level(logging.DEBUG)
        with Journal(
            MemoryStore(), MemoryIndex(), BackgroundLoader(HashingEmbedder), secrets="refuse"
        ) as journal:
            answer = self.call(journal, title="T", body=BODY)
            assert journal.search(Query()).total == 0
        assert answer.is_error
        assert answer.text.startswith("body holds what looks like a secret")
        assert answer.text.endswith("write where it is kept instead")
        for text in (answer.text, caplog.text):
            assert KEY[4:12] not in text
            assert PASSWORD[:8] not in text
