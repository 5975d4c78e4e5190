"""Journals of private-journal-mcp: a folder for each day, in it a Markdown file for each entry.

A file is called by the local time of its writing. Its frontmatter has that instant exactly; files
of the first versions have none, but a heading with the time instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent_journal.engines.placing import reason_of
from agent_journal.engines.scanning import printable
from agent_journal.errors import ImportUnavailableError, InvalidDraftError, InvalidFieldError
from agent_journal.model import (
    TITLE_LIMIT,
    Draft,
    Problem,
    Provenance,
    Value,
    from_milliseconds,
    to_utc,
)
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

KIND = "private-journal"
"""The tag of what is imported, and the kind of its source."""

FOLDER_NAME = ".private-journal"
"""How its folders are called, in a project or in the home directory."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NAME = re.compile(r"(\d\d-\d\d-\d\d)-(\d{6})\.md", re.ASCII)
_SECTION = re.compile(r"^## +(.*\S)[ \t]*$", re.MULTILINE)
_TIME_HEADING = re.compile(r"# \d{1,2}:\d\d:\d\d\s[AP]M - .*")


def find(path: Path, origin: Provenance = UNKNOWN) -> Batch:
    """Return the entries of a journal, oldest first.

    Args:
        path: its folder, or the one that holds it under the name `FOLDER_NAME`.
        origin: where its entries come from, such as a project.

    Raises:
        ImportUnavailableError: there is no such journal, or it can't be read.
    """
    try:
        folder = path / FOLDER_NAME if (path / FOLDER_NAME).is_dir() else path
        days = sorted(each for each in folder.iterdir() if _DAY.fullmatch(each.name))
    except OSError as error:
        raise ImportUnavailableError(printable(path), reason_of(error)) from error
    if not days:
        reason = "no private journal is there: it has no folder named as a day, as 2026-01-31"
        raise ImportUnavailableError(printable(path), reason)
    listed: list[tuple[Path, Sequence[str]]] = []
    problems: list[Problem] = []
    for day in days:
        try:
            listed.append((day, document_names(day)))
        except OSError as error:
            reason = f"the folder can't be read: {reason_of(error)}"
            problems.append(Problem(printable(day), reason))
    total = len(problems) + sum(len(names) for _, names in listed)
    return Batch(_entries(listed, problems, origin), total)


def _entries(
    listed: Iterable[tuple[Path, Sequence[str]]], problems: Iterable[Problem], origin: Provenance
) -> Iterator[Found]:
    for problem in problems:
        yield Found.refused(problem.path, problem.reason)
    for day, names in listed:
        for document in documents(day, names):
            if isinstance(document, Problem):
                yield Found.refused(document.path, document.reason)
            else:
                yield _entry(day, document, origin)


def _entry(day: Path, document: Document, origin: Provenance) -> Found:
    entry, path = document.entry, printable(day / document.name)
    first, _, rest = entry.body.partition("\n")
    text = rest if _TIME_HEADING.fullmatch(first.strip()) else entry.body
    if not text.strip():
        return Found(path)
    theirs: dict[str, Value] = {"title": entry.title} if entry.title else {}
    theirs |= entry.extra
    created = _instant(theirs, day.name, document.name)
    sections = list(dict.fromkeys(_SECTION.findall(text)))
    name = f"{day.name}/{printable(document.name)}"
    ours: dict[str, Value] = {SOURCE_KEY: source_of(KIND, name, document.content)}
    if sections:
        ours["sections"] = sections
    try:
        draft = Draft(
            title=_title(", ".join(sections) or replace(entry, title="", body=text).heading),
            body=entry.body,
            tags=(KIND, *entry.tags),
            provenance=origin_of(origin, entry.provenance),
            created=created or entry.created,
            extra=extra_with(ours, theirs),
        )
    except InvalidDraftError as error:
        return Found.refused(path, str(error))
    return Found(path, draft=draft, problems=entry.problems)


def _title(about: str) -> str:
    title = " ".join(f"Private journal: {about}".split())
    return title if len(title) <= TITLE_LIMIT else f"{title[: TITLE_LIMIT - 3]}..."


def _instant(keys: dict[str, Value], day: str, name: str) -> datetime | None:
    """Return when an entry was written, exactly, and take the keys that say nothing else."""
    dated = _date(keys.get("date"))
    if isinstance(stamp := keys.get("timestamp"), int) and not isinstance(stamp, bool):
        with suppress(OverflowError):
            stamped = from_milliseconds(stamp)
            del keys["timestamp"]
            if dated == stamped:
                del keys["date"]
            return stamped
    if dated:
        del keys["date"]
        return dated
    if named := _NAME.fullmatch(name):
        with suppress(ValueError, OverflowError, OSError):
            local = datetime.strptime(f"{day} {named[1]} {named[2]}", "%Y-%m-%d %H-%M-%S %f")  # noqa: DTZ007 - it is local time
            return to_utc(local.astimezone(UTC))
    return None


def _date(value: Value) -> datetime | None:
    if isinstance(value, str):
        with suppress(ValueError, InvalidFieldError):
            return to_utc(datetime.fromisoformat(value))
    return None
