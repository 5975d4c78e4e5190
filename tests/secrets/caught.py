"""Credentials of many issuers, drawn at random: none of them was ever valid, or stands in a file.

Each is put together from its parts when it is asked for, so that no scanner takes this file, or a
clone of it, for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator

WORD = string.ascii_letters + string.digits
URL = WORD + "-_"
BASE64 = WORD + "+/"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
UPPER = string.ascii_uppercase + string.digits


class Draw:
    """Random parts of credentials, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - they protect nothing

    def __call__(self, length: int, alphabet: str = WORD) -> str:
        """Return so many characters, the first and last of them letters or digits."""
        inner = "".join(self._random.choice(alphabet) for _ in range(length - 2))
        solid = [character for character in alphabet if character.isalnum()]
        return f"{self._random.choice(solid)}{inner}{self._random.choice(solid)}"

    def digits(self, length: int) -> str:
        """Return so many digits, none of them 0."""
        return self(length, "123456789")

    def uuid(self) -> str:
        """Return an identifier of the usual form."""
        return "-".join(self(length, HEX) for length in (8, 4, 4, 4, 12))

    def key_lines(self, count: int = 8, width: int = 64) -> list[str]:
        """Return lines of a key as PEM holds them, the last one shorter."""
        return [*(self(width, BASE64) for _ in range(count)), self(width // 3, BASE64) + "="]


def encoded(text: str | dict[str, object]) -> str:
    """Return a text, or JSON of a mapping, in base64 for URLs without padding."""
    raw = text if isinstance(text, str) else json.dumps(text, separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def web_token(draw: Draw, algorithm: str = "HS256", signature: int = 43) -> str:
    """Return a signed JSON web token."""
    header = encoded({"alg": algorithm, "typ": "JWT"})
    payload = encoded({"iss": draw(8), "sub": draw(12), "exp": 1_790_000_000})
    return ".".join([header, payload, draw(signature, URL)])


def key_block(draw: Draw, name: str = "RSA ", lines: int = 8) -> str:
    """Return a private key as PEM holds it."""
    dashes = "-" * 5
    body = "\n".join(draw.key_lines(lines))
    kind = f"{name}PRIVATE KEY"
    return f"{dashes}BEGIN {kind}{dashes}\n{body}\n{dashes}END {kind}{dashes}"


def login(user: str, password: str) -> str:
    """Return a name and a password as HTTP sends them."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()


_MAKERS: tuple[tuple[str, Callable[[Draw], str]], ...] = (
    ("github-token", lambda d: "gh" + "p_" + d(36)),
    ("github-token", lambda d: "gh" + "o_" + d(36)),
    ("github-token", lambda d: "gh" + "s_" + d(36)),
    ("github-token", lambda d: "github" + "_pat_" + d(22) + "_" + d(59)),
    ("gitlab-token", lambda d: "gl" + "pat-" + d(20, URL)),
    ("gitlab-token", lambda d: "gl" + "pat-" + d(51, URL) + ".01." + d(9, HEX)),
    ("gitlab-token", lambda d: "gl" + "rt-" + d(20, URL)),
    ("atlassian-token", lambda d: "ATA" + "TT3" + d(180, URL) + "=" + d(8, UPPER)),
    ("bitbucket-token", lambda d: "AT" + "BB" + d(32)),
    ("sourcegraph-token", lambda d: "sg" + "p_" + d(16, HEX) + "_" + d(40, HEX)),
    ("npm-token", lambda d: "np" + "m_" + d(36)),
    ("pypi-token", lambda d: "pypi-" + "AgEIcHlwaS5vcmc" + d(130, URL)),
    ("rubygems-key", lambda d: "ruby" + "gems_" + d(48, HEX)),
    ("crates-token", lambda d: "ci" + "o" + d(32)),
    ("nuget-key", lambda d: "oy" + "2" + d(43, string.ascii_lowercase + string.digits)),
    ("docker-token", lambda d: "dckr" + "_pat_" + d(27, URL)),
    ("artifactory-token", lambda d: "AK" + "Cp" + d(69)),
    ("anthropic-key", lambda d: "sk-" + "ant-api03-" + d(93, URL) + "AA"),
    ("anthropic-key", lambda d: "sk-" + "ant-oat01-" + d(95, URL)),
    ("openai-key", lambda d: "sk-" + "proj-" + d(74, URL) + "T3Blbk" + "FJ" + d(74, URL)),
    ("openai-key", lambda d: "sk-" + d(20) + "T3Blbk" + "FJ" + d(20)),
    ("openrouter-key", lambda d: "sk-" + "or-v1-" + d(64, HEX)),
    ("langfuse-key", lambda d: "sk-" + "lf-" + d.uuid()),
    ("model-api-key", lambda d: "sk-" + d(48)),
    ("model-api-key", lambda d: "sk-" + d(32, HEX)),
    ("groq-key", lambda d: "gs" + "k_" + d(52)),
    ("xai-key", lambda d: "xa" + "i-" + d(80)),
    ("perplexity-key", lambda d: "ppl" + "x-" + d(48)),
    ("huggingface-token", lambda d: "h" + "f_" + d(34, string.ascii_letters)),
    ("replicate-token", lambda d: "r" + "8_" + d(37)),
    ("nvidia-key", lambda d: "nv" + "api-" + d(64, URL)),
    ("elevenlabs-key", lambda d: "s" + "k_" + d(48, HEX)),
    ("langsmith-key", lambda d: "lsv2" + "_pt_" + d(32, HEX) + "_" + d(10, HEX)),
    ("pinecone-key", lambda d: "pc" + "sk_" + d(6) + "_" + d(63)),
    ("tavily-key", lambda d: "tv" + "ly-" + d(32)),
    ("sandbox-key", lambda d: "e2" + "b_" + d(40, HEX)),
    ("aws-key-id", lambda d: "AK" + "IA" + d(16, BASE32)),
    ("aws-key-id", lambda d: "AS" + "IA" + d(16, BASE32)),
    ("aws-session-token", lambda d: "IQoJ" + "b3JpZ2lu" + d(300, BASE64) + "=="),
    ("aws-bedrock-key", lambda d: "AB" + "SK" + d(128, BASE64)),
    ("google-api-key", lambda d: "AI" + "za" + d(35, URL)),
    ("google-oauth-secret", lambda d: "GOC" + "SPX-" + d(28, URL)),
    ("google-oauth-token", lambda d: "ya" + "29." + d(120, URL)),
    ("google-refresh-token", lambda d: "1/" + "/0" + d(60, URL)),
    ("azure-client-secret", lambda d: d(3) + "8" + "Q~" + d(34)),
    ("digitalocean-token", lambda d: "do" + "p_v1_" + d(64, HEX)),
    ("alibaba-key-id", lambda d: "LT" + "AI" + d(20)),
    ("heroku-key", lambda d: "HR" + "KU-AA" + d(58, URL)),
    ("fly-token", lambda d: "fm" + "2_" + d(200, BASE64)),
    ("netlify-token", lambda d: "nf" + "p_" + d(36)),
    ("supabase-key", lambda d: "sb" + "p_" + d(40, HEX)),
    ("supabase-key", lambda d: "sb" + "_secret_" + d(31, URL)),
    ("planetscale-token", lambda d: "pscale" + "_tkn_" + d(43, URL)),
    ("tailscale-key", lambda d: "ts" + "key-auth-" + d(12) + "-" + d(32)),
    ("databricks-token", lambda d: "da" + "pi" + d(32, HEX)),
    ("pulumi-token", lambda d: "pu" + "l-" + d(40, HEX)),
    ("terraform-token", lambda d: d(14) + ".atlas" + "v1." + d(67)),
    ("vault-token", lambda d: "hv" + "s." + d(95, URL)),
    ("doppler-token", lambda d: "dp." + "pt." + d(43)),
    ("1password-token", lambda d: "ops_" + "eyJ" + d(300, BASE64)),
    ("age-key", lambda d: "AGE-SECRET" + "-KEY-1" + d(58, UPPER)),
    ("grafana-token", lambda d: "gl" + "sa_" + d(32) + "_" + d(8, HEX)),
    ("grafana-token", lambda d: "gl" + "c_" + d(120, BASE64)),
    ("sentry-token", lambda d: "sn" + "tryu_" + d(64, HEX)),
    ("new-relic-key", lambda d: "NR" + "AK-" + d(27, UPPER)),
    ("dynatrace-token", lambda d: "dt" + "0c01." + d(24, BASE32) + "." + d(64, BASE32)),
    ("buildkite-token", lambda d: "bk" + "ua_" + d(40, HEX)),
    ("circleci-token", lambda d: "CCI" + "PAT_" + d(22) + "_" + d(40, HEX)),
    ("postman-key", lambda d: "PM" + "AK-" + d(24, HEX) + "-" + d(34, HEX)),
    ("posthog-key", lambda d: "ph" + "x_" + d(43)),
    ("slack-token", lambda d: f"xo{'xb'}-{d.digits(12)}-{d.digits(13)}-{d(24)}"),
    ("slack-token", lambda d: f"xa{'pp'}-1-{d(11, UPPER)}-{d.digits(13)}-{d(64, HEX)}"),
    ("discord-token", lambda d: encoded(d.digits(18)) + "." + d(6, URL) + "." + d(38, URL)),
    ("telegram-token", lambda d: d.digits(10) + ":A" + "A" + d(33, URL)),
    ("sendgrid-key", lambda d: "S" + "G." + d(22, URL) + "." + d(43, URL)),
    ("mailchimp-key", lambda d: d(32, HEX) + "-us" + "21"),
    ("resend-key", lambda d: "r" + "e_" + d(8) + "_" + d(24)),
    ("brevo-key", lambda d: "xkeys" + "ib-" + d(64, HEX) + "-" + d(16)),
    ("stripe-key", lambda d: "sk" + "_live_" + d(24)),
    ("stripe-key", lambda d: "rk" + "_test_" + d(99)),
    ("stripe-webhook-secret", lambda d: "wh" + "sec_" + d(32)),
    ("square-token", lambda d: "sq0" + "atp-" + d(22, URL)),
    ("shopify-token", lambda d: "shp" + "at_" + d(32, HEX)),
    ("shippo-token", lambda d: "shippo" + "_live_" + d(40, HEX)),
    ("linear-key", lambda d: "lin" + "_api_" + d(40)),
    ("notion-token", lambda d: "nt" + "n_" + d.digits(11) + d(35)),
    ("notion-token", lambda d: "sec" + "ret_" + d(43)),
    ("figma-token", lambda d: "fi" + "gd_" + d(40, URL)),
    ("airtable-token", lambda d: "pa" + "t" + d(14) + "." + d(64, HEX)),
    ("encoded-private-key", lambda d: base64.b64encode(key_block(d).encode()).decode()),
    ("json-web-token", web_token),
    ("json-web-token", lambda d: web_token(d, "RS256", 342)),
    ("private-key", key_block),
    ("private-key", lambda d: key_block(d, "", 1)),
    ("private-key", lambda d: key_block(d, "OPENSSH ", 6)),
    ("private-key", lambda d: key_block(d, "ENCRYPTED ", 20)),
)  # fmt: skip

_PLACED: tuple[tuple[str, Callable[[Draw], tuple[str, str, str]]], ...] = (
    # What is known by what stands around it: (before, the secret, after)
    ("url-password", lambda d: ("postgres://shop:", d(12), "@db.internal:5432/shop")),
    ("url-password", lambda d: ("https://jane:", "hunter" + d.digits(2), "@git.shop.test/a/b.git")),
    ("url-password", lambda d: ("redis://:", d(20), "@cache:6379/0")),
    ("url-password", lambda d: ("mongodb+srv://app:", "p%40" + d(8), "@c0.mongo.test/?w=1")),
    ("url-password", lambda d: ("amqp://u:", "p@" + d(8), "@mq/")),
    ("url-password", lambda d: ("jdbc:postgresql://db/shop?user=app&password=", d(14), "&ssl=1")),
    ("url-password", lambda d: ("postgres://svc:", "%24" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%23" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%25" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%28" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%2A" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%2F" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%3C" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%5B" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%7B" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "$" + "ecr3t" + d(5), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "*7" + d(4) + "!" + d(4), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "(" + d.digits(2) + d(7), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "%" + "zq" + d(8), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "insertCoin" + d.digits(2), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "change9" + d(4), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "yourmom9" + d(2), "@db.prod:5432/x")),
    ("url-password", lambda d: ("postgres://svc:", "my" + d.digits(2) + d(6), "@db.prod:5432/x")),
    ("url-password", lambda d: ("https://shop.test/in?user=app&passwd=", d(12), "&a=1")),
    ("url-password", lambda d: ("https://shop.test/in?user=app&pwd=", d(12), "&a=1")),
    ("url-password", lambda d: ("https://shop.test/in?user=app&passphrase=", d(12), "&a=1")),
    ("url-password", lambda d: ("https://shop.test/in?user=app&Password=", d(12), "&a=1")),
    ("basic-credentials", lambda d: ("Authorization: Basic ", login("jane", d(12)), "\n")),
    ("aws-secret-key", lambda d: ("aws_secret_access_key = ", d(40, BASE64), "\n")),
    ("aws-secret-key", lambda d: ('"SecretAccessKey": "', d(40, BASE64), '",')),
    ("azure-storage-key", lambda d: ("AccountName=a;AccountKey=", d(86, BASE64) + "==", ";E=1")),
    (
        "slack-webhook",
        lambda d: (f"https://hooks.slack.com/services/T{d(8, UPPER)}/B{d(8, UPPER)}/", d(24), " "),
    ),
    (
        "discord-webhook",
        lambda d: (f"https://discord.com/api/webhooks/{d.digits(18)}/", d(68, URL), ")"),
    ),
)


def tokens(seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield kinds and secrets that are known wherever they stand."""
    for number, (kind, make) in enumerate(_MAKERS):
        yield kind, make(Draw(1000 * seed + number))


def placed(seed: int = 0) -> Iterator[tuple[str, str, str, str]]:
    """Yield kinds, and secrets between what they are known by."""
    for number, (kind, make) in enumerate(_PLACED):
        yield kind, *make(Draw(1000 * seed + 500 + number))
