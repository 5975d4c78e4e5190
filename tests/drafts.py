"""Drafts of any kind, for laws that hold for all of them."""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

from agent_journal.model import FRONTMATTER_KEYS, Draft, Provenance, Value

# Half of the text is what other readers take for something else.
TRAPS = [
    "1e5", "0o17", "12e03", "0x10", "~", "yes", "null", "2026-01-01", "a: b", '"quoted"', "'q'",
    "# no comment", "- dash", "[x", "{x", "*a", "&a", "!t", "%d", "@a", "`a`", "| x", "> x", "<<",
    "a\\b", "a\x1bb", "a\x7fb", "a\x85b", "a\u2028b", "a\ufeffb", "\ufffe", "x\U0001fffe", "👩‍👩‍👧",
    "שלום", "---", "...",
]  # fmt: skip
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXT = st.one_of(st.sampled_from(TRAPS), st.text(CHARACTERS, max_size=30))
# Joined, since st.text merges what it is given into one set of characters, without their weights.
LINES = st.lists(st.one_of(CHARACTERS, st.sampled_from("\n-# ")), max_size=200).map("".join)
TITLES = TEXT.filter(lambda text: text.strip() != "")
SCALARS = st.one_of(
    TEXT, st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=True)
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
KEYS = st.one_of(TEXT, st.text("kl", min_size=1020, max_size=1030)).filter(
    lambda key: key != "" and key not in FRONTMATTER_KEYS
)
DRAFTS = st.builds(
    Draft,
    title=TITLES,
    body=st.one_of(TEXT, LINES),
    tags=st.lists(TEXT, max_size=5),
    provenance=st.builds(Provenance, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT),
    created=st.none(),
    extra=st.dictionaries(KEYS, VALUES, max_size=4),
    supersedes=st.one_of(TEXT, st.lists(TEXT, max_size=3)),
    annotates=st.lists(TEXT, max_size=3),
)
INSTANTS = st.datetimes(timezones=st.just(UTC))
