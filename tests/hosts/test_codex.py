"""Codex itself, with what `install codex` made and a scripted model."""

from __future__ import annotations

import re
from pathlib import Path

from tests.hosts.proof import PLAIN, desk
from tests.hosts.scripted import DONE, ScriptedModel, script

NAMES = [f"mcp__journal::journal_{verb}" for verb in ("read", "search", "write")]
SETTINGS = """
mcp_optional_startup_grace_ms = 30000 # on a slow machine a server takes longer than one second
model = "fake-1"
model_provider = "fake"
[model_providers.fake]
name = "Fake"
base_url = "{url}/v1"
wire_api = "responses"
"""


def test_codex_keeps_and_finds_entries(
    programs: Path, host_home: Path, model: ScriptedModel
) -> None:
    """It writes, searches and reads; entries say whence they come; what is off isn't sent."""
    place = desk(host_home, programs)
    config = host_home / ".codex" / "config.toml"
    config.parent.mkdir()
    mine = "# mine\n" + SETTINGS.format(url=model.url)
    config.write_text(mine, encoding="utf-8")
    assert place.install("codex")["changed"]
    assert place.install("codex")["done"] == []

    def ask(prompt: str, *options: str) -> None:
        words: list[str | Path] = [programs / "codex", "exec", *options, "-"]
        assert place.run(words, typed=prompt).strip() == DONE

    ask(script((NAMES[2], PLAIN)))
    assert [name for name in model.conversations[0].tools if "journal" in name] == NAMES
    entry_id, facts, body = place.entry()
    created, session = facts.pop("created"), facts.pop("session_id")
    assert entry_id[:8] == str(created)[:10].replace("-", "")
    assert facts == {
        "title": PLAIN["title"],
        "project": str(place.project),
        "repo": "example.org/me/shop",
        "model": "fake-1",
        "agent": "codex",
        "tags": ["redis"],
    }
    assert body == PLAIN["body"]
    logs = (host_home / ".codex" / "sessions").rglob("*.jsonl")
    assert [path.stem[-36:] for path in logs] == [session]  # as Codex itself calls it

    ask(script((NAMES[1], {"text": "licence", "project": "."}), (NAMES[0], {"id": entry_id})))
    found, read = model.results
    assert entry_id in found
    assert PLAIN["body"] in read

    asked = len(model.requests)
    ask("Hello", "--config", 'mcp_servers.journal.disabled_tools=["journal_write"]')
    (request,) = [each for each in model.requests[asked:] if each.tools]
    assert [name for name in request.tools if "journal" in name] == NAMES[:2]
    assert "journal_write" not in request.text

    place.journal("uninstall", "codex")
    assert place.state("codex") == "not installed"
    left = re.sub(r"\n\[projects[^\[]*", "", config.read_text(encoding="utf-8"))
    assert left.strip() == mine.strip()
    asked = len(model.requests)
    ask("Hello")
    assert all("journal_" not in request.text for request in model.requests[asked:])
