"""Filters as SQL: what `Filters.accepts` means, said of the table of entries."""

from __future__ import annotations

import sqlite3

from agent_journal.engines.sqlite_tables import pack
from agent_journal.query import Filters, Project

_ALL = "1"


def condition(connection: sqlite3.Connection, filters: Filters) -> tuple[str, list[object]]:
    """Return what `entries` has to satisfy, with its parameters; means what `accepts` means."""
    clauses = [_ALL]
    parameters: list[object] = []
    if isinstance(filters.project, Project):
        clauses.append(_belonging(filters.project, parameters))
    elif filters.project:
        clauses.append("? IN (project, repo, project_name, repo_name)")
        parameters.append(pack(filters.project))
    for name in ("agent", "model", "provider", "session"):
        if wanted := getattr(filters, name):
            clauses.append(f"{name} = ?")
            parameters.append(pack(wanted))
    for bound, comparison in ((filters.since, ">="), (filters.until, "<=")):
        if bound is not None:
            clauses.append(f"created {comparison} ?")
            parameters.append(bound)
    clauses += _tagged(connection, filters, parameters)
    return " AND ".join(clauses), parameters


def _tagged(
    connection: sqlite3.Connection, filters: Filters, parameters: list[object]
) -> list[str]:
    """Return what tags have to satisfy, and add the parameters."""
    named = {"all": filters.tags, "any": filters.any_tags, "none": filters.not_tags}
    if not any(named.values()):
        return []
    connection.execute("DELETE FROM wanted_tags")
    connection.executemany(
        "INSERT OR IGNORE INTO wanted_tags VALUES (?, ?)",
        [(kind, pack(tag)) for kind, tags in named.items() for tag in tags],
    )
    clauses = []
    carriers = "SELECT entry FROM tags WHERE folded IN (SELECT folded FROM wanted_tags WHERE kind ="
    if filters.any_tags:
        clauses.append(f"key IN ({carriers} 'any'))")
    if filters.not_tags:
        clauses.append(f"key NOT IN ({carriers} 'none'))")
    if wanted_tags := len(set(filters.tags)):
        grouping = " AND is_first GROUP BY entry HAVING count(*) = ?" if wanted_tags > 1 else ""
        clauses.append(f"key IN ({carriers} 'all'){grouping})")
        parameters += [wanted_tags] if grouping else []
    return clauses


def passing(connection: sqlite3.Connection, filters: Filters) -> set[int] | None:
    """Return the keys of the entries that pass; None when all do."""
    clause, parameters = condition(connection, filters)
    if clause == _ALL:
        return None
    rows = connection.execute(f"SELECT key FROM entries WHERE {clause}", parameters)  # noqa: S608 - constants
    return {key for (key,) in rows}


def _belonging(project: Project, parameters: list[object]) -> str:
    """Return what `Project.holds` means, and add its parameters."""
    folders = [pack(folder) for folder in {*project.folders, project.tree} if folder]
    beneath = pack(project.beneath)
    parameters += [pack(project.repo), *folders, beneath, beneath, beneath[:-1] + b"0"]
    return (
        "((repo != x'' AND repo = ?)"
        f" OR (repo = repo_name AND project IN ({', '.join('?' * len(folders))}))"
        " OR (repo = x'' AND ? != x'' AND project > ? AND project < ?))"  # 0 comes after the slash
    )
