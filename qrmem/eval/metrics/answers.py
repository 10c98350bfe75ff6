"""Comparing an answer with the gold ones: exact, covering, by shared words (S07)."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})

Rule = Literal["hotpotqa", "musique", "longbench"]


def normalised(text: str) -> str:
    """Lower the case, drop ASCII punctuation and articles, keep one space (SQuAD's rule)."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def strict_em(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction is one of the answers after normalising, else 0."""
    return float(any(normalised(prediction) == normalised(answer) for answer in answers))


def cover_em(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction holds one of the answers as whole words, else 0.

    QRMeM's Table 1 must be this: its EM is above its F1 in half of the cells, which the strict one
    cannot be (SPEC 1.3, item 1).
    """
    padded = f" {normalised(prediction)} "
    return float(any(f" {normalised(a)} " in padded for a in answers if normalised(a)))


def token_f1(prediction: str, answers: Sequence[str], *, rule: Rule = "musique") -> float:
    """Return the best F1 of shared words over the answers.

    Args:
        rule: whose script: HotpotQA's, 2Wiki's too, lets only equality count where either side is
            yes, no or "noanswer"; MuSiQue's, as SQuAD's, gives 1 where both sides are empty, the
            others 0.
    """
    return max((_f1(normalised(prediction), normalised(a), rule) for a in answers), default=0.0)


def _f1(prediction: str, answer: str, rule: Rule) -> float:
    is_closed = prediction in _CLOSED or answer in _CLOSED
    if rule == "hotpotqa" and is_closed and prediction != answer:
        return 0.0
    ours, theirs = prediction.split(), answer.split()
    if not ours or not theirs:
        return float(ours == theirs and rule == "musique")
    shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs))


def choice_accuracy(choice: int | None, right: int) -> float:
    """Return 1 for the right option; none chosen, or a reply that names none, is wrong."""
    return float(choice == right)
