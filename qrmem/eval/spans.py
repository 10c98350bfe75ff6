"""The short-answer step with no model: the span of an answer that the question asks for.

A rule of a page, the same for every system: it knows the kind that is asked for, the noun behind
"which", two names to choose from, and that the answer stands near the question's words.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qrmem.language.local.query import Query, query
from qrmem.language.rules import tagged
from qrmem.text.words import terms

_CLOSED = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE
)
_NO = re.compile(r"\b(?:no|not|never|neither|nor|none)\b", re.IGNORECASE)
_NOUN = re.compile(r"\b(?:which|what)\s+(?:\w+\s+)?(\w+)", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_EARLIER = re.compile(r"\b(?:older|first|earlier|earliest|oldest|before)\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:younger|later|latest|last|youngest|more recently)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_NEAR = 12
"""Words from which a candidate no longer gains by standing near the question's words."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A name, date or number of the answer.

    Attributes:
        distance: words between it and the nearest word of the question.
        has_noun: whether the noun behind "which" stands beside it.
        is_known: whether the question has a part of it.
    """

    text: str
    kind: str
    place: int
    distance: int
    has_noun: bool
    is_known: bool


def best_span(question: str, answer: str) -> str:
    """Return the name, date or number of an answer that fits the question best.

    A question for yes or no gets one of the two; of two names that the question offers one is
    chosen; an answer with no name in it stays whole.
    """
    asked = query(question)
    offered = _offered(question, asked)
    if offered:
        return _one_of(question, answer, offered)
    if _CLOSED.match(question.strip()):
        return "no" if _NO.search(answer) else "yes"
    found = list(_candidates(question, answer))
    if not found:
        return answer
    best = min(found, key=lambda candidate: _rank(candidate, asked))
    years = _YEAR.findall(best.text) if re.search(r"\byear\b", question, re.IGNORECASE) else []
    return years[0] if years else best.text


def _rank(candidate: _Candidate, asked: Query) -> tuple[int, int, bool, int]:
    if asked.kind:
        fits = 0 if candidate.kind == asked.kind else 1 if not candidate.kind else 2
    else:
        fits = 2 if candidate.kind in {"DATE", "NUMBER"} else 1
    return (
        fits - 2 * candidate.has_noun,
        min(candidate.distance, _NEAR),
        candidate.is_known,
        candidate.place,
    )


def _candidates(question: str, answer: str) -> Iterator[_Candidate]:
    """Yield what the answer names beyond the question, with how near its words stand."""
    known = set(terms(question))
    noun = _NOUN.search(question)
    wanted = set(terms(noun[1])) if noun else set()
    words = list(_WORD.finditer(answer))
    places = [n for n, word in enumerate(words) if set(terms(word[0])) & known]
    found = tagged(answer)
    for occurrence in found.occurrences:
        mention = found.mentions[occurrence.entity]
        text = answer[occurrence.start : occurrence.end]
        own = set(terms(text))
        if not own or own <= known:
            continue
        first = sum(word.end() <= occurrence.start for word in words)
        last = first + len(_WORD.findall(text)) - 1
        near = (max(first - place, place - last) for place in places if not first <= place <= last)
        beside = {t for word in words[max(first - 2, 0) : last + 3] for t in terms(word[0])}
        yield _Candidate(
            _bare(text, mention.type),
            mention.type,
            occurrence.start,
            min(near, default=_NEAR),
            bool(wanted & beside),
            bool(own & known),
        )


def _bare(text: str, kind: str) -> str:
    """Return a number without what it counts."""
    figure = re.match(r"[$€£]?[\d.,]*\d%?", text) if kind == "NUMBER" else None
    return figure[0] if figure else text


def _offered(question: str, asked: Query) -> tuple[str, str] | None:
    """Return the two names that a question offers: "Was it A or B?"."""
    for match in re.finditer(r",?\s+or\s+", question):
        before, behind = question[: match.start()], question[match.end() :]
        first = [name for name in asked.names if before.endswith(name)]
        second = [name for name in asked.names if behind.startswith(name)]
        if first and second:
            return max(first, key=len), max(second, key=len)
    return None


def _one_of(question: str, answer: str, offered: tuple[str, str]) -> str:
    """Return the name whose year comes first or last, as asked; else the one that is told of."""
    years = [_year_of(name, answer) for name in offered]
    if all(years) and (_EARLIER.search(question) or _LATER.search(question)):
        is_later = bool(_LATER.search(question)) and not _EARLIER.search(question)
        place = years.index(max(years) if is_later else min(years))
        return offered[place]
    shared = [
        len(set(terms(name)) & set(terms(answer))) / len(terms(name) or [1]) for name in offered
    ]
    return offered[shared.index(max(shared))]


def _year_of(name: str, answer: str) -> int:
    """Return the first year behind a name, 0 for none."""
    last = name.split()[-1]
    at = answer.find(last)
    year = _YEAR.search(answer, at) if at >= 0 else None
    return int(year[0]) if year else 0
