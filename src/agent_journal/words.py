"""Text to the lexical terms that are indexed and searched, in any script.

One rule serves documents and queries alike, whatever their language, so that both always agree:
words are folded and lightly stemmed, identifiers are kept whole and in their parts, and scripts
without word borders become overlapping pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from agent_journal.scripts import chunks_in, fold, han_characters, is_unspaced
from agent_journal.stems import STOP_WORDS, stem

QUERY_TERMS_MAX = 64
_QUERY_CHARS_MAX = 20_000
_WORD_MAX = 64
_COMPOUND_MAX = 120
_CACHE_MAX = 16_000  # about 8 MB; with 4,000 real texts took a quarter longer, made ones twice
_PAIR = 2
_CLUSTER_CHARS = 240
_HEAD = 2
"""So many letters of a `_PLAIN_WORD` stay as they are in its stem."""

_HANGUL = re.compile("[\uac00-\ud7a3]")
_SIGN = re.compile("(?s:.)[\u1160-\u11ff\u3099\u309a\uff9e\uff9f]*")  # a syllable in parts
_APOSTROPHES = re.compile("['\u2019]+")
_OUTER = re.compile(r"[/\\:@]+")
_INNER = re.compile("[-_]+")
_JOINED = re.compile(r"[._\-/\\:@]")
_LANGUAGE_MAX = 3  # c++, g++, c#; anything longer is a word with an operator
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?!.s$)")
_CAPITALS_WITHIN = re.compile("[a-z][A-Z]|[A-Z][A-Z][a-z]")
_PLURAL_ACRONYM = re.compile("(?<=[A-Z][A-Z])s$")
_ESCAPE = re.compile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")  # as coloured output has them
_NAMING = re.compile(r"[._/\\:@]")
_QUOTED = re.compile('"([^"]+)"|\u201c([^\u201d]+)\u201d|\u00ab([^\u00bb]+)\u00bb')
_PLAIN_WORD = re.compile("[A-Za-z][a-z]{4,}|[A-Z]{5,}")
_VERSION = re.compile(r"v\d+(?:\.\d+)+")


class _Analyses(dict[str, tuple[str, ...]]):
    """Terms of every chunk seen lately; a chunk without any is a stop word."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(self) >= _CACHE_MAX:
            self.clear()
        found = tuple(dict.fromkeys(_analyse(chunk)))
        if len(chunk) <= _COMPOUND_MAX:
            self[chunk] = found
        return found


_analyses = _Analyses()


def terms(text: str) -> list[str]:
    """Return a text's lexical terms in order, with repetitions: what an index holds.

    Each distinct stop word comes once, at the end: only queries of nothing else look for them.
    Linear in the text; no term is longer than 120 characters.
    """
    found, stop_words = _content_and_stop_words(text)
    found += stop_words
    return found


def query_terms(text: str) -> list[str]:
    """Return the distinct terms that a query looks for, at most 64 of them.

    Stop words count only when there is nothing else. Of too many terms the longest stay, as the
    rarest; of a very long text the first 20,000 characters are read.
    """
    found, stop_words = _content_and_stop_words(text[:_QUERY_CHARS_MAX])
    in_pairs = {one for term in found if len(term) == _PAIR and is_unspaced(term) for one in term}
    distinct = [term for term in dict.fromkeys(found) if term not in in_pairs] or stop_words
    if len(distinct) > QUERY_TERMS_MAX:
        kept = set(sorted(distinct, key=len, reverse=True)[:QUERY_TERMS_MAX])
        distinct = [term for term in distinct if term in kept]
    return distinct


def identifiers(text: str) -> frozenset[str]:
    """Return those of a query's terms that name one thing exactly.

    Paths, dotted and snake-cased names, versions, codes and camelCase; plain words, hyphened ones
    and numbers are none.
    """
    read = text[:_QUERY_CHARS_MAX]
    found = (_analyses[chunk] for chunk in chunks_in(read).findall(read) if _is_identifier(chunk))
    return frozenset(terms[0] for terms in found if terms)


def phrases(text: str) -> list[tuple[str, ...]]:
    """Return what a query quotes, each as the terms that stand in a row where it is found.

    Quotes that hold nothing but stop words say nothing.
    """
    quoted = ("".join(groups) for groups in _QUOTED.findall(text[:_QUERY_CHARS_MAX]))
    found: list[tuple[str, ...]] = []
    for content in map(_content_and_stop_words, quoted):
        terms = content[0]
        in_pairs = {
            one for term in terms if len(term) == _PAIR and is_unspaced(term) for one in term
        }
        if row := tuple(term for term in terms if term not in in_pairs):
            found.append(row)
    return found


def title_key(text: str) -> str:
    """Return the form in which queries and titles are compared.

    Either empty, when the text holds nothing but stop words and punctuation, or its folded whole
    words, in order, with a blank before and after each. Characters of scripts without word borders
    stand singly.
    """
    words: list[str] = []
    read = text[:_QUERY_CHARS_MAX]
    for chunk in chunks_in(read).findall(read):
        if is_unspaced(chunk):
            words += fold(chunk)
        elif (folded := fold(chunk)) in STOP_WORDS:
            words.append(folded)
        else:
            words += re.findall(r"[^\s._\-/\\:@']+", folded)
    if all(word in STOP_WORDS for word in words):
        return ""
    return f" {' '.join(words)} "


def locate(text: str, wanted: Collection[str]) -> int:
    """Return where in a text, in characters, most of the wanted terms stand close together.

    The position is that of the first of them; 0 when the text holds none.
    """
    return _densest([(start, term) for start, _, term in _places(text, set(wanted))])


def occurrences(text: str, wanted: Collection[str]) -> list[tuple[int, int]]:
    """Return where the wanted terms stand in a text, as spans in order that don't overlap.

    A word that has a wanted term counts whole, and so does an identifier; of a run of a script
    without word borders, only what was wanted.
    """
    spans: list[tuple[int, int]] = []
    for start, end, _ in _places(text, set(wanted)):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _places(text: str, sought: set[str]) -> Iterator[tuple[int, int, str]]:
    """Give each place where a term stands that is sought: from where to where, and the term."""
    text = _without_escapes(text)
    heads = {term[:_HEAD] for term in sought}
    for match in chunks_in(text).finditer(text):
        chunk = match[0]
        if chunk[:_HEAD].lower() not in heads and _PLAIN_WORD.fullmatch(chunk):
            continue  # most words are none of those: to analyse them took half of a search
        start = match.start()
        terms = _analyses[chunk] or (fold(chunk),)
        if sought.isdisjoint(terms):
            continue
        is_run = is_unspaced(chunk)
        if is_run or (_HANGUL.search(terms[0]) and terms[0] not in sought):
            yield from _places_in_run(chunk, start, sought, least=1 if is_run else _PAIR)
        else:
            for term in terms:
                if term in sought:
                    yield start, match.end(), term


def _places_in_run(
    run: str, offset: int, sought: set[str], *, least: int
) -> Iterator[tuple[int, int, str]]:
    """Give the places within a run of pairs, and of single characters unless two are the least."""
    signs = [(one.start(), one.end(), fold(one[0])) for one in _SIGN.finditer(run)]
    following = [*signs[1:], (len(run), len(run), "")]
    for (start, end, sign), (_, end_of_pair, after) in zip(signs, following, strict=True):
        if sign + after in sought and after:
            yield offset + start, offset + end_of_pair, sign + after
        if least == 1 and sign in sought:
            yield offset + start, offset + end, sign


def _without_escapes(text: str) -> str:
    """Return a text of the same length without terminal escapes, whose letters are no words."""
    return _ESCAPE.sub(lambda found: " " * len(found[0]), text) if "\x1b" in text else text


def _content_and_stop_words(text: str) -> tuple[list[str], list[str]]:
    found: list[str] = []
    empty: list[str] = []
    text = _without_escapes(text)
    for chunk in chunks_in(text).findall(text):
        if analysis := _analyses[chunk]:
            found += analysis
        else:
            empty.append(chunk)
    return found, [word for word in dict.fromkeys(map(fold, empty)) if word]


def _analyse(chunk: str) -> list[str]:
    """Return the terms of one chunk; none when it is a stop word."""
    folded = fold(chunk)
    if is_unspaced(chunk):
        return [*_pairs(folded), *(han_characters(folded) if len(folded) > 1 else ())]
    if not folded or folded in STOP_WORDS:
        return []
    if _HANGUL.search(folded):
        return [folded[:_WORD_MAX], *_pairs(folded)]
    if folded[-1] in "+#" and len(folded) <= _LANGUAGE_MAX:
        return [folded]
    if chunk.isalpha() and not _CAPITALS_WITHIN.search(chunk):
        return [stem(folded[:_WORD_MAX])]
    return _identifier(folded[1:] if _VERSION.fullmatch(folded) else chunk.rstrip("+#"))


def _is_identifier(chunk: str) -> bool:
    if is_unspaced(chunk) or not any(map(str.isalpha, chunk)):
        return bool(_VERSION.fullmatch(f"v{chunk}"))
    return bool(
        _NAMING.search(chunk.strip("._-/\\:@"))
        or any(map(str.isdigit, chunk))
        or _CAPITALS_WITHIN.search(chunk)
    )


def _identifier(chunk: str) -> list[str]:
    """Return an identifier's terms: whole, its parts, and the parts' parts."""
    found: list[str] = []
    for piece in _APOSTROPHES.split(unicodedata.normalize("NFKC", chunk)):
        _take_whole(found, piece)
        for segment in _OUTER.split(piece):
            _take_whole(found, segment)
            for dotted in segment.split("."):
                _take_whole(found, dotted)
                for name in _INNER.split(dotted):
                    parts = (_PLURAL_ACRONYM.sub("", part) for part in (name, *_CAMEL.split(name)))
                    words = [fold(part)[:_WORD_MAX] for part in parts]
                    found += [stem(word) for word in words if word and word not in STOP_WORDS]
    return found


def _take_whole(found: list[str], name: str) -> None:
    """Keep an identifier of several parts in one piece too, unless it is as long as a sentence."""
    folded = fold(name).strip("_-.")
    if _JOINED.search(folded) and len(folded) <= _COMPOUND_MAX:
        found.append(folded)


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _densest(places: list[tuple[int, str]]) -> int:
    best, best_count, first = 0, 0, 0
    window: dict[str, int] = {}
    for position, term in places:
        window[term] = window.get(term, 0) + 1
        while places[first][0] < position - _CLUSTER_CHARS:
            left = places[first][1]
            window[left] -= 1
            if not window[left]:
                del window[left]
            first += 1
        if len(window) > best_count:
            best, best_count = places[first][0], len(window)
    return best
