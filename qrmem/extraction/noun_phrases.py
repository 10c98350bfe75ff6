"""Things without a capital: "the iron cupboard", "her telescope"."""

import re
from dataclasses import dataclass

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.named_sentences import Sentence

_THING = re.compile(
    r"\b(?:an?|the|his|her|its|their|my|our|your)\s+((?:[a-z]+(?:-[a-z]+)*\s+){0,2}[a-z]+(?:-[a-z]+)*)"
    r"(?=[^\w\s’']|\s+[^\W\d_]+)"
)
_WORD = re.compile(r"\S+")
_VERBAL = re.compile(r".*(?:ed|ing|ly)\Z")


@dataclass(frozen=True, slots=True)
class Thing:
    """A noun with the words before it, and where it stands in its sentence."""

    text: str
    start: int
    end: int


def things(sentence: Sentence) -> list[Thing]:
    """Return nouns after an article or possessive, with what stands between; longest first."""
    found: dict[str, Thing] = {}
    for match in _THING.finditer(sentence.text):
        words = _noun_phrase(sentence.text, *match.span(1))
        if words:
            text = " ".join(word.group() for word in words)
            found.setdefault(text, Thing(text, words[0].start(), words[-1].end()))
    return sorted(found.values(), key=lambda thing: -len(thing.text.split()))


def _noun_phrase(text: str, start: int, end: int) -> list[re.Match[str]]:
    """The words up to the first that cannot belong to a noun."""
    kept: list[re.Match[str]] = []
    for match in _WORD.finditer(text, start, end):
        word = match.group()
        if word in voc.FUNCTION_WORDS or word in voc.FINITE_VERBS or (kept and _VERBAL.match(word)):
            break
        if word != "own":
            kept.append(match)
    if not kept:
        return []
    last = kept[-1].group()
    is_noun = len(last) > 2 and last not in voc.VAGUE_NOUNS and not _VERBAL.match(last)
    return kept if is_noun else []


def forms_of(thing: str, text: str) -> list[str]:
    """Return how a text spells a thing, once for each place, whatever its capitals."""
    lower, forms, at = text.lower(), [], 0
    if len(lower) != len(text):
        lower = text
    while (at := lower.find(thing, at)) >= 0:
        end = at + len(thing)
        if not (lower[at - 1 : at].isalnum() or lower[end : end + 1].isalnum()):
            forms.append(text[at:end])
        at = end
    return forms
