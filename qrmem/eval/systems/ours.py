"""QRMeM's three strategies (Q16-Q18), with orientation, both ways of building, and ablations."""

from dataclasses import dataclass, replace
from typing import Literal

from qrmem.asking import Asker, Asking
from qrmem.eval.bench import Bench, Tally
from qrmem.eval.memories import Build, Shelf
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.support import cited_sentences
from qrmem.types import Answer, Orientation


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Walks the graph of a memory.

    Attributes:
        memory: how the memory is built: `compact` or `paper`; `local` reads without the model.
        orientation: `local` reads the nearest segments again with the question; `full` builds a
            memory for each question, as the paper does.
        open_entity: ablation (Q24), as the three that follow.
    """

    strategy: str
    memory: Literal["compact", "paper", "local"] = "compact"
    orientation: Orientation = "none"
    start: Literal["search", "entities"] = "search"
    max_trials: int = 5
    open_entity: bool = True
    graph_update: bool = True
    reflection: bool = True
    navigation: bool = True

    @property
    def needs(self) -> frozenset[str]:
        """Nothing: with no model, the local reasoner reads and answers."""
        return frozenset()

    def build(self, item: Item, bench: Bench) -> Build:
        """Return how the memory for an item is built."""
        return Build(
            reader=self.memory if bench.model else "local",
            question=item.question if self.orientation == "full" else "",
            open_entity=self.open_entity,
            graph_update=self.graph_update,
        )

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        tally = Tally(bench.listener)
        async with bench.memory(context, self.build(item, bench)) as shelf:
            asker = Asker(shelf.store, shelf.ns, shelf.tools, shelf.searcher, tally)
            answer = await asker.ask(self._asking(item, bench))
            found = await _found(answer, shelf)
            cited = cited_sentences(answer.citations, context)
        return replace(found, cited=cited, usage=tally.usage, memory=shelf.key)

    def _asking(self, item: Item, bench: Bench) -> Asking:
        return Asking(
            question=item.question,
            strategy=self.strategy,
            window=bench.settings.window,
            choices=item.choices,
            documents=None,
            orientation="local" if self.orientation == "local" else "none",
            share_orientation=False,
            max_trials=self.max_trials,
            start=self.start,
            on_exhausted="force" if bench.is_forced(item) else "abstain",
            reflection=self.reflection,
            navigation=self.navigation,
        )


async def _found(answer: Answer, shelf: Shelf) -> Found:
    """Return an answer as the run keeps it.

    Its ranking is what was read: the last reading first, by the scores that decided each.
    """
    readings = [step.read for step in answer.trail.steps if step.read]
    ranked = [s for read in reversed(readings) for s in sorted(read, key=lambda s: -s.score)]
    segments = list(dict.fromkeys(s.segment_id for s in ranked))
    of = {s.id: s.document_id for s in await shelf.store.segments(shelf.ns, segments)}
    return Found(
        text=answer.text,
        choice=answer.choice,
        status=answer.status,
        reason=answer.reason,
        read=tuple(s.segment_id for s in readings[-1]) if readings else (),
        ranked=tuple(dict.fromkeys(of[id] for id in segments)),
        segments=tuple(segments),
        steps=answer.trail.steps,
    )
