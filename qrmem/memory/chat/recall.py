"""Recall for a prompt in a conversation: the last turns, and parts of others."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice

from qrmem.llm.parallel import in_batches
from qrmem.memory.chat import stored_turns
from qrmem.memory.chat.conversation import (
    Chat,
    infos_of,
    is_of,
    last_of,
    of_user,
    read,
)
from qrmem.memory.chat.excerpts import LINE, excerpts, within
from qrmem.memory.chat.matches import Matches, day_of, matched
from qrmem.memory.session import Session
from qrmem.retrieval import Searcher, turn_ranking
from qrmem.retrieval.fragments import CHAT, FragmentSettings
from qrmem.retrieval.standing import first_wishes, wish_spans
from qrmem.retrieval.turn_ranking import STANDING, TurnPart
from qrmem.text.dates import is_said_by, said_at
from qrmem.text.times import periods
from qrmem.text.words import searched
from qrmem.types import DocumentInfo, Recalled, Segment, Turn
from qrmem.types.options import RecallOptions
from qrmem.types.turns import (
    related_lines,
    turn_id,
    turn_number,
)

_BATCH = 64
"""Number of turns that are read at once from the end of a conversation."""
_FAR = 512
"""Number of turns from the end in which the session's last turns are searched."""
_RECENT_SHARE = 4
"""The last turns take at most one such part (a quarter) of the budget."""
_WISH_SHARE = 4
"""Wishes go before other turns within one such part (a quarter) of the budget."""
_SPARE = 2
"""Multiple of the budget that is read before the best parts are chosen."""


async def recall(memory: Session, options: RecallOptions, searcher: Searcher) -> Recalled:
    """Return the context for a prompt; see `Memory.recall`.

    Args:
        searcher: the memory's searcher for this run.
    """
    chat = Chat(
        memory.store,
        memory.ns,
        searcher,
        await memory.fragment_scorer(),
        (await memory.models()).counter.count,
        options.user,
        is_printed=True,
        as_of=options.as_of,
        among=await _of_types(memory, options.types),
    )
    return await recalled(chat, replace(options, prompt=searched(options.prompt)))


async def _of_types(memory: Session, types: Sequence[str] | None) -> dict[str, int] | None:
    """Return the documents in which some types occur, each with the number of its turn."""
    segments = await memory.of_types(types)
    if segments is None:
        return None
    typed_segments = await memory.store.segments(memory.ns, sorted(segments))
    infos = await memory.store.documents(
        memory.ns, {segment.document_id for segment in typed_segments}
    )
    numbers = {info.id: turn_number(info.id, info.metadata) for info in infos}
    return {id: number for id, number in numbers.items() if number}


async def recalled(chat: Chat, options: RecallOptions) -> Recalled:
    """Return the context from a conversation; see `Memory.recall`."""
    last = await last_of(chat)
    if not last:
        return Recalled((), (), 0)
    is_paper = options.how == "fragrel" or options.fragments is not None
    share = options.tokens if is_paper else options.tokens // _RECENT_SHARE
    most = min(share, stored_turns.RECENT_TOKENS)
    recent_turns, latest = await _recent(chat, last, options.session, most)
    tokens_left = options.tokens - sum(chat.said(turn) for turn in recent_turns)
    shown_ids = {turn.id for turn in recent_turns}
    scores: dict[str, float] = {}
    if is_paper:
        # The query is the last turn of the dialog and the prompt.
        query = f"{latest}\n{options.prompt}" if latest else options.prompt
        turns = await _by_fragments(chat, query, last, shown_ids, options.fragments or CHAT)
    else:
        best = await _best(chat, options.prompt, last, shown_ids, tokens_left)
        scores = {turn.id: one for turn, one in best.items() if one >= options.min_score}
        turns = [turn for turn in best if turn.id in scores]
    facts = await _facts(chat, turns)
    days = dict(zip(turns, await asyncio.to_thread(list, map(_times, turns)), strict=True))
    candidates = _Candidates(chat, tuple(recent_turns), turns, scores, facts, days)
    return candidates.within(tokens_left)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Turns from which the recalled ones are chosen.

    Attributes:
        recent: the session's last turns, which are shown as messages.
        turns: turns that match the prompt, best first.
        scores: scores of these turns by id.
        facts: extracted facts by turn id.
        days: the meaning of the turns' time words.
        sizes: cache of turns' sizes in tokens.
    """

    chat: Chat
    recent: tuple[Turn, ...]
    turns: Sequence[Turn]
    scores: Mapping[str, float]
    facts: Mapping[str, Sequence[str]]
    days: Mapping[Turn, tuple[tuple[str, str, str], ...]]
    sizes: dict[Turn, int] = field(default_factory=dict)

    def within(self, left: int) -> Recalled:
        """Return the best turns that fit the tokens left by the recent turns."""
        recent_tokens = sum(map(self.chat.said, self.recent))
        room = left
        while True:
            turns_within = stored_turns.fitting(self.turns, room, self._size)
            recall = self._recalled(turns_within)
            is_printed = self.chat.is_printed
            tokens_needed = (
                self.chat.count(recall.text) if is_printed else sum(map(self._size, turns_within))
            )
            if tokens_needed <= left:
                return replace(recall, tokens=recent_tokens + tokens_needed)
            room -= tokens_needed - left  # joined lines may have more tokens than the sum of lines

    def _recalled(self, kept: Sequence[Turn]) -> Recalled:
        recent_ids = {turn.id for turn in self.recent}
        related = stored_turns.in_order_of_time(turn for turn in kept if turn.id not in recent_ids)
        return Recalled(
            recent=self.recent,
            related=tuple(related),
            tokens=0,
            times={turn.id: times for turn in related if (times := self.days[turn])},
            facts={
                turn.id: tuple(self.facts[turn.id]) for turn in related if turn.id in self.facts
            },
            scores={turn.id: self.scores[turn.id] for turn in related if turn.id in self.scores},
        )

    def _size(self, turn: Turn) -> int:
        if turn not in self.sizes:  # cached, because a turn is measured several times
            self.sizes[turn] = self._counted(turn)
        return self.sizes[turn]

    def _counted(self, turn: Turn) -> int:
        turn_facts = self.facts.get(turn.id, ())
        if not self.chat.is_printed:
            return sum(map(self.chat.count, (turn.text, *turn_facts)))
        if any(turn.id == one.id for one in self.recent):  # it is shown as a message, not as a line
            return 0
        return self.chat.count("\n".join(related_lines(turn, self.days[turn], turn_facts))) + 1


async def _best(
    chat: Chat, prompt: str, last: int, known: set[str], tokens: int
) -> dict[Turn, float]:
    """Return turns for a prompt with their scores, each reduced to its matching parts.

    It returns somewhat more than fits.
    """
    found = await matched(chat, prompt, last, tokens)
    room = tokens // _WISH_SHARE

    def may_show(number: int) -> bool:
        return turn_id(number) not in known and chat.may_say(number)

    first = _first_wishes(found, may_show)[: room // LINE]
    bound = _bounds(found, last)
    numbers = sorted(bound, key=lambda n: (-bound[n], -n if n not in found.places else n))
    order = dict.fromkeys([*first, *filter(may_show, numbers)])
    turns, parts = await _up_to(chat, list(order), found.infos, _SPARE * tokens + room)
    # Long turns are read off the event loop.
    rated = await asyncio.to_thread(_all_rated, found, parts)
    rows = [part for part, _ in rated if part.turn in bound]
    wish_rows = [part for part, is_wish in rated if is_wish and part.turn in first]
    wish_rows.sort(key=lambda part: (first.index(part.turn), part.index))
    before = list(within(chat, turns, parts, wish_rows, room))
    ordered = turn_ranking.best_first(rows, found.terms, last)
    chosen = await _reranked(chat, prompt, parts, ordered)
    after = (part for part in chosen if part not in before)
    return excerpts(chat, turns, parts, chain(before, after), tokens)


def _first_wishes(found: Matches, may_show: Callable[[int], bool]) -> list[int]:
    """Return the wishes that go before other turns, in order."""
    numbers = set(filter(may_show, found.wishes & found.infos.keys()))
    if found.terms.is_of_all:
        numbers &= found.matching
    return first_wishes(numbers, {n: found.best[n] for n in found.matching})


def _bounds(found: Matches, last: int) -> dict[int, float]:
    """Return what a part of each turn gets at most: with more, many wishes would be read."""
    # Other wishes are no context of what matches.
    others = found.places.keys() - (found.wishes - found.matching - found.then)
    bound = {n: found.best.get(n, 0.0) + found.context[n] + _bonus(found, n) for n in others}
    if found.terms.is_of_all:  # if little matches, the newest turns fill the room
        bound |= {n: 0.0 for n in range(max(1, last - _FAR), last) if n not in found.places}
    return bound


def _bonus(found: Matches, number: int) -> float:
    """Return the bonus for the parts of a turn that state a wish of the user."""
    is_wanted = number in found.wishes and not found.terms.is_of_all
    return STANDING if is_wanted and found.places[number].is_users else 0.0


def _all_rated(
    found: Matches, parts: Mapping[int, Sequence[Segment]]
) -> list[tuple[TurnPart, bool]]:
    return [one for n, segments in parts.items() for one in _rated(found, n, segments)]


def _rated(
    found: Matches, number: int, segments: Sequence[Segment]
) -> Iterator[tuple[TurnPart, bool]]:
    """Yield the parts of a turn that match or state a wish of their user, or else its first.

    Yields:
        Each part with its score, and whether it has a wish.
    """
    wished = _wished(found, number, segments)
    own = [found.scores.get((number, one.id), 0.0) for one in segments]
    matching = {place for place, score in enumerate(own) if score} or {0}
    fact_score = found.scores.get((number, ""), 0.0)  # a fact's score counts for its turn
    for place in sorted(matching | wished):
        score = max(own[place], fact_score) + found.context.get(number, 0.0)
        score += _bonus(found, number) if place in wished else 0.0
        yield TurnPart(number, place, score), place in wished


def _wished(found: Matches, number: int, segments: Sequence[Segment]) -> set[int]:
    """Return the positions of a turn's parts that state a wish; all if it was kept as one."""
    if number not in found.wishes:
        return set()
    if stored_turns.is_kept_as_wish(found.infos[number].metadata):
        return set(range(len(segments)))
    spans = wish_spans("".join(one.text for one in segments))
    ends = list(accumulate(len(one.text) for one in segments))
    return {bisect_right(ends, start) for start, _ in spans}


async def _reranked(
    chat: Chat, prompt: str, parts: Mapping[int, Sequence[Segment]], ordered: Iterator[TurnPart]
) -> Iterable[TurnPart]:
    """Return parts; a reranker, if there is one, orders the first of them."""
    reranker = chat.searcher.reranker
    if reranker is None:
        return ordered
    first = list(islice(ordered, reranker.depth))
    texts = [parts[one.turn][one.index].text for one in first]
    order = await reranker.ranked(prompt, texts)
    return chain(first if order is None else (first[place] for place, _ in order), ordered)


async def _up_to(
    chat: Chat, numbers: Sequence[int], known: Mapping[int, DocumentInfo], tokens: int
) -> tuple[dict[int, Turn], dict[int, list[Segment]]]:
    """Return turns and their parts, by number, until they reach a number of tokens.

    Args:
        known: documents of turns that were read already, by number.
    """
    turns: dict[int, Turn] = {}
    parts: dict[int, list[Segment]] = {}
    for some in in_batches(numbers, _BATCH):
        others = await infos_of(chat, [n for n in some if n not in known], chat.user)
        infos = {i.id: i for i in (*(known[n] for n in some if n in known), *others)}
        read: dict[int, list[Segment]] = {}
        for segment in await chat.store.segments(chat.ns, documents=list(infos)):
            info = infos[segment.document_id]
            number = stored_turns.number_of(info)
            if number not in read:
                turns[number], read[number] = stored_turns.as_turn(info.id, info.metadata, ""), []
            read[number].append(segment)
        parts |= read
        # A long turn counts as one part: its other parts may be worth less than other turns.
        sizes = (sum(one.tokens for one in of) for of in read.values())
        tokens -= sum(min(size, turn_ranking.PART_TOKENS) for size in sizes)
        if tokens < 0:
            break
    return turns, parts


async def _facts(chat: Chat, turns: Sequence[Turn]) -> dict[str, list[str]]:
    """Return the facts that were extracted from turns, by the turn's id."""
    infos = await stored_turns.facts_of(chat.store, chat.ns, [turn.number for turn in turns])
    facts_by_turn: dict[str, list[str]] = {}
    for fact in await read(chat, infos):
        facts_by_turn.setdefault(turn_id(fact.number), []).append(fact.text)
    return facts_by_turn


def _times(turn: Turn) -> tuple[tuple[str, str, str], ...]:
    """Return the time words of a turn that depend on its day, with their first and last days."""
    day = day_of(turn.at)
    dates = periods(turn.text, day) if day else ()
    return tuple((p.text, str(p.first), str(p.last)) for p in dates if p.is_relative)


async def _by_fragments(
    chat: Chat, query: str, last: int, known: set[str], settings: FragmentSettings
) -> list[Turn]:
    """Return the best turns by FragRel (B.3), best first; it scores all turns."""
    turns = await stored_turns.last_turns(chat.store, chat.ns, 0, of_user(chat))
    turns = [info for info in turns if is_said_by(said_at(info.metadata), chat.as_of)]
    turns = [info for info in turns if chat.may_say(stored_turns.number_of(info))]
    infos = {info.id: info for info in turns if info.id not in known}
    assessed = (
        await chat.scorer.assess(query, settings=settings, documents=infos) if infos else None
    )
    if assessed is None:
        return []
    return await read(chat, [infos[id] for id in assessed.documents(settings.top or None)])


async def _recent(chat: Chat, last: int, session: str, tokens: int) -> tuple[list[Turn], str]:
    """Return the last turns, which are shown unchanged, and the text of the very last one."""
    tail: list[Turn] = []
    for end in range(last, max(0, last - _FAR), -_BATCH):
        infos = await infos_of(chat, range(max(1, end - _BATCH + 1), end + 1), chat.user)
        tail = [*await read(chat, [i for i in infos if is_of(i, session)]), *tail]
        fit = stored_turns.recent(tail, tokens, chat.said)
        if fit < len(tail):
            return tail[len(tail) - fit :], tail[-1].text
    return tail, tail[-1].text if tail else ""
