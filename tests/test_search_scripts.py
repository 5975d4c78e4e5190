"""Every script and kind of name, through the whole journal: written, found by words, and quoted."""

from __future__ import annotations

# ruff: noqa: RUF001 - look-alike signs are what is tested
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_journal.engines.files import FileStore
from agent_journal.engines.loading import NoEmbedder
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.faces.cli.layout import marked
from agent_journal.journal import Journal
from agent_journal.model import Draft
from agent_journal.passages import PASSAGE_CHARS
from agent_journal.query import Query
from agent_journal.words import query_terms

FILLER = "Nothing of what is asked for stands in these lines about bread, rain and trains.\n\n"


class Case(NamedTuple):
    """What is asked, the one body that answers it, and what is marked in its quote."""

    asked: str
    body: str
    shown: str
    decoy: str = "An entry about something else altogether."


CASES = {
    "Chinese": Case(
        "学习", "我们今天讨论了什么是机器学习。", "学习", "我们今天讨论了什么是机器人。"
    ),
    "Chinese-glued": Case(
        "moment.js", "我们使用moment.js时出错了。", "moment.js", "我们使用luxon.js时出错了。"
    ),
    "Japanese": Case("検索", "全文検索エンジンを入れた。", "検索", "全文書エンジンを入れた。"),
    "Japanese-kana": Case("エンジン", "全文検索ｴﾝｼﾞﾝです。", "ｴﾝｼﾞﾝ", "全文検索のエラーです。"),
    "Japanese-glued": Case(
        "parse_config", "設定はparse_configで読む。", "parse_config", "設定はload_configで読む。"
    ),
    "Korean": Case("검색", "한국어검색엔진이 빠르다.", "검색", "한국어 사전이 빠르다."),
    "Korean-glued": Case("E1234", "오류E1234가 발생했다.", "E1234", "오류E9999가 발생했다."),
    "Korean-particle": Case(
        "words.py", "이제 words.py에서 읽는다.", "words.py", "이제 verbs.py에서 읽는다."
    ),
    "Korean-year": Case("2026", "2026년에 바꿨다.", "2026", "2025년에 바꿨다."),
    "Hebrew-glued": Case("API", "הAPI נפל אתמול.", "API", "הRPC נפל אתמול."),
    "Arabic-glued": Case("API", "تعطل الAPI أمس.", "API", "تعطل الRPC أمس."),
    "Cyrillic": Case("ошибки", "Нашёл ошибку в расчёте.", "ошибку", "Нашёл ответ в расчёте."),
    "Greek": Case("βιβλίο", "Το ΒΙΒΛΙΟ είναι εδώ.", "ΒΙΒΛΙΟ", "Το σπίτι είναι εδώ."),
    "Arabic": Case("كتاب", "هذا الكِتَابُ جديد.", "الكِتَابُ", "هذا البيت جديد."),
    "Hebrew": Case("שלום", "הוא אמר שָׁלוֹם לכולם.", "שָׁלוֹם", "הוא אמר תודה לכולם."),
    "Devanagari": Case("किताब", "मेरी किताबें यहाँ हैं।", "किताबें", "मेरी कमीज़ यहाँ है।"),
    "Thai": Case("ภาษา", "เราเรียนภาษาไทยวันนี้", "ภาษา", "เราเรียนดนตรีไทยวันนี้"),
    "version": Case("2026.4.10", "Broken since v2026.4.10 only.", "v2026.4.10", "Since 2026.4.11."),
    "dotted": Case("moment.js", "Replaced moment.js by dates.", "moment.js", "Replaced js moment."),
    "path": Case(
        "src/auth/token.py",
        "The bug is in src/auth/token.py.",
        "src/auth/token.py",
        "The bug is in src/auth/session.py.",
    ),
    "path-end": Case(
        "token.py", "See lib/auth/token.py:12 there.", "lib/auth/token.py:12", "See a token there."
    ),
    "error-code": Case("E0277", "rustc says error[E0277]: no.", "E0277", "error[E0308]: no."),
    "hexadecimal": Case("0x8BADF00D", "Killed (0x8badf00d).", "0x8badf00d", "Killed (0x8badbeef)."),
    "constant": Case(
        "LEDGER_PSP_MS", "Set LEDGER_PSP_MS=3 first.", "LEDGER_PSP_MS", "Set LEDGER_FX_MS=3 first."
    ),
}


@pytest.fixture(params=["sqlite", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    index = SqliteIndex(tmp_path / "index.sqlite3") if request.param == "sqlite" else MemoryIndex()
    with Journal(FileStore(tmp_path / "journal"), index, NoEmbedder("words alone")) as journal:
        yield journal


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_a_word_is_found_in_every_script(journal: Journal, case: Case) -> None:
    """First, without a model, beside an entry that looks like it; quoted and marked where it is."""
    right = journal.write(Draft("A", case.body))
    journal.write(Draft("B", case.decoy))
    journal.write(Draft("C", FILLER))
    page = journal.search(Query(case.asked))
    assert page.mode == "lexical"
    hit = page.hits[0]
    assert hit.entry.id == right.id
    assert hit.found_by == ("lexical",)
    assert all(case.asked not in other.entry.body for other in page.hits[1:])
    wanted = frozenset(query_terms(case.asked))
    assert [text for text, style in marked(hit.snippet, wanted) if style] == [case.shown]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_a_quote_is_of_the_passage_that_has_the_word(journal: Journal, case: Case) -> None:
    """From far within a long entry: a true quote, in whole words, that shows what was asked for."""
    body = FILLER * (2 * PASSAGE_CHARS // len(FILLER)) + case.body + "\n\n" + FILLER * 20
    journal.write(Draft("A", body))
    (hit,) = journal.search(Query(case.asked)).hits
    stored = hit.entry.body
    assert stored[hit.offset :].startswith(hit.snippet)
    assert case.shown in hit.snippet
    before, after = stored[hit.offset - 1], stored[hit.offset + len(hit.snippet)]
    assert before.isspace()
    assert after.isspace()
    assert hit.entry.created
