"""What was found elsewhere becomes entries, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from agent_journal.engines.instants import render_checked
from agent_journal.errors import InvalidDraftError, WriteFailedError
from agent_journal.model import Draft, Entry, EntryId, Problem, Screening
from agent_journal.ports import Progress
from agent_journal.secrets.policy import Policy
from agent_journal.secrets.screening import screen
from agent_journal.secrets.telling import sentences
from agent_journal.transfer.batch import Batch, Found
from agent_journal.transfer.known import Known

PROBLEM_LIMIT = 1_000
"""Problems of each kind that are kept; beyond that they are only counted."""


@dataclass(slots=True)
class Intake:
    """What an import did, or would do.

    Attributes:
        read: things that were found.
        added: those that became entries.
        renewed: those of them whose source had been imported before, with another content.
        known: those that had become entries before.
        redacted: those that had, and were redacted since; they stay so.
        empty: those that held nothing.
        refused: those that can't become entries.
        refusals: why, in their order; at most `PROBLEM_LIMIT`.
        notes: what of the added ones could not be read as it stands, or was masked in them; at most
            `PROBLEM_LIMIT`.
        masked: how many secrets of each kind were masked in the added ones.
        suspected: what may be secret in them and was left as it is.
    """

    read: int = 0
    added: int = 0
    renewed: int = 0
    known: int = 0
    redacted: int = 0
    empty: int = 0
    refused: int = 0
    refusals: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    suspected: Counter[str] = field(default_factory=Counter)

    @property
    def screening(self) -> Screening:
        """What was found in all that was added."""
        return Screening(self.masked, self.suspected)


def take_in(
    write: Callable[[Draft], Entry],
    batch: Batch,
    known: Known,
    *,
    secrets: Policy = "mask",
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Intake:
    """Write what was found and isn't there yet, one entry each, durable as it is counted.

    What supersedes or annotates something that was found before it, and has got another id here,
    does so under that id. What can't become an entry is named and passed over. A second call with
    the same batch adds nothing, whether the first one came to its end or not.

    Args:
        write: stores a draft, as `Journal.write` does.
        batch: what was found.
        known: what is there already; what is added is added to it.
        secrets: what happens to what holds secrets; `write` must do the same.
        dry_run: write nothing, and count as if it had been written.
        progress: told of (done, total); never when the total isn't known.

    Raises:
        WriteFailedError: an entry could not be made durable. A note says what was added until then.
    """
    done = Intake()
    ids: dict[str, EntryId] = {}
    for found in batch.found:
        done.read += 1
        try:
            entry_id = _take(write, found, ids, known, done, secrets=secrets, dry_run=dry_run)
        except WriteFailedError as error:
            error.add_note(f"{done.added} were imported before; the same call imports the rest")
            raise
        if entry_id and found.id and entry_id != found.id:
            ids[found.id] = entry_id
        if progress and batch.total:
            progress(min(done.read, batch.total), batch.total)
    return done


def _take(
    write: Callable[[Draft], Entry],
    found: Found,
    ids: Mapping[str, EntryId],
    known: Known,
    done: Intake,
    *,
    secrets: Policy,
    dry_run: bool,
) -> EntryId | None:
    """Return the id of the entry that it has become, now or before; None when it became none."""
    draft = found.draft
    if draft is None:
        if found.problems:
            _refuse(done, found.problems)
        else:
            done.empty += 1
        return None
    if there := _there(known, draft, found.id, done):
        return there
    try:
        draft, screening = screen(draft, secrets)
        if there := _there(known, draft, found.id, done):  # with its secrets masked
            return there
        is_another = known.holds_another(draft)
        draft = _redirected(draft, ids)
        if dry_run:
            entry_id = known.pretend(draft, _would_be_created(draft))
        else:
            entry = write(draft)
            known.add(entry)
            entry_id = entry.id
    except InvalidDraftError as error:  # too large, for one, or with secrets that are refused
        _refuse(done, [Problem(found.path, str(error), found.line)])
        return None
    done.added += 1
    done.renewed += is_another
    notes = [*found.problems]
    if screening.masked:
        notes.append(Problem(found.path, sentences(screening)[0], found.line))
    done.notes += notes[: PROBLEM_LIMIT - len(done.notes)]
    done.masked.update(screening.masked)
    done.suspected.update(screening.suspected)
    return entry_id


def _there(known: Known, draft: Draft, said_id: str, done: Intake) -> EntryId | None:
    """Return the id of the entry that it has become before, and count that."""
    if there := known.id_of(draft):
        done.known += 1
    elif there := known.redacted(draft, said_id):
        done.redacted += 1
    return there


def _redirected(draft: Draft, ids: Mapping[str, EntryId]) -> Draft:
    """Return a draft that refers to others by the ids that they have got here."""
    if ids.keys().isdisjoint((*draft.supersedes, *draft.annotates)):
        return draft
    return replace(
        draft,
        supersedes=[ids.get(one, one) for one in draft.supersedes],
        annotates=[ids.get(one, one) for one in draft.annotates],
    )


def _refuse(done: Intake, problems: Sequence[Problem]) -> None:
    done.refused += 1
    done.refusals += problems[: PROBLEM_LIMIT - len(done.refusals)]


def _would_be_created(draft: Draft) -> datetime:
    """Return the instant that a draft asks for, refusing what a store would refuse.

    Raises:
        InvalidDraftError: no store would take it.
    """
    created = draft.created or datetime.now(UTC)
    render_checked(created, draft)
    return created
