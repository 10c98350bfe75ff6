"""MemWalker, a baseline: the model walks down a tree of summaries to the text, and back up.

Leaves have about 1,000 tokens, nodes at most eight children. The model chooses a child by its
summary. On the way back a parent leaves out the children that did not help. The summaries on the
path are the working memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.agents.baselines import ask_about, step_of
from qrmem.answering.multiple_choice import shown
from qrmem.errors import ModelOutputError
from qrmem.llm.parallel import in_batches
from qrmem.llm.prompting import Caller
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import SummaryReply, TriageReply
from qrmem.types import AskContext, Passage, Reasoner, Step, Verdict

CHILDREN = 8
LEAF_TOKENS = 1000
SUMMARY_TOKENS = 300
MOVES = 24
"""Maximum number of steps of a walk."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the text.

    Attributes:
        children: indices of its children in the tree; empty for a leaf.
        passage: the text of a leaf.
    """

    summary: str
    children: tuple[int, ...] = ()
    passage: Passage | None = None


Tree = Sequence[Node]
"""The nodes of a tree, root last."""


async def build_tree(caller: Caller, passages: Sequence[Passage], window: int) -> Tree:
    """Summarise the leaves, then groups of eight summaries, until one is left."""
    nodes: list[Node] = []
    level: list[int] = []
    for passage in passages:
        text = passage.segment.text.strip()
        nodes.append(Node(await _summary(caller, [text], window, joins=False), passage=passage))
        level.append(len(nodes) - 1)
    while len(level) > 1:
        above: list[int] = []
        for children in map(tuple, in_batches(level, CHILDREN)):
            texts = [nodes[child].summary for child in children]
            summary = await _summary(caller, texts, window, joins=True)
            nodes.append(Node(summary, children))
            above.append(len(nodes) - 1)
        level = above
    return nodes


async def _summary(caller: Caller, texts: Sequence[str], window: int, *, joins: bool) -> str:
    """Return a summary; if the model gives none, the beginning of the text."""
    pieces = [piece for text in texts for piece in text.split("\n") if piece.strip()]
    prompt, reply = "summary-join" if joins else "summary", min(SUMMARY_TOKENS, window // 4)
    summary = await ask_about(caller, prompt, SummaryReply, pieces, window=window, reply=reply)
    if summary is None:
        return caller.budget.cut(" ".join(pieces), SUMMARY_TOKENS)
    return " ".join(summary.summary.split())


@dataclass(frozen=True, slots=True)
class TreeWalk:
    """The dependencies of a walk."""

    tree: Tree
    caller: Caller
    reasoner: Reasoner
    context: AskContext

    def known(self, path: Sequence[int]) -> list[str]:
        """Return the working memory: the summaries on the path, nearest first."""
        return [self.tree[place].summary for place in reversed(path)]


async def walk(run: TreeWalk, *, is_forced: bool) -> tuple[Verdict, list[Step]]:
    """Walk the tree; return the last verdict and the steps.

    Args:
        run: the dependencies.
        is_forced: whether to force an answer if the walk found none, from the last leaf, or from
            the summaries on the path if it reached no leaf.
    """
    path, rejected = [len(run.tree) - 1], set[int]()
    steps: list[Step] = []
    last: list[Passage] = []
    for _ in range(MOVES):
        parts = run.tree[path[-1]].children
        if parts:
            part, reason = await _choose(run, path[:-1], [p for p in parts if p not in rejected])
            steps.append(step_of(len(steps) + 1, "triage", reason))
            if part is not None:
                path.append(part)
                continue
        else:
            last = _with_memory(run, path)
            verdict = await run.reasoner.judge(run.context, last)
            steps.append(step_of(len(steps) + 1, "read", verdict.reason, [last[0].segment]))
            if verdict.is_answerable:
                return verdict, steps
        last = last or _with_memory(run, path)
        rejected.add(path.pop())
        if not path:
            break
        steps.append(step_of(len(steps) + 1, "back", ""))
    if not is_forced:
        return Verdict(is_answerable=False), steps
    verdict = await run.reasoner.judge(run.context, last, force=True)
    steps.append(step_of(len(steps) + 1, "force", verdict.reason))
    return replace(verdict, status="forced"), steps


async def _choose(
    run: TreeWalk, above: Sequence[int], parts: Sequence[int]
) -> tuple[int | None, str]:
    """Return the index of the chosen part, or of none, and the reason."""
    if not parts:
        return None, ""
    numbered = [fenced(run.tree[part].summary, f"part {n}") for n, part in enumerate(parts)]
    try:
        call = await run.caller.call(
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
    part = call.value.part
    return (parts[part] if 0 <= part < len(call.kept[1]) else None), call.value.reasoning


def _with_memory(run: TreeWalk, path: Sequence[int]) -> list[Passage]:
    """Return a node's passage and, as far as they fit, the summaries on the path to it.

    The passage of a leaf is its text, of any other node its summary.
    """
    node = run.tree[path[-1]]
    at = next(one.passage for one in run.tree if one.passage is not None)
    passages = [replace(node.passage or _note(at, node.summary), label="S1")]
    room = run.reasoner.room(run.context) - run.reasoner.size(passages[0])
    for n, summary in enumerate(run.known(path[:-1]), 1):
        note = replace(_note(at, summary), label=f"M{n}")
        room -= run.reasoner.size(note)
        if room < 0:
            break
        passages.append(note)
    return passages


def _note(at: Passage, summary: str) -> Passage:
    """Return a summary as a passage."""
    segment = replace(at.segment, id=f"{at.segment.document_id}*", text=summary)
    return Passage("M", segment, "What is known from further up")
