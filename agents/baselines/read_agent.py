"""ReadAgent, a baseline: pages with gists; the model looks some pages up in full and answers.

The model ends each page between 280 and 600 words. The gists of all pages are the memory. A page
that the model looks up replaces its gist.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.agents.baselines import ask_about, joined, step_of
from qrmem.answering.multiple_choice import shown
from qrmem.errors import ModelOutputError
from qrmem.llm.prompting import Caller
from qrmem.prompts import fenced
from qrmem.prompts.replies import GistReply, LookUpReply, PageBreakReply
from qrmem.types import AskContext, Passage, Reasoner, Segment, Step, Verdict

LEAST_WORDS, MOST_WORDS = 280, 600
REST_WORDS = 350
"""A remaining text with fewer words is one page."""
REPLY = 256


@dataclass(frozen=True, slots=True)
class Page:
    """A page and its gist, both as passages of the document."""

    full: Passage
    gist: str


async def read_pages(caller: Caller, passages: Sequence[Passage], window: int) -> list[Page]:
    """Divide a document into pages and summarise each page to its gist.

    Args:
        caller: calls the model.
        passages: sentences or paragraphs of one document, in order.
        window: L in tokens.
    """
    pages = []
    for page in await _paginated(caller, passages, window):
        pages.append(Page(page, await _gist(caller, page, window)))
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
    reply = min(REPLY, window // 4)
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
    reply = min(2 * REPLY, window // 4)
    gist = await ask_about(caller, "gist", GistReply, lines, window=window, reply=reply)
    return page.segment.text if gist is None else gist.gist.strip()


@dataclass(frozen=True, slots=True)
class PageReader:
    """The dependencies of one question.

    Attributes:
        most: maximum number of pages to look up, all at once or one at a time.
    """

    pages: Sequence[Page]
    caller: Caller
    reasoner: Reasoner
    context: AskContext
    is_sequential: bool
    most: int

    def shown(self, looked_up: Sequence[int]) -> list[Passage]:
        """Return all pages in order: the text of pages that were looked up, the gist of others."""
        return [page.full if n in looked_up else gist_of(page) for n, page in enumerate(self.pages)]


def gist_of(page: Page) -> Passage:
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
            reply=min(REPLY, run.context.window // 4),
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
