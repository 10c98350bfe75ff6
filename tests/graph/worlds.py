"""Small memories made by hand, with the graph that a test needs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from contract.reference import ReferenceStore
from fakes import ScriptedReasoner

from qrmem.agents import STRATEGIES, Outcome, Search, run_strategy
from qrmem.graphstore.protocol import (
    EntityRow,
    FactRow,
    MentionRow,
    NamespaceInfo,
    ViewUpdate,
)
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.llm.run import Run
from qrmem.retrieval.searcher import Searcher
from qrmem.text.names import name_key
from qrmem.text.words import terms
from qrmem.types import AskContext, Document, Event, LedgerRow, Passage, Quote, Segment, Verdict
from qrmem.types.options import AskOptions


@dataclass(frozen=True)
class Part:
    """A segment: its text, and its facts as (head, description, tail); ends are its entities."""

    text: str
    facts: tuple[tuple[str, str, str], ...] = ()
    names: tuple[str, ...] = ()
    document: str = "doc"


async def memory(*parts: Part) -> ReferenceStore:
    """A memory whose n-th segment is `s<n>`, of ten tokens."""
    store = ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", "t", 600))
    segments: dict[str, list[Segment]] = {}
    for n, part in enumerate(parts):
        of = segments.setdefault(part.document, [])
        start = of[-1].end if of else 0
        end = start + len(part.text)
        of.append(Segment(f"s{n}", part.document, len(of), start, end, part.text, 10))
    for document, of in segments.items():
        text = "".join(segment.text for segment in of)
        await store.put_documents("ns", [(Document(text, f"Title of {document}", document), of)])
        await store.record("ns", [(LedgerRow(segment.id, "ok"), None) for segment in of])
    await store.apply("ns", 0, _change(parts))
    return store


def _change(parts: Sequence[Part]) -> ViewUpdate:
    mentions, facts, index = [], [], {}
    names: set[str] = set()
    for n, part in enumerate(parts):
        ends = [end for head, _, tail in part.facts for end in (head, tail)]
        inside = dict.fromkeys((*ends, *part.names))
        names |= inside.keys()
        mentions += [MentionRow(f"s{n}", name_key(name, ""), ((name, 1),)) for name in inside]
        facts += [
            FactRow(f"s{n}", at, name_key(head, ""), name_key(tail, ""), said)
            for at, (head, said, tail) in enumerate(part.facts)
        ]
        index[f"s{n}"] = Counter(terms(part.text))
    return ViewUpdate(
        mentions=mentions,
        facts=facts,
        index=index,
        names={name_key(name, ""): name_key(name, "") for name in names},
        entities=[EntityRow(name_key(name, ""), name, "") for name in names],
    )


WITHOUT_TREE = tuple(n for n in STRATEGIES if n != "inner-loop" and not n.startswith("raptor"))
"""Strategies that need no tree of summaries."""


async def ask(
    store: ReferenceStore,
    reasoner: ScriptedReasoner,
    question: str,
    strategy: str = "reflection",
    *,
    choices: tuple[str, ...] = (),
    heard: list[Event] | None = None,
    **options: Any,
) -> Outcome:
    """Answer by a strategy with a real searcher and scorer."""
    if options.pop("orient", False):
        options["orientation"] = "local"
    run = Search(
        parts=Run(reasoner),
        searcher=Searcher(store, "ns"),
        writer=BestEffortWriter(store),
        options=AskOptions(
            question=question, strategy=strategy, choices=choices, **{"window": 4096, **options}
        ),
        listener=(heard if heard is not None else []).append,
    )
    return await outcome_of(run)


async def outcome_of(run: Search) -> Outcome:
    """Return what a run ends with."""
    *_, outcome = [item async for item in await run_strategy(run)]
    assert isinstance(outcome, Outcome)
    return outcome


def answers_with(
    words: str, answer: str
) -> Callable[[AskContext, Sequence[Passage], bool], Verdict]:
    """Judge answerable as soon as a passage holds some words; quote them."""

    def judge(context: AskContext, passages: Sequence[Passage], force: bool) -> Verdict:
        for passage in passages:
            if words in passage.segment.text:
                return Verdict(
                    True, answer, None, "It is said.", (Quote(passage.label, words),), 50
                )
        return Verdict(
            is_answerable=force, answer="a guess" if force else "", reason="Not said.", tokens=50
        )

    return judge
