"""Who is calling: what hosts tell about themselves, made into `Provenance`; nothing is guessed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_journal.faces.framing import escape_controls
from agent_journal.model import Provenance

_LIMIT = 1000  # far beyond any path or name; entries have a limit too

CALLER_KEY = "agent-journal/caller"
"""Under which our own plugins put an object into a call's `_meta`: our fields of `Provenance`."""

_CODEX_KEY = "x-codex-turn-metadata"


def from_environment(environ: Mapping[str, str]) -> Provenance:
    """Return what the environment says: our own variables first, then the host's."""
    return joined(set_by_person(environ), set_by_host(environ))


def set_by_person(environ: Mapping[str, str]) -> Provenance:
    """Return what our own variables say: it wins over whatever else is known."""
    return Provenance(
        project=_clean(environ.get("AGENT_JOURNAL_PROJECT", "")),
        agent=_clean(environ.get("AGENT_JOURNAL_AGENT", "")),
        session=_clean(environ.get("AGENT_JOURNAL_SESSION", "")),
    )


def set_by_host(environ: Mapping[str, str]) -> Provenance:
    """Return what the host around says, which may be another one's host, in its terminal."""
    return Provenance(
        project=_clean(environ.get("CLAUDE_PROJECT_DIR", "")),
        session=_clean(environ.get("CLAUDE_CODE_SESSION_ID", "")),
    )


def from_meta(meta: Mapping[str, object]) -> Provenance:
    """Return what a call's `_meta` says, of our own plugins and of Codex; the rest is passed over.

    Args:
        meta: as it came; whatever in it isn't as expected counts as not given.
    """
    if (caller := _mapping(meta, CALLER_KEY)) is not None:
        return Provenance(**{name: _text(caller, name) for name in Provenance.__slots__})
    if (turn := _mapping(meta, _CODEX_KEY)) is not None:
        workspaces = [path for path in _mapping(turn, "workspaces") or {} if path]
        return Provenance(
            project=_clean(workspaces[0]) if len(workspaces) == 1 else "",
            model=_text(turn, "model"),
            session=_text(meta, "sessionId") or _text(turn, "session_id"),
        )
    return Provenance()


def is_from_plugin(meta: Mapping[str, object]) -> bool:
    """Tell whether one of our own plugins calls, which says all that is known of the caller."""
    return _mapping(meta, CALLER_KEY) is not None


def joined(first: Provenance, second: Provenance) -> Provenance:
    """Return the first one's values, and the second one's where the first has none."""
    return Provenance(
        **{name: getattr(first, name) or getattr(second, name) for name in Provenance.__slots__}
    )


def complete(known: Provenance, *, client: str, roots: Sequence[str], directory: str) -> Provenance:
    """Fill in what the environment doesn't say from what is known about a client.

    Args:
        known: what the environment says; it wins.
        client: the client's name: the agent, for want of a better one.
        roots: the client's root URIs: the one around the directory, else the first, is the project.
        directory: the working directory: the project without roots, unless it is ``/``, where
            hosts start servers that belong to no project.
    """
    project = known.project or _clean(_project_of(roots, directory))
    return replace(known, project=project, agent=known.agent or _clean(client))


def current_project() -> str:
    """Return the nearest folder upwards that holds ``.git``, else the working directory.

    It is empty when the working directory is gone.
    """
    here = working_directory()
    for folder in (Path(here), *Path(here).parents) if here else ():
        if os.path.lexists(folder / ".git"):
            return _clean(str(folder))
    return _clean(here)


def working_directory() -> str:
    """Return the working directory, empty when it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - a string is what is wanted
    except OSError:
        return ""


def _project_of(roots: Sequence[str], directory: str) -> str:
    paths = [path for path in map(_path, roots) if path]
    around = [path for path in paths if f"{directory}/".startswith(f"{path}/")]
    if paths:
        return max(around, key=len, default=paths[0])
    return "" if directory == "/" else directory


def _path(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    return unquote(parts.path).rstrip("/") if parts.scheme == "file" else ""


def _mapping(holder: Mapping[str, object], name: str) -> Mapping[str, object] | None:
    found = holder.get(name)
    return found if isinstance(found, Mapping) else None


def _text(holder: Mapping[str, object], name: str) -> str:
    found = holder.get(name)
    return _clean(found) if isinstance(found, str) else ""


def _clean(text: str) -> str:
    # Paths may hold bytes that are no UTF-8, which frontmatter refuses; a write must not fail.
    return escape_controls(text.strip())[:_LIMIT]
