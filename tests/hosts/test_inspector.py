"""The MCP inspector, a client of both eras of the protocol, with what `--print` gives to paste."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.proof import PLAIN, desk


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_keeps_and_finds_entries(programs: Path, host_home: Path, era: str) -> None:
    """It lists tools without a complaint, writes, searches and reads."""
    place = desk(host_home, programs)
    pasted = host_home / "mcp.json"
    pasted.write_text(place.journal("install", "cursor", "--print"), encoding="utf-8")

    def ask(method: str, *options: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        words: list[str | Path] = [
            programs / "mcp-inspector",
            "--cli",
            "--config",
            pasted,
            "--server",
            "journal",
        ]
        words += ["--protocol-era", era, "--format", "json", "--method", method, *options]
        return json.loads(place.run(words))["result"]

    def call(name: str, **given: str) -> str:
        arguments = ("--tool-args-json", json.dumps(given))
        result = ask("tools/call", "--tool-name", f"journal_{name}", *arguments)
        return str(result["content"][0]["text"])

    listed = ask("tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in listed] == ["journal_write", "journal_search", "journal_read"]
    assert "Saved." in call("write", **PLAIN)
    entry_id, facts, body = place.entry()
    facts.pop("created")
    assert facts == {
        "title": PLAIN["title"],
        "project": str(place.project),
        "repo": "example.org/me/shop",
        "agent": "inspector-cli",
        "tags": ["redis"],
    }
    assert body == PLAIN["body"]
    assert entry_id in call("search", text="licence", project=".")
    assert PLAIN["body"] in call("read", id=entry_id)
