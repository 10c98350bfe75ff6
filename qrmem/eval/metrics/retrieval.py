"""Which of the documents, and of the sentences, that hold the answer were found (S07)."""

from collections.abc import Collection, Sequence


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold documents among the first k; a document counts once."""
    return len(set(list(dict.fromkeys(ranked))[:k]) & set(gold)) / len(set(gold))


def all_gold_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if every gold document is among the first k, else 0."""
    return float(set(gold) <= set(list(dict.fromkeys(ranked))[:k]))


def support_f1(found: Collection[tuple[str, int]], gold: Collection[tuple[str, int]]) -> float:
    """Return F1 of supporting sentences, as HotpotQA scores them: 0 if either side is empty."""
    ours, theirs = set(found), set(gold)
    if not ours or not theirs:
        return 0.0
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))
