"""MemWalker, a baseline: a tree of summaries, walked down to the text and back up.

    triage -> (triage: one level down | read: at a leaf | back | conclude)
    read   -> (answered: end | back)
    back   -> (triage | conclude)

Leaves have about 1,000 tokens, nodes at most eight children. A part that did not help is left out
when its parent is seen again. What was read on the way down is known below as working memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.errors import ModelOutputError
from qrmem.llm.prompting import Caller
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import SummaryReply, TriageReply
from qrmem.types import AskContext, Passage, Reasoner, ScoredSegment, Segment, Step, Verdict

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

CHILDREN = 8
LEAF_TOKENS = 1000
SUMMARY_TOKENS = 300
MOVES = 24
"""Choices and readings in one walk at most."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the text.

    Attributes:
        children: places of its parts in the tree; empty for a leaf.
        passage: what a leaf reads.
    """

    summary: str
    children: tuple[int, ...] = ()
    passage: Passage | None = None


Tree = Sequence[Node]
"""Nodes with the root last."""


async def build_tree(caller: Caller, passages: Sequence[Passage], window: int) -> Tree:
    """Summarise the leaves, then eight summaries at a time, until one is left."""
    nodes: list[Node] = []
    level: list[int] = []
    for passage in passages:
        text = passage.segment.text.strip()
        nodes.append(Node(await _summary(caller, [text], window, joins=False), passage=passage))
        level.append(len(nodes) - 1)
    while len(level) > 1:
        above: list[int] = []
        for at in range(0, len(level), CHILDREN):
            children = tuple(level[at : at + CHILDREN])
            texts = [nodes[child].summary for child in children]
            summary = await _summary(caller, texts, window, joins=True)
            nodes.append(Node(summary, children))
            above.append(len(nodes) - 1)
        level = above
    return nodes


async def _summary(caller: Caller, texts: Sequence[str], window: int, *, joins: bool) -> str:
    """Return a summary; where the model gives none, the beginning of the text."""
    pieces = [piece for text in texts for piece in text.split("\n") if piece.strip()]
    try:
        called = await caller.call(
            "summary-join" if joins else "summary",
            SummaryReply,
            lambda kept: dict(text=fenced("\n".join(kept[0]))),
            [pieces],
            window=window,
            reply=min(SUMMARY_TOKENS, window // 4),
        )
    except ModelOutputError:
        return caller.budget.cut(" ".join(pieces), SUMMARY_TOKENS)
    return " ".join(called.value.summary.split())


class WalkState(TypedDict, total=False):
    """Where a walk stands.

    Attributes:
        path: places of the nodes from the root to here.
        rejected: nodes that did not help.
        is_lost: whether no child was chosen, or the leaf did not answer.
    """

    path: list[int]
    rejected: list[int]
    moves: int
    is_lost: bool
    is_over: bool


@dataclass(slots=True)
class Walk:
    """The context of one walk.

    Attributes:
        answer: what the last reading came to.
        is_forced: whether an answer is forced where the walk ends without one.
    """

    tree: Tree
    caller: Caller
    reasoner: Reasoner
    context: AskContext
    is_forced: bool
    answer: Verdict = field(default_factory=lambda: Verdict(is_answerable=False))
    was_forced: bool = False
    last_read: list[Passage] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def known(self, path: Sequence[int]) -> list[str]:
        """Return the working memory: summaries from the root down, the nearest first."""
        return [self.tree[place].summary for place in reversed(path)]

    def record(self, action: str, reason: str = "", read: Sequence[Segment] = ()) -> None:
        """Add a step to the trail."""
        shown = tuple(ScoredSegment(segment.id, 0.0, segment.tokens) for segment in read)
        self.steps.append(Step(len(self.steps) + 1, action, read=shown, reason=reason))


async def walk(run: Walk) -> None:
    """Walk the tree; `run` holds the answer and the steps afterwards."""
    state: WalkState = {"path": [len(run.tree) - 1], "rejected": [], "moves": 0}
    await build_graph().ainvoke(state, context=run, config={"recursion_limit": 4 * MOVES})


def build_graph() -> "CompiledStateGraph[WalkState, Walk, WalkState, WalkState]":
    """Return the machine, freshly wired."""
    graph = StateGraph(WalkState, context_schema=Walk)
    graph.add_node("triage", triage)
    graph.add_node("read", read)
    graph.add_node("back", back)
    graph.add_node("conclude", conclude)
    graph.add_conditional_edges(START, enter, ["triage", "read"])
    graph.add_conditional_edges("triage", after_triage, ["triage", "read", "back", "conclude"])
    graph.add_conditional_edges("read", after_reading, {"done": END, "back": "back"})
    graph.add_conditional_edges("back", after_back, ["triage", "conclude"])
    graph.add_edge("conclude", END)
    return graph.compile()


async def triage(state: WalkState, runtime: Runtime[Walk]) -> WalkState:
    """Choose one of the parts that were not rejected, or none."""
    run = runtime.context
    path, rejected = state["path"], set(state["rejected"])
    open_parts = [child for child in run.tree[path[-1]].children if child not in rejected]
    moves = state["moves"] + 1
    chosen, reason = await _chosen(run, path[:-1], open_parts) if open_parts else (None, "")
    run.record("triage", reason)
    if chosen is None:
        return {"moves": moves, "is_lost": True}
    return {"path": [*path, chosen], "moves": moves, "is_lost": False}


async def _chosen(run: Walk, above: Sequence[int], parts: Sequence[int]) -> tuple[int | None, str]:
    numbered = [fenced(run.tree[part].summary, f"part {n}") for n, part in enumerate(parts)]
    from qrmem.answering.options import shown

    try:
        called = await run.caller.call(
            "triage",
            TriageReply,
            lambda kept: dict(
                known=fenced_if("\n".join(kept[0])),
                parts="\n".join(kept[1]),
                question=shown(run.context.question, run.context.choices),
            ),
            [run.known(above), numbered],
            window=run.context.window,
            reply=min(SUMMARY_TOKENS, run.context.window // 4),
        )
    except ModelOutputError:
        return None, "the reply could not be read"
    part = called.value.part
    return (parts[part] if 0 <= part < len(called.kept[1]) else None), called.value.reasoning


async def read(state: WalkState, runtime: Runtime[Walk]) -> WalkState:
    """Read a leaf with the working memory, and answer or turn back."""
    run = runtime.context
    run.last_read = _with_memory(run, state["path"])
    verdict = await run.reasoner.judge(run.context, run.last_read)
    run.record("read", verdict.reason, [run.last_read[0].segment])
    if verdict.is_answerable:
        run.answer = verdict
        return {"is_over": True, "moves": state["moves"] + 1}
    return {"is_lost": True, "moves": state["moves"] + 1}


def _with_memory(run: Walk, path: Sequence[int]) -> list[Passage]:
    """Return a leaf and, as far as it fits, the summaries that led to it."""
    leaf = run.tree[path[-1]].passage
    assert leaf is not None
    passages = [replace(leaf, label="S1")]
    room = run.reasoner.room(run.context) - run.reasoner.size(passages[0])
    for n, summary in enumerate(run.known(path[:-1]), 1):
        segment = replace(leaf.segment, id=f"{leaf.segment.document_id}*", text=summary)
        note = Passage(f"M{n}", segment, "What is known from further up")
        room -= run.reasoner.size(note)
        if room < 0:
            break
        passages.append(note)
    return passages


async def back(state: WalkState, runtime: Runtime[Walk]) -> WalkState:
    """Go up to the parent, with the part that did not help left out."""
    *path, left = state["path"]
    runtime.context.record("back")
    return {"path": path, "rejected": [*state["rejected"], left], "is_lost": not path}


async def conclude(state: WalkState, runtime: Runtime[Walk]) -> WalkState:
    """End a walk that answered nothing: force an answer from what was read last, or give up."""
    run = runtime.context
    if run.is_forced:
        run.answer = await run.reasoner.judge(run.context, run.last_read, force=True)
        run.was_forced = True
        run.record("force", run.answer.reason)
    return {"is_over": True}


def enter(state: WalkState, runtime: Runtime[Walk]) -> Literal["triage", "read"]:
    """A text of one leaf has no parts to choose from."""
    return "triage" if runtime.context.tree[state["path"][-1]].children else "read"


def after_triage(
    state: WalkState, runtime: Runtime[Walk]
) -> Literal["triage", "read", "back", "conclude"]:
    """Go down, read at a leaf, or turn back; at the root there is nowhere to turn to."""
    if state["moves"] >= MOVES:
        return "conclude"
    if state["is_lost"]:
        return "back" if len(state["path"]) > 1 else "conclude"
    return enter(state, runtime)


def after_reading(state: WalkState) -> Literal["done", "back"]:
    """End at an answer."""
    return "done" if state.get("is_over") else "back"


def after_back(state: WalkState) -> Literal["triage", "conclude"]:
    """Choose again, unless there is no way further up or the moves are used up."""
    return "conclude" if state["is_lost"] or state["moves"] >= MOVES else "triage"
