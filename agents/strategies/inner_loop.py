"""ILM-TR's inner loop: retrieve, write an answer to a short memory, retrieve again with it.

    begin -> read -> (memory stands, or the last round: end | move) ; move -> read

The query of the first round is the question, later the question and the memory (ILM-TR, section
3). The memory is overwritten in each round and has 200 tokens. The loop ends when the memory hardly
changes, or after five rounds. Without a chat model the memory consists of sentences of the text,
and the answer consists of passages.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qrmem.agents.search.run import Search
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Calls, Strategy, began, cited
from qrmem.answering import citations
from qrmem.answering.multiple_choice import chosen, shown
from qrmem.errors import NotFound
from qrmem.graphstore.codec import to_plain
from qrmem.prompts import fenced
from qrmem.retrieval.trees.nodes import StoredTree, load_trees
from qrmem.retrieval.trees.retrieving import (
    TOKENS,
    TOP,
    NodeSentence,
    Sentences,
    TableEntry,
    TreeTable,
    fitting,
    likeness,
    within,
)
from qrmem.text.numbers import counted
from qrmem.types import Citation, Event, Passage, Verdict
from qrmem.types.answers import NodeKind, ScoredNode
from qrmem.types.documents import TreeKind

if TYPE_CHECKING:
    from qrmem.llm.prompting import Caller

PROMPT, ONCE = "tree-answer", "tree-answer-once"
"""Prompts with the loop and without it; the latter is RAPTOR's prompt (appendix A.1)."""
CAPACITY = 200
"""Maximum number of tokens of the memory (ILM-TR, appendix A.3)."""
PAPER_SAMPLING = {"frequency_penalty": 1.2}
"""Parameters of the answer model in ILM-TR, appendix A.3; sent with `paper_exact`."""
STANDS = 0.9
"""Similarity of two successive memories that ends the loop. The paper states none. Its example has
.59 to .67 between five rounds that all changed, so a lower value would have ended it early."""
KEPT_NODES = 20
"""Maximum number of a round's nodes in a trail, best first; the last round keeps all."""
NO_MODEL = "no chat model: sentences near the question and near what was found"


async def begin(run: Search, state: SearchState) -> SearchState:
    """Check that there is a tree; the first search is in the first round."""
    trees = await trees_of(run)
    await warn_of_missing(run, trees)
    nodes = sum(len(tree.nodes) for tree in trees)
    run.tell("start", reason=f"{counted(len(trees), 'trees')} with {counted(nodes, 'nodes')}")
    return {**began({}), "memory": ""}


async def trees_of(run: Search, kind: TreeKind = "ilm") -> list[StoredTree]:
    """Return the trees of the question's documents.

    Raises:
        NotFound: no tree is built.
    """
    documents = sorted(run.options.documents) if run.options.documents is not None else None
    if trees := await load_trees(run.store, run.ns, kind, documents):
        return trees
    raise NotFound(f"there is no such tree over these documents: build one with `{_build(kind)}`")


def _build(kind: TreeKind) -> str:
    return "qrmem tree build" if kind == "ilm" else f"qrmem tree build --kind {kind}"


async def warn_of_missing(run: Search, trees: Sequence[StoredTree]) -> None:
    """Warn about the number of the question's documents without a tree, which are not searched."""
    document_ids = run.options.documents
    documents = await run.store.document_ids(run.ns) if document_ids is None else document_ids
    missing = len(documents) - sum(tree.tree.is_current for tree in trees)
    if missing:
        message = f"{missing} of {len(documents)} documents have no tree, or changed since: "
        command = _build(trees[0].tree.kind)
        run.listener(Event("warning", {"message": f"{message}run `{command}`"}))


async def read(run: Search, state: SearchState) -> SearchState:
    """Run one round; the last one sets the status."""
    caller = run.caller
    return await (_read_locally(run, state) if caller is None else _ask(run, state, caller))


async def again(run: Search, state: SearchState) -> SearchState:
    """Continue with the next round, as the memory has changed."""
    return {"has_moved": True}


STRATEGY = Strategy(
    begin=begin,
    read=read,
    move=again,
    tree="ilm",
    calls=(Calls("answer", mean=3, most=None, tokens=3000, reply=120),),
)


def is_last(run: Search, state: SearchState, alike: float) -> bool:
    """Return whether this round ends the loop."""
    rounds = state.get("trials", 0) + 1
    over = rounds >= run.options.max_trials or not run.options.navigation
    return over or (rounds > 1 and alike >= STANDS)


# --- with a chat model ---------------------------------------------------------------------------


async def _ask(run: Search, state: SearchState, caller: "Caller") -> SearchState:
    before = state.get("memory", "")
    question = run.context.question
    query = f"{question}\n{before}" if before else question
    table = TreeTable(
        run.store, run.ns, await trees_of(run), run.parts.embedder, surprising=run.options.surprise
    )
    entries = retrieved(run, await table.collapsed(query))
    is_loop = run.options.navigation
    question_shown = shown(question, run.context.choices).removeprefix("Question: ")
    call = await caller.say(
        PROMPT if is_loop else ONCE,
        lambda kept: {
            "retrieved": "\n".join(kept[0]),
            **({"memory": fenced(before)} if is_loop else {}),
            "question": question_shown,
        },
        [[fenced(entry.text) for entry in entries]],
        window=run.context.window,
        reply=min(CAPACITY, run.context.window // 4),
        sampling=PAPER_SAMPLING if run.options.paper_exact else {},
    )
    memory = " ".join(call.value.split())
    alike = likeness(before, memory)
    last = is_last(run, state, alike)
    run.tell(
        "read",
        nodes=[as_node(entry) for entry in (entries if last else entries[:KEPT_NODES])],
        query=query,
        memory=memory,
        likeness=round(alike, 4),
        tokens=call.tokens,
        verdict="answerable" if last and memory else "",
    )
    update: SearchState = {"memory": memory, "trials": 1, "has_moved": True}
    return {**update, **await ended(run, memory, entries)} if last else update


def retrieved(run: Search, entries: Sequence[TableEntry]) -> list[TableEntry]:
    """Return the entries that fit into RAPTOR's budget and the window."""
    return _fitting(run, entries[:TOP], min(TOKENS, run.room - CAPACITY))


def shared_out(run: Search, layers: Sequence[Sequence[TableEntry]]) -> list[TableEntry]:
    """Return the entries of each layer that fit its share, top layer first; the rest is passed on.

    With one shared budget the summaries of upper layers would leave no room for segments.
    """
    room, entries = min(TOKENS, run.room - CAPACITY), list[TableEntry]()
    for n, layer in enumerate(layers):
        layer_entries = _fitting(run, layer, room // (len(layers) - n))
        room -= sum(_size(run, entry) for entry in layer_entries)
        entries += layer_entries
    return entries


def _fitting(run: Search, entries: Sequence[TableEntry], room: int) -> list[TableEntry]:
    return within(entries, {entry.text: _size(run, entry) for entry in entries}, room)


def _size(run: Search, entry: TableEntry) -> int:
    return run.parts.counter.count(entry.text) + LABELLED


LABELLED = 10
"""Tokens of the delimiters around a retrieved text."""


async def ended(run: Search, answer: str, entries: Sequence[TableEntry]) -> SearchState:
    """Return an answer's update of the state: text, choice and the raw segments to cite."""
    if not answer:
        return {"status": "unanswerable", "reason": "the model gave no answer"}
    ids = list(dict.fromkeys(id for e in entries if len(e.segments) <= TOP for id in e.segments))
    passages = await run.graph.passages(await run.graph.segments(ids))
    choice = chosen(answer, run.context.choices) if run.context.choices else None
    verdict = Verdict(True, answer, choice)
    if run.context.choices and choice is None:
        verdict = await run.reasoner.judge(run.context, passages[:1], force=True)
    spans = [to_plain(_bare(citation)) for citation in cited(verdict, passages)]
    return {"status": "answered", "answer": to_plain(verdict), "citations": spans}


def _bare(citation: Citation) -> Citation:
    return replace(citation, quote="")


def as_node(entry: TableEntry) -> ScoredNode:
    """Return an entry in the form of a trail."""
    return ScoredNode(entry.key, entry.kind, entry.level, round(entry.score, 4), entry.segments)


# --- without a chat model -------------------------------------------------------------------------


async def _read_locally(run: Search, state: SearchState) -> SearchState:
    before = state.get("memory", "")
    lines = before.split("\n") if before else []
    # A sentence of a document may have several lines.
    sentences = await _sentences(run)
    ranked = await sentences.ranked(run.context.question, lines)
    entries_read = fitting(ranked, run.room, run.parts.counter.count)
    best = fitting(ranked, CAPACITY, run.parts.counter.count) or entries_read[:1]
    memory = "\n".join(" ".join(one.text.split()) for one in best)
    alike = likeness(before, memory)
    last = is_last(run, state, alike)
    run.tell(
        "read",
        nodes=[_place(one) for one in (entries_read if last else entries_read[:KEPT_NODES])],
        query=f"{run.context.question}\n{before}" if before else run.context.question,
        memory=memory,
        likeness=round(alike, 4),
        verdict="passages" if last and memory else "",
    )
    update: SearchState = {"memory": memory, "trials": 1, "has_moved": True}
    return {**update, **await _memory_passages(run, best, entries_read)} if last else update


async def _sentences(run: Search) -> Sentences:
    """Return the sentences of a run; they are cached between rounds."""
    if run.kept is None:
        trees = await trees_of(run)
        surprise = run.options.surprise
        nodes = [n.node for tree in trees for n in tree.nodes.values() if n.node.level == 1]
        surprises = {n.segments[0]: frozenset(n.surprises) for n in nodes if surprise}
        documents = frozenset(tree.tree.document_id for tree in trees)
        run.kept = Sentences(run.store, run.ns, surprises, documents)
    assert isinstance(run.kept, Sentences)
    return run.kept


async def _memory_passages(
    run: Search, best: Sequence[NodeSentence], seen: Sequence[NodeSentence]
) -> SearchState:
    """Return the memory as passages, in the order of the text; options are chosen from all seen."""
    if not best:
        return {"status": "unanswerable", "reason": "no sentence shares a word with the question"}
    in_order = sorted(best, key=lambda one: (one.document_id, one.start))
    segments = await run.graph.segments([one.segment_id for one in best])
    of_segments = await run.graph.passages(segments)
    by_id = {passage.segment.id: passage for passage in of_segments}
    spans = [_cited(one, by_id[one.segment_id]) for one in in_order if one.segment_id in by_id]
    text = "\n".join(" ".join(one.text.split()) for one in in_order)
    verdict = Verdict(True, text, None, NO_MODEL, status="passages")
    if run.context.choices:
        ids = list(dict.fromkeys(one.segment_id for one in seen))[:TOP]
        passages = await run.graph.passages(await run.graph.segments(ids))
        verdict = await run.reasoner.judge(run.context, passages, force=True)
        spans = [_bare(citation) for citation in citations.locate(verdict.quotes, passages)]
    return {
        "status": verdict.status,
        "answer": to_plain(verdict),
        "citations": [to_plain(span) for span in spans],
    }


def _cited(one: NodeSentence, passage: Passage) -> Citation:
    first = passage.segment.start
    return _bare(citations.cite(passage, one.start - first, one.end - first))


def _place(one: NodeSentence) -> ScoredNode:
    kind: NodeKind = "surprise" if one.is_surprise else "sentence"
    return ScoredNode(
        one.segment_id, kind, 0, round(one.score, 4), (one.segment_id,), one.start, one.end
    )
