"""Frontmatter is read the same way with and without YAML."""

import subprocess
import sys
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st

from agent_journal import frontmatter
from agent_journal.frontmatter import line
from agent_journal.nodes import Node

KEYS = st.sampled_from(["title", "created", "tags", "no", "y", "nothing", "Title", "a-b", "x1"])
# Joined, since st.text merges what it is given into one set of characters, without their weights.
STRINGS = st.lists(
    st.characters(codec="utf-8") | st.sampled_from('"\\,:[]{}#-\n\t\0\x85\u2028\ufeff'), max_size=8
).map("".join)
OWN = st.lists(
    st.builds(line, KEYS, STRINGS | st.lists(STRINGS, max_size=3)), min_size=1, max_size=4
)
PIECES = st.sampled_from(
    [
        "title",
        "tags",
        "no",
        ": ",
        ":",
        " ",
        '"',
        "\\",
        "\\u0041",
        "\\ud83d",
        "\\/",
        "\\x41",
        "a",
        "[",
        "]",
        ", ",
        ",",
        "\n",
        "\t",
        "#",
        "- ",
        "1",
        "''",
        "\x7f",
        "\ufeff",
        "&a ",
        "*a",
        "{}",
    ]
)
ANYTHING = st.lists(PIECES, max_size=20).map("".join)


def outline(nodes: dict[str, Node] | None) -> object:
    """Return all that a reader of nodes can see."""
    if nodes is None:
        return None
    return [
        (key, node.line, node.text, node.is_null, node.written, repr(node.value()))
        for key, node in nodes.items()
    ]


def read(block: str, *, quickly: bool) -> object:
    """Return what is read of some frontmatter, and what is reported."""
    reports: list[tuple[str, int]] = []

    def report(reason: str, number: int) -> None:
        reports.append((reason, number))

    if quickly:
        return outline(frontmatter.read(block, report)), reports
    with mock.patch.object(frontmatter, "_own", return_value=None):
        return outline(frontmatter.read(block, report)), reports


@given(OWN)
def test_what_is_written_reads_the_same_with_and_without_yaml(lines: list[str]) -> None:
    """The short cut for files of ours changes nothing but the time."""
    block = "".join(f"{one}\n" for one in lines)

    assert read(block, quickly=True) == read(block, quickly=False)


@given(ANYTHING, OWN, st.integers(0, 200))
@example('x title: "a"\n', [], 0)
@example('title: "a"\ntitle: "b"\n', [], 0)
@example('title: "a\tb"\n', [], 0)
@example('title: "a"', [], 0)
@example('tags: ["a","b"]\n', [], 0)
@example('title: "a" # "b"\n', [], 0)
@example('title: "\\ud83d\\ude00 \\u0000"\n', [], 0)
def test_anything_reads_the_same_with_and_without_yaml(
    piece: str, lines: list[str], place: int
) -> None:
    """Nor does it take for ours what only looks like it."""
    block = "".join(f"{one}\n" for one in lines)
    block = block[:place] + piece + block[place:]

    assert read(block, quickly=True) == read(block, quickly=False)


def test_files_of_ours_are_read_without_importing_yaml() -> None:
    """Importing it takes as long as reading some hundred entries."""
    block = 'title: "a"\\ncreated: "2026-01-01T00:00:00.000Z"\\ntags: ["x", "y"]\\n'
    program = (
        "import sys; from agent_journal import frontmatter;"
        f"fields = frontmatter.read('{block}', print);"
        "print([fields['tags'].value(), 'yaml' in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert shown.stdout.decode() == f"{[['x', 'y'], False]}\n"
