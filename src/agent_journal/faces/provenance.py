"""Who is calling: what hosts tell about themselves, made into `Provenance`; nothing is guessed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from agent_journal.errors import InvalidFieldError
from agent_journal.faces.framing import escape_controls
from agent_journal.faces.repository import identity, work_tree
from agent_journal.model import Provenance
from agent_journal.query import Project

CALLER_KEY = "agent-journal/caller"
"""Under which our own plugins put an object into a call's `_meta`: fields of `Provenance`."""

HERE = (".", "./")
"""What stands for the caller's own project."""

_LIMIT = 1000  # far beyond any path or name; entries have a limit too
_CODEX_KEY = "x-codex-turn-metadata"
_NOT_CLAUDE = {"codex-mcp-client", "opencode"}  # hosts that may run in Claude Code's terminal
_SAID = ("project", "model", "provider", "agent", "session")


def told(
    environ: Mapping[str, str], meta: Mapping[str, object] | None = None, client: str = ""
) -> Provenance:
    """Return what is said about a caller, without looking around.

    Our own variables come first, since a person has set them, then the call itself, then the
    client, then the environment that a host gives to what it starts. The latter may be that of a
    host around the host, so that it counts only where a call says nothing.

    Args:
        environ: usually ``os.environ``.
        meta: a call's `_meta`.
        client: the client's name, which stands for the agent for want of a better one.
    """
    meta = meta or {}
    said = from_meta(meta)
    if not is_from_plugin(meta):
        is_silent = said == Provenance() and client not in _NOT_CLAUDE
        said = _joined(said, Provenance(agent=_clean(client)))
        said = _joined(said, _claude_code(environ) if is_silent else Provenance())
    person = Provenance(
        project=_clean(environ.get("AGENT_JOURNAL_PROJECT", "")),
        model=_clean(environ.get("AGENT_JOURNAL_LLM", "")),
        provider=_clean(environ.get("AGENT_JOURNAL_PROVIDER", "")),
        agent=_clean(environ.get("AGENT_JOURNAL_AGENT", "")),
        session=_clean(environ.get("AGENT_JOURNAL_SESSION", "")),
    )
    return _joined(person, said)


def from_meta(meta: Mapping[str, object]) -> Provenance:
    """Return what a call's `_meta` says, of our own plugins and of Codex; the rest is passed over.

    Args:
        meta: as it came; whatever in it isn't as expected counts as not given.
    """
    if (caller := _mapping(meta, CALLER_KEY)) is not None:
        return Provenance(**{name: _text(caller, name) for name in _SAID})
    if (turn := _mapping(meta, _CODEX_KEY)) is not None:
        workspaces = [path for path in _mapping(turn, "workspaces") or {} if path]
        return Provenance(
            project=_clean(workspaces[0]) if len(workspaces) == 1 else "",
            model=_text(turn, "model"),
            agent="codex",
            session=_text(meta, "sessionId") or _text(turn, "session_id"),
        )
    return Provenance()


def is_from_plugin(meta: Mapping[str, object]) -> bool:
    """Tell whether one of our own plugins calls, which says all that is known of the caller."""
    return _mapping(meta, CALLER_KEY) is not None


def complete(known: Provenance, *, roots: Sequence[str] = (), directory: str = "") -> Provenance:
    """Add the project, where nothing names it, and its repository; this may take a second.

    Args:
        known: what `told` says; a project that it names stays as it is.
        roots: the client's root URIs: the one around the directory, else the first, is the project.
        directory: the working directory. The work tree around it, else itself, is the project
            without roots; unless it is ``/``, where hosts start servers that belong to none.
    """
    project = known.project or _root(roots, directory) or work_tree(directory) or directory
    if project == "/" and not known.project:
        project = ""
    return replace(
        known,
        project=known.project or _clean(project),
        repo=known.repo or identity(project),
    )


def own_project(caller: Provenance) -> Project:
    """Return the project that a caller's entries belong to, whatever they call it."""
    folder = caller.project
    tree = work_tree(folder)
    real = os.path.realpath(folder) if tree or folder[:1] == "/" else ""
    return Project(repo=caller.repo, folders=(folder, real), tree=tree)


def asked_project(project: str, caller: Callable[[], Provenance]) -> str | Project:
    """Return which project a search means; `HERE` is the caller's own.

    Args:
        project: as it was given.
        caller: tells who calls; asked only if that matters.

    Raises:
        InvalidFieldError: it is the caller's own, and nothing tells which one that is.
    """
    if project.strip() not in HERE:
        return project
    own = own_project(caller())
    if own == Project():
        message = "project is '.', but nothing tells which one that is; give its path or its name"
        raise InvalidFieldError("project", message)
    return own


def working_directory() -> str:
    """Return the working directory, empty when it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - a string is what is wanted
    except OSError:
        return ""


def _claude_code(environ: Mapping[str, str]) -> Provenance:
    session = _clean(environ.get("CLAUDE_CODE_SESSION_ID", ""))
    return Provenance(
        project=_clean(environ.get("CLAUDE_PROJECT_DIR", "")),
        agent="claude-code" if session or environ.get("CLAUDECODE") else "",
        session=session,
    )


def _joined(first: Provenance, second: Provenance) -> Provenance:
    return Provenance(
        **{name: getattr(first, name) or getattr(second, name) for name in Provenance.__slots__}
    )


def _root(roots: Sequence[str], directory: str) -> str:
    paths = [path for path in map(_path, roots) if path]
    around = [path for path in paths if f"{directory}/".startswith(f"{path}/")]
    return max(around, key=len, default=paths[0] if paths else "")


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
