"""Which secrets are found in text, and that nothing else is touched."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drafts import DRAFTS
from tests.secrets.caught import URL, Draw, encoded, key_block, placed, tokens, web_token
from tests.secrets.spared import SPARED

from agent_journal.errors import SecretsFoundError, TitleTooLongError
from agent_journal.model import Draft, Provenance, Screening
from agent_journal.secrets.finding import find, mask
from agent_journal.secrets.policy import Policy
from agent_journal.secrets.rules import RULES
from agent_journal.secrets.screening import screen
from agent_journal.secrets.suspicion import suspect

CAUGHT = list(tokens())
PLACED = list(placed())
MULTILINE = "private-key"
TAIL = 8
"""So many characters in a row are a tail that somebody could use, or go on from."""


def tails(secret: str, text: str) -> list[str]:
    """Return the parts of a secret that stand in a text, but for its prefix and its marks."""
    body = secret[10:] if "PRIVATE" not in secret else "".join(secret.splitlines()[1:-1])
    parts = [body[start : start + TAIL] for start in range(len(body) - TAIL + 1)]
    return [part for part in parts if part in text]


def named(secrets: list[tuple[str, str]]) -> list[str]:
    """Return an id for each parameter, so that no test is named by a secret."""
    return [f"{kind}-{number}" for number, (kind, _) in enumerate(secrets)]


def test_the_corpora_are_large_enough() -> None:
    """At least fifty that must be found, fifty that must not be, and one of every kind of rule."""
    assert len(CAUGHT) + len(PLACED) >= 50
    assert len(SPARED) >= 50
    kinds = {kind for kind, *_ in [*CAUGHT, *PLACED]}
    assert {rule.kind for rule in RULES} <= kinds


SPELLINGS: dict[str, Callable[[str], str]] = {
    "json": lambda secret: json.dumps({"a": [secret]}),
    "json in json": lambda secret: json.dumps(json.dumps({"a": secret})),
    "escaped marks": lambda secret: secret.replace("-", "\\u002d").replace("_", "\\u005f"),
    "url": lambda secret: quote(secret, safe=""),
    "all of it for urls": lambda secret: "".join(f"%{ord(letter):02X}" for letter in secret),
    "escaped slashes": lambda secret: secret.replace("/", "\\/"),
    "unseen": "\u200b".join,
    "turned": "\u200e".join,
    "overridden": "\u202e".join,
    "applied": "\u2061".join,
    "joined": "\u034f".join,
    "coloured": lambda secret: f"{secret[:12]}\x1b[1m{secret[12:]}",
    "coloured by parts": lambda secret: f"{secret[:12]}\x1b[38:5:1m{secret[12:]}",
    "in another set": lambda secret: f"{secret[:12]}\x1b(B{secret[12:]}",
    "crlf": lambda secret: secret.replace("\n", "\r\n"),
}

QUOTATIONS: dict[str, Callable[[str], str]] = {
    "as it is": lambda block: block,
    "crlf": lambda block: block.replace("\n", "\r\n"),
    "escaped": lambda block: block.replace("\n", "\\n"),
    "escaped twice": lambda block: block.replace("\n", "\\\\n"),
    "indented": lambda block: block.replace("\n", "\n    "),
    "quoted": lambda block: block.replace("\n", "\n> "),
    "commented": lambda block: block.replace("\n", "\n# "),
    "in code": lambda block: block.replace("\n", '\\n" +\n  "'),
    "url": lambda block: quote(block, safe=""),
    "on one line": lambda block: block.replace("\n", ""),
    "spaced": lambda block: block.replace("\n", "\n\n"),
    "with a header": lambda block: block.replace("\n", "\nProc-Type: 4,ENCRYPTED\n\n", 1),
    "with headers on one line": lambda block: block.replace(
        "\n", " Proc-Type: 4,ENCRYPTED DEK-Info: AES-128-CBC,0F1E2D3C4B5A69788796A5B4C3D2E1F0 ", 1
    ).replace("\n", " "),
    "armoured": lambda block: "\n=aB3d\n---".join(
        block.replace("\n", "\nVersion: GnuPG v2\nComment: of Jane's\n\n", 1).rsplit("\n---", 1)
    ),
    "spaced on one line": lambda block: block.replace("\n", " "),
    "listed": lambda block: block.replace("\n", '",\n  "'),
    "marked up": lambda block: block.replace("\n", "<br/>"),
    "numbered": lambda block: "".join(
        f"{number:3}\t{line}\n" if number else line + "\n"
        for number, line in enumerate(block.splitlines())
    ).rstrip("\n"),
    "logged": lambda block: block.replace("\n", "\n2026-01-31 18:00:00,123 INFO app: "),
    "narrow": lambda block: "\n".join(
        line[at : at + 24] if "-----" not in line else line
        for line in block.splitlines()
        for at in range(0, len(line) if "-----" not in line else 1, 24)
    ),
    "with a gap": lambda block: "\n".join(
        "[...]" if number in (3, 6) else line for number, line in enumerate(block.split("\n"))
    ),
    "with a gap that is told": lambda block: block.replace("\n", "\n<snip>\n", 3),
}


class TestMasking:
    """Exactly the secret goes, wherever it stands."""

    @pytest.mark.parametrize(("kind", "secret"), CAUGHT, ids=named(CAUGHT))
    def test_a_secret_is_masked_and_nothing_else(self, kind: str, secret: str) -> None:
        """What stands around it stays, and its kind and number are told."""
        masked, counts = mask(f"Before it {secret} after it.")
        assert masked == f"Before it [masked:{kind}] after it."
        assert counts == {kind: 1}

    @pytest.mark.parametrize(
        ("kind", "before", "secret", "after"),
        PLACED,
        ids=[f"{one[0]}-{n}" for n, one in enumerate(PLACED)],
    )
    def test_what_a_secret_is_known_by_stays(
        self, kind: str, before: str, secret: str, after: str
    ) -> None:
        """User, host, name and header are no secrets."""
        masked, counts = mask(f"x {before}{secret}{after} y")
        assert masked == f"x {before}[masked:{kind}]{after} y"
        assert counts == {kind: 1}

    @pytest.mark.parametrize("seed", range(1, 6))
    def test_it_does_not_depend_on_chance(self, seed: int) -> None:
        """Other secrets of the same forms are found, too."""
        for kind, secret in tokens(seed):
            assert mask(f"is {secret} here")[0] == f"is [masked:{kind}] here"
        for kind, before, secret, after in placed(seed):
            masked = mask(f"x {before}{secret}{after} y")[0]
            assert masked == f"x {before}[masked:{kind}]{after} y"

    @pytest.mark.parametrize("text", SPARED)
    def test_what_only_looks_like_one_is_left_alone(self, text: str) -> None:
        """Not a byte is changed, and nothing is suspected."""
        assert mask(text) == (text, {})
        assert suspect(text) == {}

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ('"', '"'), ("'", "',"), ("`", "`"), ("(", ")"), ("<", ">"), ("[", "]"), ("**", "**"),
            ("KEY=", "\n"), ("key: ", " # x"), ("\t", "\t"), ("漢", "漢"), ("“", "”"), ("|", "|"),
            ("\\n", "\\n"), ("\\u003d", "\\u0026"), ("%3D", "%26"), ("%20", "%0A"),
            ("\\\\n", "\\\\"),
            ("\x1b[31m", "\x1b[0m"), ("\u200b", "\u200b"), ("\ufeff", ""), ("", ""),
            ("?k=", "&a=b"),
            ("ends a sentence: ", ". And"), ("a list: ", ", then"), ("-", " "), ("@", " "),
        ],
    )  # fmt: skip
    def test_what_touches_it_stays(self, before: str, after: str) -> None:
        """Quotes, escapes, markup and punctuation right beside a secret are kept."""
        for kind, secret in CAUGHT:
            if kind in ("fly-token", "slack-token") and after[:1] in ",%":
                continue  # they may hold these themselves
            if kind == "discord-token" and before == "-":
                continue
            assert mask(f"{before}{secret}{after}")[0] == f"{before}[masked:{kind}]{after}", kind

    def test_it_is_found_within_a_word(self) -> None:
        """A prefix that is hardly ever a word's part is enough, whatever it is glued to."""
        secret = "gh" + "p_" + Draw(1)(36)
        assert mask(f"mytoken{secret}")[0] == "mytoken[masked:github-token]"
        assert tails(secret, mask(f"{secret}andmore")[0]) == []
        both = secret + "gl" + "pat-" + Draw(2)(20)
        assert mask(both)[0] == "[masked:github-token]"

    def test_secrets_side_by_side_are_all_masked(self) -> None:
        """With hardly anything between them, and one within another."""
        secrets = [secret for kind, secret in CAUGHT if kind != MULTILINE]
        for border in (" ", "\n", ",", '","', "|", "&"):
            masked, _ = mask(border.join(secrets))
            assert [tail for secret in secrets for tail in tails(secret, masked)] == []
        token = "gh" + "p_" + Draw(3)(36)
        url = f"https://x-access-token:{token}@github.com/acme/shop"
        assert mask(url)[0].startswith("https://x-access-token:[masked:")
        assert mask(url)[0].endswith("]@github.com/acme/shop")
        assert tails(token, mask(f"https://{token}@github.com/a/b")[0]) == []

    @pytest.mark.parametrize("spelling", SPELLINGS)
    def test_no_spelling_leaves_a_tail(self, spelling: str) -> None:
        """Escaped once or twice, encoded for URLs, coloured, or strewn with what can't be seen."""
        for kind, secret in CAUGHT:
            spelled = SPELLINGS[spelling](secret)
            masked, counts = mask(f"a {spelled} b")
            assert counts == {kind: 1}, kind
            assert masked.startswith("a ")
            assert masked.endswith(" b")
            assert tails(secret, re.sub("[\u034f\u200b\u200e\u202e\u2061]", "", masked)) == []

    @pytest.mark.parametrize("width", [40, 60, 64, 72, 76, 80, 120])
    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\\\n", "\n    "])
    def test_a_wrapped_one_leaves_no_tail(self, width: int, line_end: str) -> None:
        """Cut at any width, with or without an indent; words that follow stay."""
        for kind, secret in CAUGHT:
            if kind == MULTILINE or kind in {"discord-token", "telegram-token", "terraform-token"}:
                continue
            pieces = [secret[at : at + width] for at in range(0, len(secret), width)]
            if len(pieces[-1]) < 2:
                continue
            masked, _ = mask(f"Key:\n{line_end.join(pieces)}\nThe end\nof it.")
            assert tails(secret, masked) == [], kind
            assert masked.startswith("Key:\n")
            assert masked.endswith("\nThe end\nof it."), kind

    @pytest.mark.parametrize(
        "line",
        [
            "deadbeefcafe1234", "v2", "HTTP2", "npm7", "Deploy2Prod", "nextHost01", "x86_64",
            "main.py:12", "2026-01-31", "20260131-180000-000", "fixed", "Done", "next_step",
            "retry-with-backoff", "JIRA-1234", "k8s-node-01",
            "123e4567-e89b-12d3-a456-426614174000",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "msg_01XFDUDYJgAACzvnptvVoYEL", "getUserProfileSettingsFromDatabaseOrCache2",
            "src/Config2", "a1b2\nmore words", "TypeScript5, and more", "PostgreSQL15",
        ],
    )  # fmt: skip
    def test_the_line_after_a_whole_one_stays(self, line: str) -> None:
        """Be it a word, a name with a number, an identifier or a place in a file."""
        for lead in ("", "Tokens found today:\n", "export TOKEN="):
            for kind, secret in CAUGHT:
                masked = mask(f"{lead}{secret}\n{line}\nfixed")[0]
                assert masked == f"{lead}[masked:{kind}]\n{line}\nfixed", kind

    @pytest.mark.parametrize("seed", range(1, 4))
    @pytest.mark.parametrize("width", [64, 80, 100])
    def test_the_line_after_a_wrapped_one_stays(self, width: int, seed: int) -> None:
        """Where its lines end, it ends."""
        for kind, secret in tokens(seed):
            pieces = [secret[at : at + width] for at in range(0, len(secret), width)]
            if kind == MULTILINE or len(pieces) < 3 or len(pieces[-1]) in (width, *range(8)):
                continue
            masked = mask("\n".join(pieces) + "\ndeploy2prod\nDeploy2Prod")[0]
            assert masked.endswith("\ndeploy2prod\nDeploy2Prod"), kind


class TestKeyBlocks:
    """Private keys go whole, however they are quoted and wherever they break off."""

    BLOCK = key_block(Draw(10))

    @pytest.mark.parametrize("quotation", QUOTATIONS)
    def test_a_block_goes_whole(self, quotation: str) -> None:
        """From the first dash to the last."""
        masked, counts = mask(f"before\n{QUOTATIONS[quotation](self.BLOCK)}\nafter the key")
        assert masked == "before\n[masked:private-key]\nafter the key"
        assert counts == {"private-key": 1}

    @pytest.mark.parametrize("kept", [2, 5, 9, 10])
    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\\n", "\n  "])
    def test_a_block_without_an_end_leaves_no_tail(self, kept: int, line_end: str) -> None:
        """All its lines go; the text after it stays."""
        lines = self.BLOCK.splitlines()[:kept]
        masked, counts = mask(f"a\n{line_end.join(lines)}\nThen it was cut off.")
        assert masked == "a\n[masked:private-key]\nThen it was cut off."
        assert counts == {"private-key": 1}

    def test_one_cut_off_within_a_line_leaves_no_tail(self) -> None:
        """At the very end of a text, too."""
        cut = self.BLOCK[: len(self.BLOCK) // 2]
        assert mask(cut) == ("[masked:private-key]", {"private-key": 1})

    def test_words_between_lines_of_a_key_stay(self) -> None:
        """What is no part of it, though it stands between its marks."""
        begin, *lines, end = self.BLOCK.splitlines()
        words = "Here some are left out, since\nnobody needs them all."
        text = "\n".join([begin, *lines[:3], words, *lines[3:], end])
        assert mask(text)[0] == f"[masked:private-key]\n{words}\n[masked:private-key]"
        text = f"It begins with {begin}, and then:\n" + "\n".join([*lines, end])
        assert mask(text)[0] == f"It begins with {begin}, and then:\n[masked:private-key]"

    @pytest.mark.parametrize("word", ["fixed", "v2", "Deploy2Prod", "x86_64", "deadbeefcafe1234"])
    def test_a_word_after_one_without_an_end_stays(self, word: str) -> None:
        """On a line of its own it is no rest of a key, though it is of the same characters."""
        cut = "\n".join(self.BLOCK.splitlines()[:5])
        assert mask(f"{cut}\n{word}\nand more")[0] == f"[masked:private-key]\n{word}\nand more"

    def test_two_blocks_are_two(self) -> None:
        """What stands between them stays, and so does a certificate."""
        certificate = SPARED[[text.startswith("-----BEGIN CERT") for text in SPARED].index(True)]
        other = key_block(Draw(11), "EC ", 2)
        masked, _ = mask(f"{self.BLOCK}\n{certificate}\n{other}")
        assert masked == f"[masked:private-key]\n{certificate}\n[masked:private-key]"

    def test_putty_keys_lose_their_private_lines(self) -> None:
        """The public ones and the checksum stay."""
        draw = Draw(12)
        public, private = "\n".join(draw.key_lines(3)), "\n".join(draw.key_lines(6))
        head = f"PuTTY-User-Key-File-3: ssh-rsa\nPublic-Lines: 4\n{public}\nPrivate-Lines: 7"
        masked, _ = mask(f"{head}\n{private}\nPrivate-MAC: {draw(64, '0123456789abcdef')}")
        assert masked.startswith(f"{head}[masked:private-key]\nPrivate-MAC: ")


class TestWebTokens:
    """Signed tokens are known by a header that can be read."""

    def test_encrypted_ones_have_five_parts(self) -> None:
        """All of them go."""
        draw = Draw(20)
        header = web_token(draw).split(".")[0]
        token = ".".join([header, *(draw(length, URL) for length in (342, 16, 80, 22))])
        assert mask(f"a {token} b")[0] == "a [masked:json-web-token] b"

    @pytest.mark.parametrize("space", [" ", "\n", "\r\n  "])
    def test_a_header_may_be_spaced(self, space: str) -> None:
        """As some libraries write JSON."""
        draw = Draw(23)
        token = ".".join(
            [encoded(f'{{{space}"alg":{space}"HS256" }}'), *web_token(draw).split(".")[1:]]
        )
        assert mask(f"a {token} b")[0] == "a [masked:json-web-token] b"

    @pytest.mark.parametrize("width", [50, 64, 76])
    def test_a_wrapped_one_leaves_no_tail(self, width: int) -> None:
        """Its signature ends where its lines do."""
        token = web_token(Draw(21), "RS256", 342)
        pieces = [token[at : at + width] for at in range(0, len(token), width)]
        masked = mask("\n".join(pieces) + "\n\nNext words")[0]
        assert masked == "[masked:json-web-token]\n\nNext words"

    @pytest.mark.parametrize("header", ["eyJ" + "A" * 30, "eyJub3QiOiJhIHRva2VuIn0xxxxx"])
    def test_other_things_in_base64_are_none(self, header: str) -> None:
        """No JSON, or JSON without an algorithm."""
        text = f"{header}.{web_token(Draw(22)).split('.')[1]}.{'sig' * 20}"
        assert mask(text) == (text, {})


PIECES = st.one_of(
    st.sampled_from(
        [
            "ghp_", "gl" + "pat-", "sk-", "sk-ant-api03-", "xoxb-", "AK" + "IA", "eyJ", ".eyJ",
            "://",
            ":", "@", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", "\r\n",
            "\\n",
            "\\u0041", "%41", "%", "\\", " ", '"', "\u200b", "\x1b[1m", "[masked:github-token]",
            "[masked:", "password=", "?password=", "Basic ", "AccountKey=",
            "aws_secret_access_key=",
            "Private-Lines: 3", ".", "-", "_", "=", "+", "/", "漢", "😀",
        ]
    ),
    st.sampled_from([secret for _, secret in CAUGHT]),
    st.sampled_from([secret[: len(secret) // 2] for _, secret in CAUGHT]),
    st.text("aB3xY9zQ", min_size=1, max_size=40),
    st.text(max_size=5),
)  # fmt: skip


class TestLaws:
    """What holds for every text."""

    @given(st.lists(PIECES, max_size=12).map("".join))
    def test_masking_a_masked_text_changes_nothing(self, text: str) -> None:
        """So an entry may pass the door twice, as when it is exported and imported."""
        masked, _ = mask(text)
        assert mask(masked) == (masked, {})

    @given(st.lists(PIECES, max_size=12).map("".join))
    def test_secrets_lie_apart_and_in_order(self, text: str) -> None:
        """Each is a part of the text, and all between them is kept, byte for byte."""
        found = find(text)
        assert all(0 <= span.start < span.end <= len(text) for span in found)
        assert all(a.end <= b.start for a, b in pairwise(found))

    @given(
        st.lists(
            st.one_of(
                st.sampled_from([secret for kind, secret in CAUGHT if kind != MULTILINE]),
                st.text(
                    st.characters(exclude_categories=["Cs"], exclude_characters="%\\\n\r\x1b"),
                    max_size=12,
                ).filter(lambda text: mask(text)[0] == text),
            ),
            max_size=6,
        )
    )
    def test_every_other_byte_is_kept(self, parts: list[str]) -> None:
        """A text of any words and secrets becomes the same text with masks for the secrets."""
        kinds = {secret: kind for kind, secret in CAUGHT}
        expected = "\n\n".join(
            f"[masked:{kinds[part]}]" if part in kinds else part for part in parts
        )
        assert mask("\n\n".join(parts))[0] == expected


HOSTILE = {
    "prefixes": "gh" + "p_",
    "prefixes in their own alphabet": "xo" + "xb-",
    "long prefixes": "sk-ant-" + "api03-",
    "headers": "eyJ",
    "headers with dots": ".eyJ",
    "spaced headers": "ewo.eyA",
    "headers with dashes": "-eyJ",
    "beginnings of keys": "-----BEGIN PRIVATE KEY-----",
    "private lines": "Private-Lines: 3\n",
    "schemes": "://",
    "passwords": "a://b:c@",
    "parameters": "?password=",
    "names": "aws_secret_access_key = ",
    "percents": "%41",
    "backslashes": "\\",
    "escaped lines": "\\n",
    "lines": "\n",
    "blanks": " ",
    "marks of keys around lines": "-----BEGIN PRIVATE KEY-----\n"
    + "Words\n" * 900
    + "-----END PRIVATE KEY-----",
    "punctuation in a block": "-----BEGIN PRIVATE KEY-----" + "+ a, " * 9000,
    "nothing to be seen": "\u200b",
    "colours": "\x1b[0",
    "one letter": "a",
    "dots": "a.",
    "bots": "1234567:A" + "A",
    "logins": "Basic ",
    "tokens": "gl" + "pat-" + Draw(30)(20, URL) + "\n",
    "key lines": Draw(31)(76) + "\n",
    "assignments": "token = ",
    "quotes": "token='",
}


@pytest.mark.parametrize(
    "limit", [2**18, pytest.param(2**20, marks=pytest.mark.prove)], ids=["quick", "whole"]
)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_more_than_linear_time(name: str, limit: int) -> None:
    """A body of up to 1 MiB takes at most four times as long a byte as one of a sixteenth."""

    def seconds(size: int) -> float:
        text = (HOSTILE[name] * (size // len(HOSTILE[name]) + 1))[:size]
        begun = time.thread_time()
        suspect(mask(text)[0])
        return time.thread_time() - begun

    small = max(min(seconds(limit // 16) for _ in range(3)), 0.002)
    assert seconds(limit) < 4 * 16 * small


class TestSuspicion:
    """What no rule is sure of is counted, and left alone."""

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("password = 'hunter2x9'", "named-secret"),
            ('"api_key": "q7w3-e9r2-t5y8"', "named-secret"),
            ("DB_PASSWORD: k9Lm2Pq", "named-secret"),
            ("Authorization: Bearer q8Kd02mZx7Wp4sTn6Yb3", "sent-secret"),
            ("curl -u jane:s3cr3tpw https://a.test", "sent-secret"),
            ("machine h login jane password q8Kd02mZ", "sent-secret"),
            (f"it is {Draw(40)(40)} now", "random-text"),
        ],
    )
    def test_a_likely_one_is_counted(self, text: str, kind: str) -> None:
        """By its name, by how it is sent, or by its looks."""
        assert suspect(text) == {kind: 1}
        assert mask(text) == (text, {})


class TestScreening:
    """The door: every text of a draft passes it, under the policy."""

    KEY = "gh" + "p_" + Draw(50)(36)
    MASK = "[masked:github-token]"

    def draft(self) -> Draft:
        """Return a draft that holds a secret in each of its fields."""
        return Draft(
            title=f"Token {self.KEY}",
            body=f"It is {self.KEY}.\n\nMore.",
            tags=["ci", self.KEY],
            provenance=Provenance(
                project=f"/src/{self.KEY}", session=self.KEY, repo=f"https://{self.KEY}@x.test/a"
            ),
            created=datetime(2026, 1, 31, tzinfo=UTC),
            extra={
                "remote": f"https://jane:{Draw(51)(9)}@git.shop.test/a",
                f"of {self.KEY}": ["a", {"b": self.KEY}, 3, None, True],
                "aws_secret_access_key": Draw(52)(40),
            },
        )

    def test_every_field_is_masked(self) -> None:
        """Title, body, tags, provenance and extra, at any depth; the rest is as it was."""
        draft = self.draft()
        screened, found = screen(draft, "mask")
        assert screened == Draft(
            title=f"Token {self.MASK}",
            body=f"It is {self.MASK}.\n\nMore.",
            tags=["ci", self.MASK],
            provenance=Provenance(
                project=f"/src/{self.MASK}",
                session=self.MASK,
                repo=f"https://{self.MASK}@x.test/a",
            ),
            created=draft.created,
            extra={
                "remote": "https://jane:[masked:url-password]@git.shop.test/a",
                f"of {self.MASK}": ["a", {"b": self.MASK}, 3, None, True],
                "aws_secret_access_key": "[masked:aws-secret-key]",
            },
        )
        assert found.masked == {"github-token": 8, "url-password": 1, "aws-secret-key": 1}
        assert screen(screened, "mask") == (screened, Screening())

    def test_refusal_names_the_field_and_the_kinds_alone(self) -> None:
        """Neither the error nor its notes and facts hold any of the secret."""
        with pytest.raises(SecretsFoundError) as caught:
            screen(self.draft(), "refuse")
        assert caught.value.field == "title"
        assert caught.value.kinds["github-token"] == 8
        told = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
        assert tails(self.KEY, told) == []
        with pytest.raises(SecretsFoundError, match=r"body .* \(1 github-token\)"):
            screen(Draft("a", self.KEY), "refuse")

    def test_allowed_is_written_as_it_is(self) -> None:
        """Nothing is looked for."""
        draft = self.draft()
        assert screen(draft, "allow") == (draft, Screening())

    @pytest.mark.parametrize("policy", ["mask", "refuse"])
    def test_suspicion_changes_nothing(self, policy: Policy) -> None:
        """It is told, and no more."""
        draft = Draft("a", "password = 'hunter2x9'", extra={"db_password": "q8Kd02mZ"})
        assert screen(draft, policy) == (draft, Screening(suspected={"named-secret": 2}))

    def test_names_that_differ_in_a_secret_stay_apart(self) -> None:
        """No value is lost when masks make two names the same."""
        other = "gh" + "p_" + Draw(53)(36)
        screened, _ = screen(Draft("a", extra={self.KEY: 1, other: 2}), "mask")
        assert screened.extra == {self.MASK: 1, f"{self.MASK} 2": 2}

    def test_a_title_may_become_too_long(self) -> None:
        """Then it is refused as any other, and nothing of it is cut off."""
        title = f"redis://:a1b2@h {'x' * 284}"
        assert len(title) == 300
        with pytest.raises(TitleTooLongError):
            screen(Draft(title), "mask")

    def test_a_name_that_ends_in_a_secret_hides_no_value(self) -> None:
        """Names and values are looked at together, and by themselves."""
        name = "postgres://u:pass1"
        screened, _ = screen(Draft("a", extra={name: f"x@h {self.KEY}"}), "mask")
        assert screened.extra == {name: f"x@h {self.MASK}"}

    @given(DRAFTS)
    def test_drafts_without_secrets_pass_unchanged(self, draft: Draft) -> None:
        """The very same draft goes on."""
        screened, found = screen(draft, "mask")
        assert screened is draft or found.masked
