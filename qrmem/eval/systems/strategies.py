"""The strategies of this package over memories of each context."""

from dataclasses import dataclass, replace
from typing import Literal

from qrmem.asking import Asker, Asking
from qrmem.eval.harness import CallCounter, Harness
from qrmem.eval.memories import Build, OpenMemory
from qrmem.eval.records import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.eval.systems.reading import cited_sentences
from qrmem.types import Answer, Orientation


@system("entity-trial", "entity trial", "QRMeM", strategy="entity-trial")
@system("graph-expansion", "graph expansion search", "QRMeM", strategy="graph-expansion")
@system("reflection", "navigation by reflection", "QRMeM", strategy="reflection")
@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Walks the graph of a memory.

    Attributes:
        memory: how the memory is built: `compact` or `paper`; `local` reads without the model.
        orientation: `local` reads the nearest segments again with the question; `full` builds a
            memory for each question, as the paper does.
        max_trials: readings at most, before an answer is forced or refused.
        updates: trials as QRMeM's Figure 4 counts them: updates of the entities E, of which each
            leads to a reading after the first; 0: `max_trials` counts.
        open_entity: an ablation, as the three that follow.
        paper_exact: as QRMeM has it: mode `paper`, orientation `full`, start `entities`, and a
            search without our own switches.
    """

    strategy: str
    memory: Literal["compact", "paper", "local"] = "compact"
    orientation: Orientation = "none"
    start: Literal["search", "entities"] = "search"
    max_trials: int = 5
    updates: int = 0
    open_entity: bool = True
    graph_update: bool = True
    reflection: bool = True
    navigation: bool = True
    paper_exact: bool = False

    def build(self, item: Item, harness: Harness) -> Build:
        """Return how the memory for an item is built."""
        is_exact = self._is_exact(harness)
        reader = "paper" if is_exact else self.memory
        is_oriented = is_exact or self.orientation == "full"
        return Build(
            reader=reader if harness.model else "local",
            question=item.question if is_oriented else "",
            open_entity=self.open_entity,
            graph_update=self.graph_update,
        )

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        calls = CallCounter(harness.listener)
        async with harness.memory(context, self.build(item, harness)) as memory:
            asker = Asker(memory.store, memory.ns, memory.tools, memory.searcher, calls)
            answer = await asker.ask(self._asking(item, harness))
            found = await _found(answer, memory)
            cited = cited_sentences(answer.citations, context)
        return replace(found, cited=cited, usage=calls.usage, memory=memory.key)

    def _is_exact(self, harness: Harness) -> bool:
        return self.paper_exact or harness.settings.paper_exact

    def _asking(self, item: Item, harness: Harness) -> Asking:
        return Asking(
            question=item.question,
            strategy=self.strategy,
            window=harness.settings.window,
            choices=item.choices,
            documents=None,
            orientation="local" if self.orientation == "local" else "none",
            share_orientation=False,
            max_trials=self.updates + 1 if self.updates else self.max_trials,
            start=self.start,
            on_exhausted="force" if harness.is_forced(item) else "abstain",
            reflection=self.reflection,
            navigation=self.navigation,
            paper_exact=self._is_exact(harness),
        )


async def _found(answer: Answer, memory: OpenMemory) -> Prediction:
    """Return an answer as the run keeps it.

    Its ranking is what was read: the last reading first, by the scores that decided each.
    """
    readings = [step.read for step in answer.trail.steps if step.read]
    ranked = [s for read in reversed(readings) for s in sorted(read, key=lambda s: -s.score)]
    segments = list(dict.fromkeys(s.segment_id for s in ranked))
    of = {s.id: s.document_id for s in await memory.store.segments(memory.ns, segments)}
    return Prediction(
        text=answer.text,
        choice=answer.choice,
        status=answer.status,
        reason=answer.reason,
        read=tuple(s.segment_id for s in readings[-1]) if readings else (),
        ranked=tuple(dict.fromkeys(of[id] for id in segments)),
        segments=tuple(segments),
        steps=answer.trail.steps,
    )
