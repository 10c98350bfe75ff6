"""From a result to its scores: which metrics an item can have, and what each is."""

from collections.abc import Callable, Mapping

from qrmem.eval.metrics import answers, overlap, retrieval
from qrmem.eval.metrics.answers import Rule
from qrmem.eval.records import Item, Row

Score = Callable[[Item, Row], float | None]
"""`None`: the item cannot be scored by it, which is not zero."""

AT = (1, 2, 5, 10)


def scores(item: Item, row: Row, rule: Rule) -> dict[str, float]:
    """Return all scores that this result can have.

    Args:
        rule: whose F1.
    """
    if row.error:
        return {}
    return {
        **_answer_scores(item, row, rule),
        **_found_scores(item, row),
        **_support_scores(item, row),
    }


def _answer_scores(item: Item, row: Row, rule: Rule) -> dict[str, float]:
    if row.found.is_ranking:
        return {}
    if item.choices and item.choice is not None:
        return {"accuracy": answers.choice_accuracy(row.found.choice, item.choice)}
    if not item.answers or not item.is_answerable:
        return {}
    if "repository" in item.labels:
        return _code_scores(row.found.text, item.answers)
    return {
        **_text_scores(row.short, item.answers, rule),
        **{f"raw_{n}": v for n, v in _text_scores(row.found.text, item.answers, rule).items()},
    }


def _text_scores(text: str, gold: tuple[str, ...], rule: Rule) -> dict[str, float]:
    return {
        "em": answers.strict_em(text, gold),
        "cover_em": answers.cover_em(text, gold),
        "f1": answers.token_f1(text, gold, rule=rule),
        "rouge_l": overlap.rouge_l(text, gold),
    }


def _code_scores(text: str, gold: tuple[str, ...]) -> dict[str, float]:
    return {
        "code_em": overlap.code_em(text, gold),
        "edit_similarity": overlap.edit_similarity(text, gold),
    }


def _found_scores(item: Item, row: Row) -> dict[str, float]:
    if not item.gold or not row.found.memory:
        return {}  # a system that searches no memory ranks nothing
    ranked = row.found.ranked
    found = {f"recall@{k}": retrieval.recall_at(ranked, item.gold, k) for k in AT}
    return found | {f"all@{k}": retrieval.all_gold_at(ranked, item.gold, k) for k in AT[1:]}


def _support_scores(item: Item, row: Row) -> dict[str, float]:
    if not item.facts or not row.found.memory or not row.found.steps:
        return {}  # no sentences are given, or nothing that could quote any was read
    return {"support_f1": retrieval.support_f1(row.found.cited, item.facts)}


def abstention(pairs: Mapping[str, tuple[Item, Row]]) -> dict[str, float]:
    """Return how often each status came, and how often it was the wrong one.

    `false_abstention`: of the items whose context holds the answer, the share that was refused;
    `false_acceptance`: of the others, the share that was answered, forced answers not counted.
    What only ranked neither answered nor refused.
    """
    rows = [(i, row) for i, row in pairs.values() if not row.error and not row.found.is_ranking]
    shares = {
        status: _share([row.found.status == status for _, row in rows])
        for status in ("answered", "forced", "unanswerable")
    }
    refused = [row.found.status == "unanswerable" for item, row in rows if item.is_answerable]
    accepted = [row.found.status == "answered" for item, row in rows if not item.is_answerable]
    wrong = {"false_abstention": _share(refused), "false_acceptance": _share(accepted)}
    return {name: value for name, value in (shares | wrong).items() if value is not None}


def _share(flags: list[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
