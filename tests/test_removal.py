"""What takes an entry's place: the text is gone from every part of it, and all else is there."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.drafts import DRAFTS

from agent_journal import entryfile
from agent_journal.errors import RedactionRefusedError
from agent_journal.ledger import hash_of
from agent_journal.model import Draft, Entry, EntryId, Provenance, Value
from agent_journal.redaction import MARKER, REASON_LIMIT, Redaction
from agent_journal.removal import KEY, is_body_kept, is_tombstone, mark_of, reason_in, redact

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=UTC)
LATER = datetime(2026, 2, 1, 9, 30, tzinfo=UTC)
NAME = EntryId("20260131-120000-007")
WAS = "1" * 64
GOLDEN = sorted((Path(__file__).parent / "golden" / "entries").glob("*.md"))


def parse(data: bytes) -> Entry:
    """Return the entry of a file."""
    return entryfile.parse(data, entry_id=NAME, path="x.md", mtime=0.0)


def remove(data: bytes, text: str = "", reason: str = "no reason") -> tuple[bytes, int]:
    """Redact a file."""
    return redact(parse(data), data, Redaction(reason, text), was=WAS, at=LATER)


def file_of(body: str = "Body", title: str = "Title", **given: Any) -> bytes:  # noqa: ANN401 - a draft's
    """Return the file of an entry."""
    return entryfile.render(NOON, Draft(title, body, **given))


class TestAsking:
    """What can't be meant is refused, in one sentence."""

    @pytest.mark.parametrize(
        ("reason", "text", "field", "message"),
        [
            ("", "", "reason", "reason is empty"),
            (" \n", "x", "reason", "reason is empty"),
            ("x" * (REASON_LIMIT + 1), "", "reason", "301 characters, the limit is 300"),
            ("a\0b", "", "reason", "NUL"),
            ("why", " \n ", "text", "text is blank"),
            ("why", "redact", "text", "a part of [redacted]"),
            ("why", "[redacted]", "text", "a part of [redacted]"),
            ("why", "] [", "text", "a part of [redacted]"),
            ("why", "d][", "text", "a part of [redacted]"),
            ("the key  hunter2", "key hunter2", "reason", "the very text"),
        ],
    )
    def test_rules_are_told(self, reason: str, text: str, field: str, message: str) -> None:
        """By the field that breaks one; what is to be removed is not repeated."""
        with pytest.raises(RedactionRefusedError) as caught:
            Redaction(reason, text)
        assert caught.value.field == field
        assert message in str(caught.value)
        assert "hunter2" not in str(caught.value)

    def test_a_reason_is_one_line(self) -> None:
        """As a title is."""
        assert Redaction(" names\n a  customer ").reason == "names a customer"

    def test_a_text_that_is_not_there_is_told(self) -> None:
        """Unless an earlier redaction isn't done: then all may be done, but for traces."""
        data = file_of(body="some text")
        with pytest.raises(RedactionRefusedError, match="doesn't stand in entry") as caught:
            remove(data, "hunter2")
        assert "hunter2" not in str(caught.value)
        redacted, _ = remove(data, "text")
        for gone in ("text", "hunter2"):
            with pytest.raises(RedactionRefusedError, match="doesn't stand in entry"):
                remove(redacted, gone)
            asked = Redaction("no reason", gone)
            finished = redact(
                parse(redacted), redacted, asked, was=WAS, at=LATER, is_unfinished=True
            )
            assert finished == (redacted, 0)
        with pytest.raises(RedactionRefusedError, match="doesn't stand in entry"):
            redact(parse(data), data, asked, was=WAS, at=LATER, is_unfinished=True)

    def test_without_a_reason_only_traces_are_removed(self) -> None:
        """And only where there may be some."""
        data = file_of()
        with pytest.raises(RedactionRefusedError, match="never redacted") as caught:
            redact(parse(data), data, None, was=WAS, at=LATER)
        assert caught.value.field == "reason"
        data, _ = remove(data)
        assert redact(parse(data), data, None, was=WAS, at=LATER) == (data, 0)


class TestTombstone:
    """Of an entry that is redacted whole nothing is left but when, why, and its hash."""

    def test_it_says_when_and_why_and_what_it_was(self) -> None:
        """In frontmatter for programs, in the body for people and other tools."""
        data = file_of(
            title="Secret title",
            body="Secret body",
            tags=["secret tag"],
            provenance=Provenance(*["secret"] * 6),
            extra={"secret key": ["secret value"]},
            supersedes=["20250101-000000-000", "secret name"],
            annotates=["20250101-000000-001"],
        )
        new, count = remove(data, reason="names a customer")
        entry = parse(new)
        assert count == 1
        assert b"ecret" not in new
        assert entry == Entry(
            id=NAME,
            title=MARKER,
            body=f"{MARKER} 2026-02-01T09:30:00.000Z: names a customer",
            created=NOON,
            extra={
                KEY: [
                    {"at": "2026-02-01T09:30:00.000Z", "reason": "names a customer", "sha256": WAS}
                ]
            },
            supersedes=(EntryId("20250101-000000-000"),),
            annotates=(EntryId("20250101-000000-001"),),
        )
        assert entry.problems == ()
        assert is_tombstone(entry)
        assert (mark_of(entry), reason_in(entry)) == (WAS, "names a customer")

    def test_it_is_made_once(self) -> None:
        """A second time there is nothing left to remove."""
        new, _ = remove(file_of())
        assert remove(new, reason="another") == (new, 0)

    @pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem[:30])
    def test_any_file_becomes_one(self, path: Path) -> None:
        """Whatever is wrong with it; its date stays."""
        data = path.read_bytes()
        new, _ = remove(data)
        assert is_tombstone(parse(new))
        assert parse(new).problems == ()
        assert parse(new).created == parse(data).created
        assert len(new) < 1_000

    def test_an_entry_that_looks_like_one_is_none(self) -> None:
        """Anybody may write a title."""
        extras: list[dict[str, Value]] = [
            {},
            {KEY: "x"},
            {KEY: []},
            {KEY: ["x"]},
            {KEY: [{"sha256": 7}]},
        ]
        for extra in extras:
            data = file_of(title=MARKER, body=MARKER, extra=extra)
            assert not is_tombstone(parse(data))
            assert remove(data)[1] == 1


class TestText:
    """A text is removed wherever it stands, and nothing else is."""

    def test_it_is_removed_from_every_part(self) -> None:
        """Title, body, tags, provenance, other keys and their values."""
        secret = "hunter2"  # noqa: S105 - nobody's
        data = file_of(
            title=f"The {secret} title",
            body=f"{secret}\n\nand {secret}{secret}, not Hunter2",
            tags=["other", secret],
            provenance=Provenance(f"/src/{secret}", secret, "p", "a", "s", f"example.com/{secret}"),
            extra={secret: [{"deep": f"-{secret}-"}, 7, None], "n": 1.5},
        )
        new, count = remove(data, secret)
        entry = parse(new)
        assert secret.encode() not in new
        assert count == 10
        assert entry == replace(
            parse(data),
            title=f"The {MARKER} title",
            body=f"{MARKER}\n\nand {MARKER}{MARKER}, not Hunter2",
            tags=("other", MARKER),
            provenance=Provenance(f"/src/{MARKER}", MARKER, "p", "a", "s", f"example.com/{MARKER}"),
            extra={
                MARKER: [{"deep": f"-{MARKER}-"}, 7, None],
                "n": 1.5,
                KEY: [{"at": "2026-02-01T09:30:00.000Z", "reason": "no reason", "sha256": WAS}],
            },
        )
        assert not is_tombstone(entry)

    @pytest.mark.parametrize(
        ("body", "text", "left"),
        [
            ("a secret\n  word here", "secret word", "a [redacted] here"),
            ("a secret word here", " secret \n word", "a [redacted] here"),
            ("tab\tand more", "tab and", "[redacted] more"),
            (unicodedata.normalize("NFD", "Zoë Xu"), "Zoë", "[redacted] Xu"),
            ("Zoë", unicodedata.normalize("NFD", "Zoë"), "[redacted]"),
            ("a.b axb", "a.b", "[redacted] axb"),
            ("(x[y]{z}\\)", "(x[y]{z}\\", "[redacted])"),
            ('say "no"', '"no"', "say [redacted]"),
            ("漢字かな", "字か", "漢[redacted]な"),
        ],
    )  # fmt: skip
    def test_it_is_found_as_people_give_it(self, body: str, text: str, left: str) -> None:
        """White space and composition don't matter, case and signs do."""
        new, count = remove(file_of(body=body), text)
        assert (parse(new).body, count) == (left, 1)

    def test_a_second_text_may_follow(self) -> None:
        """Each redaction leaves its mark, and earlier reasons don't keep what is removed later."""
        first, _ = remove(file_of(body="one two"), "one", "said by two")
        second, _ = redact(parse(first), first, Redaction("again", "two"), was="2" * 64, at=LATER)
        entry = parse(second)
        assert entry.body == f"{MARKER} {MARKER}"
        assert b"two" not in second
        marks = entry.extra[KEY]
        assert isinstance(marks, list)
        assert [mark["reason"] for mark in marks] == [f"said by {MARKER}", "again"]
        assert [mark["sha256"] for mark in marks] == [WAS, "2" * 64]
        third, _ = remove(second)
        assert is_tombstone(parse(third))

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_a_file_of_others_stays_as_it_is_otherwise(self, end: str) -> None:
        """Comments, quotes, order and line ends, if the text stands in the body alone."""
        lines = [
            *("\ufeff---", "# a comment", "tags:", "  - b", "title: 'Bare'"),
            *("created: '2026-01-31T12:00:00.007Z'", "---  ", "", "", "my secret ", "", ""),
        ]
        data = end.join(lines).encode()
        new, count = remove(data, "secret")
        said = {"at": "2026-02-01T09:30:00.000Z", "reason": "no reason", "sha256": WAS}
        mark = f"redacted: [{json.dumps(said)}]"
        lines[6:6] = [mark]
        lines[10] = f"my {MARKER} "
        assert new.decode().split(end) == lines
        assert count == 1
        again, _ = redact(parse(new), new, Redaction("why", "my"), was="2" * 64, at=LATER)
        assert again.decode().count("redacted: [") == 1
        assert again.decode().split(end)[1] == "# a comment"

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    @pytest.mark.parametrize(
        "top",
        [
            b"---@title: my secret@created: 2026-01-31@---@@",
            b"\xef\xbb\xbf---@tags: [secret]@---  @",
            b"---@# secret@title: T@---@@",
            b"---@title: my secret@@",
            b"# My secret plan@@",
            b"---@not frontmatter, no secret@---@",
            b"---@title: " + b"long " * 80 + b"secret@---@@",
        ],
    )
    def test_the_other_bytes_of_a_body_stay(self, top: bytes, end: bytes) -> None:
        """Bytes that are no text, NUL, line ends, blank lines, wherever else the text stands."""
        rest = b"@caf\xe9 \xff\xfe \0 \xef\xbb\xbf \xe2\x80\xa8 secret@\xc3@ tail \t@@@".replace(
            b"@", end
        )
        data = top.replace(b"@", end) + rest
        new, count = remove(data, "secret")
        kept = rest.replace(b"secret", MARKER.encode())
        assert count >= 1
        assert new.endswith(kept)
        assert b"secret" not in new
        assert is_body_kept(data, new, Redaction("no reason", "secret"))
        before, after = parse(data), parse(new)
        assert after.body.endswith(before.body.split("secret")[-1])
        assert after.created == before.created
        assert mark_of(after) == WAS

    def test_a_key_that_is_called_so_leaves_the_body_alone(self) -> None:
        """As title, which stands in the frontmatter of every entry."""
        data = b"---\ntitle: T\n---\n\nthe title\r\n\xff\n"
        new, _ = remove(data, "title")
        assert new.endswith(b"\n---\n\nthe [redacted]\r\n\xff\n")

    def test_bytes_that_are_no_text_can_be_removed(self) -> None:
        """By the sign that is shown for them; then the body is written anew, and that is told."""
        data = b"---\ntitle: T\n---\n\na \xff b\r\n"
        new, count = remove(data, "a \ufffd")
        assert count == 1
        assert parse(new).body == f"{MARKER} b"
        assert not is_body_kept(data, new, Redaction("no reason", "a \ufffd"))

    def test_a_text_that_cannot_be_read_is_removed_too(self) -> None:
        """From a comment in frontmatter, and from keys that stand there twice."""
        data = b"---\n# secret\ntitle: T\ncreated: 2026-01-31\ntitle: secret\n---\n\nbody\n"
        new, count = remove(data, "secret")
        assert b"secret" not in new
        assert count == 2
        assert (parse(new).title, parse(new).body) == ("T", "body")

    @pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem[:30])
    def test_it_is_removed_from_any_file(self, path: Path) -> None:
        """What was readable is readable, but for the text: a letter, or a word of it."""
        data = path.read_bytes()
        before = parse(data)
        words = {word for word in f"{before.title} {before.body}".split() if word.isalnum()}
        for word in sorted(words, key=len)[-3:]:
            try:
                asked = Redaction("no reason", word)
            except RedactionRefusedError:
                continue  # it stands in the marker
            new, count = redact(before, data, asked, was=WAS, at=LATER)
            entry = parse(new)
            assert count
            assert word not in f"{entry.title} {entry.body}"
            assert entry.body == before.body.replace(word, MARKER)
            assert entry.created == before.created
            assert entry.provenance == before.provenance or word in str(before.provenance)
            assert mark_of(entry) == WAS

    def test_an_entry_without_a_title_gets_what_stood_for_one(self) -> None:
        """A long one stays in the body, whole."""
        new, count = remove(b"# My secret plan\n\nmore\n", "secret")
        assert count == 1
        assert parse(new).title == f"My {MARKER} plan"
        data = f"---\ntitle: {'long ' * 80}secret\n---\n\nbody\n".encode()
        entry = parse(remove(data, "secret")[0])
        assert len(entry.title) == 300
        assert entry.body == f"{'long ' * 80}{MARKER}\n\nbody"

    def test_a_file_that_is_too_long_to_be_read_whole_is_refused(self) -> None:
        """What follows would be lost; redacting all of it is possible."""
        data = b"secret" + b" " * entryfile.READ_LIMIT_BYTES
        with pytest.raises(RedactionRefusedError, match="redact all of it"):
            remove(data, "secret")
        assert is_tombstone(parse(remove(data)[0]))

    def test_what_cannot_be_written_anew_is_refused(self) -> None:
        """A key that no draft may have, for one; all of the entry can be redacted."""
        data = b'---\ntitle: secret\n"": x\n---\n'
        with pytest.raises(RedactionRefusedError, match="redact all of it"):
            remove(data, "secret")
        assert is_tombstone(parse(remove(data)[0]))

    @given(DRAFTS, st.data())
    def test_nothing_else_changes(self, draft: Draft, data: st.DataObject) -> None:
        """Of any entry, for any text of it: no match is left, and all else is what it was."""
        file = entryfile.render(NOON, draft)
        before = parse(file)
        parts = [part for part in (before.title, before.body, *before.tags) if part.strip()]
        part = data.draw(st.sampled_from(parts))
        start = data.draw(st.integers(0, len(part) - 1))
        text = part[start : start + data.draw(st.integers(1, 12))]
        try:
            asked = Redaction("\u2205", text)
        except RedactionRefusedError:
            assume(False)  # noqa: FBT003 - blank, or in the marker
        new, count = redact(before, file, asked, was=hash_of(file), at=LATER)
        entry = parse(new)
        assert count >= 1
        assert entry.problems == ()
        assert mark_of(entry) == hash_of(file)
        for part in (entry.title, entry.body, *entry.tags):
            assert not asked.pattern.search(part.replace(MARKER, ""))
        assert entry.created == before.created
        if not asked.pattern.search(before.body):
            assert entry.body == before.body
        if not asked.pattern.search(before.title):
            assert entry.title == before.title
