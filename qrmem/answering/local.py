"""The reasoner that needs no model: rules for reading, the closest passages for answering."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from qrmem.answering import excerpts
from qrmem.answering.evidence import Clue, Evidence, content, names_in, query
from qrmem.errors import WindowTooSmall
from qrmem.extraction.sentence_reading import read_with, statements, summary
from qrmem.types import (
    AskContext,
    Contribution,
    Folded,
    Passage,
    Quote,
    Reading,
    Segment,
    Tokenizer,
    Verdict,
)

# Choosing among given options: rules choose only what a sentence states. An option that restates
# the text in other words takes a model; see docs/adr/0027-no-rules-for-a-model-s-steps.md.

STATED = 0.25
"""Coverage of question and option by one sentence, multiplied, from which an option is stated."""

CLEAR = 2.0
"""How many times the support of every other option the chosen one has."""

NOT_CLEAR = "no option stands out, and choosing one needs a chat model"
_EXCEPTION = re.compile(r"\bNOT\b|\bEXCEPT\b|\bexcept(?: for)?\b[^?]{0,12}\?")
_SHARPNESS = 3
_SENTENCES = 3
"""Number of sentences that count for an option."""


def choose(
    context: AskContext, passages: Sequence[Passage], *, force: bool, tokens: int
) -> Verdict:
    """Return the option that the text clearly states.

    Without such an option, and for a question that asks for an exception, the verdict is the
    closest passages if an answer is forced, and no answer otherwise.
    """
    evidence = Evidence(query(context.question), passages)
    supports = _supports(context.choices, evidence)
    order = sorted(range(len(supports)), key=lambda i: (-round(supports[i][0], 9), i))
    value, clue, stated = supports[order[0]]
    is_clear = stated >= STATED and all(value >= CLEAR * supports[n][0] for n in order[1:])
    if clue is not None and is_clear and not _EXCEPTION.search(context.question):
        answer = context.choices[order[0]]
        reason = f"what supports this option best: {' '.join(clue.line.text.split())}"
        quotes = (Quote(clue.passage.label, clue.line.text),)
        # It counts as forced, because rules do not understand the text.
        return Verdict(True, answer, order[0], reason, quotes, tokens, status="forced")
    if not force:
        return Verdict(False, reason=NOT_CLEAR, tokens=tokens)
    closest = excerpts.judge(context, passages, force=True, tokens=tokens)
    return replace(closest, reason=f"{closest.reason}; {NOT_CLEAR}")


def _supports(choices: Sequence[str], evidence: Evidence) -> list[tuple[float, Clue | None, float]]:
    """Return for each option its support, the sentence that covers most of it, and how much."""
    option_terms = [frozenset(content(choice)) for choice in choices]
    return [_support(terms - evidence.asked.terms or terms, evidence) for terms in option_terms]


def _support(own: frozenset[str], evidence: Evidence) -> tuple[float, Clue | None, float]:
    weights = {term: evidence.rarity(term) for term in own}
    total = sum(weights.values()) or 1.0
    values: list[float] = []
    best_coverage, telling = 0.0, None
    for clue in evidence.clues:
        share = sum(weights[term] for term in own & clue.line.terms) / total
        values.append(share * clue.coverage**_SHARPNESS)
        if share * clue.coverage > best_coverage:
            best_coverage, telling = share * clue.coverage, clue
    return sum(sorted(values)[-_SENTENCES:]) * total**0.5, telling, best_coverage


VERSION = "local.v4"
"""Recorded with every segment; changes when the rules read a segment differently."""

PROMPT = 105
"""Tokens of the instructions around question and passages in a chat prompt."""

_SEAM = 2
"""Maximum number of tokens that joining two texts adds in the counters in use."""


class LocalReasoner:
    """A `Reasoner` without a chat model: synchronous, deterministic, free.

    It composes nothing: an answer is excerpts of the passages, or an option that one of them
    states. It needs no window; it keeps to one so that its trails are comparable with those of a
    model.
    """

    name = VERSION
    is_local = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        reserve: int = 512,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a reasoner.

        Args:
            reserve: tokens of the window that a model's reply would take.
            check: called before each segment and each verdict; raises to stop the run.
        """
        self._tokenizer = tokenizer
        self._check = check
        self._reserve = reserve

    # --- reading ---------------------------------------------------------------------------------

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return the document's most central sentences, in order, at most 300 tokens."""
        return summary(title, segments, self._tokenizer.count)

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """Return names, and the sentences that contain two of them; questions need a model."""
        self._check()
        reading_by_rules = read_with(segment.text, reading.tagged, reading.speaker)
        return Contribution(
            segment.id,
            "extraction",
            mentions=reading_by_rules.mentions,
            statements=statements(reading_by_rules),
        )

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Return nothing beyond the first pass: questions need a model."""
        return Contribution(segment.id, "supplement", asked=tuple(questions))

    async def fold(
        self,
        relations: tuple[str, str],
        texts: tuple[str, str],
        *,
        summary: str = "",
        question: str = "",
    ) -> Folded:
        """Return nothing, so that both relations are kept."""
        return Folded()

    # --- answering -------------------------------------------------------------------------------

    async def query_entities(self, context: AskContext) -> Sequence[str]:
        """Return the names and quoted strings of the question, then of its options."""
        return names_in([context.question, *context.choices])

    def room(self, context: AskContext) -> int:
        """Return the tokens left for passages.

        Raises:
            WindowTooSmall: nothing would be left.
        """
        frame = self._frame(context)
        tokens_left = context.window - frame - self._reserve
        if tokens_left <= 0:
            raise WindowTooSmall(
                f"the window of {context.window} tokens is too small: question, options and prompt "
                f"take {frame}, and {self._reserve} are kept for the reply; "
                "shorten the question, or give a larger window"
            )
        return tokens_left

    def size(self, passage: Passage) -> int:
        """Return the tokens that a passage takes with its label and title."""
        head = f"[{passage.label}] {passage.title}\n"
        return self._tokenizer.count(head) + self._tokenizer.count(passage.segment.text) + _SEAM

    async def judge(
        self, context: AskContext, passages_read: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Return the closest passages, or an option; else the missing words of the question."""
        self._check()
        tokens = self._frame(context) + sum(map(self.size, passages_read))
        judge = choose if context.choices else excerpts.judge
        return judge(context, passages_read, force=force, tokens=tokens)

    async def revise(
        self,
        context: AskContext,
        *,
        current: Sequence[str],
        candidates: Sequence[tuple[str, int]],
        reason: str,
        passages: Sequence[Passage],
    ) -> Sequence[str]:
        """Return the entities unchanged: only a model can choose others.

        Rules that chose them read worse than the search they moved away from: see
        docs/adr/0027-no-rules-for-a-model-s-steps.md.
        """
        return tuple(current)

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Return the question unchanged: only a model can reword it."""
        return context.question

    def _frame(self, context: AskContext) -> int:
        """Return the tokens of a prompt without passages and reserve."""
        options = [f"({n}) {choice}\n" for n, choice in enumerate(context.choices, 1)]
        parts = [context.question, *options]
        return PROMPT + sum(self._tokenizer.count(part) + _SEAM for part in parts if part)
