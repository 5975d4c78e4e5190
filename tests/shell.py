"""The command line in tests: run in this process over a real journal, and what docs say of it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agent_journal.engines import ledgers
from agent_journal.faces.cli import edge as cli_edge
from agent_journal.faces.cli import output as cli_output

DOCS = Path(__file__).parent.parent / "docs" / "cli.md"


@dataclass(frozen=True)
class Outcome:
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The object that was printed, alone on one line."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


class Shell:
    """Runs the command line as if typed in a project's folder, with a journal of its own."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.folder = home / "journal"
        self.project = home / "shop"
        self.config = home / ".config" / "opencode" / "agent-memory.json"
        (self.project / ".git").mkdir(parents=True)
        for name in [name for name in os.environ if name.startswith(("CLAUDE", "_AGENT_JOURNAL"))]:
            monkeypatch.delenv(name)
        monkeypatch.setattr(logging.getLogger("agent_journal"), "handlers", [])
        monkeypatch.setenv("AGENT_JOURNAL_DIR", str(self.folder))
        monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
        monkeypatch.chdir(self.project)

    def __call__(
        self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str | None] | None = None
    ) -> Outcome:
        """Run one command to its end."""
        with CliRunner().isolation(stdin, env) as (out, err, _):
            cli_output.prepare_streams()
            code = cli_edge.run(arguments)
        return Outcome(code, out.getvalue().decode(), err.getvalue().decode())

    def write(self, title: str, body: str = "", *options: str) -> str:
        """Write an entry that must be accepted, and return its id."""
        outcome = self("write", title, body, *options)
        assert outcome.code == 0, outcome.err
        return outcome.out.strip()

    def entry(self, reference: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return an entry as JSON shows it."""
        return self("read", reference, "--json").json["entries"][0]

    def files(self) -> list[str]:
        """Return what lies in the journal folder beside the ledger."""
        found = self.folder.glob("*") if self.folder.exists() else []
        return sorted(path.name for path in found if path.name != ledgers.FOLDER)


def documented(heading: str) -> object:
    """Return the JSON example under a heading of docs/cli.md."""
    section = DOCS.read_text(encoding="utf-8").split(f"### {heading}\n")[1]
    return json.loads(section.split("```json\n")[1].split("```")[0])


def shape_of(value: object) -> object:
    """Reduce a value to its keys and types; lists to what their members have in common."""
    if isinstance(value, dict):
        free = {"extra", "details"}
        return {key: {} if key in free else shape_of(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape_of(value[0])] if value and isinstance(value[0], dict) else []
    return type(value)
