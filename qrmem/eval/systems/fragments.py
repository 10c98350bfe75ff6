"""FragRel and its own baseline: fragments picked for their surroundings, or each by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qrmem.eval.bench import Bench, passages
from qrmem.eval.memories import Build, Shelf
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.reading import answer_from
from qrmem.eval.systems.retrieved import DEPTH, in_document_order, within_window
from qrmem.retrieval.fragments import FragmentSettings
from qrmem.retrieval.fragments.independent import within_words
from qrmem.text.longbench import words
from qrmem.types import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmented:
    """Reads the fragments that are best by FragRel, in the order in which they stand.

    Attributes:
        relation: `semantic` is A-FragRel in the paper, `structure` B-FragRel.
        alpha: 0 is the usual retrieval of independent fragments (No-FragRel).
        size: words of a fragment as LongBench counts them (C500, C800); 0: segments as usual.
        words: read at most (the paper's context limit); 0: what the window has room for.
        top: fragments read at most; 0: any number.
    """

    relation: Literal["structure", "semantic"] = "structure"
    w_rel: float = 0.3
    alpha: float = 0.5
    score: Literal["auto", "cosine", "bm25", "jaccard"] = "auto"
    size: int = 0
    words: int = 0
    top: int = 0

    def __post_init__(self) -> None:
        self._settings()

    @property
    def needs(self) -> frozenset[str]:
        """An embedder where cosines are asked for."""
        wants = self.score == "cosine" or (self.relation == "semantic" and self.alpha > 0)
        return frozenset({"embedder"} if wants else ())

    @property
    def ranks(self) -> bool:
        """Always."""
        return True

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        async with bench.memory(context, Build(words=self.size)) as shelf:
            ranked = await self._ranked(shelf, "\n".join((item.question, *item.choices)))
            found = Found(
                ranked=tuple(dict.fromkeys(s.document_id for s in ranked[:DEPTH])),
                segments=tuple(segment.id for segment in ranked[:DEPTH]),
                memory=shelf.key,
            )
            if bench.retrieve:
                return found
            chosen = within_window(self._chosen(ranked), item, bench, shelf)
            in_order = passages(shelf, in_document_order(chosen))
            read = await answer_from(bench, item, in_order, context=context)
            return replace(read, ranked=found.ranked, segments=found.segments, memory=found.memory)

    async def _ranked(self, shelf: Shelf, question: str) -> list[Segment]:
        assessed = await shelf.fragments.assess(question, settings=self._settings())
        if assessed is None:
            return []
        best = list(assessed.best(assessed.fragments.size))
        found = {segment.id: segment for segment in await shelf.store.segments(shelf.ns, best)}
        return [found[id] for id in best]

    def _settings(self) -> FragmentSettings:
        return FragmentSettings(
            # Nothing is computed of a relation that does not count.
            relation=self.relation if self.alpha else "structure",
            w_rel=self.w_rel,
            alpha=self.alpha,
            score=self.score,
        )

    def _chosen(self, ranked: Sequence[Segment]) -> Sequence[Segment]:
        chosen = ranked[: self.top] if self.top else ranked
        if self.words:
            counts = [len(words(segment.text)) for segment in chosen]
            chosen = chosen[: within_words(counts, self.words)]
        return chosen
