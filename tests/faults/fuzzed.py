"""Files that nobody would write, and that a journal folder may hold all the same."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "entries"
SMALL_BYTES = 20_000
TOKENS = [
    b"---\n", b"---", b"--- ", b"...\n", b"title: ", b"created: ", b"tags: ", b"- ", b"[", b"]",
    b"{", b"}", b"&a ", b"*a", b"!!python/object:os.system ", b"!!binary ", b"<<: *a\n", b"|\n ",
    b">-\n  ", b"? ", b": ", b"'", b'"', b"\\", b"# ", b"%YAML 9.9\n", b"@", b"`", b"~", b"yes",
    b"0o17", b"1e5", b"2026-13-45", b"2026-01-02T10:00:00Z", b"\t", b"  ", b"\n", b"\n\n", b"\r\n",
    b"\r", b"\x00", b"\x0b", b"\x1b]0;x\x07", b"\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xff",
    b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xae", "東京".encode(),
    "città".encode(), "e\u0301".encode(), b"word", b"supersedes: ", b"annotates: ", b"null",
]  # fmt: skip


@cache
def golden() -> list[bytes]:
    """Return what the golden files hold, without the huge ones."""
    files = sorted(GOLDEN.glob("*.md"))
    return [path.read_bytes() for path in files if path.stat().st_size < SMALL_BYTES]


def _bytes(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(600))


def _soup(chance: random.Random) -> bytes:
    return b"".join(chance.choices(TOKENS, k=chance.randrange(60)))


def _frontmatter(chance: random.Random) -> bytes:
    lines = (_soup(chance)[: chance.randrange(60)] for _ in range(chance.randrange(6)))
    return b"---\n" + b"\n".join(lines) + b"\n---\n" + _soup(chance)


def _mutated(chance: random.Random) -> bytes:
    content = bytearray(chance.choice(golden()))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(content) + 1)
        other = chance.choice(golden())
        match chance.randrange(5):
            case 0:
                content[at:at] = chance.choice(TOKENS)
            case 1:
                del content[at : at + chance.randrange(40)]
            case 2 if at < len(content):
                content[at] = chance.randrange(256)
            case 3:
                content[at:] = other[chance.randrange(len(other) + 1) :]
            case _:
                content = bytearray(content.replace(b"\n", chance.choice([b"\r\n", b"\r", b"\n"])))
    return bytes(content)


def _recoded(chance: random.Random) -> bytes:
    text = chance.choice(golden()).decode(errors="replace")
    codec = chance.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037"])
    return text.encode(codec, errors="replace")


def _huge(chance: random.Random) -> bytes:
    count = chance.choice([300, 3_000])
    keys = b"".join(b"key%d: %s\n" % (n, chance.choice(TOKENS).strip()) for n in range(count))
    deep = b"deep: " + b"[" * chance.choice([10, 2_000]) + b"\n"
    bomb = b"a0: &a0 x\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)
    )
    return b"---\n" + chance.choice([keys, deep, bomb, keys + deep]) + b"---\nbody\n"


_KINDS: list[Callable[[random.Random], bytes]] = [_bytes, _soup, _frontmatter, _mutated, _recoded]
_HUGE_SHARE = 0.01


def content(chance: random.Random) -> bytes:
    """Return what a file may hold."""
    return (_huge if chance.random() < _HUGE_SHARE else chance.choice(_KINDS))(chance)


def name(chance: random.Random, number: int) -> bytes:
    """Return a file's name, without its end, that no other number gives."""
    odd = chance.choice(
        [
            b"", b" ", b"-", b"--help", b"a b", b"'", b'"', b"\n", b"\x1b[31m", b"$HOME", b"*",
            b"?", b"%2e", b"\xff\xfe", b"\xed\xa0\x80", "è".encode(), "e\u0301".encode(),
            "東京".encode(), b"x.md", b"a.embedding", b"CON", b"\\", b"#", b";", b"x" * 200,
            b"20260101-000000-000",
        ]
    )  # fmt: skip
    return chance.choice([odd + b"%d", b"%d" + odd]) % number if b"%" not in odd else b"%d" % number


def write(folder: Path, number: int, seed: int) -> str:
    """Write a file, and return its name without its end; it ends with a word that no other holds.

    A name that is no UTF-8 has lone surrogates, as Python shows such.
    """
    chance = random.Random(seed * 1_000_003 + number)  # noqa: S311 - no secret
    held = content(chance) + b"\n%s\n" % word(number).encode()
    stem = name(chance, number)
    path = os.fsencode(folder) + b"/" + stem
    with open(path + b".md", "xb") as file:  # noqa: PTH123 - names that are bytes
        file.write(held)
    if chance.random() < 0.1:  # a tenth has a vector that can't be one
        vector = chance.choice([b"", b"[", b"[0.1, 0.2]", b'{"v": 2}', b"[1e999]", held[:80]])
        with open(path + b".embedding", "xb") as file:  # noqa: PTH123 - as above
            file.write(vector)
    return os.fsdecode(stem)


def word(number: int) -> str:
    """Return the word that a file ends with."""
    return f"zqneedle{number}"
