"""How answers look to a person: lines of styled text, the same on a terminal and in a pipe.

All that comes from entries passes through `framing` here, so that none can act on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent_journal.faces.cli.shapes import path_of
from agent_journal.faces.framing import counted, escape_controls, exact_line, one_line, rule
from agent_journal.jsonline import encode, plain
from agent_journal.model import (
    Entry,
    EntryId,
    Hit,
    Problem,
    Reasons,
    Relations,
    SearchPage,
    project_name,
    timestamp,
)
from agent_journal.secrets.telling import sentences

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from agent_journal.config import Settings
    from agent_journal.faces.doctor.verdict import Verdict
    from agent_journal.faces.hosts.installing import Finding, Outcome
    from agent_journal.faces.models.installing import Installed
    from agent_journal.faces.models.survey import Row
    from agent_journal.journal import Status
    from agent_journal.models.catalogue import ModelDescription
    from agent_journal.redaction import Redacted
    from agent_journal.transfer.intake import Intake
    from agent_journal.transfer.jsonl import Export
    from agent_journal.upkeep import Changes

TITLE_WIDTH = 300
SNIPPET_WIDTH = 320
TAG_WIDTH = 60
VALUE_WIDTH = 2_000
_SCORE_WIDTH = 6
_HOST_WIDTH = 16
_STATE_STYLES = {
    "installed": "green",
    "out of date": "yellow",
    "not ours": "yellow",
    "unknown": "red",
}
_LEVEL_WIDTH = 9
_SUBJECT_WIDTH = 15
_LEVEL_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}

Segment = tuple[str, str]
"""A text and its style, such as ``bold`` or ``dim``; no style is the empty string."""


class Line(NamedTuple):
    """One line of output, wrapped on a terminal.

    Attributes:
        indent: blanks before it, also where it is wrapped.
        hang: more blanks where it is wrapped.
        verbatim: printed as it is, unwrapped and unstyled; it may hold newlines.
    """

    segments: tuple[Segment, ...] = ()
    indent: int = 0
    hang: int = 0
    verbatim: bool = False

    @property
    def text(self) -> str:
        """The line without styles."""
        return " " * self.indent + "".join(text for text, _ in self.segments)


def page_lines(
    page: SearchPage,
    wanted: frozenset[str],
    *,
    is_ranked: bool = True,
    is_explained: bool = False,
) -> Iterator[Line]:
    """Lay out an answer: how it was found, then its hits.

    Args:
        page: the answer.
        wanted: the query's lexical terms, to be marked in snippets.
        is_ranked: there was a text to compare entries with.
        is_explained: say of each hit what its score is made of.
    """
    heading = _heading(page, is_ranked=is_ranked)
    yield _line((heading, "bold" if page.hits else "yellow"))
    if page.backlog:
        count = counted(page.backlog, "entry has", "entries have")
        yield _line((f"{count} no vector yet: found by words only; reindex makes them now", "dim"))
    for notice in page.notices:
        if one_line(notice) not in heading:
            yield _line((f"note: {one_line(notice)}", "yellow"))
    if page.hits and all(hit.is_weak for hit in page.hits):
        yield _line(("all weak: perhaps no entry answers this", "yellow"))
    for hit in page.hits:
        yield Line()
        yield from _hit_lines(hit, wanted)
        if is_explained and hit.reasons is not None:
            yield Line(((_because(hit.reasons), "dim"),), _SCORE_WIDTH)


def entries_lines(entries: Sequence[tuple[Entry, Relations]], folder: Path) -> Iterator[Line]:
    """Lay out whole entries, between them a rule that none of them can imitate."""
    border = rule(entry.body for entry, _ in entries)
    for number, (entry, relations) in enumerate(entries):
        if number:
            yield from (Line(), _line((border, "dim")), Line())
        yield from entry_lines(entry, relations, folder)


def entry_lines(entry: Entry, relations: Relations, folder: Path) -> Iterator[Line]:
    """Lay out a whole entry: its metadata, a blank line, its body."""
    origin = entry.provenance
    facts = {
        "id": entry.id,
        "title": entry.heading,
        "created": timestamp(entry.created),
        "tags": ", ".join(entry.tags),
        "project": origin.project,
        "repo": origin.repo,
        "model": origin.model,
        "provider": origin.provider,
        "agent": origin.agent,
        "session": origin.session,
        "supersedes": _ids(relations.supersedes),
        "annotates": _ids(relations.annotates),
        "superseded by": _ids(relations.superseded_by),
        "annotated by": _ids(relations.annotated_by),
        "path": str(path_of(entry.id, folder)),
    }
    for name, value in facts.items():
        if value:
            yield _fact(name, value)
    for name, extra in entry.extra.items():
        shown = extra if isinstance(extra, str) else encode(plain(extra))
        label = one_line(name, TAG_WIDTH)
        yield _fact(f"extra {label}" if label in {*facts, "problem"} else label, shown)
    for problem in entry.problems:
        yield _line(("problem: ", "yellow"), (_problem(problem), ""))
    yield Line()
    if entry.body:
        yield Line(((escape_controls(entry.body), ""),), verbatim=True)


def tag_lines(tags: Mapping[str, int]) -> Iterator[Line]:
    """Lay out tags with their numbers of entries, as ``uniq -c`` does."""
    for tag, entries in tags.items():
        yield _line((f"{entries:>7} ", "dim"), (one_line(tag), "green"))


def problem_lines(problems: Iterable[Problem]) -> Iterator[Line]:
    """Lay out problems as ``path:line: reason``, each on one line."""
    for problem in problems:
        yield Line(((_problem(problem), ""),), verbatim=True)


def status_lines(status: Status, settings: Settings, warnings: Iterable[str]) -> Iterator[Line]:
    """Lay out how a journal is doing."""
    yield _fact("journal", status.location)
    yield _fact("entries", f"{status.entries:,}")
    yield _fact("tags", f"{status.tags:,}")
    yield _fact("index", status.index_location)
    yield _fact("model", status.model or f"none: {status.reason}")
    if status.backlog is not None:
        of = counted(status.entries, "entry", "entries")
        yield _fact("backlog", f"{status.backlog:,} of {of} without a vector of this model")
    yield _fact("config", str(settings.config_path))
    if settings.error:
        yield _line(("config error: ", "yellow"), (one_line(str(settings.error)), ""))
    off = "the config can't be read" if settings.error else "journal.enabled is not true"
    yield _fact("agent tools", "enabled" if settings.enabled else f"disabled ({off})")
    yield _fact("problems", f"{len(status.problems):,}" + (" (see check)" * bool(status.problems)))
    for notice in status.notices:
        yield _line(("note: ", "yellow"), (one_line(notice), ""))
    for number, warning in enumerate(warnings):
        if not number:
            yield _line(("latest warnings:", "dim"))
        yield Line(((one_line(warning), ""),), indent=2)


def redacted_lines(done: Redacted) -> Iterator[Line]:
    """Lay out what a redaction did."""
    if done.count:
        places = f" in {done.count:,} places" if done.count > 1 else ""
        yield _line((f"{one_line(done.id)} is redacted{places}", "bold"))
    else:
        yield _line((f"{one_line(done.id)} was redacted before; what was made of it is gone", ""))


def changes_lines(changes: Changes, *, embedded: int, reason: str) -> Iterator[Line]:
    """Lay out what reindexing did."""
    yield _line((f"{counted(changes.added, 'entry', 'entries')} indexed", "bold"))
    if changes.removed:
        yield _line((f"{counted(changes.removed, 'entry', 'entries')} forgotten", ""))
    if reason:
        yield _line((f"no vectors were made: {one_line(reason)}", "yellow"))
    else:
        yield _line((f"{counted(embedded, 'entry', 'entries')} given vectors", ""))


def finding_lines(findings: Iterable[Finding]) -> Iterator[Line]:
    """Lay out how the journal stands in each host; those that aren't there come last, in a line."""
    missing = []
    for finding in findings:
        if finding.state == "not found":
            missing.append(finding.host.key)
            continue
        style = _STATE_STYLES.get(finding.state, "")
        yield _line((f"{finding.host.key:<{_HOST_WIDTH}}", "bold"), (finding.state, style))
        for fact in _facts_of(finding):
            yield Line(((one_line(fact, VALUE_WIDTH), "dim"),), indent=2, hang=2)
    if missing:
        yield _line((f"not found: {', '.join(missing)}", "dim"))


def outcome_lines(outcome: Outcome) -> Iterator[Line]:
    """Lay out what installing or uninstalling did."""
    host = outcome.finding.host
    for sentence in outcome.done:
        yield Line(((one_line(sentence, VALUE_WIDTH), ""),), hang=2)
    if outcome.done:
        yield _line((f"restart {host.name}, which reads this only when it starts", "bold"))
    elif outcome.finding.command:
        yield _line((f"nothing changed: {host.name} has the journal, and it is on", ""))
    else:
        yield _line((f"nothing changed: {host.name} hasn't got the journal", ""))


def intake_lines(done: Intake, *, dry_run: bool) -> Iterator[Line]:
    """Lay out what an import did, or would do; what was refused comes first."""
    for problem in done.refusals:
        yield Line(((f"{_problem(problem)} (not imported)", ""),), verbatim=True)
    for problem in done.notes:
        yield Line(((f"{_problem(problem)} (imported all the same)", ""),), verbatim=True)
    if not done.read:
        yield _line(("nothing to import", "yellow"))
        return
    renewed = f", {done.renewed:,} of them anew since they have changed" if done.renewed else ""
    parts = [f"{done.added:,} {'would be ' * dry_run}added{renewed}"]
    others = (
        *((done.known, "there already"), (done.redacted, "redacted here, and left so")),
        *((done.empty, "empty"), (done.refused, "refused")),
    )
    parts += [f"{number:,} {what}" for number, what in others if number]
    yield _line((f"{done.read:,} read: {', '.join(parts)}", "bold"))
    for sentence in sentences(done.screening):
        yield _line((sentence, "yellow"))


def export_lines(export: Export, path: Path) -> Iterator[Line]:
    """Lay out how much was exported, and where to."""
    exported = counted(export.count, "entry", "entries")
    yield _line((f"{exported} exported to {one_line(str(path), VALUE_WIDTH)}", ""))


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[Line]:
    """Lay out what doctor says of some things, and what to do about them."""
    for verdict in verdicts:
        level = (f"{verdict.level:<{_LEVEL_WIDTH}}", _LEVEL_STYLES[verdict.level])
        subject = (f"{one_line(verdict.subject, _SUBJECT_WIDTH):<{_SUBJECT_WIDTH}} ", "bold")
        message = (one_line(verdict.message, VALUE_WIDTH), "")
        yield Line((level, subject, message), hang=_LEVEL_WIDTH + _SUBJECT_WIDTH + 1)
        if verdict.advice:
            indent = _LEVEL_WIDTH + _SUBJECT_WIDTH + 1
            yield Line(((f"-> {one_line(verdict.advice, VALUE_WIDTH)}", "cyan"),), indent, hang=3)


def summary_lines(verdicts: Sequence[Verdict]) -> Iterator[Line]:
    """Lay out how many problems and notes there were."""
    problems = sum(verdict.level == "problem" for verdict in verdicts)
    notes = sum(verdict.level == "note" for verdict in verdicts)
    told = counted(problems, "problem", "problems") if problems else "no problems"
    yield Line()
    more = f", {counted(notes, 'note', 'notes')}" if notes else ""
    yield _line((f"{told}{more}", "bold red" if problems else "bold green"))


def model_lines(rows: Iterable[Row]) -> Iterator[Line]:
    """Lay out models, the one in use marked, each with what is to be known of it."""
    for row in rows:
        style = {"not installed": "dim", "incomplete": "yellow"}.get(row.state, "green")
        mark = ("* " if row.is_used else "  ", "bold")
        name = (f"{one_line(row.name, VALUE_WIDTH)}  ", "bold" if row.is_used else "")
        yield Line((mark, name, (row.state, style)), hang=4)
        size = "" if row.size_bytes is None else f"{row.size_bytes / 1e6:,.0f} MB"
        place = one_line(str(row.place), VALUE_WIDTH) if row.place else ""
        facts = "; ".join(filter(None, (row.licence, size, row.about, place)))
        yield Line(((facts, "dim"),), indent=4, hang=2)


def installed_lines(done: Installed, *, is_used: bool) -> Iterator[Line]:
    """Lay out what installing a model did."""
    key = done.model.key
    for name, path in done.paths.items():
        what = "fetched" if name in done.fetched else "there already"
        yield Line(((f"{what}: {one_line(str(path), VALUE_WIDTH)}", "dim"),), hang=2)
    then = "it is used from now on" if is_used else f"use it with: agent-journal model use {key}"
    yield _line((f"{key} is installed; {then}", "bold"))


def chosen_lines(
    settings: Settings, loaded: str, *, is_changed: bool, embedded: int | None
) -> Iterator[Line]:
    """Lay out which model is used now."""
    name = one_line(settings.model, VALUE_WIDTH)
    what = f"{name} ({one_line(loaded, VALUE_WIDTH)})" if loaded else "none: words alone count"
    done = "is used from now on" if is_changed else "was configured before"
    yield _line((f"{what} {done}" if loaded else what, "bold"))
    if embedded is not None:
        yield _line((f"{counted(embedded, 'entry', 'entries')} given vectors", ""))


def removed_lines(
    model: ModelDescription, gone: Sequence[Path], left: Iterable[Path]
) -> Iterator[Line]:
    """Lay out what removing a model did."""
    for path in gone:
        yield Line(((f"removed: {one_line(str(path), VALUE_WIDTH)}", ""),), hang=2)
    for path in left:
        yield Line(((f"others' file, left alone: {one_line(str(path), VALUE_WIDTH)}", ""),), hang=2)
    if not gone:
        yield _line((f"nothing of {model.key} was installed by agent-journal", "yellow"))


def marked(text: str, wanted: frozenset[str]) -> list[Segment]:
    """Return a text as segments, wanted terms being marked with the words that hold them."""
    if not wanted:
        return [(text, "")]
    from agent_journal import words  # noqa: PLC0415 - not needed for --help

    segments: list[Segment] = []
    end = 0
    for start, stop in words.occurrences(text, wanted):
        segments += [(text[end:start], ""), (text[start:stop], "bold yellow")]
        end = stop
    return [segment for segment in [*segments, (text[end:], "")] if segment[0]]


def _facts_of(finding: Finding) -> Iterator[str]:
    if finding.reason:
        yield finding.reason
    elif finding.command:
        yield str(finding.place)
    if finding.command:
        yield f"starts {' '.join(finding.command)}"


def _heading(page: SearchPage, *, is_ranked: bool) -> str:
    how = (
        ": ".join(filter(None, (page.mode, one_line(page.reason)))) if is_ranked else "newest first"
    )
    if not page.total:
        return f"nothing found ({how})" if is_ranked else "nothing found"
    total = counted(page.total, "entry", "entries")
    if not page.hits:
        return f"nothing at offset {page.offset:,}: {total} in all ({how})"
    if len(page.hits) == page.total:
        return f"{total} ({how})"
    first = page.offset + 1
    return f"{first:,}-{first + len(page.hits) - 1:,} of {total} ({how})"


def _hit_lines(hit: Hit, wanted: frozenset[str]) -> Iterator[Line]:
    entry = hit.entry
    title = (one_line(entry.heading, TITLE_WIDTH), "bold")
    score = [] if hit.score is None else [(f"{hit.score:.2f}  ", "magenta")]
    indent = _SCORE_WIDTH if score else 2
    yield Line((*score, title), hang=indent)
    facts: list[Segment] = [(exact_line(entry.id), "cyan"), (f"  {_moment(entry.created)}", "dim")]
    if entry.provenance.project:
        facts.append((f"  {one_line(project_name(entry.provenance.project), TAG_WIDTH)}", "blue"))
    facts += [(f"  #{one_line(tag, TAG_WIDTH)}", "green") for tag in entry.tags]
    facts += [("  weak", "yellow")] if hit.is_weak else []
    if hit.superseded_by:
        facts.append((f"  superseded by {_ids(hit.superseded_by)}", "yellow"))
    yield Line(tuple(facts), indent)
    snippet = one_line(hit.snippet, SNIPPET_WIDTH)
    if snippet:
        yield Line(tuple(marked(snippet, wanted)), indent)


def _because(reasons: Reasons) -> str:
    """Say what a score is made of, as docs/search.md explains it."""
    found = [f"{min(reasons.words, 1):.0%} of the words"]
    if reasons.cosine is not None:
        found.append(f"cosine {reasons.cosine:.2f} ({reasons.meaning:.1f} deviations up)")
    found += ["exact name or quote"] if reasons.exact else []
    found += ["title"] if reasons.title else []
    recency = f"{reasons.recency:.2f}"
    found += [f"recency +{recency}"] if recency != "0.00" else []
    return ", ".join(found)


def _ids(ids: Iterable[EntryId]) -> str:
    return ", ".join(map(exact_line, ids))


def _moment(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"


def _fact(name: str, value: str) -> Line:
    return _line((f"{name}: ", "dim"), (one_line(value, VALUE_WIDTH), ""))


def _problem(problem: Problem) -> str:
    return one_line(str(problem))


def _line(*segments: Segment) -> Line:
    return Line(segments)
