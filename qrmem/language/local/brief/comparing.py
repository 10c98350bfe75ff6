"""Questions that compare two: which came first, are both the same, is it true of both."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qrmem.language.local.brief.following import Anchor, asked_relations, follow
from qrmem.language.local.brief.moments import Moment, Order
from qrmem.language.local.brief.nations import nations
from qrmem.language.local.brief.relations import BY_NAME, born, died, first_date
from qrmem.language.local.brief.told import Told
from qrmem.language.local.content import content

_EARLY = re.compile(
    r"\b(?:older|oldest|first|earlier|earliest|before|longest ago|prior)\b", re.IGNORECASE
)
_LATE = re.compile(
    r"\b(?:younger|youngest|later|latest|last|recently|recent|newer|newest|after)\b", re.IGNORECASE
)
_LIVED = re.compile(r"\b(?:lived|life)\b.*\b(?:longer|longest|shorter)\b", re.IGNORECASE)
_BORN = re.compile(r"\bborn\b|\bolder\b|\boldest\b|\byounger\b|\byoungest\b|\bage\b", re.IGNORECASE)
_DIED = re.compile(r"\bdie[ds]?\b|\bdeath\b", re.IGNORECASE)
_CLOSED = re.compile(r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could)\b", re.IGNORECASE)
_SAME = re.compile(r"\b(?:same|share|similar|common)\b", re.IGNORECASE)
_COUNTRY = re.compile(r"\b(?:country|countries|nationality|nation|nationalities)\b", re.IGNORECASE)
_FILLING = frozenset(
    content(
        "both same either also same share film movie song band person people which who is are born "
        "located country nationality director directors from kind type common"
    )
)

When = Callable[[Told], tuple[Moment, str] | None]


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison came to, with the sentences that it rests on."""

    text: str
    stated: tuple[tuple[Told, str], ...]


def is_closed(question: str) -> bool:
    """Whether yes or no answers a question."""
    return bool(_CLOSED.match(question)) and not re.search(r"\w\s+or\s+\w", question)


def compare(question: str, offered: Sequence[Anchor], among: Sequence[Told]) -> Compared | None:
    """Return what a question that compares comes to; `None` if it does not, or nothing is found."""
    if len(offered) < 2:
        return None
    pair = [_reached(question, anchor, offered, among) for anchor in offered[:2]]
    if is_closed(question):
        return _both(question, pair)
    if not re.search(r"\b(?:or|and|between)\b", question):
        return None
    place = _first(question, pair)
    if place is None:
        return None
    at, stated = place
    return Compared(question[offered[at].start : offered[at].end].strip(), stated)


def _reached(
    question: str, anchor: Anchor, offered: Sequence[Anchor], among: Sequence[Told]
) -> Told:
    """Return who is compared: the one named, or, say, the director of what is named."""
    masked = question
    for other in offered:
        masked = masked[: other.start] + " " * (other.end - other.start) + masked[other.end :]
    chain = [
        relation
        for relation in asked_relations(masked, (anchor.start, anchor.end))
        if not relation.is_end and relation.name not in {"birthplace", "deathplace", "burial"}
    ][:1]
    path = follow(anchor.told, [*chain, BY_NAME["country"]], among) if chain else None
    return path.focus if path else anchor.told


def _first(question: str, pair: Sequence[Told]) -> tuple[int, tuple[tuple[Told, str], ...]] | None:
    """Return which of two comes first, or last, as the question asks."""
    if _LIVED.search(question):
        return _longer(question, pair)
    is_late, is_early = bool(_LATE.search(question)), bool(_EARLY.search(question))
    if not (is_late or is_early):
        return _more_told(question, pair) if re.search(r"\bor\b", question) else None
    when: When = died if _DIED.search(question) else born if _BORN.search(question) else first_date
    found = [when(one) for one in pair]
    if found[0] is None or found[1] is None:
        return None
    orders = [found[0][0].order, found[1][0].order]
    # The older one was born first; who "died later" has the later date.
    at = orders.index(min(orders) if is_early else max(orders))
    return at, ((pair[0], found[0][1]), (pair[1], found[1][1]))


def _more_told(
    question: str, pair: Sequence[Told]
) -> tuple[int, tuple[tuple[Told, str], ...]] | None:
    """Return the one of which more of what is asked is told; nothing where both are alike."""
    wanted = set(content(question)) - {t for one in pair for t in content(one.about)} - _FILLING
    said = [[set(content(s)) & wanted for s in one.sentences] for one in pair]
    counts = [len(set().union(*found)) for found in said]
    if counts[0] == counts[1]:
        return None
    at = counts.index(max(counts))
    best = max(range(len(said[at])), key=lambda n: (len(said[at][n]), -n))
    return at, ((pair[at], pair[at].sentences[best]),)


def _longer(question: str, pair: Sequence[Told]) -> tuple[int, tuple[tuple[Told, str], ...]] | None:
    spans: list[int] = []
    stated = []
    for one in pair:
        begun, ended = born(one), died(one)
        if begun is None or ended is None:
            return None
        spans.append(_days(ended[0].order) - _days(begun[0].order))
        stated.append((one, ended[1]))
    wanted = min(spans) if "shorter" in question else max(spans)
    return spans.index(wanted), tuple(stated)


def _days(order: Order) -> int:
    year, month, day = order
    return 372 * year + 31 * month + day


def _both(question: str, pair: Sequence[Told]) -> Compared | None:
    """Return yes or no: whether two are of one country, or both are what is said of them."""
    opening = [_opening(one) for one in pair]
    stated = tuple((one, one.sentences[0]) for one in pair if one.sentences)
    if _SAME.search(question) and _COUNTRY.search(question):
        homes = [{country for _, country in nations(text)} for text in opening]
        if not all(homes):
            return None
        return Compared("yes" if homes[0] & homes[1] else "no", stated)
    named = {term for one in pair for term in content(one.about)}
    wanted = set(content(question)) - named - _FILLING
    if not wanted or _SAME.search(question):
        return None
    own = [set(content(" ".join(one.sentences[:4]))) for one in pair]
    return Compared("yes" if all(wanted <= terms for terms in own) else "no", stated)


def _opening(one: Told) -> str:
    return " ".join(one.sentences[:2])
