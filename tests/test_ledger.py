"""A ledger's lines: what they say, and how every change to them shows."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.ledger import (
    ACTS,
    Statement,
    beginning,
    ends,
    hash_of,
    is_machine,
    read_chain,
    read_line,
    write_lines,
)
from agent_journal.model import EntryId

MACHINE = "0123456789abcdef" * 2
OTHER = "f" * 32
HASHES = st.integers(0, 2**256 - 1).map("{:064x}".format)
NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30
)
STATEMENTS = st.builds(
    Statement,
    act=st.sampled_from(ACTS),
    id=NAMES.map(EntryId),
    sha256=HASHES,
    over=st.lists(HASHES, max_size=3).map(tuple),
    was=HASHES | st.just(""),
    at=st.just("2026-01-31T12:00:00.000Z") | st.just(""),
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
)


def made(count: int, machine: str = MACHINE) -> list[bytes]:
    """Return the lines of a ledger of so many entries."""
    statements = [
        Statement("write", EntryId(f"20260131-120000-{number:03}"), f"{number:064x}")
        for number in range(count)
    ]
    return write_lines(statements, 0, beginning(machine))


def joined(lines: list[bytes]) -> bytes:
    """Return lines as a file holds them."""
    return b"".join(line + b"\n" for line in lines)


def faults(lines: list[bytes], machine: str = MACHINE) -> list[tuple[str, int | None]]:
    """Return what is wrong with a ledger, and where."""
    return [(one.kind, one.line) for one in read_chain(machine, joined(lines)).faults]


class TestLines:
    """A line is JSON in ASCII, and says which line it is and what came before."""

    def test_a_line_is_what_the_format_says(self) -> None:
        """The hash of the line before is of its bytes without the line end."""
        first, second = (
            json.loads(line)
            for line in write_lines(
                [
                    Statement("write", EntryId("a"), "1" * 64),
                    Statement(
                        "redact",
                        EntryId("é b"),
                        "2" * 64,
                        over=("3" * 64,),
                        was="1" * 64,
                        at="2026-01-31T12:00:00.000Z",
                        reason="a\nkey",
                    ),
                ],
                0,
                beginning(MACHINE),
            )
        )
        assert first == {
            "n": 1,
            "op": "write",
            "id": "a",
            "sha256": "1" * 64,
            "prev": hashlib.sha256(MACHINE.encode()).hexdigest(),
        }
        assert second == {
            "n": 2,
            "op": "redact",
            "id": "é b",
            "sha256": "2" * 64,
            "was": "1" * 64,
            "at": "2026-01-31T12:00:00.000Z",
            "reason": "a\nkey",
            "over": ["3" * 64],
            "prev": hashlib.sha256(json.dumps(first).encode()).hexdigest(),
        }

    @given(st.lists(STATEMENTS, max_size=8))
    def test_what_is_written_is_read(self, statements: list[Statement]) -> None:
        """Whatever ids and reasons hold, each line is one line, and the chain is whole."""
        chain = read_chain(MACHINE, joined(write_lines(statements, 0, beginning(MACHINE))))
        assert chain.faults == ()
        assert [line.statement for line in chain.lines] == statements
        assert [line.number for line in chain.lines] == list(range(1, len(statements) + 1))
        assert [line.place for line in chain.lines] == list(range(1, len(statements) + 1))

    @given(st.binary(max_size=200))
    def test_any_bytes_can_be_read(self, data: bytes) -> None:
        """A ledger comes from anywhere; reading one never fails."""
        read_chain(MACHINE, data)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["n", "op", "id", "sha256", "prev", "over", "was", "at"]),
                    inner,
                )
            ),
        )
    )
    def test_any_json_can_be_read(self, value: object) -> None:
        """Nor does JSON of another shape, however near it comes."""
        read_line(json.dumps(value).encode())

    @pytest.mark.parametrize(
        "change",
        [
            {"n": 0}, {"n": True}, {"n": "1"}, {"prev": "x"}, {"prev": None}, {"sha256": "1"},
            {"sha256": ""}, {"id": ""}, {"id": "a/b"}, {"id": "a\0b"}, {"id": "\ud800"}, {"id": 1},
            {"op": None}, {"over": "x"}, {"over": ["x"]}, {"over": [1]}, {"at": 1}, {"reason": []},
        ],
        ids=str,
    )  # fmt: skip
    def test_a_line_of_another_shape_is_none(self, change: dict[str, object]) -> None:
        """What no writer writes is told, and never becomes a path or a comparison."""
        sound = json.loads(made(1)[0])
        assert read_line(json.dumps(sound).encode())
        assert read_line(json.dumps(sound | change).encode()) is None
        assert read_line(json.dumps(sound)[:-1].encode()) is None

    def test_an_entry_that_is_gone_has_no_hash(self) -> None:
        """That is what a person says of one that was deleted for good."""
        (line,) = write_lines([Statement("gone", EntryId("a"), "")], 0, beginning(MACHINE))
        read = read_line(line)
        assert read is not None
        assert read.statement == Statement("gone", EntryId("a"), "")

    def test_machines_have_names_of_one_form(self) -> None:
        """Other files in the folder are no ledgers."""
        assert is_machine(MACHINE)
        for name in ("", "a", MACHINE.upper(), MACHINE + "0", f"{MACHINE}\n", "../x" * 8):
            assert not is_machine(name)


class TestChain:
    """Each kind of damage is told by its name and its line."""

    def test_a_whole_ledger_has_no_fault(self) -> None:
        """Empty, or of some lines."""
        assert faults([]) == []
        assert faults(made(3)) == []

    @pytest.mark.parametrize("place", range(4))
    def test_a_changed_line_is_told(self, place: int) -> None:
        """Any line but the last, which nothing in the ledger vouches for."""
        lines = made(5)
        lines[place] = lines[place].replace(b"20260131", b"20260130")
        assert faults(lines) == [("altered", place + 1)]

    @pytest.mark.parametrize("place", range(1, 4))
    def test_a_line_bound_to_another_is_told(self, place: int) -> None:
        """Changing what a line says of the one before is a change like any other."""
        lines = made(5)
        said = json.loads(lines[place]) | {"prev": "9" * 64}
        lines[place] = json.dumps(said).encode()
        assert {line for _, line in faults(lines)} == {place + 1}

    @pytest.mark.parametrize("place", range(4))
    def test_a_line_that_cannot_be_read_is_told(self, place: int) -> None:
        """A flipped bit that ruins its form is no crash: the next line was written after it."""
        lines = made(5)
        lines[place] = b"\xff" + lines[place][1:]
        assert faults(lines) == [("altered", place + 1)]

    def test_what_a_crash_left_is_no_fault(self) -> None:
        """Half a line that nothing was bound to stays where it is, at the end or in between."""
        lines = made(3)
        for cut in (1, 50, len(lines[2]) - 1):
            assert faults([*lines[:2], lines[2][:cut], lines[2]]) == []
            assert faults([*lines[:2], lines[2][:cut]]) == []
            assert faults([lines[0][:cut], *lines]) == []

    @pytest.mark.parametrize("place", range(4))
    def test_a_line_that_was_taken_out_is_told(self, place: int) -> None:
        """By its number, at the line that follows."""
        lines = made(5)
        del lines[place]
        chain = read_chain(MACHINE, joined(lines))
        assert [(one.kind, one.line) for one in chain.faults] == [("missing", place + 1)]
        assert f"line {place + 1} is gone" in chain.faults[0].reason

    def test_several_lines_that_were_taken_out_are_told_together(self) -> None:
        """With their numbers."""
        lines = made(1_500)
        (fault,) = read_chain(MACHINE, joined(lines[:2] + lines[1_100:])).faults
        assert (fault.kind, fault.line) == ("missing", 3)
        assert "lines 3 to 1,100 are gone" in fault.reason

    @pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (0, 3), (2, 4)])
    def test_lines_that_changed_places_are_told(self, one: int, other: int) -> None:
        """Whether they were neighbours or not."""
        lines = made(5)
        lines[one], lines[other] = lines[other], lines[one]
        found = faults(lines)
        assert {kind for kind, _ in found} == {"reordered"}
        assert {one + 1, other + 1} <= {line for _, line in found}

    def test_a_line_that_stands_there_twice_is_told(self) -> None:
        """A copy has a number that was there before."""
        lines = made(4)
        assert faults([*lines, lines[1]]) == [("reordered", 5)]
        assert faults([*lines[:2], lines[1], *lines[2:]]) == [("reordered", 3)]

    def test_a_ledger_under_another_name_is_told(self) -> None:
        """One machine's lines don't pass for another's."""
        assert faults(made(3), OTHER) == [("foreign", 1)]
        assert faults([*made(2), *made(2, OTHER)]) == [("reordered", 3)]

    def test_a_line_of_a_later_version_is_told_and_breaks_nothing(self) -> None:
        """Its place in the chain is known all the same."""
        lines = made(2)
        said = {"n": 3, "op": "encrypt", "prev": hash_of(lines[1]), "keys": 7}
        later = json.dumps(said).encode()
        after = write_lines([Statement("write", EntryId("z"), "0" * 64)], 3, hash_of(later))
        assert faults([*lines, later, *after]) == [("unknown", 3)]


class TestEnd:
    """Only the machine that wrote a ledger can tell that its end is gone."""

    def test_a_ledger_that_ends_as_remembered_is_whole(self) -> None:
        """So is one that others have gone on with, and one in which a line was being written."""
        lines = made(3)
        chain = read_chain(MACHINE, joined(lines))
        for known in ([hash_of(lines[2])], [hash_of(lines[1])], [hash_of(lines[2]), "0" * 64]):
            assert ends(chain, MACHINE, known) is None

    def test_a_ledger_without_its_last_lines_is_told(self) -> None:
        """One line or all of them, or the whole file."""
        lines = made(3)
        for left in range(3):
            fault = ends(read_chain(MACHINE, joined(lines[:left])), MACHINE, [hash_of(lines[2])])
            assert fault is not None
            assert (fault.kind, fault.line) == ("truncated", None)
        fault = ends(None, MACHINE, [hash_of(lines[2])])
        assert fault is not None
        assert "it is gone" in fault.reason

    def test_a_ledger_that_was_never_written_is_not_missed(self) -> None:
        """A crash may come between the machine's decision and the first line."""
        assert ends(None, MACHINE, [beginning(MACHINE), "0" * 64]) is None
        assert ends(None, MACHINE, []) is None
