"""Claude Code itself, with what `install claude-code` made and a scripted model."""

from __future__ import annotations

from pathlib import Path

from tests.hosts.proof import PLAIN, desk
from tests.hosts.scripted import DONE, ScriptedModel, script

NAMES = [f"mcp__journal__journal_{verb}" for verb in ("read", "search", "write")]


def test_claude_code_keeps_and_finds_entries(
    programs: Path, host_home: Path, model: ScriptedModel
) -> None:
    """It writes, searches and reads; entries say whence they come; what is denied isn't sent."""
    place = desk(host_home, programs)
    assert place.install("claude-code")["changed"]
    assert place.install("claude-code")["done"] == []
    environ = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",  # the script calls tools at once, on a slow machine too
    }

    def ask(prompt: str, *options: str) -> None:
        words: list[str | Path] = [
            programs / "claude",
            "--print",
            "--model",
            "claude-sonnet-4-5",
            *options,
        ]
        assert place.run(words, typed=prompt, environ=environ).strip() == DONE

    session = "0b0e5a0e-5f0c-4c1e-9a43-0d5d1a3c9f10"
    allowed = ("--allowedTools", "mcp__journal")
    ask(script((NAMES[2], PLAIN)), *allowed, "--session-id", session)
    assert [name for name in model.conversations[0].tools if "journal" in name] == NAMES
    assert "append-only" in model.conversations[0].text  # the guidance is there from the start
    entry_id, facts, body = place.entry()
    created = facts.pop("created")
    assert entry_id[:8] == str(created)[:10].replace("-", "")
    assert facts == {
        "title": PLAIN["title"],
        "project": str(place.project),
        "repo": "example.org/me/shop",
        "agent": "claude-code",
        "session_id": session,
        "tags": ["redis"],
    }
    assert body == PLAIN["body"]

    ask(
        script((NAMES[1], {"text": "licence", "project": "."}), (NAMES[0], {"id": entry_id})),
        *allowed,
    )
    found, read = model.results
    assert entry_id in found
    assert PLAIN["body"] in read

    asked = len(model.requests)
    ask("Hello", "--disallowedTools", NAMES[2])
    (request,) = [each for each in model.requests[asked:] if each.tools]
    assert [name for name in request.tools if "journal" in name] == NAMES[:2]
    assert "journal_write" not in request.text

    place.journal("uninstall", "claude-code")
    assert place.state("claude-code") == "not installed"
    asked = len(model.requests)
    ask("Hello")
    assert all("journal_" not in request.text for request in model.requests[asked:])
