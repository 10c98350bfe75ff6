"""ROUGE-L and edit similarity (S07)."""

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq, Levenshtein

from qrmem.text.words import tokens


def rouge_l(prediction: str, answers: Sequence[str]) -> float:
    """Return the best F-measure of the longest common subsequence of words over the answers."""
    ours = tokens(prediction)
    return max((_rouge(ours, tokens(answer)) for answer in answers), default=0.0)


def _rouge(ours: Sequence[str], theirs: Sequence[str]) -> float:
    if not ours or not theirs:
        return 0.0
    return 2 * LCSseq.similarity(ours, theirs) / (len(ours) + len(theirs))


def code_lines(code: str, count: int | None = None) -> list[str]:
    """Return a code's first `count` lines that hold anything, stripped (RepoCoder's rule)."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    return lines if count is None else lines[:count]


def edit_similarity(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 - Levenshtein / longer length, over as many lines as the answer has (RepoEval)."""
    return max((_edit(prediction, answer) for answer in answers), default=0.0)


def code_em(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the lines are the answer's, the prediction cut to as many, else 0 (RepoEval)."""
    wanted = (code_lines(answer) for answer in answers)
    return float(any(code_lines(prediction, len(lines)) == lines for lines in wanted))


def _edit(prediction: str, answer: str) -> float:
    lines = code_lines(answer)
    ours = "\n".join(code_lines(prediction, len(lines)))
    return Levenshtein.normalized_similarity(ours, "\n".join(lines))
