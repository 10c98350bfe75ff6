"""Words of a text: terms for BM25, tokens for ROUGE-L.

Letters of any script count, with their combining marks. In scripts without spaces between words,
each letter with its marks is a word: one-letter words retrieve better there than whole clauses.
"""

import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from functools import cache, lru_cache

from rapidfuzz.distance import LCSseq

from qrmem.text import listed
from qrmem.text.spelling import LATIN, MARKS, UNSPACED

SEARCHED = 8_000
"""Maximum number of characters of a question that a search uses."""
CUT = f"a search uses only the first {SEARCHED:,} characters of a question"
_WORD = re.compile(f"[{UNSPACED}][{MARKS}]*|(?:(?![{UNSPACED}])[\\w{MARKS}])+")
_ASCII_WORD = re.compile("[^\\W_]+", re.ASCII)
_CLITIC = re.compile("(?<=[a-z])['\u2019](?:s|t|d|ll|re|ve|m)(?![a-z])")
_THOUSANDS = re.compile("(?<=\\d),(?=\\d{3}(?!\\d))")
_ROUGE_WORD = re.compile("[a-z0-9]+")
_OTHER_WORD = re.compile(
    f"[a-z0-9]+|[{UNSPACED}][{MARKS}]*|"
    f"(?![{UNSPACED}{LATIN}])[^\\x00-\\x7f\\W](?:(?![{UNSPACED}{LATIN}])[^\\x00-\\x7f\\W]|[{MARKS}])*"
)
_INVISIBLE = re.compile("[\u00ad\u2060\ufeff]")
"""Soft hyphens and joiners, which do not separate words."""
_NO_MARKS = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe"})
"""Latin letters that Unicode does not decompose, with their usual plain spelling."""
_PARTICLE = re.compile(
    "(?<=[가-힣]{2})(?:은|는|이|가|을|를|의|에|도|만|와|과|로|으로|에서|에게|까지|부터|께서|이다|이었다|였다)$"
)
"""Korean particles after a name or noun of two syllables or more."""
_MEMO_SIZE = 1 << 15
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0531", "\u058f", "armenian"),
    ("\u0620", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
"""Ranges of letters with their stemmers: that of the script's main language is used for all
languages in it. Latin letters do not tell the language."""

STOP_WORDS = frozenset(listed("stop-words").split())
"""English words that carry no content; dropped from terms before stemming."""


def terms(text: str) -> list[str]:
    """Return the words that BM25 counts: lower-cased, stemmed, accents folded, stop words dropped.

    Words in Latin letters are stemmed as English, others by their script; Korean words lose the
    most frequent particles.

    Returns:
        In text order, repeats kept; empty if there are only stop words.
    """
    text = text.lower()
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    if "'" in text or "\u2019" in text:
        text = _CLITIC.sub("", text)
    if "," in text:
        text = _THOUSANDS.sub("", text)
    return list(filter(None, map(_term, _words(text))))


def searched(question: str) -> str:
    """Return the part of a question that a search uses: the first words of a very long one."""
    if len(question) <= SEARCHED:
        return question
    first = question.lstrip()[:SEARCHED].rsplit(None, 1)
    return first[0] if first else ""


def cut_note(question: str) -> str:
    """Return a note if a search uses only a part of the question; else ""."""
    return CUT if len(question) > SEARCHED else ""


def tokens(text: str) -> list[str]:
    """Return the words that ROUGE-L compares; for Latin script those of `rouge_score`, unstemmed.

    These are runs of `[a-z0-9]` in the lower-case text; as there, a Latin letter with an accent
    separates words. Letters and digits of other scripts are kept; `rouge_score` drops them.
    """
    text = text.lower()
    return (_ROUGE_WORD if text.isascii() else _OTHER_WORD).findall(text)


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(text.replace("_", " "))


@lru_cache(maxsize=_MEMO_SIZE)
def _term(word: str) -> str:
    """Return a word's term, "" for a stop word."""
    if word in STOP_WORDS:
        return ""
    if not word.isascii() and (script := _script(word[0])):
        return _stemmer(script)(word) or word
    if "가" <= word[0] <= "힣":
        return _PARTICLE.sub("", word)
    return _stemmer("english")(_folded(word))


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import Stemmer  # type: ignore[import-not-found]

    # No cache of its own: `_term` has one.
    return Stemmer.Stemmer(language, 0).stemWord  # type: ignore[no-any-return]


def _script(letter: str) -> str:
    """Return the stemmer for the script of a word; "" if there is none."""
    return next((language for a, b, language in _SCRIPTS if a <= letter <= b), "")


def _folded(word: str) -> str:
    """Drop the marks on Latin letters, so that `Zoë` and `Zoe` match; other scripts keep theirs.

    Compatibility forms (full width, ligatures) and ß are written out.
    """
    if word.isascii():
        return word
    plain: list[str] = []
    for char in unicodedata.normalize("NFKD", word.casefold().translate(_NO_MARKS)):
        is_mark = "\u0300" <= char <= "\u036f" and plain and plain[-1].isascii()
        if not is_mark and (char.isalnum() or not char.isascii()):
            plain.append(char)
    return unicodedata.normalize("NFC", "".join(plain))


# ROUGE-L: the similarity of two texts in words and their order.

THRESHOLD = 0.6
"""Two questions at or above this are equal; from the paper, section 2.1, footnote 2."""


def rouge_l(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Return the F-measure of ROUGE-L, as `rouge_score` computes it without a stemmer.

    Args:
        first: tokens; see `qrmem.text.words.tokens`.
        second: tokens.

    Returns:
        In [0, 1]; 0 if one of them is empty.
    """
    if not first or not second:
        return 0.0
    return fmeasure(LCSseq.similarity(first, second), len(first), len(second))


def fmeasure(common: int, first: int, second: int) -> float:
    """Return the F-measure of two lengths and the length of their common part."""
    # The same floating-point steps as in the official scorer: they matter at exactly 0.6.
    precision, recall = common / first, common / second
    return 2 * precision * recall / (precision + recall) if common else 0.0
