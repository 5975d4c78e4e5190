"""Which words say nothing by themselves, and what the forms of the others share.

One rule for all languages at once, so that no language need be guessed and documents and queries
always agree. It knows English plurals and participles, suffixes and verb forms of Romance
languages, final vowels, and the commonest endings of Cyrillic, Greek, Arabic and Devanagari words.
"""

# ruff: noqa: RUF001, SIM905 - look-alike letters are the matter here, and words read as prose
from __future__ import annotations

import re

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
_DIGIT = re.compile(r"\d")

STOP_WORDS = frozenset(
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
    "или если чтобы почему где когда "
    # What Korean, Arabic and Hebrew glue to names in Latin letters
    "은 는 이 가 을 를 에 의 와 과 도 로 으로 에서 에게 까지 부터 이다 "
    "ال بال وال ה ב ל מ ו ש כ וה".split()
)
"""Folded words too common to tell one text from another."""


def stem(word: str) -> str:
    """Cut a folded word to what its forms share; short ones and those with digits stay."""
    if _DIGIT.search(word):
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
