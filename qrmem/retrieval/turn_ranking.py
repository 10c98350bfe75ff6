"""Scores turns of a conversation for a prompt, and selects the parts to show.

A turn is stored in parts of about sixty words. A part is scored by its own words and vector, its
turn also by the turns around it. All numbers and word lists were chosen on conversations of LoCoMo
and chats of BEAM. Four of the weights were cross-checked: they were chosen again with each
conversation and chat left out in turn (docs/evaluation.md has the figures). The others were not.
"""

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from qrmem.text.words import terms

PART_TOKENS = 80
"""Upper bound of a part of a turn: some sixty words, a few sentences."""

_NEIGHBOURS = (0.25, 0.1)
"""Weights of turns one and two places away; a part's own score is at most 1 for its words and 1
for its vector."""
_BESIDE = tuple((s * n, worth) for n, worth in enumerate(_NEIGHBOURS, 1) for s in (-1, 1))
"""Positions beside a turn, with their weights."""
_SPEAKER, _TIME, _SESSION = 0.4, 1.0, 0.2
"""Bonuses if the prompt names the speaker, and the time, and for the session's best turn."""
_USER, _USER_ASKED = 0.3, 0.6
"""Bonuses for turns of the user; if the prompt asks for these, the second as a share of the best
score, which is greater with an embedder."""
STANDING = 0.3
"""Bonus for a part of a turn that states a lasting wish of the user."""
_SECOND, _SECOND_OF_ALL = 0.8, 0.5
"""Factors on each further part of a turn that is already shown: usually, and for a summary, which
needs more turns rather than more of each."""
_STRETCHES, _SPREAD = 20, 0.9
"""Number of sections of the conversation, for prompts about the order of things, and the
factor on each further part of a section."""
_OPENING = 15
"""Number of first turns of a section that may be shown for a prompt about the whole."""
NEAR = 0.5
"""Cosine from which a part is about what a prompt asks."""
_IN_ORDER = r"in (?:(?:the|which|what) )?order(?! to\b)|the order|sequence of|timeline|over time"
_ORDER = re.compile(rf"\b(?:{_IN_ORDER})\b", re.IGNORECASE)
_WHOLE = re.compile(
    rf"\b(?:{_IN_ORDER}|summar(?:y|ies|i[sz]e)|overview|recap|throughout|so far"
    r"|progress(?:ed|ion)?|evolv(?:e|ed|ing)"
    r"|develop(?:ed|ment)|across (?:our|my|all)|walk me through|all the (?:different|various)"
    r"|different (?:aspects|topics))\b",
    re.IGNORECASE,
)
_SAID_OR_DONE = re.compile(
    r"\b(?:did|have|had) (?:we|i)\b|\bwe(?:['’]ve| have| had)? (?:did|done|said|talked|discussed"
    r"|covered|spoken|spoke)\b|\b(?:sum up|catch me up|topics?)\b",
    re.IGNORECASE,
)
"""Words that ask for the whole conversation if the prompt names no subject."""
_LAST_ONE = re.compile(
    r"\b(?:summar(?:y of|i[sz]e)|recap|overview of|sum up|put|order|did) (?:this|that|it|these"
    r"|those|th(?:e|is) (?:above|following|last|text|answer))\b"
    r"(?! (?:conversation|chat|discussion|talk|session|project))",
    re.IGNORECASE,
)
"""What the prompt asks to summarise or sort is the last answer, or follows: "summarize that"."""
_OWN_TURNS = re.compile(
    r"\b(?:i|we)(?:['’]ve| have| had)? (?:first |ever |also |already )?(?:sa(?:y|id)|mention(?:ed)?"
    r"|brought up|bring up|ask(?:ed)?|told|tell|talk(?:ed)?|discuss(?:ed)?|raised?|shared?)\b"
    r"|\bmy (?:discussions|questions)\b"
    r"|\b(?:across|based on)(?: all)? my (?:messages|queries|requests)\b",
    re.IGNORECASE,
)
"""What the prompt asks for is what the user said: "did I mention", "my questions about".

Messages, queries and requests may also be those of a program: "how can my queries be faster?"
"""
_IDENTIFIER = re.compile(
    r"(?<![\w/-])(?=[\w/-]*[A-Za-z])(?=(?:[\w/-]*?\d){3})\w+(?:[-/]\w+)+(?![\w/-])"
)
"""A number of an invoice, a ticket or a part, with three digits or more: "INV-2026-0417"."""
_NO_SUBJECT = frozenset(
    terms(
        "hi hello please thanks thank ok okay great help say said mention tell told talk discuss"
        " ask summary summaries summarise summarize recap overview sum short brief quick full"
        " complete main important key point highlight conversation chat discussion session project"
        " story history topic subject thing stuff event order timeline sequence everything whole"
        " far until now past previous earlier remind remember list give make show write create"
        " draw catch come cover do did done happen happened work start beginning end first last"
    )
)
"""Words of prompts about the whole conversation that name nothing in it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a turn.

    Attributes:
        session: its session.
        speaker: a name; "" if only the role is known.
        is_users: whether the user said it, in a conversation without names.
        day: the day on which it was said.
    """

    session: object
    speaker: str
    is_users: bool
    day: date | None


@dataclass(frozen=True)
class PromptTerms:
    """The analysis of a prompt.

    Attributes:
        text: the prompt.
        times: first and last days of the times that it names.
    """

    text: str
    times: Sequence[tuple[date, date]] = ()

    @cached_property
    def is_of_all(self) -> bool:
        """Whether it is about the whole conversation: asks for a summary or an order of events."""
        return _WHOLE.search(self.text) is not None

    @cached_property
    def is_of_conversation(self) -> bool:
        """Whether it is about the whole conversation and names nothing in it: "recap please"."""
        is_asked = self.is_of_all or _SAID_OR_DONE.search(self.text) is not None
        is_last = _LAST_ONE.search(self.text) is not None
        return is_asked and not is_last and _NO_SUBJECT.issuperset(terms(self.text))

    @property
    def is_spread(self) -> bool:
        """Whether it asks what came after what, or for the whole: some stands in each stretch."""
        return self.is_of_conversation or _ORDER.search(self.text) is not None

    def are_shared(self, bags: Sequence[Sequence[str]]) -> list[bool]:
        """Return which texts share more with it than a piece of an identifier that others hold.

        Args:
            bags: each text's terms, in its order.
        """
        are_shared, wanted = [True] * len(bags), frozenset(terms(self.text))
        for pieces in map(terms, _IDENTIFIER.findall(self.text)):
            holders = [_has_run(bag, pieces) for bag in bags]
            if any(holders):
                others = wanted.difference(pieces)
                are_shared = [
                    is_shared and (is_holder or not others.isdisjoint(bag))
                    for is_shared, is_holder, bag in zip(are_shared, holders, bags, strict=True)
                ]
        return are_shared

    def names(self, speakers: Iterable[str]) -> set[str]:
        """Return the speakers that it names."""
        text = self.text.casefold()
        return {speaker for speaker in speakers if speaker and speaker.casefold() in text}

    def is_within(self, day: date | None) -> bool:
        """Whether a day is within a time that it names."""
        if day is None or not self.times:
            return False
        return any(first <= day <= last for first, last in self.times)


def _has_run(bag: Sequence[str], pieces: Sequence[str]) -> bool:
    """Return whether terms follow each other in a text."""
    if not pieces or pieces[0] not in bag:
        return False
    ends = range(len(pieces), len(bag) + 1)
    return any(list(bag[end - len(pieces) : end]) == list(pieces) for end in ends)


def openings(turns: Iterable[int]) -> dict[tuple[int, str], float]:
    """Return the turns that open each stretch of a conversation, with scores: the first has most.

    Args:
        turns: numbers of all turns, and 0 for other documents.

    Returns:
        Scores by a turn's number and "".
    """
    numbers = sorted(n for n in turns if n)
    stretch = max(1, -(-len(numbers) // _STRETCHES))
    opening = ((n, place % stretch) for place, n in enumerate(numbers))
    return {(n, ""): _SPREAD**place for n, place in opening if place < _OPENING}


def in_context(
    places: Mapping[int, Place], own: Mapping[int, float], asked: PromptTerms
) -> dict[int, float]:
    """Return the score that each turn gets from the turns around it, by number.

    Args:
        places: positions of all turns that may be shown, by number.
        own: turns with the score of their best part.
        asked: the analysis of the prompt.
    """
    best: dict[object, float] = {}
    for number, score in own.items():
        if number in places:
            session = places[number].session
            best[session] = max(best.get(session, 0.0), score)
    names_of_speakers = asked.names({place.speaker for place in places.values()})
    is_asked = _OWN_TURNS.search(asked.text) is not None
    users = _USER_ASKED * max(own.values(), default=1.0) if is_asked else _USER
    return {
        number: _SESSION * best.get(place.session, 0.0)
        + _around(number, places, own)
        + _SPEAKER * (place.speaker in names_of_speakers)
        + _TIME * asked.is_within(place.day)
        + users * place.is_users
        for number, place in places.items()
    }


def _around(number: int, places: Mapping[int, Place], own: Mapping[int, float]) -> float:
    session, total = places[number].session, 0.0
    for away, worth in _BESIDE:
        neighbour = number + away
        if neighbour in own and neighbour in places and places[neighbour].session == session:
            total += worth * own[neighbour]
    return total


def neighbours(number: int) -> list[int]:
    """Return the numbers of the turns beside one; some may not exist."""
    return [number + away for away, _ in _BESIDE]


@dataclass(frozen=True, slots=True)
class TurnPart:
    """A part of a turn that may be shown.

    Attributes:
        turn: its turn's number.
        index: its position among its turn's parts.
        score: its own score and that from the turns around.
    """

    turn: int
    index: int
    score: float


def best_first(parts: Iterable[TurnPart], asked: PromptTerms, last: int) -> Iterator[TurnPart]:
    """Yield parts, best first; parts that resemble yielded ones count less.

    Args:
        parts: any number of parts of each turn.
        asked: the analysis of the prompt; one about the order of things needs parts from all over
            the conversation. A summary needs the best parts, which may stand close together.
        last: number of the conversation's last turn.
    """
    turns: Counter[int] = Counter()
    stretches: Counter[int] = Counter()
    stretch = max(1, -(-last // _STRETCHES)) if asked.is_spread else 0
    further = _SECOND_OF_ALL if asked.is_of_all and not stretch else _SECOND

    def worth(part: TurnPart) -> float:
        score = part.score * further ** turns[part.turn]
        return score * _SPREAD ** stretches[part.turn // stretch] if stretch else score

    waiting = [(-round(part.score, 4), part.turn, part.index, part) for part in parts]
    heapq.heapify(waiting)
    while waiting:
        was, turn, index, part = heapq.heappop(waiting)
        now = -round(worth(part), 4)
        if now > was:
            heapq.heappush(waiting, (now, turn, index, part))
            continue
        turns[turn] += 1
        if stretch:
            stretches[turn // stretch] += 1
        yield part
