"""What we write, the original's readers take for text: proven with the real js-yaml, 3 and 4."""

import json
import subprocess
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_journal import entryfile
from agent_journal.model import (
    FRONTMATTER_KEYS,
    Draft,
    Provenance,
    Value,
    from_milliseconds,
    timestamp,
)

NODE = Path(__file__).parent / "node"
AT = from_milliseconds(1_767_323_045_678)
VALUES = [
    "1e5", "0o17", "012", "12e03", "0x10", "0b1", "1_000", "1:30", "1.0", ".5", "-1", "+1", ".inf",
    ".nan", "~", "null", "Null", "yes", "no", "on", "off", "y", "n", "true", "False",
    "2026-01-01", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "2026", "<<", "=", "a: b", "a :b",
    '"quoted"', "'quoted'", "back\\slash", "C:\\Users\\me\\app", "# hash", "a #b", "- a", "? a",
    "[a]", "[a", "{a: b}", "{", "*a", "&a", "!a", "!!int 1", "%a", "@a", "`a`", "| a", "> a", ",",
    "---", "...", "a\u2028b", "a\u2029b", "a\x85b", "a\ufeffb", "a\x1b[31mb", "a\x7fb", "\ufffe",
    "a\u00adb", "👩‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀", "\U0001fffe", "שלום עולם", "مرحبا", "\u202eabc",
    "漢字", "e\u0301", "Perché no?", "a,b", "#tag", "__proto__", "constructor",
]  # fmt: skip
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXT = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=20), st.from_regex(r"[-+.0-9eExob_:]+", fullmatch=True)
)


def drafts_of(value: str) -> list[Draft]:
    """Return drafts that hold a value in every field, tag and further key."""
    provenance = Provenance(value, value, value, value, value, value)
    tags = [value, f"x {value}"]
    extra: dict[str, Value] = {"note": value, "more": [value, {value: value}]}
    if value not in FRONTMATTER_KEYS:
        extra[value] = value
    if not value.strip():
        return []
    return [Draft(value, "b", tags, provenance, None, extra, value, [value, f"x {value}"])]


def generated() -> list[Draft]:
    """Let Hypothesis make the values, the same ones each time, for one run of node."""
    drafts: list[Draft] = []

    @settings(
        max_examples=300,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(TEXT)
    def collect(value: str) -> None:
        drafts.extend(drafts_of(value))

    collect()
    return drafts


def expected(draft: Draft) -> dict[str, Any]:  # Any: JSON
    """Return what a reader must find: nothing but strings."""

    def described(value: object) -> Any:  # noqa: ANN401 JSON
        if isinstance(value, dict):
            return {key: described(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [described(member) for member in value]
        return {"type": "string", "value": value}

    who = draft.provenance
    return {
        "title": described(draft.title),
        "created": described(timestamp(AT)),
        "project": described(who.project),
        "repo": described(who.repo),
        "model": described(who.model),
        "provider": described(who.provider),
        "agent": described(who.agent),
        "session_id": described(who.session),
        **({"tags": described(draft.tags)} if draft.tags else {}),
        "supersedes": described(draft.supersedes),
        "annotates": described(draft.annotates),
        **{key: described(value) for key, value in draft.extra.items()},
    }


def test_js_yaml_reads_every_field_and_tag_as_the_same_string() -> None:
    """Whatever a value looks like, both versions find a string, and the very same one."""
    assert (NODE / "node_modules" / "js-yaml-4").is_dir(), (
        "js-yaml is not installed: run `make setup`, or `npm install` in tests/node"
    )
    drafts = [draft for value in VALUES for draft in drafts_of(value)] + generated()
    assert len(drafts) > 300
    files = [entryfile.render(AT, draft).decode() for draft in drafts]
    blocks = [file.removeprefix("---\n").split("\n---\n", 1)[0] for file in files]
    finished = subprocess.run(
        ["node", "frontmatter.mjs"],
        cwd=NODE,
        input=json.dumps(blocks),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert finished.returncode == 0, finished.stderr
    answers = json.loads(finished.stdout)
    assert set(answers) == {"js-yaml 3", "js-yaml 4"}
    for reader, found in answers.items():
        for draft, fields in zip(drafts, found, strict=True):
            assert fields == expected(draft), (reader, draft.title)
