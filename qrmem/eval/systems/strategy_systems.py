"""The strategies of qrmem, over a memory of each context."""

from dataclasses import dataclass, replace
from typing import Literal

from qrmem.eval.harness import Harness
from qrmem.eval.items import Build, Context, Item, Prediction
from qrmem.eval.memories import OpenMemory
from qrmem.eval.registry import system
from qrmem.eval.systems.passage_reader import cited_sentences, ranking, shown_of
from qrmem.memory.ask import answer_of, answers, search_of
from qrmem.types import Answer, Orientation
from qrmem.types.options import AskOptions
from qrmem.types.options import Strategy as StrategyName


@system("inner-loop", "inner loop over a tree", "ILM-TR", strategy="inner-loop")
@system("raptor", "tree of summaries, all in one table", "RAPTOR", strategy="raptor")
@system("raptor-layered", "tree of summaries, level by level", "RAPTOR", strategy="raptor-layered")
@system("passages", "the closest passages of one search", "ours", strategy="passages")
@system("entity-trial", "entity trial", "QRMeM", strategy="entity-trial")
@system("graph-expansion", "graph expansion search", "QRMeM", strategy="graph-expansion")
@system("reflection", "navigation by reflection", "QRMeM", strategy="reflection")
@dataclass(frozen=True, slots=True, kw_only=True)
class StrategySystem:
    """Walks the graph of a memory.

    Attributes:
        memory: build mode of the memory: `compact` or `paper`; `local` builds without the model.
        orientation: `local` reads the nearest segments again with the question; `full` builds a
            memory for each question, as the paper does.
        max_trials: maximum number of readings, before an answer is forced or refused.
        updates: trials counted as in QRMeM's Figure 4: updates of the entities E, each of which
            leads to a reading after the first; 0 uses `max_trials`.
        open_entity: ablation, like the following ones.
        navigation: for `inner-loop` the loop.
        surprise: whether to search a tree by its surprises.
        leaf: tokens of a segment below a tree; 0 for the default (600). RAPTOR's own code has 100.
        summary: maximum tokens of a node's summary. RAPTOR's own code has 100.
        paper_exact: as in QRMeM: mode `paper`, orientation `full`, start `entities`, and a
            search without our own switches. Over trees, as in ILM-TR: clusters over whole
            levels, the parameters of its appendix A.3.
    """

    strategy: StrategyName
    memory: Literal["compact", "paper", "local"] = "compact"
    orientation: Orientation = "none"
    start: Literal["search", "entities"] = "search"
    max_trials: int = 5
    updates: int = 0
    open_entity: bool = True
    graph_update: bool = True
    reflection: bool = True
    navigation: bool = True
    surprise: bool = True
    leaf: int = 0
    summary: int = 300
    paper_exact: bool = False

    def build(self, item: Item, harness: Harness) -> Build:
        """Return the way to build the memory for an item."""
        from qrmem.agents import STRATEGIES  # LangGraph takes a second to import

        is_exact = self._is_exact(harness)
        if kind := STRATEGIES[self.strategy].tree:
            return Build(tree=kind, is_paper_tree=is_exact, leaf=self.leaf, summary=self.summary)
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
        async with harness.memory(context, self.build(item, harness)) as memory:
            options = self._options(item, harness)
            search = search_of(memory.tools, memory.searcher, options, harness.calls)
            answer = await answer_of(answers(search, set()))
            prediction = await _prediction_of(answer, memory)
            cited = cited_sentences(answer.citations, context)
        return replace(prediction, cited=cited)

    def _is_exact(self, harness: Harness) -> bool:
        return self.paper_exact or harness.settings.paper_exact

    def _options(self, item: Item, harness: Harness) -> AskOptions:
        return AskOptions(
            question=item.question,
            strategy=self.strategy,
            window=harness.settings.window,
            choices=item.choices,
            orientation="local" if self.orientation == "local" else "none",
            max_trials=self.updates + 1 if self.updates else self.max_trials,
            start=self.start,
            on_exhausted="force" if harness.is_forced(item) else "abstain",
            reflection=self.reflection,
            navigation=self.navigation,
            surprise=self.surprise,
            paper_exact=self._is_exact(harness),
        )


async def _prediction_of(answer: Answer, memory: OpenMemory) -> Prediction:
    """Return an answer in the form of a run.

    Its ranking has the read segments: the last reading first, by the scores in each.
    """
    readings = [step.read for step in answer.trail.steps if step.read]
    ranked = [s for read in reversed(readings) for s in sorted(read, key=lambda s: -s.score)]
    return replace(
        ranking(memory, await memory.segments(dict.fromkeys(s.segment_id for s in ranked))),
        text=answer.text,
        choice=answer.choice,
        status=answer.status,
        reason=answer.reason,
        read=tuple(s.segment_id for s in readings[-1]) if readings else (),
        steps=answer.trail.steps,
        shown=await _spans_shown(answer, memory),
        is_shown_known=True,
    )


async def _spans_shown(answer: Answer, memory: OpenMemory) -> tuple[tuple[str, int, int], ...]:
    """Return the spans in the last reading: its segments, and sentences from a tree."""
    readings = [step for step in answer.trail.steps if step.read or step.nodes]
    if not readings:
        return ()
    last = readings[-1]
    raw = [node for node in last.nodes if node.level == 0]
    ids = dict.fromkeys([*(s.segment_id for s in last.read), *(node.key for node in raw)])
    segments = {s.id: s for s in await memory.segments(ids)}
    cut = {node.key for node in raw if node.end}
    places = [(segments[n.key].document_id, n.start, n.end) for n in raw if n.end]
    return (*shown_of(s for id, s in segments.items() if id not in cut), *places)
