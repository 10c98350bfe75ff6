"""Choosing among given options: the one that the text around the question's words supports best.

Options come in two kinds. A short one ("the Grey Sow") stands in the text as it is, so the
sentence that answers the question decides. A long one restates the text in other words, which lie
spread over many sentences, so all that was read decides, the nearer to the question the more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qrmem.answering.evidence import Clue, Evidence
from qrmem.answering.query import content, query
from qrmem.types import AskContext, Passage, Quote, Verdict

ENOUGH = 0.25
"""Coverage of question and option by one sentence, multiplied, from which an option is stated."""

LONG = 5
"""Content words from which an option is a restatement rather than a span of the text."""

_EXCEPTION = re.compile(r"\bNOT\b|\bEXCEPT\b|\bexcept(?: for)?\b[^?]{0,12}\?")
_SHARPNESS = 3
_SPAN_SENTENCES, _STATEMENT_SENTENCES = 3, 10
_FLOOR = 0.5
"""What a sentence counts for a long option if it holds none of the question's words."""


@dataclass(frozen=True, slots=True)
class Support:
    """What speaks for an option.

    Attributes:
        value: what options are ranked by.
        clue: the sentence that says most of it, `None` if none says any.
        stated: coverage of question and option by that sentence, multiplied, in [0, 1].
    """

    value: float
    clue: Clue | None
    stated: float


def choose(
    context: AskContext, passages: Sequence[Passage], *, force: bool, tokens: int
) -> Verdict:
    """Return the best supported option; without enough support, what is missing.

    Where an answer is forced and no option has any support, the first is a guess, and said to be.
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
        return _chosen(context, best, reason, (), tokens)
    if support.clue is None or not (force or support.stated >= ENOUGH):
        return Verdict(False, reason=_doubt(context, evidence, best, support), tokens=tokens)
    reason = f"what supports this option best: {' '.join(support.clue.line.text.split())}"
    return _chosen(context, best, reason, (support.clue,), tokens)


def _exception(context: AskContext, supports: Sequence[Support], best: int, tokens: int) -> Verdict:
    """The option that least speaks for, where the question asks for the exception."""
    others = [s.clue for i, s in enumerate(supports) if i != best and s.clue]
    reason = "the question asks for the exception, and this option has the least support"
    return _chosen(context, best, reason, others, tokens)


def _chosen(
    context: AskContext, best: int, reason: str, clues: Sequence[Clue], tokens: int
) -> Verdict:
    """Return a choice: always a forced one, as nobody who understands the text has made it."""
    quotes = dict.fromkeys(Quote(clue.passage.label, clue.line.text) for clue in clues)
    answer = context.choices[best]
    return Verdict(True, answer, best, reason, tuple(quotes), tokens, status="forced")


def _supports(choices: Sequence[str], evidence: Evidence) -> list[Support]:
    own = [frozenset(content(choice)) for choice in choices]
    beyond = [terms - evidence.asked.terms or terms for terms in own]
    is_long = sorted(map(len, own))[len(own) // 2] >= LONG
    return [_support(terms, evidence, is_long=is_long) for terms in beyond]


def _support(own: frozenset[str], evidence: Evidence, *, is_long: bool) -> Support:
    weights = {term: evidence.rarity(term) for term in own}
    total = sum(weights.values()) or 1.0
    values: list[float] = []
    stated, telling = -1.0, None
    for clue in evidence.clues:
        held = sum(weights[term] for term in own & clue.line.terms) / total
        if not held:
            continue
        near = _FLOOR + clue.coverage if is_long else clue.coverage
        values.append(held * near ** (1 if is_long else _SHARPNESS))
        if held * clue.coverage > stated:
            stated, telling = held * clue.coverage, clue
    counted = sorted(values, reverse=True)[: _STATEMENT_SENTENCES if is_long else _SPAN_SENTENCES]
    return Support(sum(counted) * total**0.5, telling, max(stated, 0.0))


def _doubt(context: AskContext, evidence: Evidence, best: int, support: Support) -> str:
    missing = ", ".join(f"'{word}'" for word in dict.fromkeys(evidence.missing()))
    lacks = f"nothing read so far mentions {missing}; " if missing else ""
    if support.clue is None:
        return f"{lacks}no option's words are in what was read"
    return f"{lacks}no option is stated; the nearest is '{context.choices[best]}'"
