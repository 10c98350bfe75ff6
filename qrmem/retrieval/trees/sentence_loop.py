"""The inner loop without a chat model: sentences near the question, then near what was found.

The memory of a round is the best sentences. The query of the next round is the question together
with their mean (relevance feedback after Rocchio, 1971): what is told in the same words as a
sentence that was found comes near, even where it shares no word with the question.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rapidfuzz.distance import LCSseq

from qrmem.graphstore.protocol import GraphStore
from qrmem.text.sentences import sentences
from qrmem.text.words import terms, tokens
from qrmem.types import Segment

CANDIDATES = 400
"""Segments that the database proposes for the words of one round's query."""
SURPRISING = 1.1
"""What the score of a sentence that is a surprise of its tree is multiplied by."""
LABEL = 8
"""Tokens of the label of a segment whose sentences are shown."""

Bag = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a segment; `start` and `end` are places in its document."""

    segment_id: str
    document_id: str
    start: int
    end: int
    text: str
    is_surprise: bool
    score: float = 0.0


@dataclass(slots=True)
class Sentences:
    """The sentences that a question has met so far.

    Attributes:
        surprises: segment id to the surprises of the node above it, white space folded.
        documents: ids of the only documents to look at; `None`: all.
    """

    store: GraphStore
    ns: str
    surprises: Mapping[str, frozenset[str]]
    documents: frozenset[str] | None = None
    _known: dict[str, list[tuple[Sentence, list[str]]]] = field(default_factory=dict)

    async def ranked(self, question: str, memory: Sequence[str]) -> list[Sentence]:
        """Return sentences by their nearness to the question and the memory, nearest first."""
        asked, found = terms(question), [terms(line) for line in memory]
        wanted = sorted({*asked, *(term for line in found for term in line)})
        if not wanted:
            return []
        near = await self._near(wanted)
        known = await self.store.vocabulary(self.ns, sorted({t for _, own in near for t in own}))
        weight = {
            term: math.log((1 + known.segments) / (1 + count)) + 1
            for term, count in known.frequencies.items()
        }
        query = _sum(_unit(asked, weight), _mean([_unit(line, weight) for line in found]))
        scored = [
            (_dot(query, _unit(own, weight)) * (SURPRISING if one.is_surprise else 1), one)
            for one, own in near
        ]
        scored.sort(key=lambda pair: (-round(pair[0], 4), pair[1].document_id, pair[1].start))
        return [replace(one, score=score) for score, one in scored if score > 0]

    async def _near(self, wanted: Sequence[str]) -> list[tuple[Sentence, list[str]]]:
        ids = await self.store.matching(self.ns, [wanted], CANDIDATES, self.documents)
        new = [id for id in ids if id not in self._known]
        for segment in await self.store.segments(self.ns, new):
            self._known[segment.id] = self._cut(segment)
        return [pair for id in ids for pair in self._known.get(id, ())]

    def _cut(self, segment: Segment) -> list[tuple[Sentence, list[str]]]:
        surprises, found = self.surprises.get(segment.id, frozenset()), []
        for start, end in sentences(segment.text):
            text = segment.text[start:end].rstrip()
            flat = " ".join(text.split())
            if own := terms(flat):
                at = segment.start + start
                place = (segment.id, segment.document_id, at, at + len(text))
                found.append((Sentence(*place, text, flat in surprises), own))
        return found


def fitting(
    ranked: Sequence[Sentence], room: int, count: Callable[[str], int]
) -> tuple[Sentence, ...]:
    """Return the first sentences that fit a number of tokens, labels of segments included."""
    shown: list[Sentence] = []
    labelled: set[str] = set()
    for one in ranked:
        room -= count(one.text) + 1 + (0 if one.segment_id in labelled else LABEL)
        if room < 0:
            break
        labelled.add(one.segment_id)
        shown.append(one)
    return tuple(shown)


def likeness(before: str, after: str) -> float:
    """Return 2L/(a+b) of two texts' words, L that of their longest common subsequence; in [0, 1].

    Both empty: 1.
    """
    ours, theirs = tokens(before), tokens(after)
    return (
        float(LCSseq.normalized_similarity(ours, theirs))
        if not ours or not theirs
        else (2 * LCSseq.similarity(ours, theirs) / (len(ours) + len(theirs)))
    )


def _unit(words: Sequence[str], weight: Bag) -> dict[str, float]:
    bag = Counter(word for word in words if word in weight)
    found = {word: (1 + math.log(n)) * weight[word] for word, n in bag.items()}
    size = math.sqrt(sum(value * value for value in found.values())) or 1.0
    return {word: value / size for word, value in found.items()}


def _mean(bags: Sequence[Bag]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for bag in bags:
        for word, value in bag.items():
            total[word] += value  # type: ignore[assignment]
    size = math.sqrt(sum(value * value for value in total.values())) or 1.0
    return {word: value / size for word, value in total.items()}


def _sum(one: Bag, other: Bag) -> dict[str, float]:
    return {word: one.get(word, 0.0) + other.get(word, 0.0) for word in one.keys() | other.keys()}


def _dot(one: Bag, other: Bag) -> float:
    return sum(value * one.get(word, 0.0) for word, value in other.items())
