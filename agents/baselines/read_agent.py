"""ReadAgent, a baseline: pages with a gist each; some are read again in full, then answered.

    look_up -> (look_up: sequential, until nothing more is wanted | answer)

A page ends where the model says, between 280 and 600 words. The gists of all pages together are the
memory. A page that is looked up stands in full in the place of its gist.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.errors import ModelOutputError
from qrmem.llm.prompting import Caller
from qrmem.prompts import fenced
from qrmem.prompts.replies import GistReply, LookUpReply, PageBreakReply
from qrmem.types import AskContext, Passage, Reasoner, ScoredSegment, Segment, Step, Verdict

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

LEAST_WORDS, MOST_WORDS = 280, 600
REST_WORDS = 350
"""A rest of fewer words is one page."""
REPLY = 256


@dataclass(frozen=True, slots=True)
class Page:
    """A page and its gist, as passages of the same document."""

    full: Passage
    gist: str


async def read_pages(caller: Caller, passages: Sequence[Passage], window: int) -> list[Page]:
    """Divide a document into pages and take the gist of each.

    Args:
        passages: sentences or paragraphs of one document, in order.
    """
    pages = []
    for page in await _paginated(caller, passages, window):
        pages.append(Page(page, await _gist(caller, page, window)))
    return pages


async def _paginated(caller: Caller, passages: Sequence[Passage], window: int) -> list[Passage]:
    pages: list[Passage] = []
    left = list(passages)
    while left:
        count = await _page_end(caller, left, window)
        pages.append(_joined(left[:count]))
        left = left[count:]
    return pages


async def _page_end(caller: Caller, left: Sequence[Passage], window: int) -> int:
    """Return how many pieces the next page has."""
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
    marked = _marked(left[: offered[-1]], offered)
    try:
        called = await caller.call(
            "page-break",
            PageBreakReply,
            lambda kept: dict(text=fenced("\n".join(kept[0]))),
            [marked],
            window=window,
            reply=min(REPLY, window // 4),
        )
    except ModelOutputError:
        return offered[-1]
    label = called.value.label
    return offered[label] if 0 <= label < len(offered) else offered[-1]


def _marked(pieces: Sequence[Passage], offered: Sequence[int]) -> list[str]:
    lines = []
    for n, piece in enumerate(pieces, 1):
        lines.append(piece.segment.text.strip())
        if n in offered:
            lines.append(f"⟨{offered.index(n)}⟩")
    return lines


def _joined(pieces: Sequence[Passage]) -> Passage:
    first, last = pieces[0].segment, pieces[-1].segment
    segment = replace(
        first,
        end=last.end,
        text="".join(piece.segment.text for piece in pieces),
        tokens=sum(piece.segment.tokens for piece in pieces),
    )
    return replace(pieces[0], segment=segment)


async def _gist(caller: Caller, page: Passage, window: int) -> str:
    """Return a page's gist; where the model gives none, the page itself."""
    lines = [line for line in page.segment.text.split("\n") if line.strip()]
    try:
        called = await caller.call(
            "gist",
            GistReply,
            lambda kept: dict(text=fenced("\n".join(kept[0]))),
            [lines],
            window=window,
            reply=min(2 * REPLY, window // 4),
        )
    except ModelOutputError:
        return page.segment.text
    return called.value.gist.strip()


class ReadingState(TypedDict, total=False):
    """Which pages were looked up, and whether more are wanted."""

    looked_up: list[int]
    is_enough: bool


@dataclass(slots=True)
class Reading:
    """The context of one question.

    Attributes:
        most: pages that are looked up at most: all at once, or one at a time.
    """

    pages: Sequence[Page]
    caller: Caller
    reasoner: Reasoner
    context: AskContext
    is_sequential: bool
    most: int
    is_forced: bool
    answer: Verdict = field(default_factory=lambda: Verdict(is_answerable=False))
    looked_up: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def shown(self, looked_up: Sequence[int]) -> list[Passage]:
        """Return all pages in order: those looked up in full, the others by their gist."""
        return [page.full if n in looked_up else gist_of(page) for n, page in enumerate(self.pages)]


def gist_of(page: Page) -> Passage:
    """Return a page's gist as something to read."""
    segment: Segment = replace(page.full.segment, id=f"{page.full.segment.id}*", text=page.gist)
    return replace(page.full, segment=segment)


async def answer_by_pages(run: Reading) -> None:
    """Look pages up and answer; `run` holds the answer and the steps afterwards."""
    state: ReadingState = {"looked_up": []}
    await build_graph().ainvoke(state, context=run, config={"recursion_limit": run.most + 8})


def build_graph() -> "CompiledStateGraph[ReadingState, Reading, ReadingState, ReadingState]":
    """Return the machine, freshly wired."""
    graph = StateGraph(ReadingState, context_schema=Reading)
    graph.add_node("look_up", look_up)
    graph.add_node("answer", answer)
    graph.add_edge(START, "look_up")
    graph.add_conditional_edges("look_up", after_looking_up, ["look_up", "answer"])
    graph.add_edge("answer", END)
    return graph.compile()


async def look_up(state: ReadingState, runtime: Runtime[Reading]) -> ReadingState:
    """Ask which pages are wanted in full; those that would not fit any more are left out."""
    from qrmem.answering.options import shown

    run = runtime.context
    known = state["looked_up"]
    count = 1 if run.is_sequential else run.most
    views = [
        fenced(passage.segment.text.strip(), f"page {n}")
        for n, passage in enumerate(run.shown(known))
    ]
    try:
        called = await run.caller.call(
            "look-up",
            LookUpReply,
            lambda kept: dict(
                pages="\n".join(kept[0]),
                count=count,
                question=shown(run.context.question, run.context.choices),
            ),
            [views],
            window=run.context.window,
            reply=min(REPLY, run.context.window // 4),
        )
    except ModelOutputError:
        return {"is_enough": True}
    wanted = [n for n in dict.fromkeys(called.value.pages) if 0 <= n < len(run.pages)]
    new = [n for n in wanted if n not in known][:count]
    fitting = [n for n in new if _fits(run, [*known, *new[: new.index(n) + 1]])]
    run.steps.append(_step(run, "look-up", fitting, called.value.reasoning))
    return {"looked_up": [*known, *fitting], "is_enough": not fitting}


async def answer(state: ReadingState, runtime: Runtime[Reading]) -> ReadingState:
    """Answer from the gists and the pages looked up."""
    run = runtime.context
    run.looked_up = state["looked_up"]
    shown = [replace(p, label=f"S{n}") for n, p in enumerate(run.shown(run.looked_up), 1)]
    room, kept = run.reasoner.room(run.context), []
    for passage in shown:
        room -= run.reasoner.size(passage)
        if room >= 0:
            kept.append(passage)
    run.answer = await run.reasoner.judge(run.context, kept, force=run.is_forced)
    run.steps.append(_step(run, "read", run.looked_up, run.answer.reason))
    return {}


def after_looking_up(
    state: ReadingState, runtime: Runtime[Reading]
) -> Literal["look_up", "answer"]:
    """Go on page by page, until nothing more is wanted; in parallel there is one round."""
    run = runtime.context
    is_full = len(state["looked_up"]) >= run.most
    return "answer" if state["is_enough"] or is_full or not run.is_sequential else "look_up"


def _fits(run: Reading, looked_up: Sequence[int]) -> bool:
    return sum(map(run.reasoner.size, run.shown(looked_up))) <= run.reasoner.room(run.context)


def _step(run: Reading, action: str, pages: Sequence[int], reason: str) -> Step:
    read = [run.pages[n].full.segment for n in pages]
    shown = tuple(ScoredSegment(segment.id, 0.0, segment.tokens) for segment in read)
    return Step(len(run.steps) + 1, action, read=shown, reason=reason)
