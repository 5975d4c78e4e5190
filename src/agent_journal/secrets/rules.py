"""The forms of credentials by their issuers: a beginning of its own, and what must follow it.

Only forms that hardly anything else has: what matches is masked, and lost for ever if that was
wrong. None is a copy of another tool's list: each says what its issuer documents.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from agent_journal.secrets.likeness import is_made_up, is_spoken

WORD = "[A-Za-z0-9]"
URL = "[A-Za-z0-9_-]"
HEX = "[0-9a-f]"
BASE64 = "[A-Za-z0-9+/]"
BASE32 = "[A-Z2-7]"
NO_FILE = (
    r"(?!\.(?:[cm]?js|css|map|json|html?|svg|png|jpe?g|webp|woff2?|txt|md|gz|br)(?![A-Za-z0-9]))"
)
NAMED = r"[\"']?\s{0,3}(?:=>|[:=])\s{0,3}[\"']?"


class Rule(NamedTuple):
    """How one kind of token is known.

    Attributes:
        kind: what it is called, in masks and messages.
        prefixes: how it begins; each is looked for by itself.
        shape: a regular expression of bounded length for what must follow.
        tail: the characters that prolong it; without it, its length is exact, and nothing that
            `shape` ends with may follow.
        glued: so much its own that it is known within a word, too.
        lead: what stands between the prefix and the secret; both are then no part of it.
        holds: a further test of what matched, prefix included.
        whole: the lengths that it is known to have without prefix and lead, though others may come.
    """

    kind: str
    prefixes: tuple[str, ...]
    shape: str
    tail: str = ""
    glued: bool = True
    lead: str = ""
    holds: Callable[[str], bool] | None = None
    whole: tuple[int, ...] = ()


class Pattern(NamedTuple):
    """How a token is known that has its mark within.

    Attributes:
        kind: what it is called.
        mark: what every one holds.
        form: the whole, bounded, with what may not stand around it.
        holds: a further test of what matched.
    """

    kind: str
    mark: str
    form: str
    holds: Callable[[str], bool] | None = None


class Forms(NamedTuple):
    """A rule's regular expressions."""

    lead: re.Pattern[str]
    shape: re.Pattern[str]
    tail: re.Pattern[str] | None


@cache
def forms(rule: Rule) -> Forms:
    """Return a rule's regular expressions, compiled when a text first holds its prefix."""
    tail = re.compile(f"{rule.tail}*+") if rule.tail else None
    return Forms(re.compile(rule.lead), re.compile(rule.shape), tail)


def is_credible(rule: Rule, prefix: str, body: str) -> bool:
    """Tell whether what has a rule's form is a token, and not what stands for one."""
    return not is_made_up(body) and (rule.holds is None or rule.holds(prefix + body))


def _encodes_a_private_key(text: str) -> bool:
    return b"PRIVATE KEY" in binascii.a2b_base64(text[:80])


def _names_a_bot(text: str) -> bool:
    """Tell whether the first part of a Discord token is the number of an account."""
    first = text.partition(".")[0]
    try:
        return binascii.a2b_base64(first + "=" * (-len(first) % 4)).isdigit()
    except binascii.Error:
        return False


def _has_openai_mark(text: str) -> bool:
    return "T3BlbkFJ" in text


def _mixes(text: str) -> bool:
    """Tell whether a text has letters of both cases, as random ones of this length have."""
    return text.lower() != text and text[4:].upper() != text[4:]


def _is_no_name(text: str) -> bool:
    """Tell whether what follows three characters is no identifier of words, such as a function's.

    Of those that are drawn one in a thousand reads so.
    """
    return _mixes(text) and not is_spoken(text[3:], _NAME_SHARE)


_NAME_SHARE = 0.75

RULES: tuple[Rule, ...] = (
    # Where code lives
    Rule("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), WORD + "{36}", WORD,
         whole=(36,)),
    Rule("github-token", ("github_pat_",), "[A-Za-z0-9_]{60}", "[A-Za-z0-9_]", whole=(82,)),
    Rule(
        "gitlab-token",
        ("glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-",
         "glcbt-", "gloas-", "glffct-", "glwt-"),
        rf"{URL}{{27,300}}\.[0-9a-z]{{2}}\.[0-9a-z]{{7,9}}|{URL}{{20}}",
        r"[A-Za-z0-9_.-]", whole=(20,),
    ),
    Rule("bitbucket-token", ("ATBB",), WORD + "{28}", "[A-Za-z0-9_=-]", glued=False, whole=(32,)),
    Rule("atlassian-token", ("ATATT3", "ATCTT3"), "[A-Za-z0-9_=-]{60}", "[A-Za-z0-9_=-]"),
    Rule("sourcegraph-token", ("sgp_",), f"(?:(?:{HEX}{{16}}|local)_)?{HEX}{{40}}"),
    # Where packages live
    Rule("npm-token", ("npm_",), WORD + "{36}", WORD, whole=(36,)),
    Rule("pypi-token", ("pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"), URL + "{50}", URL),
    Rule("rubygems-key", ("rubygems_",), HEX + "{48}"),
    Rule("crates-token", ("cio",), WORD + "{32}", glued=False, holds=_mixes),
    Rule("nuget-key", ("oy2",), "[a-z0-9]{43}", glued=False),
    Rule("docker-token", ("dckr_pat_", "dckr_oat_"), URL + "{27}", URL, whole=(27,)),
    Rule("artifactory-token", ("AKCp",), WORD + "{69}", glued=False),
    # Language models
    Rule("anthropic-key", ("sk-ant-",), r"[a-z0-9]{3,10}-" + URL + "{40}", URL, whole=(101, 103)),
    Rule("openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), URL + "{40}", URL),
    Rule("openai-key", ("sk-",), WORD + "{20}T3BlbkFJ" + WORD + "{20}", WORD,
         glued=False, holds=_has_openai_mark, whole=(48,)),
    Rule("openrouter-key", ("sk-or-v1-",), HEX + "{64}"),
    Rule("langfuse-key", ("sk-lf-",), f"{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}"),
    Rule("model-api-key", ("sk-",), f"(?!{HEX}{{32}}){WORD}{{48}}", glued=False, holds=_mixes),
    Rule("model-api-key", ("sk-",), HEX + "{32}" + NO_FILE, glued=False),
    Rule("groq-key", ("gsk_",), WORD + "{52}", WORD, whole=(52,)),
    Rule("xai-key", ("xai-",), WORD + "{80}", WORD, whole=(80,)),
    Rule("perplexity-key", ("pplx-",), WORD + "{48}", WORD, whole=(48,)),
    Rule("huggingface-token", ("hf_",), "[A-Za-z]{34}", glued=False, holds=_is_no_name),
    Rule("replicate-token", ("r8_",), WORD + "{37}", glued=False),
    Rule("nvidia-key", ("nvapi-",), URL + "{60}", URL, whole=(64,)),
    Rule("elevenlabs-key", ("sk_",), HEX + "{48}", glued=False),
    Rule("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), f"{HEX}{{32}}_{HEX}{{10}}"),
    Rule("pinecone-key", ("pcsk_",), "[A-Za-z0-9_]{50}", "[A-Za-z0-9_]", whole=(70,)),
    Rule("tavily-key", ("tvly-",), URL + "{32}", URL, whole=(32, 36)),
    Rule("sandbox-key", ("e2b_",), HEX + "{40}"),
    # Clouds and hosts
    Rule("aws-key-id", ("AKIA", "ASIA", "ABIA", "ACCA"), BASE32 + "{16}", glued=False),
    Rule(
        "aws-secret-key",
        ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey",
         "secret_access_key", "aws_secret_key", "AWS_SECRET_KEY", "awsSecretAccessKey"),
        BASE64 + "{40}", lead=NAMED,
    ),
    Rule("aws-session-token", ("IQoJb3JpZ2lu", "FwoGZXIvYXdz"), BASE64 + "{100}", "[A-Za-z0-9+/=]"),
    Rule("aws-bedrock-key", ("ABSK",), BASE64 + "{109}", "[A-Za-z0-9+/=]", glued=False,
         whole=(128,)),
    Rule("google-api-key", ("AIza",), URL + "{35}", glued=False),
    Rule("google-oauth-secret", ("GOCSPX-",), URL + "{28}"),
    Rule("google-oauth-token", ("ya29.",), URL + "{40}", "[A-Za-z0-9_.-]"),
    Rule("google-refresh-token", ("1//0",), URL + "{40}", URL, glued=False),
    Rule("azure-storage-key", ("AccountKey=", "SharedAccessKey="), BASE64 + "{42}",
         "[A-Za-z0-9+/=]", lead=" ?", whole=(44, 88)),
    Rule("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), HEX + "{64}"),
    Rule("alibaba-key-id", ("LTAI",), WORD + "{20}", glued=False, holds=_mixes),
    Rule("heroku-key", ("HRKU-AA",), URL + "{50}", URL, whole=(58,)),
    Rule("fly-token", ("fm2_", "fo1_"), r"[A-Za-z0-9+/_-]{40}", "[A-Za-z0-9+/=_,-]", glued=False),
    Rule("netlify-token", ("nfp_",), WORD + "{36}", WORD, whole=(36,)),
    Rule("supabase-key", ("sbp_",), HEX + "{40}"),
    Rule("supabase-key", ("sb_secret_",), URL + "{30}", URL, whole=(31,)),
    Rule("planetscale-token", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"), r"[\w.=-]{32}",
         r"[A-Za-z0-9_.=-]"),
    Rule("tailscale-key", ("tskey-",), r"(?:auth|api|client|scim|webhook)-\w{8,20}-\w{20}", WORD),
    Rule("databricks-token", ("dapi",), HEX + r"{32}(?:-\d)?", glued=False),
    Rule("pulumi-token", ("pul-",), HEX + "{40}", glued=False),
    Rule("vault-token", ("hvs.", "hvb.", "hvr."), URL + "{24}", URL, glued=False),
    Rule("doppler-token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
         r"[A-Za-z0-9._-]{40}", r"[A-Za-z0-9._-]", glued=False),
    Rule("1password-token", ("ops_eyJ",), BASE64 + "{200}", "[A-Za-z0-9+/=_-]"),
    Rule("age-key", ("AGE-SECRET-KEY-1",), "[A-Z0-9]{58}"),
    # What watches and builds
    Rule("grafana-token", ("glsa_",), f"{WORD}{{32}}_[0-9A-Fa-f]{{8}}"),
    Rule("grafana-token", ("glc_",), BASE64 + "{32}", "[A-Za-z0-9+/=]", glued=False),
    Rule("sentry-token", ("sntryu_",), HEX + "{64}"),
    Rule("sentry-token", ("sntrys_eyJ",), BASE64 + "{80}", "[A-Za-z0-9+/=_]"),
    Rule("new-relic-key", ("NRAK-",), "[A-Z0-9]{27}"),
    Rule("dynatrace-token", ("dt0c01.", "dt0s01.", "dt0s16."), r"[A-Z2-7]{24}\.[A-Z2-7]{64}"),
    Rule("buildkite-token", ("bkua_",), HEX + "{40}"),
    Rule("circleci-token", ("CCIPAT_",), f"{WORD}{{16,24}}_{HEX}{{40}}"),
    Rule("postman-key", ("PMAK-",), f"{HEX}{{24}}-{HEX}{{34}}"),
    Rule("posthog-key", ("phx_",), WORD + "{40}", WORD, whole=(43,)),
    # Messages and mail
    Rule("slack-token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-"),
         rf"(?:\d{{9,14}}-){{2,3}}(?:{HEX}{{32}}|{WORD}{{24}})|[A-Za-z0-9%-]{{24}}",
         r"[A-Za-z0-9%/+=-]"),
    Rule("slack-token", ("xapp-",), rf"\d-[A-Z0-9]{{6,14}}-\d{{9,14}}-{HEX}{{64}}"),
    Rule("slack-token", ("xoxe-", "xoxe.", "xapp-"), "[A-Za-z0-9.-]{30}", "[A-Za-z0-9.-]"),
    Rule("slack-webhook", ("hooks.slack.com/",), WORD + "{20}", WORD,
         lead=r"(?:services|workflows|triggers)/[A-Z0-9]{6,14}/[A-Z0-9]{6,14}/", whole=(24,)),
    Rule("discord-webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
         URL + "{60}", URL, lead=r"\d{16,20}/", whole=(68,)),
    Rule("sendgrid-key", ("SG.",), URL + r"{22}\." + URL + "{43}", glued=False),
    Rule("resend-key", ("re_",), WORD + "{8}_" + WORD + "{24}", glued=False),
    Rule("brevo-key", ("xkeysib-",), HEX + "{64}-" + WORD + "{16}"),
    # Money and shops
    Rule("stripe-key", ("sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_", "rk_prod_"),
         WORD + "{20}", WORD, whole=(24, 99)),
    Rule("stripe-webhook-secret", ("whsec_",), BASE64 + "{32}", "[A-Za-z0-9+/=]", whole=(32,)),
    Rule("square-token", ("sq0atp-",), URL + "{22}"),
    Rule("square-token", ("sq0csp-",), URL + "{43}"),
    Rule("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), "[0-9a-fA-F]{32}"),
    Rule("shippo-token", ("shippo_live_", "shippo_test_"), HEX + "{40}"),
    # Work
    Rule("linear-key", ("lin_api_", "lin_oauth_"), WORD + "{40}", WORD, whole=(40,)),
    Rule("notion-token", ("ntn_",), r"\d{11}" + WORD + "{35}", WORD, whole=(46,)),
    Rule("notion-token", ("secret_",), WORD + "{43}", glued=False, holds=_mixes),
    Rule("figma-token", ("figd_",), URL + "{36}", URL, whole=(40,)),
    Rule("airtable-token", ("pat",), WORD + r"{14}\." + HEX + "{64}", glued=False),
    Rule("encoded-private-key", ("LS0tLS1CRUdJTi",), BASE64 + "{66}", "[A-Za-z0-9+/=]",
         holds=_encodes_a_private_key),
)  # fmt: skip

PATTERNS: tuple[Pattern, ...] = (
    Pattern("telegram-token", ":AA", r"(?<![\w:])\d{8,10}:AA[A-Za-z0-9_-]{33}(?![\w-])"),
    Pattern(
        "azure-client-secret", "Q~", r"(?<![\w~.])[\w~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~-])"
    ),
    Pattern("terraform-token", ".atlasv1.", r"(?<!\w)\w{14}\.atlasv1\.[A-Za-z0-9_=-]{60,100}"),
    Pattern("mailchimp-key", "-us", r"(?<!\w)[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    Pattern(
        "discord-token",
        ".",
        r"(?<![\w.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![\w-])",
        _names_a_bot,
    ),
)
