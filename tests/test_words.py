"""Terms agree between documents and queries in every script, and no text is too odd for them."""

from __future__ import annotations

# ruff: noqa: RUF001 - look-alike signs are what is tested
import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.words import (
    QUERY_TERMS_MAX,
    identifiers,
    locate,
    occurrences,
    phrases,
    query_terms,
    terms,
    title_key,
)

TEXTS = st.text(max_size=300) | st.text(
    st.sampled_from("aZé9_.-/\\:@'’ #+猫かカｶﾞ한ไท่ကខ្नमा🐛\u0301\u00ad\u200d\n"), max_size=80
)


def finds(query: str, document: str) -> bool:
    """Tell whether every term of a query is among the document's."""
    wanted = query_terms(query)
    return bool(wanted) and set(wanted) <= set(terms(document))


@given(TEXTS)
def test_every_text_finds_itself(text: str) -> None:
    """Whatever has a term at all is found when the whole of it is asked for."""
    assert set(query_terms(text)) <= set(terms(text))
    assert bool(query_terms(text)) == bool(terms(text))


@given(TEXTS)
def test_terms_hold_no_white_space_and_no_capitals(text: str) -> None:
    """An index may join terms with blanks and split them again."""
    found = terms(text)
    assert " ".join(found).split() == found
    assert all(0 < len(term) <= 120 for term in found)
    assert all(term == term.casefold() for term in found if term.isascii())


@given(TEXTS, TEXTS)
def test_neighbours_do_not_change_a_text(one: str, two: str) -> None:
    """Terms of two texts with a line between them are those of each."""
    assert set(terms(f"{one}\n{two}")) == set(terms(one)) | set(terms(two))


@given(TEXTS)
def test_case_does_not_matter_to_plain_words(text: str) -> None:
    """A query in capitals finds the same words."""
    plain = " ".join(re.findall("[a-z]+", text))
    assert set(query_terms(plain.upper())) == set(query_terms(plain))


@pytest.mark.parametrize(
    ("query", "document"),
    [
        pytest.param("databases", "the database", id="plural"),
        pytest.param("configured", "Configuring it", id="participle"),
        pytest.param("configurations", "configuration", id="derived"),
        pytest.param("stopped", "it stops", id="doubled"),
        pytest.param("boxes", "one box", id="plural-es"),
        pytest.param("retries", "a retry", id="plural-ies"),
        pytest.param("etichette", "l'etichetta", id="Italian-elision"),
        pytest.param("perche\u0301 ubicazioni", "PERCHÉ l’ubicazione", id="Italian-composed"),
        pytest.param("conexion", "conexión", id="Spanish"),
        pytest.param("configurações", "configuração", id="Portuguese"),
        pytest.param("strasse", "Straße", id="German-sharp-s"),
        pytest.param("tokens Loschen", "Token löschen", id="German"),
        pytest.param("oeuvre", "Œuvre", id="French-ligature"),
        pytest.param("книги ёлка", "книгу елка", id="Russian"),
        pytest.param("ΒΙΒΛΊΑ", "βιβλίο", id="Greek"),
        pytest.param("كتاب", "الكِتَابُ", id="Arabic"),
        pytest.param("שלום", "שָׁלוֹם", id="Hebrew"),
        pytest.param("किताब", "किताबें", id="Hindi"),
        pytest.param("দেবনাগরী", "দেবনাগরী লিপি", id="Bengali"),
        pytest.param("ภาษา", "สวัสดีภาษาไทย", id="Thai"),
        pytest.param("ພາສາ", "ພາສາລາວ", id="Lao"),
        pytest.param("ភាសា", "ភាសាខ្មែរ", id="Khmer"),
        pytest.param("ဘာသာ", "မြန်မာဘာသာ", id="Burmese"),
        pytest.param("学习", "什么是机器学习？", id="Chinese"),
        pytest.param("猫", "黒猫がいる", id="one-Han-character"),
        pytest.param("検索", "全文検索エンジン", id="Japanese"),
        pytest.param("エンジン", "全文検索ｴﾝｼﾞﾝ", id="Japanese-half-width"),
        pytest.param("검색", "한국어검색엔진", id="Korean"),
        pytest.param("엔진", "검색엔진이", id="Korean-end"),
        pytest.param("moment.js", "使用moment.js时", id="identifier-in-Chinese"),
        pytest.param("moment.js", "moment.js를 쓰자", id="identifier-in-Korean"),
        pytest.param("2026", "2026년 3월", id="Korean-year"),
        pytest.param("검색 words.py", "검색엔진 words.py에서", id="Korean-particle"),
        pytest.param(
            "검색", unicodedata.normalize("NFD", "한국어검색엔진"), id="Korean-taken-apart"
        ),
        pytest.param("API", "הAPI נפל", id="Hebrew-article"),
        pytest.param("API", "تعطل الAPI", id="Arabic-article"),
        pytest.param("２０２６", "in 2026", id="full-width-digits"),
        pytest.param("٢٠٢٦", "in 2026", id="Arabic-digits"),
        pytest.param("co\u00adoperate", "cooperate", id="soft-hyphen"),
        pytest.param("🐛", "fixed a 🐛 today", id="picture"),
        pytest.param("getUserByEmail", "call getUserByEmail()", id="camel-case"),
        pytest.param("user email", "call getUserByEmail()", id="camel-case-parts"),
        pytest.param("get_user", "def get_user(): ...", id="snake-case"),
        pytest.param("HTTP server", "class HTTPServer", id="acronym"),
        pytest.param("API", "all APIs", id="acronym-plural"),
        pytest.param("words.py", "see src/agent_journal/words.py:12", id="path-end"),
        pytest.param("agent_journal", "see src/agent_journal/words.py:12", id="path-middle"),
        pytest.param("src/agent_journal/words.py", "in src/agent_journal/words.py.", id="path"),
        pytest.param(r"C:\Users\me", r"in C:\Users\me", id="Windows-path"),
        pytest.param("app", r"in C:\Users\me\app", id="Windows-path-end"),
        pytest.param("--no-verify", "git commit --no-verify", id="option"),
        pytest.param("no-verify", "git commit --no-verify", id="option-bare"),
        pytest.param("2026.4.10", "since v2026.4.10", id="version"),
        pytest.param("E0277", "error[E0277]: the trait", id="error-code"),
        pytest.param("0x8badf00d", "killed (0x8BADF00D)", id="hexadecimal"),
        pytest.param("LEDGER_PSP_CONNECT_MS", "export LEDGER_PSP_CONNECT_MS=3", id="constant"),
        pytest.param("std::vec::Vec", "a std::vec::Vec<u8>", id="namespace"),
        pytest.param("@types/node", "npm i @types/node", id="scoped-package"),
        pytest.param("C++", "written in C++.", id="C++"),
        pytest.param("c#", "(C#)", id="C#"),
        pytest.param("count", "count++", id="operator"),
        pytest.param("C", "the C library", id="C"),
        pytest.param("R", "an R script", id="R"),
        pytest.param("Go", "in Go now", id="Go"),
        pytest.param("IT", "what it is", id="stop-word"),
        pytest.param("to be or not to be", "Not to be, or to be", id="nothing-but-stop-words"),
        pytest.param("don't", "They don’t", id="stop-word-with-apostrophe"),
    ],
)
def test_a_query_finds(query: str, document: str) -> None:
    """Every term of the query is one of the document's, in all the forms people write."""
    assert finds(query, document)


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("cat", "concatenate"),
        ("C", "C++ and C#"),
        ("C++", "the C library"),
        ("2026.4", "2026.4.10"),
        ("学机", "机学习"),
        ("का", "की"),
        ("ไม่", "ใหม่"),
    ],
)
def test_a_query_does_not_find(query: str, document: str) -> None:
    """What only looks alike isn't taken for the same."""
    assert not finds(query, document)


def test_terms_come_in_order_with_repetitions_and_stop_words_once() -> None:
    """Occurrences are what ranking counts; stop words only have to be there."""
    assert terms("The disk and the disk of the user") == [
        "disk",
        "disk",
        "user",
        "the",
        "and",
        "of",
    ]


def test_stop_words_are_no_terms_of_a_query_that_says_more() -> None:
    """They would only slow the search and blur its ranking."""
    assert query_terms("why is the disk full") == ["disk", "full"]


def test_a_word_whose_stem_is_a_stop_word_stays_a_term() -> None:
    """'data' is cut to what in Dutch is a stop word, and is a term all the same."""
    assert query_terms("the data") == query_terms("data") != []


@pytest.mark.parametrize("text", ["", " ", "?!", "...", "---", "()[]{}", "\"'`", "*", "\u0301"])
def test_punctuation_alone_has_no_terms(text: str) -> None:
    """Nothing to look for is no error."""
    assert terms(text) == query_terms(text) == []
    assert title_key(text) == ""


@given(st.text(st.characters(categories=["P", "S"], exclude_characters="_#+"), max_size=6))
def test_punctuation_around_a_word_is_harmless(signs: str) -> None:
    """A word is found whatever signs stand around it."""
    assert "needle" not in terms("")
    assert "needl" in query_terms(f"{signs} needle {signs}")
    assert "needl" in terms(f"({signs}) needle, {signs}")


def test_a_long_query_keeps_its_longest_terms() -> None:
    """A pasted log is cut to the terms that are likely to be rare."""
    filler = " ".join(f"w{at}" for at in range(10_000))
    found = query_terms(f"{filler[:9000]} ConnectionRefusedError {filler}" * 20)
    assert len(found) == QUERY_TERMS_MAX
    assert "connectionrefusederr" in found


@pytest.mark.parametrize("unit", ["x", "猫", "a.b-", "aB", "\u0301", "a\u0301", "' ", "한", "/"])
def test_long_words_give_bounded_terms(unit: str) -> None:
    """Ten thousand characters without a blank are no trouble, and find themselves."""
    text = unit * (10_000 // len(unit))
    found = terms(text)
    assert all(len(term) <= 120 for term in found)
    assert len(found) <= 3 * len(text)
    assert set(query_terms(text)) <= set(found)


def test_the_cache_is_bounded() -> None:
    """Endless new words don't fill the memory, nor do they change an answer."""
    for at in range(60_000):
        terms(f"word{at}")
    from agent_journal.words import _CACHE_MAX, _analyses  # noqa: PLC0415 - the cause is inside

    assert len(_analyses) <= _CACHE_MAX
    assert terms("word1") == ["word1"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Flaky tests: Why?", " flaky tests why "),
        ("Use moment.js", " use moment js "),
        ("Perché CADE", " perche cade "),
        ("C++ tips", " c++ tips "),
        ("机器学习 v2", " 机 器 学 习 v2 "),
        ("don't panic", " don't panic "),
        ("what is it", ""),
        ("il di la", ""),
    ],
)
def test_a_title_key_is_folded_whole_words(text: str, key: str) -> None:
    """Nothing but stop words says nothing; everything else keeps its words in order."""
    assert title_key(text) == key


@pytest.mark.parametrize(
    ("text", "query", "at"),
    [
        ("alpha beta needle", "needles", "needle"),
        ("needle " + "x " * 400 + "sharp needle here", "sharp needle", "sharp"),
        (
            "sharp " + "x " * 400 + "a needle, sharp " + "x " * 400 + "needle",
            "sharp needle",
            "needle,",
        ),
        ("nothing of it", "needle", "nothing"),
        ("我们在学习", "学习", "学习"),
        ("黒い猫", "猫", "猫"),
        ("call getUserByEmail", "email", "getUserByEmail"),
        ("The end, not it", "not it", "not"),
    ],
)
def test_locate_points_at_the_densest_matches(text: str, query: str, at: str) -> None:
    """The snippet begins near most of what was asked for."""
    assert locate(text, query_terms(query)) == text.index(at)


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("我们今天在机器学习课上", "学习", ["学习"]),
        ("什么是机器学习？机器坏了", "机器学习", ["机器学习", "机器"]),
        ("黒い猫と白猫", "猫", ["猫", "猫"]),
        ("全文検索ｴﾝｼﾞﾝです", "エンジン", ["ｴﾝｼﾞﾝ"]),
        ("我们使用moment.js时出错", "moment.js", ["moment.js"]),
        ("한국어검색엔진이 좋다", "검색", ["검색"]),
        (unicodedata.normalize("NFD", "검색이"), "검색", [unicodedata.normalize("NFD", "검색")]),
        ("한국어검색엔진이 좋다", "한국어검색엔진이", ["한국어검색엔진이"]),
        ("สวัสดีภาษาไทยครับ", "ภาษา", ["ภาษา"]),
        ("मेरी किताबें हैं", "किताब", ["किताबें"]),
        ("هذا الكِتَابُ جيد", "كتاب", ["الكِتَابُ"]),
        ("אמר שָׁלוֹם לכולם", "שלום", ["שָׁלוֹם"]),
        ("нашёл книгу, ещё книги", "книги", ["книгу", "книги"]),
        ("το ΒΙΒΛΊΟ εδώ", "βιβλία", ["ΒΙΒΛΊΟ"]),
        ("error[E0277]: the trait", "e0277", ["E0277"]),
        ("They don’t know", "don't", ["don’t"]),
        ("in src/agent_journal/words.py:12.", "words", ["src/agent_journal/words.py:12"]),
        ("nothing here", "needle", []),
    ],
)
def test_occurrences_are_the_words_asked_for(text: str, query: str, found: list[str]) -> None:
    """Whole words and identifiers; of scripts without word borders what was asked for alone."""
    assert [text[start:end] for start, end in occurrences(text, query_terms(query))] == found


@given(TEXTS, TEXTS)
def test_occurrences_are_spans_in_order(text: str, query: str) -> None:
    """They lie in the text, one after the other, and the first isn't before what is located."""
    spans = occurrences(text, query_terms(query))
    places = [place for span in spans for place in span]
    assert places == sorted(set(places))
    assert all(0 <= place <= len(text) for place in places)
    if spans:
        assert locate(text, query_terms(query)) >= spans[0][0]


@given(TEXTS)
def test_every_text_has_its_own_words_in_it(text: str) -> None:
    """What a text is found by is also shown where it stands."""
    assert bool(occurrences(text, query_terms(text))) == bool(query_terms(text))


@given(
    st.from_regex(r"[a-z]{1,5}(ies|ing|ed|ly|es|s|er|tion|[aeiouy]{1,2}|ava)?", fullmatch=True),
    st.sampled_from([str, str.upper, str.title]),
    st.data(),
)
def test_what_an_index_finds_is_shown(
    word: str, spell: Callable[[str], str], data: st.DataObject
) -> None:
    """A word stands wherever one of its forms does, and nowhere else: as the index has it."""
    ending = st.sampled_from(["", "s", "es", "ies", "ed", "ing", "ly", "y", "e", "a", "er"])
    stems = [word[:-cut] if cut else word for cut in range(4)]
    form = spell(data.draw(st.sampled_from(stems)) + data.draw(ending))
    wanted = terms(word)
    assert bool(occurrences(f"({form})", wanted)) == bool({*terms(form)} & {*wanted})


@given(TEXTS, TEXTS)
def test_locate_stays_within_the_text(text: str, query: str) -> None:
    """Its position is one of the text's, or 0."""
    assert 0 <= locate(text, query_terms(query)) <= max(len(text) - 1, 0)


def test_coloured_output_is_words_alone() -> None:
    """Terminal escapes hide no word, and a found word is still located where it stands."""
    text = "\x1b[31mred\x1b[0m alert \x1b[1;38:5:9mE0277\x1b[m \x1b[2K"
    assert terms(text) == terms("red alert E0277")
    assert text[locate(text, {"alert"}) :].startswith("alert")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("where is src/agent_journal/words.py used", {"src/agent_journal/words.py"}),
        ("upgrade to v2026.4.10 of moment.js", {"2026.4.10", "moment.js"}),
        ("what does getUserByEmail return", {"getuserbyemail"}),
        ("LEDGER_FX_PROVIDER_URL is missing", {"ledger_fx_provider_url"}),
        ("error E1234 and utf-8", {"e1234", "utf-8"}),
        ("a well-known problem in 2026, e-mail and 404", set()),
        ("Who went to Rome? She did. And then...", set()),
        ("机器学习 で words.py を", {"words.py"}),
        ("words.py에서 v2.1을 쓰자", {"words.py", "2.1"}),
    ],
)
def test_identifiers_are_the_terms_that_name_one_thing(text: str, named: set[str]) -> None:
    """Names with structure; plain words, hyphened ones and numbers are none."""
    assert identifiers(text) == named
    assert identifiers(text) <= set(query_terms(text))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('the "connection pool" is exhausted', ["connection pool"]),
        (
            "\u201cconnection pool\u201d and \u00abflaky tests\u00bb",
            ["connection pool", "flaky tests"],
        ),
        ('"the" "of it" ""', []),
        ('an "unclosed quote', []),
        ('"words.py line"', ["words.py line"]),
        ('"机器学习"', ["机器学习"]),
    ],
)
def test_phrases_are_what_a_query_quotes(text: str, rows: list[str]) -> None:
    """As terms that stand in a row wherever the same words do."""
    assert phrases(text) == [tuple(query_terms(row)) for row in rows]
    for row in phrases(text):
        found = terms(f"before {text} after")
        assert any(tuple(found[at : at + len(row)]) == row for at in range(len(found)))
