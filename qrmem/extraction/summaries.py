"""The summary T of a document: one call over chosen sentences, or map-reduce."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qrmem.errors import ModelOutputError
from qrmem.llm.parallel import each
from qrmem.llm.prompting import Caller, Kept
from qrmem.prompts import fenced
from qrmem.prompts.replies import SummaryReply
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import Segment

LIMIT = 300
"""Tokens of T at most; the paper sets no bound."""
SKELETON = 250
"""Tokens to leave for the summary prompt itself when sentences are chosen."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """Makes the summary of a document within the window.

    Attributes:
        reserve: tokens for a reply.
        concurrency: calls at the same time.
        is_paper: whether each segment is summarised, then the summaries, until one is left.
    """

    caller: Caller
    window: int
    reserve: int
    concurrency: int
    is_paper: bool

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return T; where no reply can be read, the document's most telling sentences instead."""
        if self.is_paper:
            summary = await self._reduced([segment.text for segment in segments])
        else:
            room = self.window - self.reserve - SKELETON
            chosen = await asyncio.to_thread(telling, segments, room, self.caller.budget.count)
            summary = await self._one("summary", [title, *chosen] if title else chosen)
        return self.caller.budget.cut(" ".join(summary.split()), LIMIT).strip()

    async def _reduced(self, texts: Sequence[str]) -> str:
        prompt = "summary"
        while True:
            summaries = await self._all(prompt, texts)
            if len(summaries) == 1:
                return summaries[0]
            prompt = "summary-join"
            texts = self._packed(summaries)

    async def _all(self, prompt: str, texts: Sequence[str]) -> list[str]:
        found: dict[int, str] = {}

        async def one(n: int) -> None:
            found[n] = await self._one(prompt, [texts[n][a:b] for a, b in sentences(texts[n])])

        await each(range(len(texts)), one, concurrency=self.concurrency)
        return [found[n] for n in range(len(texts))]

    async def _one(self, prompt: str, pieces: Sequence[str]) -> str:
        """Summarise a text given in pieces; what does not fit the window is left out at its end.

        What is refused is summarised by nothing: its sentences would have every prompt refused in
        which the summary stands.
        """

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(text=fenced(" ".join(kept[0])))

        try:
            called = await self.caller.call(
                prompt, SummaryReply, inputs, [pieces], window=self.window, reply=self.reserve
            )
        except ModelOutputError as exc:
            if exc.is_refusal:
                return ""
            return self.caller.budget.cut(" ".join(pieces), LIMIT)
        return called.value.summary

    def _packed(self, summaries: Sequence[str]) -> list[str]:
        """Join neighbouring summaries as far as the window allows, two at least."""
        room = self.window // 2 - self.reserve
        texts, count = [""], 0
        for summary in summaries:
            size = self.caller.budget.count(summary)
            if count >= 2 and self.caller.budget.count(texts[-1]) + size > room:
                texts.append("")
                count = 0
            texts[-1] = f"{texts[-1]}\n\n{summary}".strip()
            count += 1
        return texts


def telling(segments: Sequence[Segment], room: int, count: Callable[[str], int]) -> list[str]:
    """Choose the sentences that say most about a document, in its order.

    A sentence counts by how often its words, and twice its names, occur in the whole document. The
    best one of every segment comes before any second one, so that no part is passed over.

    Args:
        room: tokens for all of them.
    """
    spans = [
        (segment.index, segment.text[start:end].strip())
        for segment in segments
        for start, end in sentences(segment.text)
    ]
    words = [terms(text) for _, text in spans]
    frequency = Counter(word for found in words for word in found)
    scored = [_score(text, found, frequency) for (_, text), found in zip(spans, words, strict=True)]
    places: dict[int, list[int]] = {}
    for place, (index, _) in enumerate(spans):
        places.setdefault(index, []).append(place)
    ranked: list[tuple[int, float, int]] = []
    for inside in places.values():
        inside.sort(key=lambda place: -scored[place])
        ranked += [(rank, -scored[place], place) for rank, place in enumerate(inside)]
    return [spans[place][1] for place in sorted(_within(sorted(ranked), spans, room, count))]


def _score(text: str, words: Sequence[str], frequency: Counter[str]) -> float:
    if not words:
        return 0.0
    names = set(terms(" ".join(word for word in text.split()[1:] if word[:1].isupper())))
    total = sum(math.log1p(frequency[word]) * (2 if word in names else 1) for word in set(words))
    # Very short sentences would win by one frequent word, very long ones by their length.
    return total / (len(words) + 5)


def _within(
    ranked: Sequence[tuple[int, float, int]],
    spans: Sequence[tuple[int, str]],
    room: int,
    count: Callable[[str], int],
) -> list[int]:
    kept = []
    for _, _, place in ranked:
        room -= count(spans[place][1]) + 1
        if room < 0:
            break
        kept.append(place)
    return kept
