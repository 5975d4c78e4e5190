"""What the proof of every host has in common: installing into it, and reading what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOUND_S = 60.0
PLAIN = {"title": "Redis pins to 7.2", "body": "7.4 changed its licence.", "tags": "redis"}


@dataclass(frozen=True, slots=True)
class Desk:
    """A person's home with a project, and one host's programs on PATH.

    Attributes:
        home: the home directory.
        project: the project's folder, in which hosts are started.
        programs: the folder of the hosts' commands.
    """

    home: Path
    project: Path
    programs: Path

    def run(
        self,
        words: Sequence[str | Path],
        *,
        typed: str = "",
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> str:
        """Run a program to its successful end, in the project unless a folder is given.

        Returns:
            What it printed.
        """
        folder = folder or self.project
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            words,
            input=typed,
            cwd=folder,
            env={**os.environ, **(environ or {}), "PATH": path, "PWD": str(folder)},
            capture_output=True,
            encoding="utf-8",
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def journal(self, *arguments: str) -> str:
        """Run our command line as a person does."""
        return self.run([sys.executable, "-m", "agent_journal", *arguments])

    def install(self, host: str) -> dict[str, Any]:
        """Install into a host, and return what was told of it."""
        told: dict[str, Any] = json.loads(self.journal("install", host, "--json"))
        return told

    def state(self, host: str) -> str:
        """Return how the journal stands in a host."""
        found = json.loads(self.journal("hosts", "--json"))["hosts"]
        return next(str(each["state"]) for each in found if each["host"] == host)

    def entry(self) -> tuple[str, dict[str, object], str]:
        """Return the journal's only entry as its file has it: id, frontmatter and body.

        It is read as another program would, without ours.
        """
        (path,) = (self.home / ".config" / "opencode" / "journal").glob("*.md")
        _, frontmatter, body = path.read_text(encoding="utf-8").split("---\n", 2)
        lines = (line.split(": ", 1) for line in frontmatter.splitlines())
        return path.stem, {key: json.loads(value) for key, value in lines}, body.strip()


def desk(home: Path, programs: Path) -> Desk:
    """Return a desk whose project is a repository with a remote."""
    project = home / "shop"
    project.mkdir()
    for words in (["init", "--quiet"], ["remote", "add", "origin", "git@example.org:me/shop.git"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    return Desk(home, project.resolve(), programs)
