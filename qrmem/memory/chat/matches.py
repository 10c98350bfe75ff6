"""What a prompt matches in a conversation: turns with scores, wishes, neighbours."""

import asyncio
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from datetime import date

from qrmem.memory.chat import stored_turns
from qrmem.memory.chat.conversation import Chat, infos_of, marked, only_of, said_in
from qrmem.retrieval import turn_ranking
from qrmem.retrieval.turn_ranking import Place, PromptTerms
from qrmem.text.times import periods
from qrmem.types import DocumentInfo
from qrmem.types.turns import CHAT_KEY, ROLE_KEY, numbered, turn_number

_CANDIDATES, _MOST_CANDIDATES = 300, 3_000
"""Least and greatest number of nearest parts by words, and again by vectors."""
_SHORT = 24
"""Tokens of a short turn with its speaker and time: such turns may fill a large budget alone."""
_WIDENED = 150
"""Number of the best turns whose neighbours are considered, too."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The turns that a prompt may need, by number.

    Attributes:
        terms: the analysis of the prompt.
        scores: scores of parts, by a turn's number and a segment's id ("" for a fact of the turn).
        best: the score of each turn's best part.
        matching: turns that share a word with the prompt, or are near in meaning.
        then: turns of the time that the prompt names.
        wishes: turns with standing wishes.
        infos: the documents of all these turns and of neighbours.
        places: the positions of the same turns.
        context: what each of them gets from the turns around it.
    """

    terms: PromptTerms
    scores: Mapping[tuple[int, str], float]
    best: Mapping[int, float]
    matching: Set[int]
    then: Set[int]
    wishes: Set[int]
    infos: Mapping[int, DocumentInfo]
    places: Mapping[int, Place]
    context: Mapping[int, float]


async def matched(chat: Chat, prompt: str, last: int, tokens: int) -> Matches:
    """Return the turns that a prompt may need.

    Args:
        chat: the conversation.
        prompt: the prompt.
        last: number of the conversation's last turn.
        tokens: room for turns; a large one needs more candidates.
    """
    most = min(max(_CANDIDATES, tokens // _SHORT), _MOST_CANDIDATES)
    only = await only_of(chat)
    today = next((day_of(i.metadata.get("at")) for i in await infos_of(chat, [last])), None)
    named = await asyncio.to_thread(periods, prompt, today) if today else []
    times = [(one.first, one.last) for one in named]
    terms = PromptTerms(prompt, times)
    then = await said_in(chat, times)
    if terms.is_of_conversation:
        every = range(1, last + 1) if only is None else map(numbered, only)
        scores, matching = turn_ranking.openings(every), set[int]()
    else:
        scores, matching = await _scored(chat, terms, only, most)
    if then:
        scores_then, matching_then = await _scored(chat, terms, then, most)
        scores, matching = {**scores_then, **scores}, matching | matching_then
    wishes = await marked(chat, stored_turns.STANDING_KEY)
    best: dict[int, float] = {}
    for (number, _), worth in scores.items():
        best[number] = max(best.get(number, 0.0), worth)
    numbers_then = set(map(numbered, then))
    infos = await _around(chat, best, {*wishes, *numbers_then})
    places = {number: _place(info) for number, info in infos.items()}
    return Matches(
        terms,
        scores,
        best,
        matching,
        numbers_then,
        wishes,
        infos,
        places,
        context=turn_ranking.in_context(places, best, terms),
    )


async def _scored(
    chat: Chat, asked: PromptTerms, only: Collection[str] | None, most: int
) -> tuple[dict[tuple[int, str], float], set[int]]:
    """Return the scores of parts by words and vectors, up to 1 each.

    Args:
        only: ids of the only documents to use; `None`: all.
        most: nearest parts by words, and again by vectors.

    Returns:
        Scores by a turn's number and a segment's id ("" for a fact of the turn), and the
        numbers of the turns that share a word with the prompt or are near in meaning.
    """
    nearby = await chat.searcher.near(asked.text, most, only)
    scores: dict[tuple[int, str], float] = {}
    matching: set[int] = set()
    lexical = nearby.lexical * asked.are_shared([entry.terms for entry in nearby.entries])
    matches = (lexical > 0) | (nearby.cosines >= turn_ranking.NEAR)
    for entry, words, meaning, is_match in zip(
        nearby.entries,
        lexical.tolist(),
        nearby.dense.tolist(),
        matches.tolist(),
        strict=True,
    ):
        number = turn_number(entry.document_id, entry.metadata)
        if number and words + meaning > 0:
            is_fact = not numbered(entry.document_id)
            key = (number, "" if is_fact else entry.id)
            scores[key] = max(scores.get(key, 0.0), words + meaning)
            matching |= {number} if is_match else set()
    return scores, matching


async def _around(
    chat: Chat, best: Mapping[int, float], others: Collection[int]
) -> dict[int, DocumentInfo]:
    """Return the documents of turns, and of neighbours of the best ones, by number."""
    first = sorted(best, key=lambda n: (-best[n], n))[:_WIDENED]
    beside = {neighbour for n in first for neighbour in turn_ranking.neighbours(n) if neighbour > 0}
    infos = await infos_of(chat, {*best, *beside, *others}, chat.user)
    return {stored_turns.number_of(info): info for info in infos}


def _place(info: DocumentInfo) -> Place:
    speaker = str(info.metadata.get("speaker", ""))
    is_users = not speaker and info.metadata.get(ROLE_KEY) == "user"
    return Place(info.metadata.get(CHAT_KEY), speaker, is_users, day_of(info.metadata.get("at")))


def day_of(at: object) -> date | None:
    """Return the day of a time in ISO form."""
    try:
        return date.fromisoformat(str(at)[:10])
    except ValueError:
        return None
