"""The JSON that the command line prints: shapes that scripts may rely on (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_journal.errors import JournalError
from agent_journal.jsonline import Json, plain
from agent_journal.model import (
    Entry,
    EntryId,
    Hit,
    Problem,
    Reasons,
    Relations,
    SearchPage,
    timestamp,
)

if TYPE_CHECKING:
    from pathlib import Path

    from agent_journal.config import Settings
    from agent_journal.faces.doctor.verdict import Verdict
    from agent_journal.faces.hosts.installing import Finding, Outcome
    from agent_journal.faces.hosts.table import Host
    from agent_journal.faces.models.installing import Installed
    from agent_journal.faces.models.survey import Row
    from agent_journal.journal import Status
    from agent_journal.models.catalogue import ModelDescription
    from agent_journal.redaction import Redacted
    from agent_journal.transfer.intake import Intake
    from agent_journal.transfer.jsonl import Export
    from agent_journal.upkeep import Changes


def entry_shape(entry: Entry, relations: Relations, folder: Path) -> dict[str, Json]:
    """Return a whole entry."""
    return {
        **_facts(entry, folder),
        "superseded_by": list(relations.superseded_by),
        "annotated_by": list(relations.annotated_by),
        "extra": plain(dict(entry.extra)),
        "problems": [problem_shape(problem) for problem in entry.problems],
        "body": entry.body,
    }


def written_shape(entry: Entry, folder: Path) -> dict[str, Json]:
    """Return what is told of an entry that was just written: all but its body."""
    return {
        **_facts(entry, folder),
        "masked": {**entry.screening.masked},
        "suspected": {**entry.screening.suspected},
        "notices": [problem.reason for problem in entry.problems],
    }


def page_shape(page: SearchPage, folder: Path) -> dict[str, Json]:
    """Return an answer with its hits."""
    return {
        "total": page.total,
        "offset": page.offset,
        "mode": page.mode,
        "reason": page.reason,
        "backlog": page.backlog,
        "notices": list(page.notices),
        "tags": _tag_list(page.tags),
        "hits": [_hit(hit, folder) for hit in page.hits],
    }


def tags_shape(page: SearchPage) -> dict[str, Json]:
    """Return every tag with its number of entries, most used first."""
    return {"tags": _tag_list(page.tags), "notices": list(page.notices)}


def status_shape(status: Status, settings: Settings, warnings: Iterable[str]) -> dict[str, Json]:
    """Return how a journal is doing."""
    return {
        "journal": status.location,
        "entries": status.entries,
        "tags": status.tags,
        "index": status.index_location,
        "model": status.model,
        "model_reason": status.reason,
        "backlog": status.backlog,
        "config": str(settings.config_path),
        "config_error": str(settings.error or ""),
        "enabled": settings.enabled,
        "problems": [problem_shape(problem) for problem in status.problems],
        "notices": list(status.notices),
        "warnings": list(warnings),
    }


def problem_shape(problem: Problem) -> dict[str, Json]:
    """Return a problem; its line is null when it concerns the whole file."""
    return {"path": problem.path, "line": problem.line, "reason": problem.reason}


def check_shape(problems: Iterable[Problem], adopted: Iterable[EntryId]) -> dict[str, Json]:
    """Return what a check found, and what was adopted before."""
    return {
        "adopted": list(adopted),
        "problems": [{**problem_shape(problem), "kind": problem.kind} for problem in problems],
    }


def redacted_shape(done: Redacted, folder: Path) -> dict[str, Json]:
    """Return what a redaction did."""
    return {
        "id": done.id,
        "path": str(path_of(done.id, folder)),
        "places": done.count,
        "was": done.was,
        "notices": list(done.notices),
    }


def changes_shape(changes: Changes, *, embedded: int, reason: str) -> dict[str, Json]:
    """Return what reindexing did, and why no vectors were made, if so."""
    return {
        "added": changes.added,
        "changed": changes.changed,
        "removed": changes.removed,
        "embedded": embedded,
        "reason": reason,
    }


def findings_shape(findings: Iterable[Finding], settings: Settings) -> dict[str, Json]:
    """Return how the journal stands in each host, and whether it is on."""
    return {
        "config": str(settings.config_path),
        "enabled": settings.enabled,
        "hosts": [_finding(finding) for finding in findings],
    }


def outcome_shape(outcome: Outcome) -> dict[str, Json]:
    """Return what installing or uninstalling did."""
    return {
        **_finding(outcome.finding),
        "changed": bool(outcome.done),
        "done": list(outcome.done),
        "warnings": list(outcome.warnings),
    }


def paste_shape(host: Host, command: Iterable[str], place: Path, text: str) -> dict[str, Json]:
    """Return what a person would paste or run."""
    return {
        "host": host.key,
        "name": host.name,
        "is_tested": host.is_tested,
        "place": str(place),
        "command": list(command),
        "paste": text,
    }


def intake_shape(done: Intake, *, dry_run: bool) -> dict[str, Json]:
    """Return what an import did, or would do."""
    return {
        "dry_run": dry_run,
        "read": done.read,
        "added": done.added,
        "renewed": done.renewed,
        "known": done.known,
        "redacted": done.redacted,
        "empty": done.empty,
        "refused": done.refused,
        "masked": {**done.masked},
        "suspected": {**done.suspected},
        "refusals": [problem_shape(problem) for problem in done.refusals],
        "notes": [problem_shape(problem) for problem in done.notes],
    }


def export_shape(export: Export, path: Path) -> dict[str, Json]:
    """Return what was exported, and where to."""
    return {
        "path": str(path),
        "entries": export.count,
        "damaged": export.damaged,
        "unreadable": [problem_shape(problem) for problem in export.unreadable],
    }


def verdicts_shape(verdicts: Sequence[Verdict]) -> dict[str, Json]:
    """Return what doctor says of each thing that it looked at."""
    return {
        "problems": sum(verdict.level == "problem" for verdict in verdicts),
        "notes": sum(verdict.level == "note" for verdict in verdicts),
        "verdicts": [
            {
                "subject": verdict.subject,
                "level": verdict.level,
                "message": verdict.message,
                "advice": verdict.advice,
            }
            for verdict in verdicts
        ],
    }


def models_shape(rows: Iterable[Row], settings: Settings) -> dict[str, Json]:
    """Return every model, and which one is configured."""
    return {
        "configured": settings.model,
        "models": [
            {
                "name": row.name,
                "repository": row.repository,
                "licence": row.licence,
                "size_bytes": row.size_bytes,
                "state": row.state,
                "place": str(row.place or ""),
                "is_used": row.is_used,
                "about": row.about,
            }
            for row in rows
        ],
    }


def installed_shape(done: Installed, *, is_used: bool) -> dict[str, Json]:
    """Return what installing a model did."""
    return {
        "name": done.model.key,
        "is_used": is_used,
        "files": [
            {"path": str(path), "is_new": name in done.fetched} for name, path in done.paths.items()
        ],
    }


def chosen_shape(
    settings: Settings, loaded: str, *, is_changed: bool, embedded: int | None
) -> dict[str, Json]:
    """Return which model is configured now; `embedded` is null unless vectors were asked for."""
    return {
        "configured": settings.model,
        "model": loaded,
        "config": str(settings.config_path),
        "changed": is_changed,
        "embedded": embedded,
    }


def removed_shape(
    model: ModelDescription, gone: Iterable[Path], left: Iterable[Path]
) -> dict[str, Json]:
    """Return what removing a model did."""
    return {"name": model.key, "removed": [*map(str, gone)], "left": [*map(str, left)]}


def error_shape(error: BaseException, message: str, code: int) -> dict[str, Json]:
    """Return an error: its class, its sentence, the exit code and the facts that it carries."""
    facts = vars(error) if isinstance(error, JournalError) else {}
    details = {name: plain(value) for name, value in facts.items() if not name.startswith("_")}
    return {
        "error": {
            "type": type(error).__name__,
            "message": message,
            "exit_code": code,
            "details": {**details},
        }
    }


def path_of(entry_id: EntryId, folder: Path) -> Path:
    """Return where an entry's file is."""
    return folder / f"{entry_id}.md"


def _facts(entry: Entry, folder: Path) -> dict[str, Json]:
    return {
        "id": entry.id,
        "title": entry.heading,
        "created": timestamp(entry.created),
        "tags": list(entry.tags),
        "project": entry.provenance.project,
        "repo": entry.provenance.repo,
        "model": entry.provenance.model,
        "provider": entry.provenance.provider,
        "agent": entry.provenance.agent,
        "session": entry.provenance.session,
        "supersedes": list(entry.supersedes),
        "annotates": list(entry.annotates),
        "path": str(path_of(entry.id, folder)),
    }


def _hit(hit: Hit, folder: Path) -> dict[str, Json]:
    return {
        **_facts(hit.entry, folder),
        "score": hit.score,
        "found_by": list(hit.found_by),
        "snippet": hit.snippet,
        "snippet_offset": hit.offset,
        "weak": hit.is_weak,
        "superseded_by": list(hit.superseded_by),
        "reasons": None if hit.reasons is None else _reasons(hit.reasons),
    }


def _reasons(reasons: Reasons) -> dict[str, Json]:
    return {
        "words": round(reasons.words, 3),
        "cosine": None if reasons.cosine is None else round(reasons.cosine, 3),
        "meaning": round(reasons.meaning, 2),
        "title": reasons.title,
        "exact": reasons.exact,
        "recency": round(reasons.recency, 3),
    }


def _finding(finding: Finding) -> dict[str, Json]:
    return {
        "host": finding.host.key,
        "name": finding.host.name,
        "is_tested": finding.host.is_tested,
        "state": finding.state,
        "reason": finding.reason,
        "program": finding.program,
        "place": str(finding.place),
        "command": list(finding.command),
        "version": finding.version,
    }


def _tag_list(tags: Mapping[str, int]) -> list[Json]:
    return [{"tag": tag, "entries": entries} for tag, entries in tags.items()]
