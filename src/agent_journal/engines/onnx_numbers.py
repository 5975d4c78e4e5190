"""How a model's cosines lie between texts that have nothing to do with one another, by trying it.

A model that comes from anywhere has no measured numbers. So each is given sixteen short entries of
the kind that agents write, and a question to each, once; every question is compared with the
fifteen entries that it isn't about, as a search does: the best of title and text counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_journal.engines.onnx_tokens import kept_file
from agent_journal.ports import Baseline

if TYPE_CHECKING:
    from agent_journal.ports import Vector

FLOOR_DEVIATIONS = 1.7
"""How far above the mean the floor lies, as it was chosen for the bundled model (`use`)."""

_PROBES = (
    (
        "Checkout tests hang on the second run",
        "The payment sandbox keeps a session open; closing it in the teardown fixture helps.",
        "why does the payment suite never finish",
    ),
    (
        "Redis is pinned to 7.2",
        "The next release changed its licence, and legal has not answered yet.",
        "which cache version may we use",
    ),
    (
        "L'utente preferisce risposte brevi",
        "Niente riassunti alla fine: solo il diff, e una riga di spiegazione.",
        "come devo scrivere le risposte",
    ),
    (
        "Die Sicherung läuft nachts um drei",
        "Sie liegt im zweiten Rechenzentrum und wird dreißig Tage lang aufgehoben.",
        "wo finde ich die alten Sicherungen",
    ),
    (
        "Images are resized in the browser now",
        "A worker draws them on a canvas, so that no upload is larger than two megabytes.",
        "how do we keep photo uploads small",
    ),
    (
        "Le schéma des factures a changé",
        "La colonne du montant est en centimes, et la devise se trouve à côté.",
        "dans quelle unité sont les montants",
    ),
    (
        "El despliegue falla sin la variable REGION",
        "El script no avisa; hay que exportarla antes de llamar a terraform.",
        "por qué se detiene terraform",
    ),
    (
        "Search results come from the replica",
        "It lags by up to a minute, which is why a new user can't be found at once.",
        "a person who just signed up doesn't show",
    ),
    (
        "日志轮转的设置",
        "每天一个文件。保留两周。由系统服务压缩。",
        "日志文件保存多久",
    ),
    (
        "Compiler warnings are errors in CI",
        "Locally they are not; run make strict before pushing anything.",
        "the build is red but works on my machine",
    ),
    (
        "Часы сервера отстают",
        "Синхронизация времени была выключена, и подписи токенов считались просроченными.",
        "почему вход в систему отклоняется",
    ),
    (
        "Colour tokens live in theme.css",
        "Dark mode overrides them under a data attribute of the root element.",
        "where to change the accent of the dark theme",
    ),
    (
        "キャッシュの無効化",
        "商品の価格が変わったときは、キーの接頭辞ごとに削除する。",
        "古い値段が表示される原因",
    ),
    (
        "Parser rewritten as a state machine",
        "The regular expression took exponential time on nested quotes.",
        "slow parsing of strings with many quotes",
    ),
    (
        "Mail goes through the relay on port 587",
        "Direct delivery is blocked by the provider; credentials are in the vault.",
        "sending newsletters times out",
    ),
    (
        "O contrato da API está congelado",
        "Campos novos são opcionais até a próxima versão maior do aplicativo móvel.",
        "posso mudar a resposta do servidor",
    ),
)


class Numbers(NamedTuple):
    """What ranking must know of a model; see `Embedder`."""

    baseline: Baseline
    floor: float


def kept_numbers(
    folder: Path | None,
    fingerprint: str,
    passage: Callable[[str], Vector],
    query: Callable[[str], Vector],
) -> Numbers:
    """Return a model's numbers, kept in a folder once they have been measured.

    Args:
        folder: where they are kept, if anywhere.
        fingerprint: the model's.
        passage: embeds a passage.
        query: embeds a query.
    """

    def make() -> bytes:
        return json.dumps(measured(passage, query)).encode()

    kept = kept_file(folder, f"{fingerprint}.numbers", make)
    baseline = Baseline(*json.loads(kept or b"[]"))
    return Numbers(baseline, baseline.mean + FLOOR_DEVIATIONS * baseline.deviation)


def measured(passage: Callable[[str], Vector], query: Callable[[str], Vector]) -> Baseline:
    """Return how a model's cosines lie between questions and entries they aren't about."""
    questions = [query(asked) for _, _, asked in _PROBES]
    entries = [(passage(title), passage(f"{title}\n{text}")) for title, text, _ in _PROBES]
    cosines = [
        max(float(question @ row) for row in rows)
        for number, question in enumerate(questions)
        for other, rows in enumerate(entries)
        if other != number
    ]
    mean = math.fsum(cosines) / len(cosines)
    variance = math.fsum((cosine - mean) ** 2 for cosine in cosines) / len(cosines)
    return Baseline(mean, max(math.sqrt(variance), 0.01))
