"""The reasoner that needs no model: rules for reading, quotation for answering."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from qrmem.answering import steering
from qrmem.answering.query import names_in
from qrmem.answering.window import Window
from qrmem.extraction import rule_questions as asking
from qrmem.extraction.extractive_summary import summary
from qrmem.extraction.named_sentences import read_with
from qrmem.extraction.rule_relations import statements
from qrmem.extraction.rule_supplement import supplement
from qrmem.types import (
    AskContext,
    Contribution,
    Fact,
    Passage,
    Reading,
    Segment,
    Tokenizer,
    Verdict,
)

VERSION = "local.v1"
"""Recorded with every segment; changes when the rules read a segment differently."""


class LocalReasoner:
    """A `Reasoner` without a chat model: synchronous, deterministic, free.

    It never invents a word: an answer is one or two sentences of the passages, or a given option.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        questions_per_600: int = 5,
        reserve: int = 512,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a reasoner.

        Args:
            check: asked before each segment and each verdict; raises where the run is to stop.
        """
        self._tokenizer = tokenizer
        self._check = check
        self._questions_per_600 = questions_per_600
        self._window = Window(tokenizer, reserve)

    @property
    def name(self) -> str:
        """`local.v1`."""
        return VERSION

    @property
    def is_local(self) -> bool:
        """Always: it works without a chat model."""
        return True

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return the document's most central sentences, in order, at most 300 tokens."""
        return summary(title, segments, self._tokenizer.count)

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """Return names, the sentences in which they meet, and questions made from sentences.

        With the user's question in `reading`, what that question adds is in as well.
        """
        self._check()
        seen = read_with(segment.text, reading.tagged)
        first = Contribution(
            segment.id,
            "extraction",
            mentions=seen.mentions,
            statements=statements(seen),
            questions=asking.questions(seen, self._asked_of(segment)),
        )
        if not reading.question:
            return first
        mentions, more = supplement(segment, seen, first, [reading.question])
        return replace(
            first,
            mentions=(*first.mentions, *mentions),
            statements=(*first.statements, *more),
        )

    def _asked_of(self, segment: Segment) -> int:
        if not self._questions_per_600:
            return 0
        return max(1, round(self._questions_per_600 * segment.tokens / 600))

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Return what the sentences that answer the questions hold beyond the first pass."""
        self._check()
        mentions, more = supplement(
            segment, read_with(segment.text, reading.tagged), known, questions
        )
        return Contribution(
            segment.id, "supplement", mentions=mentions, statements=more, asked=tuple(questions)
        )

    async def fold(
        self, first: Fact, second: Fact, summary: str, *, texts: tuple[str, str] = ("", "")
    ) -> str:
        """Return both descriptions, or the longer one where it holds the other."""
        a, b = first.description, second.description
        if b in a:
            return a
        return b if a in b else f"{a} {b}"

    async def query_entities(self, context: AskContext) -> Sequence[str]:
        """Return the names and quoted strings of the question, then of its options."""
        return names_in([context.question, *context.choices])

    def room(self, context: AskContext, *, extra: str = "") -> int:
        """Return the tokens left for passages.

        Raises:
            WindowTooSmall: nothing would be left.
        """
        return self._window.room(context, extra)

    def size(self, passage: Passage) -> int:
        """Return the tokens that a passage takes with its label and title."""
        return self._window.size(passage)

    async def judge(
        self, context: AskContext, passages: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Answer by quoting, or say which of the question's words are missing."""
        from qrmem.answering import judging  # who only reads needs no NumPy

        self._check()
        tokens = self._window.frame(context) + sum(map(self._window.size, passages))
        return judging.judge(context, passages, force=force, tokens=tokens)

    async def revise(
        self,
        context: AskContext,
        *,
        current: Sequence[str],
        candidates: Sequence[tuple[str, int]],
        reason: str,
        passages: Sequence[Passage],
    ) -> Sequence[str]:
        """Return the candidates that the question's open words and best sentences point at."""
        return steering.revise(
            context, current=current, candidates=candidates, reason=reason, passages=passages
        )

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Return the entities and the relations' key words, to stand beside the question."""
        return steering.elaborate(context, entities, relations)
