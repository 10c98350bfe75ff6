"""How alike two texts are in their words and the order of these: ROUGE-L."""

from collections.abc import Hashable, Sequence

from rapidfuzz.distance import LCSseq

THRESHOLD = 0.6
"""From which on two questions are one; chosen in the paper, section 2.1, footnote 2."""


def rouge_l(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Return the F-measure of ROUGE-L, as `rouge_score` computes it without a stemmer.

    Args:
        first: tokens; see `qrmem.text.words.tokens`.
        second: tokens.

    Returns:
        In [0, 1]; 0 if one of them is empty.
    """
    if not first or not second:
        return 0.0
    return fmeasure(LCSseq.similarity(first, second), len(first), len(second))


def fmeasure(common: int, first: int, second: int) -> float:
    """Return the F-measure of two lengths and what is common to both."""
    # The same steps in floating point as the official scorer: at exactly 0.6 they decide.
    precision, recall = common / first, common / second
    return 2 * precision * recall / (precision + recall) if common else 0.0
