"""What an `add` will cost."""

from collections.abc import Callable, Sequence

from qrmem.config import Settings
from qrmem.graphstore.memory import MemoryStore
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.ingest import Adder
from qrmem.llm.prices import prices_of
from qrmem.planning.figures import Plan
from qrmem.planning.forecast import Rehearsed, stage_plans, wall_time
from qrmem.planning.stage import RehearsalTools, info_on_stage, on_stage, silent, stand_ins
from qrmem.planning.survey import SAMPLE, Part, Surveyor, sampled
from qrmem.sources import Source

SUMMARY = "summary"


async def plan_add(
    stored: GraphStore,
    info: NamespaceInfo,
    settings: Settings,
    source: Source,
    glob: str | None = None,
    *,
    update: bool = False,
    rebuild: bool = False,
    question: str = "",
    follow_links: bool = False,
) -> Plan:
    """Return what reading a source will use; nothing is written, and no server asked.

    Args:
        info: of the namespace, or what it will be made with.

    Raises:
        BadDocument: the one source given cannot be read.
        UsageError: a document is there with another text, and `update` is not set.
    """
    staged = on_stage(settings)
    chat, longest = stand_ins(staged)
    info = info_on_stage(info)
    shadow = MemoryStore()
    tools = RehearsalTools(shadow, info, staged, chat)
    options = {"update": update, "rebuild": rebuild, "question": question}
    surveyor = Surveyor(stored, shadow, info.name, tools, **options)
    report, parts = await surveyor.survey(source, glob, follow_links)
    shown = parts if sum(part.work for part in parts) <= SAMPLE else sampled(parts, SAMPLE)
    if shown is parts:
        await surveyor.read()
    else:
        store = MemoryStore()
        tools = RehearsalTools(store, info, staged, chat)
        adder = Adder(store, info.name, tools, listener=silent, question=question)
        await adder.add([part.document for part in shown])
    rehearsed = Rehearsed()
    rehearsed.add(tools.records, _weights(parts, shown, is_paper=settings.mode == "paper"), longest)
    prices = prices_of(settings)
    stages = stage_plans(rehearsed, rehearsed, rehearsed, prices.of)
    past = await stored.calls(info.name)
    seconds, basis = wall_time(stages, settings, past, settings.concurrency)
    return Plan(
        run="add",
        documents=len(parts),
        segments=sum(len(part.waiting) for part in parts),
        rehearsed=sum(len(part.waiting) for part in shown),
        stages=tuple(stages),
        seconds=seconds,
        basis=basis,
        concurrency=settings.concurrency,
        prices_date=prices.date,
        unpriced=tuple(dict.fromkeys(s.model for s in stages if s.cost is None)),
        problems=tuple((name, reason) for name, _, reason in report.problems),
    )


def _weights(
    parts: Sequence[Part], shown: Sequence[Part], *, is_paper: bool
) -> Callable[[str], float]:
    """Return how many calls one rehearsed call of a stage stands for."""
    whole, part = sum(p.work for p in parts), sum(p.work for p in shown)
    by_segment = whole / part if part else 1.0
    # One summary for a document, however long it is, but in mode `paper`, where it is read through.
    by_document = len(parts) / len(shown) if shown else 1.0

    def weight(stage: str) -> float:
        return by_document if stage == SUMMARY and not is_paper else by_segment

    return weight


__all__ = ["plan_add"]
