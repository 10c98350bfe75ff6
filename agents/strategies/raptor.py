"""RAPTOR: the texts of a tree nearest to the question, read once (Sarthi et al., section 3).

    begin -> read -> (answered: end | conclude)

`raptor` ranks all texts of the tree together (collapsed tree), `raptor-layered` descends level by
level. Both use a tree of kind `raptor`. Without a chat model the raw segments among the texts are
read.
"""

from dataclasses import replace
from functools import partial

from qrmem.agents.search.run import Search
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy, began
from qrmem.agents.search.steps import read as judged
from qrmem.agents.strategies.inner_loop import (
    CAPACITY,
    ONCE,
    PAPER_SAMPLING,
    as_node,
    ended,
    retrieved,
    shared_out,
    trees_of,
    warn_of_missing,
)
from qrmem.answering.multiple_choice import shown
from qrmem.prompts import fenced
from qrmem.retrieval.trees.retrieving import TableEntry, TreeTable
from qrmem.types.documents import TreeKind

KIND: TreeKind = "raptor"


async def begin(run: Search, state: SearchState, *, is_layered: bool = False) -> SearchState:
    """Rank the texts of the tree."""
    await warn_of_missing(run, await trees_of(run, KIND))
    entries = await _entries(run, is_layered)
    run.tell(
        "start",
        nodes=[as_node(entry) for entry in entries],
        reason=f"{len(entries)} texts of the tree",
    )
    scores: dict[str, float] = {}
    for entry in entries:
        for id in entry.segments if entry.level <= 1 else ():
            scores[id] = max(scores.get(id, 0.0), entry.score)
    return began(scores)


async def _entries(run: Search, is_layered: bool) -> list[TableEntry]:
    trees = await trees_of(run, KIND)
    table = TreeTable(run.store, run.ns, trees, run.parts.embedder, surprising=False)
    question = run.context.question
    if is_layered:
        return shared_out(run, await table.layered(question))
    return retrieved(run, await table.collapsed(question))


async def read(run: Search, state: SearchState, *, is_layered: bool = False) -> SearchState:
    """Answer once from the ranked texts."""
    caller = run.caller
    if caller is None:
        return await judged(run, state)
    entries = await _entries(run, is_layered)
    question = shown(run.context.question, run.context.choices).removeprefix("Question: ")
    call = await caller.say(
        ONCE,
        lambda kept: {"retrieved": "\n".join(kept[0]), "question": question},
        [[fenced(entry.text) for entry in entries]],
        window=run.context.window,
        reply=min(CAPACITY, run.context.window // 4),
        sampling=PAPER_SAMPLING if run.options.paper_exact else {},
    )
    answer = " ".join(call.value.split())
    run.tell(
        "read",
        nodes=[as_node(entry) for entry in entries],
        tokens=call.tokens,
        verdict="answerable" if answer else "",
    )
    return {"trials": 1, **await ended(run, answer, entries)}


STRATEGY = Strategy(
    begin=begin,
    read=read,
    tree=KIND,
    calls=(Calls("answer", tokens=2500, reply=120),),
)
LAYERED = replace(
    STRATEGY, begin=partial(begin, is_layered=True), read=partial(read, is_layered=True)
)
