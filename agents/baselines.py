"""Methods for comparison, as plain loops: MemWalker and ReadAgent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from qrmem.answering.multiple_choice import shown
from qrmem.errors import ModelOutputError
from qrmem.llm.parallel import in_batches
from qrmem.llm.prompting import Caller
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import GistReply, LookUpReply, PageBreakReply, SummaryReply, TriageReply
from qrmem.types import AskContext, Passage, Reasoner, ScoredSegment, Segment, Step, Verdict

Out = TypeVar("Out", bound=BaseModel)


async def ask_about(
    caller: Caller,
    prompt: str,
    model: type[Out],
    pieces: Sequence[str],
    *,
    window: int,
    reply: int,
    between: str = "\n",
) -> Out | None:
    """Send a prompt about one text; return `None` if no reply could be parsed.

    Args:
        caller: calls the model.
        prompt: name of the prompt.
        model: Pydantic model of the reply.
        pieces: pieces of the text; pieces at the end that do not fit are left out.
        window: L in tokens.
        reply: tokens reserved for the reply.
        between: separator of the pieces.
    """
    try:
        call = await caller.call(
            prompt,
            model,
            lambda kept: dict(text=fenced(between.join(kept[0]))),
            [pieces],
            window=window,
            reply=reply,
        )
    except ModelOutputError:
        return None
    return call.value


def step_of(n: int, action: str, reason: str, read: Sequence[Segment] = ()) -> Step:
    """Return a step of a trail."""
    scored_segments = tuple(ScoredSegment(segment.id, 0.0, segment.tokens) for segment in read)
    return Step(n, action, read=scored_segments, reason=reason)


def joined(pieces: Sequence[Passage]) -> Passage:
    """Join adjacent pieces of one document."""
    first, last = pieces[0].segment, pieces[-1].segment
    segment = replace(
        first,
        end=last.end,
        text="".join(piece.segment.text for piece in pieces),
        tokens=sum(piece.segment.tokens for piece in pieces),
    )
    return replace(pieces[0], segment=segment)


# MemWalker: the model walks down a tree of summaries to the text, and back up.
#
# Leaves have about 1,000 tokens, nodes at most eight children. The model chooses a child by its
# summary. On the way back a parent leaves out the children that did not help. The summaries on the
# path are the working memory.


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


# ReadAgent: pages with gists; the model looks some pages up in full and answers.
#
# The model ends each page between 280 and 600 words. The gists of all pages are the memory. A page
# that the model looks up replaces its gist.


LEAST_WORDS, MOST_WORDS = 280, 600
REST_WORDS = 350
"""A remaining text with fewer words is one page."""
PAGE_REPLY = 256


@dataclass(frozen=True, slots=True)
class GistPage:
    """A page and its gist, both as passages of the document."""

    full: Passage
    gist: str


async def read_pages(caller: Caller, passages: Sequence[Passage], window: int) -> list[GistPage]:
    """Divide a document into pages and summarise each page to its gist.

    Args:
        caller: calls the model.
        passages: sentences or paragraphs of one document, in order.
        window: L in tokens.
    """
    pages = []
    for page in await _paginated(caller, passages, window):
        pages.append(GistPage(page, await _gist(caller, page, window)))
    return pages


async def _paginated(caller: Caller, passages: Sequence[Passage], window: int) -> list[Passage]:
    pages: list[Passage] = []
    passages_left = list(passages)
    while passages_left:
        count = await _page_end(caller, passages_left, window)
        pages.append(joined(passages_left[:count]))
        passages_left = passages_left[count:]
    return pages


async def _page_end(caller: Caller, left: Sequence[Passage], window: int) -> int:
    """Return the number of pieces of the next page."""
    words, offered = 0, []
    for n, piece in enumerate(left, 1):
        words += len(piece.segment.text.split())
        if words > MOST_WORDS and n > 1:
            break
        if words >= LEAST_WORDS:
            offered.append(n)
    else:
        if words < REST_WORDS or not offered:
            return len(left)
    if len(offered) < 2:
        return offered[0] if offered else max(1, n - 1)
    marked_lines = _mark(left[: offered[-1]], offered)
    reply = min(PAGE_REPLY, window // 4)
    page_break = await ask_about(
        caller, "page-break", PageBreakReply, marked_lines, window=window, reply=reply
    )
    is_offered = page_break is not None and 0 <= page_break.label < len(offered)
    return offered[page_break.label] if page_break is not None and is_offered else offered[-1]


def _mark(pieces: Sequence[Passage], offered: Sequence[int]) -> list[str]:
    lines = []
    for n, piece in enumerate(pieces, 1):
        lines.append(piece.segment.text.strip())
        if n in offered:
            lines.append(f"⟨{offered.index(n)}⟩")
    return lines


async def _gist(caller: Caller, page: Passage, window: int) -> str:
    """Return a page's gist; if the model gives none, the page itself."""
    lines = [line for line in page.segment.text.split("\n") if line.strip()]
    reply = min(2 * PAGE_REPLY, window // 4)
    gist = await ask_about(caller, "gist", GistReply, lines, window=window, reply=reply)
    return page.segment.text if gist is None else gist.gist.strip()


@dataclass(frozen=True, slots=True)
class PageReader:
    """The dependencies of one question.

    Attributes:
        most: maximum number of pages to look up, all at once or one at a time.
    """

    pages: Sequence[GistPage]
    caller: Caller
    reasoner: Reasoner
    context: AskContext
    is_sequential: bool
    most: int

    def shown(self, looked_up: Sequence[int]) -> list[Passage]:
        """Return all pages in order: the text of pages that were looked up, the gist of others."""
        return [page.full if n in looked_up else gist_of(page) for n, page in enumerate(self.pages)]


def gist_of(page: GistPage) -> Passage:
    """Return the gist of a page as a passage."""
    segment: Segment = replace(page.full.segment, id=f"{page.full.segment.id}*", text=page.gist)
    return replace(page.full, segment=segment)


async def answer_by_pages(run: PageReader, *, is_forced: bool) -> tuple[Verdict, list[Step]]:
    """Look pages up and answer; return the verdict and the steps.

    Pages are looked up one at a time until the model wants no more, or all at once in one round.
    """
    looked_up: list[int] = []
    steps: list[Step] = []
    for _ in range(run.most if run.is_sequential else 1):
        pages_found = await _look_up(run, looked_up)
        if pages_found is None:
            break
        pages, reason = pages_found
        steps.append(step_of(len(steps) + 1, "look-up", reason, _segments(run, pages)))
        looked_up += pages
        if not pages:
            break
    verdict = await run.reasoner.judge(run.context, _fitting(run, looked_up), force=is_forced)
    steps.append(step_of(len(steps) + 1, "read", verdict.reason, _segments(run, looked_up)))
    return verdict, steps


async def _look_up(run: PageReader, known: Sequence[int]) -> tuple[list[int], str] | None:
    """Return the pages to read in full, as far as they fit, and why; `None` if no reply parses."""
    count = 1 if run.is_sequential else run.most
    views = [
        fenced(passage.segment.text.strip(), f"page {n}")
        for n, passage in enumerate(run.shown(known))
    ]
    try:
        call = await run.caller.call(
            "look-up",
            LookUpReply,
            lambda kept: dict(
                pages="\n".join(kept[0]),
                count=count,
                question=shown(run.context.question, run.context.choices),
            ),
            [views],
            window=run.context.window,
            reply=min(PAGE_REPLY, run.context.window // 4),
        )
    except ModelOutputError:
        return None
    pages = [n for n in dict.fromkeys(call.value.pages) if 0 <= n < len(run.pages)]
    new = [n for n in pages if n not in known][:count]
    fitting = [n for n in new if _fits(run, [*known, *new[: new.index(n) + 1]])]
    return fitting, call.value.reasoning


def _fitting(run: PageReader, looked_up: Sequence[int]) -> list[Passage]:
    """Return the pages that fit the window, labelled."""
    labelled = [replace(p, label=f"S{n}") for n, p in enumerate(run.shown(looked_up), 1)]
    room, pages_kept = run.reasoner.room(run.context), []
    for passage in labelled:
        room -= run.reasoner.size(passage)
        if room >= 0:
            pages_kept.append(passage)
    return pages_kept


def _fits(run: PageReader, looked_up: Sequence[int]) -> bool:
    return sum(map(run.reasoner.size, run.shown(looked_up))) <= run.reasoner.room(run.context)


def _segments(run: PageReader, pages: Sequence[int]) -> list[Segment]:
    return [run.pages[n].full.segment for n in pages]
