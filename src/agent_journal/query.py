"""What is asked: a query as people give it, and its filters as engines compare them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from agent_journal.errors import InvalidDateError, InvalidFieldError
from agent_journal.model import (
    Provenance,
    fold_case,
    normalise_tags,
    project_name,
    to_milliseconds,
    to_utc,
)

LIMIT_DEFAULT = 20
LIMIT_MAX = 50

_AGE = re.compile(r"(\d{1,6})\s*([hdw])", re.IGNORECASE)
_AGE_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Project:
    """One project, whatever its entries call it: a repository in all its work trees, or a folder.

    An entry that names a remote belongs to it by that alone: other projects may have stood in the
    same folder. One that names a first commit, which changes while a project is young, belongs to
    it also by its folder, and one that names nothing by any folder in the work tree.

    Attributes:
        repo: its repository, as `Provenance.repo` names it; empty when it isn't known.
        folders: the paths under which its folder is known.
        tree: the top of its work tree.
    """

    repo: str = ""
    folders: Sequence[str] = ()
    tree: str = ""

    def __post_init__(self) -> None:
        """Put everything into the form under which filters compare."""
        set_field = object.__setattr__
        set_field(self, "repo", fold_case(self.repo))
        set_field(self, "folders", tuple(fold_path(folder) for folder in self.folders if folder))
        set_field(self, "tree", fold_path(self.tree))

    @property
    def beneath(self) -> str:
        """What a path beneath the work tree starts with; empty without one."""
        return self.tree and self.tree.rstrip("/") + "/"

    def holds(self, provenance: Provenance) -> bool:
        """Tell whether an entry belongs to it."""
        repo = fold_case(provenance.repo)
        if repo and repo == self.repo:
            return True
        if repo != project_name(repo):
            return False
        folder = fold_path(provenance.project)
        if folder in self.folders or (folder and folder == self.tree):
            return True
        return not repo and bool(self.beneath) and folder.startswith(self.beneath)


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. Empty strings, None and empty sequences filter nothing.

    Attributes:
        text: words, identifiers or a sentence; without it the newest entries come first.
        project: all of a path or a repository's name, or the last part of one, whole; or a
            `Project`. Case does not matter.
        tags: an entry must carry all of them; case does not matter.
        any_tags: an entry must carry at least one of them.
        not_tags: an entry must carry none of them.
        since: entries created at or after it: a datetime, an ISO date or time (UTC unless it says
            otherwise), or an age such as ``7d``.
        until: entries created at or before it; a date alone means the end of that day.
        limit: clamped to 1..50.
        offset: clamped to 0 and up.
    """

    text: str = ""
    project: str | Project = ""
    tags: Sequence[str] = ()
    any_tags: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    agent: str = ""
    model: str = ""
    provider: str = ""
    session: str = ""
    since: str | datetime | None = None
    until: str | datetime | None = None
    limit: int = LIMIT_DEFAULT
    offset: int = 0

    def __post_init__(self) -> None:
        """Clamp the page and let None stand for 'no filter'."""
        set_field = object.__setattr__
        for name in ("text", "agent", "model", "provider", "session"):
            set_field(self, name, (getattr(self, name) or "").strip())
        if not isinstance(self.project, Project):
            set_field(self, "project", (self.project or "").strip())
        for name in ("tags", "any_tags", "not_tags"):
            set_field(self, name, normalise_tags(getattr(self, name) or ()))
        set_field(self, "limit", min(max(self.limit, 1), LIMIT_MAX))
        set_field(self, "offset", max(self.offset, 0))


class Filters(NamedTuple):
    """A query's filters in the form that engines compare: case-folded, instants resolved.

    Attributes:
        project: is among `project_names` of the entry; or a `Project` that holds it.
        tags: all of them are among the entry's folded tags.
        any_tags: at least one is, unless it is empty.
        not_tags: none of them is.
        agent, model, provider, session: equal the entry's folded value.
        since, until: milliseconds since the epoch, both inclusive.
    """

    project: str | Project = ""
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    not_tags: tuple[str, ...] = ()
    agent: str = ""
    model: str = ""
    provider: str = ""
    session: str = ""
    since: int | None = None
    until: int | None = None

    @classmethod
    def of(cls, query: Query, now: datetime) -> Filters:
        """Resolve a query's filters at an instant.

        Raises:
            InvalidDateError: since or until is no date.
        """
        project = query.project
        return cls(
            project=project if isinstance(project, Project) else fold_path(project),
            tags=tuple(fold_case(tag) for tag in query.tags),
            any_tags=tuple(fold_case(tag) for tag in query.any_tags),
            not_tags=tuple(fold_case(tag) for tag in query.not_tags),
            agent=fold_case(query.agent),
            model=fold_case(query.model),
            provider=fold_case(query.provider),
            session=fold_case(query.session),
            since=_resolve("since", query.since, now),
            until=_resolve("until", query.until, now),
        )

    def accepts(self, entry_created: int, provenance: Provenance, tags: Iterable[str]) -> bool:
        """Tell whether an entry passes; the meaning that every engine's own filter must have."""
        if not self._takes_project_of(provenance):
            return False
        for name in ("agent", "model", "provider", "session"):
            wanted = getattr(self, name)
            if wanted and wanted != fold_case(getattr(provenance, name)):
                return False
        carried = {fold_case(tag) for tag in tags}
        if not (carried.issuperset(self.tags) and carried.isdisjoint(self.not_tags)):
            return False
        if self.any_tags and carried.isdisjoint(self.any_tags):
            return False
        if self.since is not None and entry_created < self.since:
            return False
        return self.until is None or entry_created <= self.until

    def _takes_project_of(self, provenance: Provenance) -> bool:
        if isinstance(self.project, Project):
            return self.project.holds(provenance)
        return not self.project or self.project in project_names(provenance)


def fold_path(path: str) -> str:
    """Return the form under which paths compare: as `fold_case`, without slashes at the end."""
    folded = fold_case(path)
    return folded.rstrip("/\\") or folded


def project_names(provenance: Provenance) -> tuple[str, str, str, str]:
    """Return what an entry's project may be called: its folder, its repository, their last parts.

    All are in the form under which filters compare; a last part holds no slash, so that a whole
    path never equals one.
    """
    folder, repo = fold_path(provenance.project), fold_case(provenance.repo)
    return folder, repo, project_name(folder), project_name(repo)


def _resolve(name: str, value: str | datetime | None, now: datetime) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return to_milliseconds(to_utc(value))
    text = value.strip()
    if not text:
        return None
    try:
        if age := _AGE.fullmatch(text):
            return to_milliseconds(to_utc(now - int(age[1]) * _AGE_UNITS[age[2].lower()]))
        instant = to_milliseconds(to_utc(datetime.fromisoformat(text)))
    except (ValueError, OverflowError, InvalidFieldError):
        raise InvalidDateError(name, value) from None
    if name == "until" and _DATE_ONLY.fullmatch(text):
        return instant + 86_400_000 - 1
    return instant
