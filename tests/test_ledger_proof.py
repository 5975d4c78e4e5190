"""What ledgers say, held against files: each thing that doesn't fit is told for what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from agent_journal.ledger import (
    Chain,
    Line,
    Statement,
    beginning,
    hash_of,
    read_chain,
    write_lines,
)
from agent_journal.ledger_proof import Doubt, Files, histories, judge
from agent_journal.model import EntryId

A, B = EntryId("a"), EntryId("b c")
ONE, TWO, THREE, FOUR = (str(digit) * 64 for digit in range(1, 5))


class Ledger:
    """A machine's ledger in the making."""

    def __init__(self, machine: str) -> None:
        self._machine = machine * 32
        self._lines: list[bytes] = []

    def say(self, statement: Statement) -> str:
        """Add a line, and return its hash."""
        last = hash_of(self._lines[-1]) if self._lines else beginning(self._machine)
        self._lines += write_lines([statement], len(self._lines), last)
        return hash_of(self._lines[-1])

    def write(self, sha256: str, entry_id: EntryId = A) -> str:
        """Say that an entry was written."""
        return self.say(Statement("write", entry_id, sha256))

    @property
    def chain(self) -> Chain:
        """The ledger as it is read."""
        chain = read_chain(self._machine, b"\n".join(self._lines))
        assert chain.faults == ()
        return chain


def look(
    ledgers: Sequence[Ledger],
    hashes: Mapping[EntryId, str],
    marks: Mapping[EntryId, str] | None = None,
) -> list[Doubt]:
    """Return the doubts about some files."""
    known = marks or {}
    return judge(
        histories(ledger.chain for ledger in ledgers),
        Files(hashes, lambda entry_id: known.get(entry_id, "")),
    )


def kinds(
    ledgers: Sequence[Ledger],
    hashes: Mapping[EntryId, str],
    marks: Mapping[EntryId, str] | None = None,
) -> list[tuple[str, EntryId]]:
    """Return the doubts about some files without their sentences."""
    return [(doubt.kind, doubt.id) for doubt in look(ledgers, hashes, marks)]


@pytest.fixture
def ledger() -> Ledger:
    """A ledger without a line."""
    return Ledger("a")


def test_files_as_they_were_written_are_beyond_doubt(ledger: Ledger) -> None:
    """Of one machine and of several, and a line that was added twice after a crash."""
    other = Ledger("b")
    ledger.write(ONE)
    ledger.write(ONE)
    other.write(TWO, B)
    assert look([ledger, other], {A: ONE, B: TWO}) == []
    assert look([], {}) == []


def test_an_entry_without_a_line_is_told(ledger: Ledger) -> None:
    """With what a person may do about it."""
    ledger.write(ONE)
    (doubt,) = look([ledger], {A: ONE, B: TWO})
    assert (doubt.kind, doubt.id) == ("unledgered", B)
    assert doubt.reason.startswith("unledgered: ")
    assert "agent-journal check --adopt" in doubt.reason


def test_a_changed_file_is_told(ledger: Ledger) -> None:
    """The way out names the entry as a shell takes it."""
    ledger.write(ONE, B)
    (doubt,) = look([ledger], {B: TWO})
    assert (doubt.kind, doubt.id) == ("altered", B)
    assert "from a backup" in doubt.reason
    assert doubt.reason.endswith("check --adopt 'b c'")


def test_a_file_that_is_gone_is_told(ledger: Ledger) -> None:
    """Also when another entry of that machine is there."""
    ledger.write(ONE)
    ledger.write(TWO, B)
    assert kinds([ledger], {B: TWO}) == [("missing", A)]


def test_a_file_under_another_name_is_pointed_out(ledger: Ledger) -> None:
    """Whether the entry's own name is free now or was given to another content."""
    ledger.write(ONE)
    missing, strange = look([ledger], {B: ONE})
    assert (missing.kind, strange.kind) == ("missing", "unledgered")
    assert "its content is in 'b c.md'" in missing.reason
    altered, _ = look([ledger], {A: TWO, B: ONE})
    assert altered.kind == "altered"
    assert "its content is in 'b c.md'" in altered.reason


def test_a_file_that_cannot_be_read_is_no_doubt_of_ours(ledger: Ledger) -> None:
    """Reading tells of it; nothing is known that could be compared."""
    ledger.write(ONE)
    assert look([ledger], {A: "", B: ""}) == []


def test_two_machines_that_wrote_one_name_are_told(ledger: Ledger) -> None:
    """Merging their folders kept one of two entries; a copy of the other settles it."""
    other = Ledger("b")
    ledger.write(ONE)
    other.write(TWO)
    (doubt,) = look([ledger, other], {A: TWO})
    assert (doubt.kind, doubt.id) == ("missing", A)
    assert "another machine" in doubt.reason
    assert kinds([ledger, other], {A: TWO, B: ONE}) == [("unledgered", B)]


def test_an_entry_that_was_deleted_and_written_anew_is_told(ledger: Ledger) -> None:
    """The same machine gave the name again, but the first entry is gone."""
    ledger.write(ONE)
    ledger.write(TWO)
    assert kinds([ledger], {A: TWO}) == [("missing", A)]


class TestAdopted:
    """What a person has said settles what was said before, and nothing else."""

    def test_an_adopted_file_is_beyond_doubt(self, ledger: Ledger) -> None:
        """As if it had been written so; a change after that is told again."""
        first = ledger.write(ONE)
        ledger.say(Statement("adopt", A, TWO, over=(first,)))
        assert look([ledger], {A: TWO}) == []
        assert kinds([ledger], {A: THREE}) == [("altered", A)]
        assert kinds([ledger], {}) == [("missing", A)]

    def test_the_text_before_is_told_if_it_comes_back(self, ledger: Ledger) -> None:
        """A sync from a machine that knew nothing of it, for one."""
        first = ledger.write(ONE)
        ledger.say(Statement("adopt", A, TWO, over=(first,)))
        (doubt,) = look([ledger], {A: ONE})
        assert doubt.kind == "restored"
        assert "check --adopt a" in doubt.reason

    def test_it_may_be_taken_back(self, ledger: Ledger) -> None:
        """Hashes may return as often as a person likes; lines know their order."""
        line = ledger.write(ONE)
        for sha256 in (TWO, ONE, TWO, ONE):
            line = ledger.say(Statement("adopt", A, sha256, over=(line,)))
        assert look([ledger], {A: ONE}) == []
        assert kinds([ledger], {A: TWO}) == [("restored", A)]

    def test_an_entry_that_may_be_gone_is_not_missed(self, ledger: Ledger) -> None:
        """If it comes back, nothing vouches for it."""
        line = ledger.write(ONE)
        ledger.say(Statement("gone", A, "", over=(line,)))
        assert look([ledger], {}) == []
        assert kinds([ledger], {A: ONE}) == [("restored", A)]
        assert kinds([ledger], {A: TWO}) == [("unledgered", A)]

    def test_another_machine_may_say_so(self, ledger: Ledger) -> None:
        """Its line names the line that it puts aside."""
        other = Ledger("b")
        line = ledger.write(ONE)
        other.say(Statement("adopt", A, TWO, over=(line,)))
        assert look([ledger, other], {A: TWO}) == []

    def test_two_machines_that_adopt_apart_agree(self, ledger: Ledger) -> None:
        """Each took its own copy as it was; either file will do after a merge."""
        other = Ledger("b")
        line = ledger.write(ONE)
        ledger.say(Statement("adopt", A, TWO, over=(line,)))
        other.say(Statement("adopt", A, THREE, over=(line,)))
        for sha256 in (TWO, THREE):
            assert look([ledger, other], {A: sha256}) == []
        assert kinds([ledger, other], {A: FOUR}) == [("altered", A)]


class TestRedacted:
    """A redaction is done when its line is there."""

    def test_a_redacted_entry_is_beyond_doubt(self, ledger: Ledger) -> None:
        """The file that took its place is what is expected."""
        line = ledger.write(ONE)
        ledger.say(Statement("redact", A, TWO, over=(line,), was=ONE))
        assert look([ledger], {A: TWO}, {A: ONE}) == []

    @pytest.mark.parametrize("written", [True, False])
    def test_a_redaction_without_its_line_is_told(self, ledger: Ledger, written: bool) -> None:  # noqa: FBT001 - a parameter
        """The file bears a mark that no ledger knows, whether the entry had a line or not."""
        if written:
            ledger.write(ONE)
        (doubt,) = look([ledger], {A: TWO}, {A: ONE})
        assert doubt.kind == "unfinished"
        assert doubt.reason.endswith("run again: agent-journal redact a")

    def test_a_redacted_file_that_is_changed_is_no_unfinished_redaction(
        self, ledger: Ledger
    ) -> None:
        """Its mark is known."""
        line = ledger.write(ONE)
        ledger.say(Statement("redact", A, TWO, over=(line,), was=ONE))
        assert kinds([ledger], {A: THREE}, {A: ONE}) == [("altered", A)]

    def test_a_text_that_comes_back_is_told(self, ledger: Ledger) -> None:
        """From another machine's copy: it is to be redacted again."""
        ledger.say(Statement("redact", A, TWO, was=ONE))
        (doubt,) = look([ledger], {A: ONE})
        assert doubt.kind == "restored"
        assert doubt.reason.endswith("run again: agent-journal redact a")

    def test_two_machines_that_redact_apart_agree(self, ledger: Ledger) -> None:
        """Each tombstone has its own time and reason."""
        other = Ledger("b")
        ledger.say(Statement("redact", A, TWO, was=ONE))
        other.say(Statement("redact", A, THREE, was=ONE))
        for sha256 in (TWO, THREE):
            assert look([ledger, other], {A: sha256}, {A: ONE}) == []


def test_a_line_that_this_version_does_not_know_says_nothing() -> None:
    """The chain tells of it; here it neither helps nor harms."""
    chain = Chain("a" * 32, (Line(1, 1, ONE, TWO, None),), ())
    assert histories([chain]) == {}
