"""Memory blocks, as opencode-agent-memory 0.4 kept them: one Markdown file each, in two scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_journal.engines.placing import reason_of
from agent_journal.engines.scanning import printable
from agent_journal.errors import InvalidDraftError
from agent_journal.model import Draft, Problem, Provenance, Value, project_name
from agent_journal.transfer.batch import (
    SOURCE_KEY,
    UNKNOWN,
    Batch,
    Found,
    extra_with,
    origin_of,
    source_of,
)
from agent_journal.transfer.documents import Document, document_names, documents

KIND = "memory-block"
"""The tag of what is imported, and the kind of its source."""

PROJECT_FOLDER = Path(".opencode", "memory")
"""Where a project's blocks are, within its folder."""

_LABEL_WIDTH = 100


@dataclass(frozen=True, slots=True)
class BlockFolder:
    """A folder of memory blocks.

    Attributes:
        origin: whose blocks they are; without a project they are those of all projects.
    """

    path: Path
    origin: Provenance = UNKNOWN


def find(folders: Iterable[BlockFolder]) -> Batch:
    """Return the blocks of some folders, in the folders' order; missing folders hold none."""
    listed: list[tuple[BlockFolder, Sequence[str]]] = []
    problems: list[Problem] = []
    for folder in folders:
        try:
            listed.append((folder, document_names(folder.path)))
        except FileNotFoundError:
            continue
        except OSError as error:
            path = printable(folder.path)
            problems.append(Problem(path, f"the folder can't be read: {reason_of(error)}"))
    total = len(problems) + sum(len(names) for _, names in listed)
    return Batch(_blocks(listed, problems), total)


def _blocks(
    listed: Iterable[tuple[BlockFolder, Sequence[str]]], problems: Iterable[Problem]
) -> Iterator[Found]:
    for problem in problems:
        yield Found.refused(problem.path, problem.reason)
    for folder, names in listed:
        for document in documents(folder.path, names):
            if isinstance(document, Problem):
                yield Found.refused(document.path, document.reason)
            else:
                yield _block(folder, document)


def _block(folder: BlockFolder, document: Document) -> Found:
    entry, path = document.entry, printable(folder.path / document.name)
    if not entry.body:
        return Found(path)
    stem = Path(printable(document.name)).stem
    theirs: dict[str, Value] = {"title": entry.title} if entry.title else {}
    given_project = folder.origin.project
    if given_project and entry.provenance.project:
        theirs["project"] = entry.provenance.project
    theirs |= entry.extra
    label = stem
    if isinstance(given := theirs.get("label"), str) and given.strip():
        label = given.strip()
        del theirs["label"]
    shown = f"project {project_name(given_project)}" if given_project else "global"
    ours: dict[str, Value] = {
        SOURCE_KEY: source_of(KIND, f"{given_project or 'global'}/{stem}", document.content),
        "scope": "project" if given_project else "global",
        "label": label,
    }
    try:
        draft = Draft(
            title=f"Memory block {label[:_LABEL_WIDTH]} ({shown})",
            body=entry.body,
            tags=(KIND, *entry.tags),
            provenance=origin_of(folder.origin, entry.provenance),
            created=entry.created,
            extra=extra_with(ours, theirs),
        )
    except InvalidDraftError as error:
        return Found.refused(path, str(error))
    return Found(path, draft=draft, problems=entry.problems)
