from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.jsontext import places, strict, with_value, without

ON = ("journal", "enabled")
_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
_noise: st.SearchStrategy[str] = st.sampled_from(
    ["", " ", "\n", "\r\n  ", "\t", "// x\n", '/* "," ] */', "/*\n*/ "]
)


@st.composite
def documents(draw: st.DrawFn, value: Any = None) -> str:  # noqa: ANN401 - whatever JSON holds
    """Write a value as people do: with blanks, comments and trailing commas anywhere."""

    def write(value: object) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value)
        marks = "{}" if isinstance(value, dict) else "[]"
        members = [
            f"{json.dumps(key)}{draw(_noise)}:{draw(_noise)}{write(member)}"
            for key, member in value.items()
        ] if isinstance(value, dict) else [write(member) for member in value]  # fmt: skip
        text = ",".join(f"{draw(_noise)}{member}{draw(_noise)}" for member in members)
        comma = ("," if bool(members) and draw(st.booleans()) else "") + draw(_noise)
        return f"{marks[0]}{text}{comma}{marks[1]}"

    return draw(_noise) + write(draw(_values) if value is None else value) + draw(_noise)


class TestStrict:
    """`strict`."""

    @given(_values.flatmap(lambda value: st.tuples(st.just(value), documents(value=value))))
    def test_reads_what_people_write(self, written: tuple[object, str]) -> None:
        """Comments and trailing commas make no difference, and nothing moves."""
        value, text = written
        if value is None:
            return
        plain = strict(text)
        assert json.loads(plain) == value
        assert len(plain) == len(text)
        assert plain.count("\n") == text.count("\n")

    def test_leaves_strings_alone(self) -> None:
        """What looks like a comment or a trailing comma within a string is none."""
        text = '\ufeff{"a": "// x", "b": "/* \\" ,] */", "c": ["http://x/*", ",]"]}'
        assert strict(text) == f" {text[1:]}"


class TestPlaces:
    """`places`."""

    def test_tells_where_keys_and_members_stand(self) -> None:
        """With their lines and offsets, and nothing deeper than asked for."""
        text = '{"a": 1,\n "b": [10,\n  {"c": [2]}]}'
        found = [(place.where, place.line) for place in places(text, depth=3)]
        assert found == [
            (("a",), 1), (("b",), 2), (("b", 0), 2), (("b", 1), 3), (("b", 1, "c"), 3),
        ]  # fmt: skip
        assert [text[place.position] for place in places(text, depth=3)] == list('""1{"')


class TestWithValue:
    """`with_value`."""

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("{}", '{"journal": {"enabled": true}}'),
            ("{ // none\n}", '{"journal": {"enabled": true} // none\n}'),
            ('{"journal": {}}', '{"journal": {"enabled": true}}'),
            ('{"journal":{"enabled":false,"a":1}}', '{"journal":{"enabled":true,"a":1}}'),
            ('{"journal": {"a": 1}}', '{"journal": {"enabled": true, "a": 1}}'),
            (
                '{\r\n\t"x":1,\r\n\t"journal": {\r\n\t\t"a": 1\r\n\t}\r\n}',
                '{\r\n\t"x":1,\r\n\t"journal": {\r\n\t\t"enabled": true,\r\n\t\t"a": 1\r\n\t}\r\n}',
            ),
            (
                '{\n\n  // mine\n  "a": 1, // b\n}',
                '{\n\n  // mine\n  "journal": {"enabled": true},\n  "a": 1, // b\n}',
            ),
            (
                '{"other": {"enabled": false}, "journal": {"x": {"enabled": 1}, "enabled" : null}}',
                '{"other": {"enabled": false}, "journal": {"x": {"enabled": 1}, "enabled" : true}}',
            ),
        ],
    )
    def test_changes_nothing_else(self, before: str, after: str) -> None:
        """A new member is laid out as the first one there; a value is replaced in its place."""
        assert with_value(before, ON, "true") == after

    @given(
        st.dictionaries(st.text(), _values).flatmap(
            lambda value: st.tuples(st.just(value), documents(value=value))
        ),
        st.sampled_from([("journal",), ON, ("a", "b", "c")]),
    )
    def test_sets_one_member(
        self, written: tuple[dict[str, Any], str], where: tuple[str, ...]
    ) -> None:
        """However the document is written, and whatever else it holds."""
        value, text = written
        inner: Any = value
        for key in where[:-1]:
            if not isinstance(inner.get(key, {}), dict):
                return
            inner = inner.setdefault(key, {})
        inner[where[-1]] = True
        assert json.loads(strict(with_value(text, where, "true"))) == value


class TestWithout:
    """`without`."""

    @pytest.mark.parametrize(
        ("before", "number", "after"),
        [
            ('{"p": ["x"]}', 0, '{"p": []}'),
            ('{"p": [ "x" ]}', 0, '{"p": [ ]}'),
            ('{"p": ["x", "a"]}', 0, '{"p": ["a"]}'),
            ('{"p": ["a", "x"]}', 1, '{"p": ["a"]}'),
            ('{"p": ["a", "x", ]}', 1, '{"p": ["a", ]}'),
            ('{"p": ["a", ["x", {"b": [1, 2]}], "c"]}', 1, '{"p": ["a", "c"]}'),
            ('{"p": [\n  "x",\n  "a"\n]}', 0, '{"p": [\n  "a"\n]}'),
            ('{"p": [\r\n  "a",\r\n  "x"\r\n]}', 1, '{"p": [\r\n  "a"\r\n]}'),
            (
                '{"p": [\n  // one\n  "a", // of a\n  "x" // of x\n  // two\n]}',
                1,
                '{"p": [\n  // one\n  "a" // of a\n  // of x\n  // two\n]}',
            ),
            ('{"p": [\n  "x", // of x\n  "a",\n]}', 0, '{"p": [\n  // of x\n  "a",\n]}'),
        ],
    )
    def test_keeps_comments_and_layout(self, before: str, number: int, after: str) -> None:
        """The member goes with its comma, and its line if nothing else stands there."""
        assert without(before, ("p", number)) == after

    @given(
        st.lists(_values, min_size=1).flatmap(
            lambda value: st.tuples(
                st.just(value), documents(value=value), st.integers(0, len(value) - 1)
            )
        )
    )
    def test_takes_one_member_away(self, written: tuple[list[object], str, int]) -> None:
        """However the list is written."""
        value, text, number = written
        after = without(text, (number,))
        assert json.loads(strict(after)) == value[:number] + value[number + 1 :]
