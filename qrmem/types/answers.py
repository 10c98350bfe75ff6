"""Results of searches and questions, and the trails of runs."""

from dataclasses import dataclass
from html import escape
from typing import Literal

from qrmem.types.shown import Short, quoted, table
from qrmem.types.usage import Usage

Status = Literal["answered", "passages", "forced", "unanswerable"]


@dataclass(frozen=True, slots=True, repr=False)
class Hit(Short):
    """A ranked segment.

    Attributes:
        score: higher is better; comparable within one search only.
        via: how the search reached it, in words.
        over: ids of the segments that led to it; `via` quotes them.
        excerpt: the part of the text that matches the question best, cut at sentences or lines.
        matches: spans of the question's words in the excerpt.
        boilerplate: `contents`, `heading`, `index`, `licence` or `title page` if it is no more than
            that; such segments come last.
        ended: its statements that are no longer true, as text, each with its replacement or end,
            or that it was deleted by hand.
    """

    document_id: str
    title: str
    segment_id: str
    text: str
    score: float
    via: str
    part: str = ""
    over: tuple[str, ...] = ()
    excerpt: str = ""
    matches: tuple[tuple[int, int], ...] = ()
    boilerplate: str = ""
    ended: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        text_shown = self.excerpt or self.text
        score = f"{self.score:.3f}"
        place = (self.title or self.document_id, self.part, score, self.via, *self.ended)
        return quoted(text_shown, self.matches if self.excerpt else (), *place)


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of a reply that a chat model is still writing.

    Attributes:
        field: `reasoning` or `answer`; "" when a reply begins, or begins again after a failure.
        text: the next characters. They are not the answer before the run has ended.
    """

    field: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Citation(Short):
    """The place of a quotation: `quote == document.text[start:end]`.

    Attributes:
        whole: no quote could be located, so the whole segment is cited.
        matches: spans of the question's words in the quote.
    """

    document_id: str
    segment_id: str
    start: int
    end: int
    quote: str
    title: str = ""
    part: str = ""
    whole: bool = False
    matches: tuple[tuple[int, int], ...] = ()

    def _repr_html_(self) -> str:
        where = f"characters {self.start}-{self.end}"
        return quoted(self.quote, self.matches, self.title or self.document_id, self.part, where)


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge that a strategy compared at a step."""

    relation: str
    head: str
    tail: str
    description: str
    score: float
    taken: bool = False


@dataclass(frozen=True, slots=True)
class ScoredSegment:
    """A segment that a step read or dropped, with the score that decided it.

    Attributes:
        via: how the search reached it, in words; only in the first step.
        over: ids of the segments that `via` quotes.
    """

    segment_id: str
    score: float
    tokens: int
    via: str = ""
    over: tuple[str, ...] = ()


NodeKind = Literal["segment", "summary", "surprise", "sentence"]


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A text that a search of a tree found.

    Attributes:
        key: key of its node in the tree; id of the segment for a raw text.
        level: 0 for a raw text.
        segments: ids of the raw segments below it.
        end: with `start`, the span of a sentence in its document; 0 if it is not a sentence.
    """

    key: str
    kind: NodeKind
    level: int
    score: float
    segments: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Step(Short):
    """One step of a trail.

    Attributes:
        n: from 1.
        action: `start`, `read`, `expand`, `revise`, `elaborate`, `force` or `orient`.
        entities: names of the entities reached so far.
        edges: frontier edges with their scores, best first (at most 20 are kept).
        read: segments in the window, in the order in which they were read.
        dropped: segments that were found and did not fit the window.
        verdict: `answerable`, `unanswerable`, `passages` (the closest ones were taken, without a
            chat model) or "" without a verdict.
        reason: the reasoner's words.
        tokens: prompt tokens counted before the call; 0 without a call.
        seconds: wall time of the step in seconds.
        query: the text that edges were compared with: the question, and with `reflection` the last
            reason and the entities, [Q;R;E]; or the query to a tree.
        brought: segments of the new node, with their scores.
        nodes: found texts of a tree, best first (at most 20, but all in the last round).
        memory: notes of this round; it began with those of the previous step.
        likeness: similarity of these notes to those of the previous step, in [0, 1].
    """

    n: int
    action: str
    entities: tuple[str, ...] = ()
    edges: tuple[ScoredEdge, ...] = ()
    read: tuple[ScoredSegment, ...] = ()
    dropped: tuple[ScoredSegment, ...] = ()
    verdict: str = ""
    reason: str = ""
    tokens: int = 0
    seconds: float = 0.0
    query: str = ""
    brought: tuple[ScoredSegment, ...] = ()
    nodes: tuple[ScoredNode, ...] = ()
    memory: str = ""
    likeness: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Trail(Short):
    """A recorded run: the question, each step, the answer.

    Attributes:
        user: the user whose documents the run was limited to (`where={"user": …}`); "": no limit.
    """

    id: str
    question: str
    strategy: str
    window: int
    status: Status
    answer: str
    steps: tuple[Step, ...]
    usage: Usage
    citations: tuple[Citation, ...] = ()
    choices: tuple[str, ...] = ()
    reasoner: str = ""
    created: str = ""
    user: str = ""

    def _repr_html_(self) -> str:
        steps = "".join(
            f"<li>{escape(step.action)}: {len(step.read)} segments read, {len(step.dropped)} "
            f"dropped {escape(step.verdict)}<br><small>{escape(', '.join(step.entities[:10]))}"
            f"</small><br>{escape(step.reason)}</li>"
            for step in self.steps
        )
        rows = (
            ("question", self.question),
            ("strategy", f"{self.strategy}, window {self.window}"),
            ("answered by", self.reasoner),
            (self.status, self.answer),
            ("calls", self.usage.calls),
        )
        return f"{table(rows, f'trail {self.id}')}<ol>{steps}</ol>"


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Short):
    """An answer with its citations and its trail.

    Attributes:
        text: the answer; for choices the chosen option's text; without a chat model the closest
            passages; "" when unanswerable.
        status: `answered`, `passages` (no chat model is set), `forced` (the trials were used up, or
            an option was chosen without a chat model) or `unanswerable`.
        choice: index of the chosen option, or `None`.
        reason: the reasoner's words for the verdict.
    """

    text: str
    status: Status
    citations: tuple[Citation, ...]
    trail: Trail
    usage: Usage
    choice: int | None = None
    reason: str = ""

    def _repr_html_(self) -> str:
        answer_text = self.text or "The text does not answer this."
        head = "" if self.status == "passages" else f"<p><b>{escape(answer_text)}</b></p>"
        why = f"<p>{escape(self.reason)}</p>" if self.reason else ""
        cited = "".join(citation._repr_html_() for citation in self.citations)
        steps = f"{len(self.trail.steps)} steps, {self.usage.calls} calls"
        trail = f"<details><summary>{steps}</summary>{self.trail._repr_html_()}</details>"
        return f"<div><p><i>{escape(self.status)}</i></p>{head}{why}{cited}{trail}</div>"
