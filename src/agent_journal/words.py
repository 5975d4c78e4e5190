"""Text to the lexical terms that are indexed and searched, in any script.

One rule serves documents and queries alike, whatever their language, so that both always agree:
words are folded and lightly stemmed, identifiers are kept whole and in their parts, and scripts
without word borders become overlapping pairs of characters.
"""

from __future__ import annotations

# ruff: noqa: RUF001, SIM905 - look-alike letters are the matter here, and words read as prose
import re
import unicodedata
from collections.abc import Collection

QUERY_TERMS_MAX = 64
_QUERY_CHARS_MAX = 20_000
_WORD_MAX = 64
_COMPOUND_MAX = 120
_CACHE_MAX = 100_000
_CLUSTER_CHARS = 240

# Han, kana and bopomofo; Thai; Lao; Myanmar; Khmer: written without blanks between words.
_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
_UNSPACED = (
    f"{_HAN}\u3041-\u3096\u3099-\u309f\u30a1-\u30ff\u3100-\u312f\u31f0-\u31ff"
    f"\uff66-\uff9f{_SOUTH_EAST}"
)
# Marks that belong to a word although they are no letters (``\w`` lacks them), and joiners.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7"
    "\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70-\u0a75\u0a81-\u0a83\u0abc-\u0acd\u0ae2\u0ae3"
    "\u0b01-\u0b03\u0b3c-\u0b57\u0b62\u0b63\u0b82\u0bbe-\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c62"
    "\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2\u0ce3\u0d00-\u0d03\u0d3b-\u0d57\u0d62\u0d63"
    "\u0d82\u0d83\u0dca-\u0ddf\u0df2\u0df3\u0f71-\u0f84\u0f8d-\u0fbc\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20f0\ufe20-\ufe2f\u00ad\u200c\u200d"
)
_JOINERS = r".\-/\\:@'’"
_CHUNK_ASCII = re.compile(rf"[A-Za-z0-9_]++(?:[{_JOINERS}]++[A-Za-z0-9_]++)*+(?:\+\+|\#)?")
_LETTER = rf"(?:[^\W{_UNSPACED}]|[{_MARKS}])"
_CHUNK = re.compile(
    rf"[{_UNSPACED}{_MARKS}]*[{_UNSPACED}][{_UNSPACED}{_MARKS}]*"
    rf"|{_LETTER}++(?:[{_JOINERS}]++{_LETTER}++)*+(?:\+\+|\#)?"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_HAN_CHARACTER = re.compile(rf"[{_HAN}]")
_HANGUL = re.compile("[\uac00-\ud7a3]")

_APOSTROPHES = re.compile("['’]+")
_OUTER = re.compile(r"[/\\:@]+")
_INNER = re.compile("[-_]+")
_JOINED = re.compile(r"[._\-/\\:@+#]")
_NO_WORD = re.compile(r"[\d+#]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?!.s$)")
_VERSION = re.compile(r"v(\d[\d.]*)")
# Optional marks: Latin, Greek and Cyrillic diacritics, Hebrew points, Arabic vowel signs.
_OPTIONAL = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u00ad\u200c\u200d]+"
)
_SPELLINGS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"}
    | {"\u0649": "\u064a", "\u0629": "\u0647", "\u06cc": "\u064a", "\u06a9": "\u0643", "’": "'"}
)
_DIGIT = re.compile(r"[^\D0-9]")

# Light stemming for all languages at once, so that no language need be guessed: English plurals and
# participles, suffixes that English and Romance languages share, verb forms, final vowels; then
# the endings of Cyrillic, Greek, Arabic and Devanagari words.
_STEMMED_FROM = 4
_LATIN_LAST = "\u024f"
_PLURAL_ES = re.compile("(?:ss|sh|ch|x|z)es$")
_PARTICIPLE = re.compile("(?=[^aeiouy]*[aeiouy].*?(?:ing|[^e]ed|ly)$)(.{3,}?)(?:ing|ed|ly)")
_DOUBLED = re.compile(r".([^\W\dlsz])\1$")
_TION = re.compile("(?<=...)(?:tion[ei]?|zion[ei]|cion|cione|coe|cao)$")
_SUFFIX = re.compile("(?<=....)(?:er|or|en|[ai]t[aoi]|ut[aoi]|[ae]ndo|ava|avano)$")
_FINAL_VOWELS = re.compile("(?<=...)[aeiouy]+$")
_ARABIC_ARTICLE = re.compile("^(?:[\u0648\u0628\u0643\u0641]?\u0627\u0644|\u0644\u0644)(?=..)")
_ENDINGS_ELSEWHERE = re.compile(
    "(?<=...)(?:иями|ями|ами|ией|ых|их|иям|иях|ого|его|ому|ему|ыми|ими|ость|ости|ать|ять|ить|еть|ала|ила"
    "|али|или|ает|яет|ует|ют|ут|ят|ат|ая|яя|ое|ее|ые|ие|ый|ий|ои|ей|ой|ом|ем|ам|ям|ах|ях|ов|ев|ию|ия"
    "|ии|[аяоеыиуюьйл]|[αεηιουω]*σ?|(?<=.)(?:ات|ان|ون|ين|ها|ه|ي)|[\u093e-\u094c\u0902]+)$"
)

_STOP_WORDS = frozenset(
    # English
    "a about above after again against all also am an and any are aren't as at be because been "
    "before being below between both but by can can't cannot could couldn't did didn't do does "
    "doesn't doing don't down during each few for from further had hadn't has hasn't have haven't "
    "having he her here hers herself him himself his how i if in into is isn't it it's its itself "
    "just let's me more most my myself no nor not now of off on once only or other our ours "
    "ourselves out over own same she should shouldn't so some such than that that's the their "
    "theirs them themselves then there there's these they this those through to too under until "
    "up upon us very was wasn't we were weren't what what's when where which while who whom whose "
    "why will with won't would wouldn't you your yours yourself yourselves i'm i've i'd i'll "
    "you're you've we're we've they're they've s t d ll m re ve "
    # Italian
    "il lo la i gli le un uno una di del dello della dei degli delle dell al allo alla ai agli "
    "alle all da dal dallo dalla dai dagli dalle dall nel nello nella nei negli nelle nell su sul "
    "sullo sulla sui sugli sulle sull con per tra fra e ed o od ma che chi cui non si ci ne se "
    "anche come dove quando perche quale quali cosa sono sei era erano essere stato stata stati "
    "state ha hanno ho hai aveva avevano questo questa questi queste quello quella quelli quelle "
    "quell mi ti vi lui lei loro noi voi piu viene c l "
    # French
    "les des du de et en est sont dans pour par pas plus que qui ne ce cette ces cet au aux sur "
    "avec nous vous ils elle elles leur leurs se sa ses son mais ou donc je tu etre ete n qu j "
    # Spanish and Portuguese
    "el los las unos unas y que en por para con sin del se su sus lo como pero mas ya muy esta "
    "este esto fue hay os um uma do dos das na nas no nos em com sem nao ao aos pelo pela e ser "
    "foi isso ele ela eles qual cuando donde porque quien cual onde "
    # German and Dutch
    "der die das den dem des ein eine einen einem einer eines und oder ist sind nicht mit von zu "
    "zum zur im auf fur als auch sich es er sie wir ihr bei nach aus wie wenn dass wird werden "
    "wurde haben hat noch nur uber warum wo het een van voor niet zijn bij ook naar wordt dat "
    # Russian
    "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее "
    "мне было вот от меня еще нет о из ему при для это этот эта эти мы они был была были быть "
    "или если чтобы почему где когда".split()
)


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
    distinct = list(dict.fromkeys(found)) or stop_words
    if len(distinct) > QUERY_TERMS_MAX:
        kept = set(sorted(distinct, key=len, reverse=True)[:QUERY_TERMS_MAX])
        distinct = [term for term in distinct if term in kept]
    return distinct


def title_key(text: str) -> str:
    """Return the form in which queries and titles are compared.

    Either empty, when the text holds nothing but stop words and punctuation, or its folded whole
    words, in order, with a blank before and after each. Characters of scripts without word borders
    stand singly.
    """
    words: list[str] = []
    for chunk in _chunks(text[:_QUERY_CHARS_MAX]):
        if _UNSPACED_RUN.match(chunk):
            words += fold(chunk)
        else:
            words += re.findall(r"[^\s._\-/\\:@']+", fold(chunk))
    if all(word in _STOP_WORDS for word in words):
        return ""
    return f" {' '.join(words)} "


def locate(text: str, wanted: Collection[str]) -> int:
    """Return where in a text, in characters, most of the wanted terms stand close together.

    The position is that of the first of them; 0 when the text holds none.
    """
    sought = set(wanted)
    places: list[tuple[int, str]] = []
    for match in _CHUNK.finditer(text):
        chunk = match[0]
        if _UNSPACED_RUN.match(chunk):
            pairs = ((at, fold(chunk[at : at + 2])) for at in range(len(chunk)))
            places += [
                (match.start() + at, term)
                for at, pair in pairs
                for term in dict.fromkeys((pair, pair[:1]))
                if term in sought
            ]
        else:
            found = _analyses[chunk] or (fold(chunk),)
            places += [(match.start(), term) for term in found if term in sought]
    return _densest(places)


def fold(text: str) -> str:
    """Return text without the differences that a search overlooks.

    Those are compatibility forms, case, the diacritics of Latin, Greek and Cyrillic, Hebrew points,
    Arabic vowel signs, and the script of digits. Marks that carry meaning stay.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _OPTIONAL.sub("", unicodedata.normalize("NFD", folded)).translate(_SPELLINGS)
    folded = unicodedata.normalize("NFC", folded)
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0], digit[0])), folded)


def _chunks(text: str) -> list[str]:
    return (_CHUNK_ASCII if text.isascii() else _CHUNK).findall(text)


def _content_and_stop_words(text: str) -> tuple[list[str], list[str]]:
    found: list[str] = []
    empty: list[str] = []
    for chunk in _chunks(text):
        if analysis := _analyses[chunk]:
            found += analysis
        else:
            empty.append(chunk)
    return found, list(dict.fromkeys(map(fold, empty)))


def _analyse(chunk: str) -> list[str]:
    """Return the terms of one chunk: a run of unspaced script, a word, or an identifier."""
    folded = fold(chunk)
    if _UNSPACED_RUN.match(chunk):
        return _pairs(folded)
    if folded in _STOP_WORDS:
        return []
    if _HANGUL.search(folded):
        return [folded[:_WORD_MAX], *_pairs(folded[:_WORD_MAX])]
    found: list[str] = []
    for piece in _APOSTROPHES.split(unicodedata.normalize("NFKC", chunk)):
        _take_whole(found, piece)
        for segment in _OUTER.split(piece):
            _take_whole(found, segment)
            for dotted in segment.split("."):
                _take_whole(found, dotted)
                for name in _INNER.split(dotted):
                    parts = _CAMEL.split(name)
                    words = [fold(part)[:_WORD_MAX] for part in (name, *parts)]
                    found += [_stem(word) for word in words if word and word not in _STOP_WORDS]
    return found


def _take_whole(found: list[str], name: str) -> None:
    """Keep an identifier of several parts in one piece too, unless it is as long as a sentence."""
    folded = fold(name).strip("_-.")
    if _JOINED.search(folded) and len(folded) <= _COMPOUND_MAX:
        found.append(folded)
        if version := _VERSION.fullmatch(folded):
            found.append(version[1])


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _stem(word: str) -> str:
    """Cut a folded word to what its forms share; short ones and those with digits stay as they are."""
    if _NO_WORD.search(word):
        return word
    if word > _LATIN_LAST:
        return _ENDINGS_ELSEWHERE.sub("", _ARABIC_ARTICLE.sub("", word))
    if len(word) < _STEMMED_FROM:
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif _PLURAL_ES.search(word):
        word = word[:-2]
    elif word[-1] == "s" and word[-2] not in "siu":
        word = word[:-1]
    if ending := _PARTICIPLE.fullmatch(word):
        word = ending[1]
        if _DOUBLED.search(word):
            word = word[:-1]
    word = _SUFFIX.sub("", _TION.sub("t", word))
    return _FINAL_VOWELS.sub("", word)


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
