"""Metrics, each a function of an item and its result, in agreement with the official scripts."""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from rapidfuzz.distance import LCSseq, Levenshtein

from qrmem.eval.items import Item, Row, Rule
from qrmem.eval.registry import METRICS, metric
from qrmem.text.words import tokens

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalised(text: str) -> str:
    """Lower-case a text, without ASCII punctuation, articles and repeated spaces (SQuAD's rule)."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def strict_em(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction equals an answer after normalisation, else 0."""
    return float(any(normalised(prediction) == normalised(answer) for answer in answers))


def cover_em(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction contains an answer as whole words, else 0.

    QRMeM's Table 1 must use this metric: its EM is above its F1 in half of the cells, which is
    impossible for the strict one.
    """
    padded = f" {normalised(prediction)} "
    return float(any(f" {normalised(a)} " in padded for a in answers if normalised(a)))


def token_f1(prediction: str, answers: Sequence[str], *, rule: Rule = "musique") -> float:
    """Return the best F1 of shared words over the answers.

    Args:
        prediction: the answer to score.
        answers: the reference answers.
        rule: the script. HotpotQA's and 2Wiki's count only equality if either side is yes, no or
            "noanswer". MuSiQue's and SQuAD's give 1 if both sides are empty, the others 0.
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
    """Return 1 for the right option, else 0; no option, or a reply that names none, is wrong."""
    return float(choice == right)


def rouge_l(prediction: str, answers: Sequence[str]) -> float:
    """Return the best F-measure of the longest common subsequence of words over the answers."""
    ours = tokens(prediction)
    return max((_rouge(ours, tokens(answer)) for answer in answers), default=0.0)


def _rouge(ours: Sequence[str], theirs: Sequence[str]) -> float:
    if not ours or not theirs:
        return 0.0
    return 2 * LCSseq.similarity(ours, theirs) / (len(ours) + len(theirs))


def code_lines(code: str, count: int | None = None) -> list[str]:
    """Return the first `count` non-empty lines of a code, stripped (RepoCoder's rule)."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    return lines if count is None else lines[:count]


def edit_similarity(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 - Levenshtein distance / longer length, over the answer's lines (RepoEval)."""
    return max((_edit(prediction, answer) for answer in answers), default=0.0)


def code_em(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if the answer's lines equal the prediction's first ones, else 0 (RepoEval)."""
    answer_lines = (code_lines(answer) for answer in answers)
    return float(any(code_lines(prediction, len(lines)) == lines for lines in answer_lines))


def _edit(prediction: str, answer: str) -> float:
    lines = code_lines(answer)
    ours = "\n".join(code_lines(prediction, len(lines)))
    return Levenshtein.normalized_similarity(ours, "\n".join(lines))


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold documents in the first k; repeated documents count once."""
    return len(set(list(dict.fromkeys(ranked))[:k]) & set(gold)) / len(set(gold))


def all_gold_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return 1 if every gold document is in the first k, else 0."""
    return float(set(gold) <= set(list(dict.fromkeys(ranked))[:k]))


def support_f1(found: Collection[tuple[str, int]], gold: Collection[tuple[str, int]]) -> float:
    """Return HotpotQA's F1 of supporting sentences: 0 if either side is empty."""
    ours, theirs = set(found), set(gold)
    if not ours or not theirs:
        return 0.0
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


# --- scores of one result ------------------------------------------------------------------------

AT = (1, 2, 5, 10)
Text = Callable[[str, Sequence[str], Rule], float]

_TEXT: Mapping[str, Text] = {
    "em": lambda text, gold, rule: strict_em(text, gold),
    "cover_em": lambda text, gold, rule: cover_em(text, gold),
    "f1": lambda text, gold, rule: token_f1(text, gold, rule=rule),
    "rouge_l": lambda text, gold, rule: rouge_l(text, gold),
}
_CODE: Mapping[str, Text] = {
    "code_em": lambda text, gold, rule: code_em(text, gold),
    "edit_similarity": lambda text, gold, rule: edit_similarity(text, gold),
}


def scores(item: Item, row: Row, rule: Rule) -> dict[str, float]:
    """Return all scores of a result.

    Args:
        item: the item.
        row: its result.
        rule: the script that defines F1.
    """
    if row.error:
        return {}
    score_pairs = ((name, score(item, row, rule)) for name, score in METRICS.items())
    return {name: value for name, value in score_pairs if value is not None}


@metric("accuracy")
def _accuracy(item: Item, row: Row, rule: Rule) -> float | None:
    if row.prediction.is_ranking or not item.choices or item.choice is None:
        return None
    return choice_accuracy(row.prediction.choice, item.choice)


def _has_text(item: Item, row: Row) -> bool:
    """Return whether there is an answer in words, and a reference answer."""
    is_chosen = bool(item.choices) and item.choice is not None
    is_comparable = bool(item.answers) and item.is_answerable
    return is_comparable and not is_chosen and not row.prediction.is_ranking


def _of_text(
    compare: Text, *, is_raw: bool, is_code: bool
) -> Callable[[Item, Row, Rule], float | None]:
    def score(item: Item, row: Row, rule: Rule) -> float | None:
        if not _has_text(item, row) or ("repository" in item.labels) != is_code:
            return None
        return compare(row.prediction.text if is_raw else row.short, item.answers, rule)

    return score


def _of_ranking(
    share: Callable[[Sequence[str], Collection[str], int], float], k: int
) -> Callable[[Item, Row, Rule], float | None]:
    def score(item: Item, row: Row, rule: Rule) -> float | None:
        if not item.gold or not row.prediction.memory:
            return None  # a system without a search ranks nothing
        return share(row.prediction.ranked, item.gold, k)

    return score


for _name, _compare in _TEXT.items():
    metric(_name)(_of_text(_compare, is_raw=False, is_code=False))
for _name, _compare in _TEXT.items():
    metric(f"raw_{_name}")(_of_text(_compare, is_raw=True, is_code=False))
for _name, _compare in _CODE.items():
    metric(_name)(_of_text(_compare, is_raw=True, is_code=True))
for _name, _share_at, _depths in (("recall", recall_at, AT), ("all", all_gold_at, AT[1:])):
    for _k in _depths:
        metric(f"{_name}@{_k}")(_of_ranking(_share_at, _k))


@metric("evidence")
def _evidence(item: Item, row: Row, rule: Rule) -> float | None:
    """Return the share of the gold turns among all that a system recalls within its budget."""
    if not item.gold or not row.system.startswith("recall"):
        return None
    return len(set(row.prediction.ranked) & set(item.gold)) / len(set(item.gold))


@metric("support_f1")
def _support(item: Item, row: Row, rule: Rule) -> float | None:
    if not item.facts or not row.prediction.memory or not row.prediction.steps:
        return None  # there are no sentences, or the reading could quote none
    return support_f1(row.prediction.cited, item.facts)


def abstention(pairs: Mapping[str, tuple[Item, Row]]) -> dict[str, float]:
    """Return the share of each status, and the rates of wrong abstention and acceptance.

    `false_abstention`: share of abstentions over the items whose context has the answer.
    `false_acceptance`: share of answers over the other items, without forced answers.
    A ranking counts as neither.
    """
    rows = [
        (i, row) for i, row in pairs.values() if not row.error and not row.prediction.is_ranking
    ]
    shares = {
        status: _share([row.prediction.status == status for _, row in rows])
        for status in ("answered", "passages", "forced", "unanswerable")
    }
    refused = [row.prediction.status == "unanswerable" for item, row in rows if item.is_answerable]
    accepted = [
        row.prediction.status in ("answered", "passages")
        for item, row in rows
        if not item.is_answerable
    ]
    wrong = {"false_abstention": _share(refused), "false_acceptance": _share(accepted)}
    return {name: value for name, value in (shares | wrong).items() if value is not None}


def _share(flags: list[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
