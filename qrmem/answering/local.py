"""The reasoner that needs no model: rules for reading, the closest passages for answering."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from qrmem.answering import choosing, passages
from qrmem.answering.evidence import Evidence
from qrmem.answering.query import content, names_in, query
from qrmem.errors import WindowTooSmall
from qrmem.extraction.extractive_summary import summary
from qrmem.extraction.named_sentences import read_with
from qrmem.extraction.rule_relations import statements
from qrmem.types import (
    AskContext,
    Contribution,
    Folded,
    Passage,
    Reading,
    Segment,
    Tokenizer,
    Verdict,
)

VERSION = "local.v4"
"""Recorded with every segment; changes when the rules read a segment differently."""

PROMPT = 105
"""Tokens of the instructions that would stand around question and passages in a chat prompt."""

MOST_NEW, MOST_KEPT, WORDS_ADDED = 3, 2, 12
"""Entities that one revision takes up and keeps; words that an elaborated query adds."""

_SEAM = 2
"""Tokens that joining two texts can add at most in the counters in use."""
_WORD = re.compile(r"[^\W\d_]{4,}")


class LocalReasoner:
    """A `Reasoner` without a chat model: synchronous, deterministic, free.

    It composes nothing: an answer is excerpts of the passages, or a given option. It reads nothing
    through a window; keeping to one makes its trails comparable with those of a model.
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
            check: asked before each segment and each verdict; raises where the run is to stop.
        """
        self._tokenizer = tokenizer
        self._check = check
        self._reserve = reserve

    # --- reading ---------------------------------------------------------------------------------

    async def summarise(self, title: str, segments: Sequence[Segment]) -> str:
        """Return the document's most central sentences, in order, at most 300 tokens."""
        return summary(title, segments, self._tokenizer.count)

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """Return names, and the sentences in which they meet; questions take a model."""
        self._check()
        seen = read_with(segment.text, reading.tagged, reading.speaker)
        return Contribution(
            segment.id, "extraction", mentions=seen.mentions, statements=statements(seen)
        )

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Return nothing beyond the first pass: the questions are a model's."""
        return Contribution(segment.id, "supplement", asked=tuple(questions))

    async def fold(
        self,
        relations: tuple[str, str],
        texts: tuple[str, str],
        *,
        summary: str = "",
        question: str = "",
    ) -> Folded:
        """Return nothing: both relations then stand side by side."""
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
        left = context.window - frame - self._reserve
        if left <= 0:
            raise WindowTooSmall(
                f"the window of {context.window} tokens is too small: question, options and prompt "
                f"take {frame}, and {self._reserve} are kept for the reply; "
                "shorten the question, or give a larger window"
            )
        return left

    def size(self, passage: Passage) -> int:
        """Return the tokens that a passage takes with its label and title."""
        head = f"[{passage.label}] {passage.title}\n"
        return self._tokenizer.count(head) + self._tokenizer.count(passage.segment.text) + _SEAM

    async def judge(
        self, context: AskContext, passages_read: Sequence[Passage], *, force: bool = False
    ) -> Verdict:
        """Return the closest passages, or an option; else what is missing of the question."""
        self._check()
        tokens = self._frame(context) + sum(map(self.size, passages_read))
        judge = choosing.choose if context.choices else passages.judge
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
        """Return the candidates that the question's open words and best sentences point at."""
        asked = query(context.question)
        evidence = Evidence(asked, passages)
        open_terms = {term for term in asked.words if not evidence.spread[term]}
        wanted = asked.terms | {term for choice in context.choices for term in content(choice)}
        held = {name.casefold() for name in current}
        best = [(clue.line.text.casefold(), clue.coverage) for clue in evidence.ranked()[:20]]
        scored = []
        for at, (name, count) in enumerate(candidates):
            own, folded = frozenset(content(name)), name.casefold()
            score = 3.0 * len(own & open_terms) + len(own & wanted)
            score += sum(coverage for text, coverage in best if folded in text)
            if score and folded not in held:
                scored.append((-round(score, 6) / (1 + 0.02 * count), at, name))
        new = [name for _, _, name in sorted(scored)[:MOST_NEW]]
        if not new:
            return tuple(current)
        known = {name for name, _ in candidates}
        kept = [n for n in current if n in known and not asked.terms.isdisjoint(content(n))]
        return tuple(dict.fromkeys([*new, *kept[:MOST_KEPT]]))

    async def elaborate(
        self, context: AskContext, entities: Sequence[str], relations: Sequence[str]
    ) -> str:
        """Return the entities and the relations' most frequent words that the question lacks."""
        known = query(context.question).terms | {t for name in entities for t in content(name)}
        words: Counter[str] = Counter()
        spelled: dict[str, str] = {}
        for relation in relations:
            for word in dict.fromkeys(_WORD.findall(relation)):
                for term in content(word):
                    if term not in known:
                        words[term] += 1
                        spelled.setdefault(term, word.casefold())
        extra = [spelled[term] for term, _ in words.most_common(WORDS_ADDED)]
        return " ".join([*dict.fromkeys(entities), *extra]) or context.question

    def _frame(self, context: AskContext) -> int:
        """Return the tokens of all but passages and reserve."""
        options = [f"({n}) {choice}\n" for n, choice in enumerate(context.choices, 1)]
        parts = [context.question, *options]
        return PROMPT + sum(self._tokenizer.count(part) + _SEAM for part in parts if part)
