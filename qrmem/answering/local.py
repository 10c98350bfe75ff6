"""The reasoner that needs no model: rules for reading, the closest passages for answering."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qrmem.answering import excerpts
from qrmem.answering.evidence import Clue, Evidence
from qrmem.answering.query import content, names_in, query
from qrmem.errors import WindowTooSmall
from qrmem.extraction.extractive_summary import read_with, summary
from qrmem.extraction.rule_relations import statements
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

# Choice among given options: the text near the question's words supports one of them best.
#
# Options come in two kinds. A short one ("the Grey Sow") stands in the text as it is, so the
# sentence that answers the question decides. A long one restates the text in other words, which lie
# spread over many sentences, so all that was read decides, the nearer to the question the more.

ENOUGH = 0.25
"""Coverage of question and option by one sentence, multiplied, from which an option is stated."""

LONG = 5
"""Minimum number of content words of an option that restates the text; shorter ones are spans."""

_EXCEPTION = re.compile(r"\bNOT\b|\bEXCEPT\b|\bexcept(?: for)?\b[^?]{0,12}\?")
_SHARPNESS = 3
_SPAN_SENTENCES, _STATEMENT_SENTENCES = 3, 10
_FLOOR = 0.5
"""Weight of a sentence without the question's words for a long option."""


@dataclass(frozen=True, slots=True)
class Support:
    """The evidence for an option.

    Attributes:
        value: score that ranks options.
        clue: the sentence that covers most of it, `None` if none covers any.
        stated: product of that sentence's coverages of question and option, in [0, 1].
    """

    value: float
    clue: Clue | None
    stated: float


def choose(
    context: AskContext, passages: Sequence[Passage], *, force: bool, tokens: int
) -> Verdict:
    """Return the best supported option; without enough support, what is missing.

    If an answer is forced and no option has support, the first one is a guess, marked as such.
    """
    evidence = Evidence(query(context.question), passages)
    supports = _supports(context.choices, evidence)
    sign = -1 if _EXCEPTION.search(context.question) else 1
    best = max(range(len(supports)), key=lambda i: (sign * round(supports[i].value, 9), -i))
    support = supports[best]
    if sign < 0 and any(s.clue for s in supports):
        return _exception(context, supports, best, tokens)
    if force and support.clue is None:
        reason = f"a guess: {_doubt(context, evidence, best, support)}"
        return _choice(context, best, reason, (), tokens)
    if support.clue is None or not (force or support.stated >= ENOUGH):
        return Verdict(False, reason=_doubt(context, evidence, best, support), tokens=tokens)
    reason = f"what supports this option best: {' '.join(support.clue.line.text.split())}"
    return _choice(context, best, reason, (support.clue,), tokens)


def _exception(context: AskContext, supports: Sequence[Support], best: int, tokens: int) -> Verdict:
    """Return the option with the least support, for a question that asks for the exception."""
    others = [s.clue for i, s in enumerate(supports) if i != best and s.clue]
    reason = "the question asks for the exception, and this option has the least support"
    return _choice(context, best, reason, others, tokens)


def _choice(
    context: AskContext, best: int, reason: str, clues: Sequence[Clue], tokens: int
) -> Verdict:
    """Return a choice; it always counts as forced, because rules do not understand the text."""
    quotes = dict.fromkeys(Quote(clue.passage.label, clue.line.text) for clue in clues)
    answer = context.choices[best]
    return Verdict(True, answer, best, reason, tuple(quotes), tokens, status="forced")


def _supports(choices: Sequence[str], evidence: Evidence) -> list[Support]:
    option_terms = [frozenset(content(choice)) for choice in choices]
    beyond = [terms - evidence.asked.terms or terms for terms in option_terms]
    is_long = sorted(map(len, option_terms))[len(option_terms) // 2] >= LONG
    return [_support(terms, evidence, is_long=is_long) for terms in beyond]


def _support(own: frozenset[str], evidence: Evidence, *, is_long: bool) -> Support:
    weights = {term: evidence.rarity(term) for term in own}
    total = sum(weights.values()) or 1.0
    values: list[float] = []
    best_coverage, telling = -1.0, None
    for clue in evidence.clues:
        share = sum(weights[term] for term in own & clue.line.terms) / total
        if not share:
            continue
        weight = _FLOOR + clue.coverage if is_long else clue.coverage
        values.append(share * weight ** (1 if is_long else _SHARPNESS))
        if share * clue.coverage > best_coverage:
            best_coverage, telling = share * clue.coverage, clue
    counted = sorted(values, reverse=True)[: _STATEMENT_SENTENCES if is_long else _SPAN_SENTENCES]
    return Support(sum(counted) * total**0.5, telling, max(best_coverage, 0.0))


def _doubt(context: AskContext, evidence: Evidence, best: int, support: Support) -> str:
    missing = ", ".join(f"'{word}'" for word in dict.fromkeys(evidence.missing()))
    lacks = f"nothing read so far mentions {missing}; " if missing else ""
    if support.clue is None:
        return f"{lacks}no option's words are in what was read"
    return f"{lacks}no option is stated; the nearest is '{context.choices[best]}'"


VERSION = "local.v4"
"""Recorded with every segment; changes when the rules read a segment differently."""

PROMPT = 105
"""Tokens of the instructions around question and passages in a chat prompt."""

_SEAM = 2
"""Maximum number of tokens that joining two texts adds in the counters in use."""


class LocalReasoner:
    """A `Reasoner` without a chat model: synchronous, deterministic, free.

    It composes nothing: an answer is excerpts of the passages, or a given option. It needs no
    window; it keeps to one so that its trails are comparable with those of a model.
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
