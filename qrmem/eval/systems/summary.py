"""Summary: each document is summarised once, and the question asked of the summaries (B02)."""

from dataclasses import dataclass, replace
from itertools import groupby

from qrmem.eval.bench import Bench, Tally
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.reading import answer_from
from qrmem.types import Passage, Segment, StageUsage, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Reads summaries in place of the text; making them counts as construction."""

    @property
    def needs(self) -> frozenset[str]:
        """Nothing: with no model, the local reasoner picks the most central sentences."""
        return frozenset()

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        made, stages = await bench.prepared(
            f"summary {context.id}", lambda: _summaries(context, bench)
        )
        found = await answer_from(bench, item, made)
        return replace(found, usage=Usage(stages, found.usage.online))


async def _summaries(context: Context, bench: Bench) -> tuple[list[Passage], dict[str, StageUsage]]:
    tally = Tally(bench.listener)
    reasoner = bench.reader(tally).reasoner
    made = []
    pieces = groupby(bench.texts(context), key=lambda piece: piece.segment.document_id)
    for n, (document, found) in enumerate(pieces, 1):
        own = list(found)
        segments = [piece.segment for piece in own]
        text = segments[0].text
        if len(segments) > 1:
            text = await reasoner.summarise(own[0].title, segments)
        made.append(Passage(f"S{n}", whole(document, text, bench), own[0].title))
    return made, dict(tally.stages)


def whole(document: str, text: str, bench: Bench) -> Segment:
    """Return a text that is no part of a document as something to read."""
    tokens = bench.tools.counter.count(text)
    return Segment(f"{document}*", document, 0, 0, len(text), text, tokens)
