"""The short-answer step with no model: the span of an answer that the question asks for."""

import re

from qrmem.language.local.query import query
from qrmem.language.rules import tagged
from qrmem.text.words import terms

_CLOSED = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE
)
_NO = re.compile(r"\b(?:no|not|never|neither|nor|none)\b", re.IGNORECASE)


def best_span(question: str, answer: str) -> str:
    """Return the name, date or number of an answer that fits the question best.

    A question for yes or no gets one of the two; an answer with no name in it stays whole.
    """
    asked = query(question)
    if _CLOSED.match(question.strip()):
        return "no" if _NO.search(answer) else "yes"
    known = set(terms(question))
    best: tuple[int, int, str] | None = None
    for place, mention in enumerate(tagged(answer).mentions):
        own = set(terms(mention.name))
        if not own or own <= known:
            continue
        fits = (mention.type == asked.kind) if asked.kind else mention.type not in _FIGURES
        rank = (int(not fits), place, mention.name)
        best = min(best, rank) if best else rank
    return best[2] if best else answer


_FIGURES = {"DATE", "NUMBER"}
