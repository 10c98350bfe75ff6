"""What kind of thing a question asks for, and which of its words stand nearest to that."""

import re
from dataclasses import dataclass

from qrmem.language.local.content import content
from qrmem.language.local.query import Query

_NOUN = re.compile(
    r"\b(?:which|what)\s+((?:\w+\s+){0,3}?\w+)(?=\s+(?:is|was|are|were|did|do|does|has|have|had"
    r"|can|that|who|of|in|for|where|which|whose|by|at|on|from|to|with)\b|[?,]|\Z)",
    re.IGNORECASE,
)
_KINDS = {
    "PERSON": r"\w+(?:ist|ian|ress|wright)|actor|author|writer|singer|director|player|person|man"
    r"|woman|king|queen|president|leader|founder|composer|rapper|footballer|politician|producer"
    r"|professor|poet|explorer|emperor|general|minister|governor|character|coach|brother|sister"
    r"|son|daughter|father|mother|wife|husband|child|officer|painter|model|boxer|driver"
    r"|quarterback|star|host|inventor|chef|judge|senator|mayor",
    "PLACE": r"city|town|village|county|country|state|province|region|district|island|continent"
    r"|place|location|area|borough|territory|municipality|capital|neighbou?rhood|suburb|nation",
    "WORK": r"film|movie|book|novel|song|album|series|show|game|magazine|play|single|newspaper"
    r"|sitcom|opera|musical|poem|comic|documentary",
    "GROUP": r"company|organi[sz]ation|band|group|team|club|university|college|school|label|party"
    r"|network|agency|studio|league|corporation|firm|station|channel|airline|brand|church",
}
_OF_KIND = {kind: re.compile(rf"(?:{nouns})s?\Z", re.IGNORECASE) for kind, nouns in _KINDS.items()}
_WH = re.compile(r"\b(?:who|whom|whose|what|which|where|when|how|why)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_NATIONS = frozenset(content("country nation nationality citizenship"))
_FADING = 0.75
"""What a word further from the question word still weighs, of the one before."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question asks for.

    Attributes:
        kind: the query's; else PERSON, PLACE, WORK or GROUP by the noun behind "which", else
            `which` where there is such a noun, else `any`.
        noun: terms of that noun, none where there is none.
        near: term of the question to what it weighs, most beside the question word.
    """

    kind: str
    noun: frozenset[str]
    near: dict[str, float]
    is_year: bool

    @property
    def is_nation(self) -> bool:
        """Whether a country or a nationality is asked for."""
        return bool(self.noun & _NATIONS)


def wanted(asked: Query) -> Wanted:
    """Return what a question asks for."""
    found = _NOUN.search(asked.text)
    noun = found[1].split()[-1] if found else ""
    kind = asked.kind or next(
        (kind for kind, nouns in _OF_KIND.items() if nouns.match(noun)), "which" if noun else "any"
    )
    is_year = bool(re.search(r"\byear\b", asked.text, re.IGNORECASE))
    return Wanted(kind, frozenset(content(noun)[-1:]), _near(asked.text), is_year)


def _near(question: str) -> dict[str, float]:
    words = list(_WORD.finditer(question))
    opening = next((n for n, word in enumerate(words) if _WH.fullmatch(word[0])), 0)
    found: dict[str, float] = {}
    for n, word in enumerate(words):
        weight = _FADING ** max(abs(n - opening) - 1, 0)
        for term in content(word[0]):
            found[term] = max(found.get(term, 0.0), weight)
    return found
