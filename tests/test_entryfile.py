"""The format of entry files: what is written, and all that is read."""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.drafts import DRAFTS, INSTANTS

from agent_journal import entryfile, frontmatter, nodes, yamlsource
from agent_journal.errors import InvalidDraftError, InvalidFieldError
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Provenance,
    Value,
    timestamp,
)

GOLDEN = Path(__file__).parent / "golden" / "entries"
GOLDEN_MTIME = 1_700_000_000.25
AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
PATH = "/journal/x.md"


def parse(data: bytes | str, entry_id: str = "x", mtime: float = 0.0) -> Entry:
    """Parse a file named x.md."""
    raw = data if isinstance(data, bytes) else data.encode()
    return entryfile.parse(raw, entry_id=EntryId(entry_id), path=PATH, mtime=mtime)


def head(lines: str) -> Entry:
    """Parse a file with this frontmatter and no body."""
    return parse(f"---\n{lines}\n---\n")


def render(draft: Draft, created: datetime = AT) -> bytes:
    """Render a draft under any id."""
    return entryfile.render(created, draft)


def told(entry: Entry) -> list[tuple[int | None, str]]:
    """Return an entry's problems without their path."""
    assert {problem.path for problem in entry.problems} <= {PATH}
    return [(problem.line, problem.reason) for problem in entry.problems]


# What is written


def test_a_file_reads_like_this() -> None:
    """The keys stand in one order, strings are quoted, empty ones left out, unknown ones last."""
    draft = Draft(
        'Why "x": y',
        "  indented\n\n---\nlast",
        ["on", "a, b"],
        Provenance("/srv/app", "m-1", "", "build", "ses_1", "example.com/me/app"),
        extra={"rating": 4.5, "on": None, "ok": True, "a b": ["x", {"k": 1}], "inf": math.inf},
        supersedes=" 20260102-030405-001 ",
        annotates=["b c", "", "b c", "d"],
    )
    assert render(draft).decode() == (
        "---\n"
        'title: "Why \\"x\\": y"\n'
        'created: "2026-01-02T03:04:05.678Z"\n'
        'project: "/srv/app"\n'
        'repo: "example.com/me/app"\n'
        'model: "m-1"\n'
        'agent: "build"\n'
        'session_id: "ses_1"\n'
        'tags: ["on", "a, b"]\n'
        'supersedes: ["20260102-030405-001"]\n'
        'annotates: ["b c", "d"]\n'
        "rating: 4.5\n"
        '"on": null\n'
        "ok: true\n"
        '"a b": ["x", {"k": 1}]\n'
        "inf: .inf\n"
        "---\n"
        "\n"
        "  indented\n\n---\nlast\n"
    )


def test_an_empty_body_leaves_nothing_after_the_frontmatter() -> None:
    """An entry may be a title alone."""
    assert render(Draft("t")).endswith(b'Z"\n---\n')


def test_readable_characters_are_written_as_they_are() -> None:
    """Emoji and right-to-left text stay legible; what YAML can't carry raw is escaped."""
    written = render(Draft("👩‍👩‍👧 שלום é\u2028\x85\ufeff\x9f\uffff")).decode()
    assert 'title: "👩‍👩‍👧 שלום é \\ufeff\\u009f\\uffff"' in written


@given(DRAFTS, INSTANTS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_read_back(draft: Draft, created: datetime) -> None:
    """Parsing a rendered draft gives every part of it back, without a problem."""
    entry = parse(render(draft, created))
    assert entry.problems == ()
    assert timestamp(entry.created) == timestamp(created)
    assert (entry.title, entry.body, entry.tags) == (draft.title, draft.body, draft.tags)
    assert entry.provenance == draft.provenance
    assert (entry.supersedes, entry.annotates) == (draft.supersedes, draft.annotates)
    assert list(entry.extra.items()) == list(draft.extra.items())
    assert repr(entry.extra) == repr(draft.extra)  # 1, 1.0 and True are equal, and differ


@given(DRAFTS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_yaml_reader_gets_strings(draft: Draft) -> None:
    """A plain YAML 1.1 loader finds text in each of our own fields, and the same text."""
    block = render(draft).decode().split("\n---\n")[0]
    loaded = yaml.load(block, Loader=yaml.SafeLoader)
    assert loaded["title"] == draft.title
    assert loaded["created"] == timestamp(AT)
    assert loaded.get("project", "") == draft.provenance.project
    assert tuple(loaded.get("tags", ())) == draft.tags


def test_nan_survives() -> None:
    """The one value that isn't equal to itself is still written and read."""
    read = parse(render(Draft("t", extra={"x": math.nan}))).extra["x"]
    assert isinstance(read, float)
    assert math.isnan(read)


def test_a_number_without_end_is_refused() -> None:
    """What Python itself won't turn into digits is refused by name."""
    with pytest.raises(InvalidFieldError, match="too many digits") as caught:
        render(Draft("t", extra={"x": 10**5000}))
    assert caught.value.field == "extra"


def nested(depth: int) -> Value:
    """Return lists and mappings inside one another."""
    value: Value = "core"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def test_depth_has_one_limit_for_writing_and_reading() -> None:
    """The deepest value that is written is read; one level more is refused."""
    deepest = nested(nodes.DEPTH_LIMIT)
    assert parse(render(Draft("t", extra={"x": deepest}))).extra == {"x": deepest}
    with pytest.raises(InvalidFieldError, match="deeper than 64") as caught:
        render(Draft("t", extra={"x": nested(nodes.DEPTH_LIMIT + 1)}))
    assert caught.value.field == "extra"


@pytest.mark.parametrize(
    ("given_ids", "error"),
    [(["a\0"], "U\\+0000"), ("\ud800", "U\\+D800"), ([5], "is int; give a string")],
)
def test_ids_that_no_file_can_name_are_refused(given_ids: Any, error: str) -> None:  # noqa: ANN401 - wrong on purpose
    """A draft says which field is wrong."""
    for name in ("supersedes", "annotates"):
        with pytest.raises(InvalidDraftError, match=f"{name}.*{error}") as caught:
            Draft("t", **{name: given_ids})
        assert caught.value.field == name


# What is read: files of every kind


def described(entry: Entry) -> dict[str, Any]:  # Any: JSON
    """Return an entry as the golden files hold it."""
    body = entry.body
    return {
        "title": entry.title,
        "heading": entry.heading,
        "created": timestamp(entry.created),
        "tags": list(entry.tags),
        "provenance": {
            name: getattr(entry.provenance, name)
            for name in Provenance.__slots__
            if getattr(entry.provenance, name)
        },
        "extra": entry.extra,
        **{
            name: list(ids)
            for name, ids in (("supersedes", entry.supersedes), ("annotates", entry.annotates))
            if ids
        },
        "body": body if len(body) < 1000 else hashlib.sha256(body.encode()).hexdigest(),
        "problems": [[problem.line, problem.reason] for problem in entry.problems],
    }


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.md")))
def test_golden_files_are_read_as_ever(name: str) -> None:
    """Each file that was ever written or met is still read the same way."""
    file = GOLDEN / name
    expected = json.loads((GOLDEN / f"{file.stem}.json").read_text(encoding="utf-8"))
    entry = entryfile.parse(
        file.read_bytes(), entry_id=EntryId(file.stem), path=PATH, mtime=GOLDEN_MTIME
    )
    assert described(entry) == expected


@given(st.binary(max_size=400))
@example(b"---\n\xff\n---\n")
@example(b"---\n? [a]\n: b\n---\n")
def test_any_bytes_are_an_entry(data: bytes) -> None:
    """Parsing never raises, and its strings can be encoded."""
    entry = parse(data)
    json.dumps(described(entry)).encode()
    entry.body.encode()


@given(DRAFTS, st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_damaged_files_are_entries(draft: Draft, data: st.DataObject) -> None:
    """Cutting, doubling or overwriting any part of a file never makes it unreadable."""
    file = render(draft)
    start = data.draw(st.integers(0, len(file)))
    end = data.draw(st.integers(start, min(len(file), start + 40)))
    patch = data.draw(st.one_of(st.binary(max_size=6), st.just(file[start:end] * 2)))
    entry = parse(file[:start] + patch + file[end:])
    json.dumps(described(entry)).encode()


def test_a_file_over_the_limit_is_read_up_to_it() -> None:
    """The first 16 MiB are there, whole characters only, and the problem says so."""
    for shift in range(4):
        data = b"x" * shift + "😀".encode() * (entryfile.READ_LIMIT_BYTES // 4 + 1)
        entry = parse(data)
        kept = (entryfile.READ_LIMIT_BYTES - shift) // 4
        assert entry.body == "x" * shift + "😀" * kept
        assert told(entry)[0] == (
            None,
            "the file is larger than 16,777,216 bytes; the rest is not read",
        )
        assert len(entry.problems) == 2


def test_a_file_of_just_the_limit_is_whole() -> None:
    """The limit itself is no problem."""
    entry = parse(b"---\ntitle: t\n---\n".ljust(entryfile.READ_LIMIT_BYTES, b"x"))
    assert entry.problems == ()


def test_blank_lines_inside_a_body_cost_nothing() -> None:
    """Half a million of them are kept, in time that grows with their number alone."""
    body = "x" + "\n" * 500_000 + "x"
    assert parse(f"---\ntitle: t\n---\n\n{body}\n\n").body == body


# What is read: single fields


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026", "2026-01-01T00:00:00.000Z"),
        ("2026-03", "2026-03-01T00:00:00.000Z"),
        ("2026-3-9", "2026-03-09T00:00:00.000Z"),
        ("20260309", "2026-03-09T00:00:00.000Z"),
        ("2026-03-09T10:11", "2026-03-09T10:11:00.000Z"),
        ("2026-3-9 1:02:03.4", "2026-03-09T01:02:03.400Z"),
        ("2026-03-09t10:11:12z", "2026-03-09T10:11:12.000Z"),
        ("2026-03-09 10:11:12 UTC", "2026-03-09T10:11:12.000Z"),
        ("2026-03-09 10:11:12.123456789 -5", "2026-03-09T15:11:12.123Z"),
        ("2026-03-09 10:11:12 +05:30", "2026-03-09T04:41:12.000Z"),
        ("'2026-03-09T10:11:12.999999Z'", "2026-03-09T10:11:12.999Z"),
        ('"  2026-03-09  "', "2026-03-09T00:00:00.000Z"),
    ],
)
def test_dates_of_every_kind_are_understood(written: str, expected: str) -> None:
    """A day, a year, a time with or without seconds and zone: without one it is UTC."""
    entry = head(f"title: t\ncreated: {written}")
    assert (timestamp(entry.created), entry.problems) == (expected, ())


@pytest.mark.parametrize(
    "written",
    ["yesterday", "2026-13-01", "2026-02-30 1:00", "0000", "1-1-1", "0001-01-01 00:00 +23:00",
     "2026-01-01 10:00 +99:00", "0001-01-01T00:00:00+05:00"],
)  # fmt: skip
def test_what_is_no_date_is_a_problem(written: str) -> None:
    """The id's instant stands in, and the problem names the line."""
    entry = parse(f"---\ntitle: t\ncreated: {written}\n---\n", "20250102-030405-006-copy")
    assert timestamp(entry.created) == "2025-01-02T03:04:05.006Z"
    assert told(entry) == [(3, f"created is {written!r}, which is no date")]


@pytest.mark.parametrize(
    ("entry_id", "mtime", "expected"),
    [
        ("20250102-030405-006", 0.0, "2025-01-02T03:04:05.006Z"),
        ("20259902-030405-006", 1.5, "1970-01-01T00:00:01.500Z"),
        ("20250102-030405-0061", 1.5, "1970-01-01T00:00:01.500Z"),
        ("notes", 1_700_000_000.0, "2023-11-14T22:13:20.000Z"),
        ("notes", math.nan, "1970-01-01T00:00:00.000Z"),
        ("notes", 1e300, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_without_created_the_id_or_the_file_says_when(
    entry_id: str, mtime: float, expected: str
) -> None:
    """First the id counts, if it is an instant, else the file's time; neither is a problem."""
    entry = parse("---\ntitle: t\n---\n", entry_id, mtime)
    assert (timestamp(entry.created), entry.problems) == (expected, ())


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("tags: [on, 1.0, 2026-01-01, ~, x y]", ("on", "1.0", "2026-01-01", "x y")),
        ("tags:\n- a\n- 'A'\n- b: c", ("a", "b: c")),
        ("tags: a, '#b', #c", ("a", "b")),
        ('tags: "#a, #B , b"', ("a", "B")),
        ("tags: single", ("single",)),
        ("tags: ~", ()),
        ("tags:", ()),
        ("other: x", ()),
        ("tags: {a: b}", ()),
        ("tags: [[a, b], c]", ("[a, b]", "c")),
    ],
)
def test_tags_of_every_form_are_understood(written: str, expected: tuple[str, ...]) -> None:
    """Lists of either style and a comma string give the texts that stand in the file."""
    assert head(f"title: t\n{written}").tags == expected


def test_a_field_that_is_no_text_is_taken_as_it_stands() -> None:
    """A list where text belongs keeps its characters, also after others that take four bytes."""
    entry = head("x: 😀😀\ntitle: [WIP,\n  draft]\nproject: {a: b}\ntags: {a: b}\nagent: null")
    assert (entry.title, entry.provenance.project) == ("[WIP, draft]", "{a: b}")
    assert told(entry) == [
        (3, "title is no text; taken as it stands"),
        (5, "project is no text; taken as it stands"),
        (6, "tags is no list; none are taken"),
    ]


def test_foreign_values_keep_their_type() -> None:
    """JSON's own literals are typed; anything else, dates too, is the text that stands there."""
    lines = (
        "a: 1\nb: -0.5e3\nc: true\nd: ~\ne: 2026-01-02\nf: 007\ng: yes\nh: '1'\ni: !!int 5\n"
        "j: 0x10\nk: [1, x: [y]]\nl: {[a, b]: 1}\nm: &m text\nn: *m\no: " + "9" * 5000
    )
    assert head(f"title: t\n{lines}").extra == {
        "a": 1, "b": -500.0, "c": True, "d": None, "e": "2026-01-02", "f": "007", "g": "yes",
        "h": "1", "i": "5", "j": "0x10", "k": [1, {"x": ["y"]}], "l": {"[a, b]": 1}, "m": "text",
        "n": "text", "o": "9" * 5000,
    }  # fmt: skip


@pytest.mark.parametrize("lone", ['"a\\ud800b"', '"a\\0b"'])
def test_what_text_files_cannot_hold_is_replaced(lone: str) -> None:
    """An escaped NUL or lone surrogate becomes U+FFFD; two surrogates are one character."""
    assert head(f"title: {lone}").title == "a\ufffdb"
    assert head('title: "\\ud83d\\ude00"').title == "😀"


# What is read: broken and hostile frontmatter


@pytest.mark.parametrize(
    ("lines", "title", "problems"),
    [
        ("title: a: b", "a: b", [(2, "mapping values are not allowed in this context")]),
        ('title: "a', "a", [(2, "found unexpected end of stream")]),
        ("title: 'it''s", "it's", [(2, "found unexpected end of stream")]),
        ("title: x\n\tbad\nproject: [", "x bad", [(3, "found a tab"), (4, "did not find")]),
        ("title: x\n- stray", "x", [(3, "did not find expected key")]),
        ("stray\ntitle: x", "x", [(3, "mapping values are not allowed")]),
        ("title: x\n--- y", "x", [(3, "frontmatter holds a second YAML document")]),
        ("title: x\n? [a]\n: b", "x", [(3, "a key is no scalar")]),
        ("title: x\nb: *nowhere", "x", [(3, "alias *nowhere stands for no scalar")]),
        ("title: x\nb: \x01", "x", [(3, "not valid YAML")]),
        ('title: x\n"a: b"', "x", [(3, "could not find expected ':'")]),
        ("title: x\nb: [1, [", "x", [(3, "did not find expected node content")]),
    ],
)
def test_broken_frontmatter_gives_what_it_can(
    lines: str, title: str, problems: list[tuple[int, str]]
) -> None:
    """The title is found, and each fault is told with its line."""
    entry = head(lines)
    assert entry.title == title
    found = told(entry)
    assert [line for line, _ in found] == [line for line, _ in problems]
    for (_, reason), (_, part) in zip(found, problems, strict=True):
        assert part in reason


@pytest.mark.parametrize("block", ["", "\n", "# only a comment\n", "~\n"])
def test_empty_frontmatter_is_frontmatter(block: str) -> None:
    """Nothing between the fences is no title, and the body starts behind them."""
    entry = parse(f"---\n{block}---\nbody")
    assert entry.body == "body"
    assert told(entry) == [(1, "the entry has no title")]


def test_problems_are_bounded() -> None:
    """A file with a thousand faults tells twenty, and how many more there are."""
    entry = head("title: x\n" + "a: b: c\n" * 1000)
    assert len(entry.problems) == entryfile.PROBLEM_LIMIT + 1
    assert told(entry)[-1][1] == "235 more problems"


def test_too_much_frontmatter_is_read_in_part() -> None:
    """Over a mebibyte of it the first keys still count, and the problem says so."""
    entry = parse("---\ntitle: x\nnoise: " + "y" * frontmatter.SIZE_LIMIT + "\nlast: z\n---\nbody")
    assert (entry.title, entry.body) == ("x", "body")
    assert "last" not in entry.extra
    assert told(entry) == [(2, "only 1,048,576 characters of frontmatter are read")]


@pytest.mark.parametrize(
    "lines",
    [
        "x: " + "[" * 200_000,
        "x:\n" + "".join(" " * depth + "- \n" for depth in range(500)),
        "x: !!python/object/apply:os.system [exit 1]",
        "<<: {title: merged}",
        "<<: *nothing",
        "a: &a {b: *a}",
    ],
)
def test_hostile_yaml_is_only_text(lines: str) -> None:
    """Depth, cycles, merges and tags do nothing; the title beside them is found."""
    entry = head(f"title: safe\n{lines}")
    assert entry.title == "safe"
    assert set(entry.extra) <= {"x", "<<", "a"}


def test_aliases_multiply_nothing() -> None:
    """Twenty levels of nine aliases each end as the few lines that they are."""
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 20)]
    entry = head("title: safe\n" + "\n".join(lines))
    assert entry.title == "safe"
    assert len(json.dumps(entry.extra)) < 2000


def test_the_pure_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML has no C parser, files are read alike."""
    samples = [path for path in GOLDEN.glob("*.md") if path.stat().st_size < 10_000]
    before = [described(parse(path.read_bytes()))["title"] for path in samples]
    monkeypatch.setattr(yamlsource, "_LOADER", yaml.SafeLoader)
    assert [described(parse(path.read_bytes()))["title"] for path in samples] == before
    sample: Mapping[str, Value] = {"k": [1, {"x": "é😀"}]}
    assert parse(render(Draft("t", extra=sample))).extra == sample
