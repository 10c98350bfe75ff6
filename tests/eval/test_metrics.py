"""Every metric against the values of the official scripts for the same pairs."""

import json
from pathlib import Path
from typing import Any

import pytest

from qrmem.eval import metrics

OFFICIAL = json.loads((Path(__file__).parent / "data" / "official_scores.json").read_text())
CLOSE = pytest.approx


@pytest.mark.parametrize("pair", OFFICIAL["answers"], ids=lambda pair: repr(pair["prediction"]))
def test_answers_score_as_in_the_official_scripts(pair: dict[str, Any]) -> None:
    prediction, gold = pair["prediction"], [pair["answer"]]
    assert metrics.strict_em(prediction, gold) == pair["em"]
    assert metrics.token_f1(prediction, gold, rule="hotpotqa") == CLOSE(pair["hotpotqa_f1"])
    assert metrics.token_f1(prediction, gold, rule="musique") == CLOSE(pair["musique_f1"])
    assert metrics.token_f1(prediction, gold, rule="longbench") == CLOSE(pair["longbench_f1"])
    if prediction.isascii() or pair["answer"].isascii():
        assert metrics.rouge_l(prediction, gold) == CLOSE(pair["rouge_l"])


@pytest.mark.parametrize("pair", OFFICIAL["aliases"], ids=lambda pair: pair["prediction"])
def test_the_best_of_several_answers_counts(pair: dict[str, Any]) -> None:
    assert metrics.strict_em(pair["prediction"], pair["answers"]) == pair["em"]
    assert metrics.token_f1(pair["prediction"], pair["answers"]) == CLOSE(pair["f1"])


@pytest.mark.parametrize("pair", OFFICIAL["support"], ids=str)
def test_supporting_facts_score_as_in_hotpotqa(pair: dict[str, Any]) -> None:
    found, gold = [[(title, n) for title, n in pair[side]] for side in ("found", "gold")]
    assert metrics.support_f1(found, gold) == CLOSE(pair["f1"])


@pytest.mark.parametrize("pair", OFFICIAL["code"], ids=lambda pair: repr(pair["prediction"]))
def test_code_scores_as_in_repoeval(pair: dict[str, Any]) -> None:
    assert metrics.code_em(pair["prediction"], [pair["target"]]) == pair["em"]
    assert metrics.edit_similarity(pair["prediction"], [pair["target"]]) == CLOSE(pair["es"])


@pytest.mark.parametrize(
    ("prediction", "gold", "covers"),
    [
        ("He was born in Vantry in 1770.", "Vantry", 1),
        ("He was born in Vantryville.", "Vantry", 0),
        ("", "Vantry", 0),
        ("anything", "the", 0),
        ("It is the Grey Sow.", "a grey sow", 1),
    ],
)
def test_covering_needs_whole_words(prediction: str, gold: str, covers: int) -> None:
    assert metrics.cover_em(prediction, [gold]) == covers


def test_recall_counts_documents_once() -> None:
    ranked = ["a", "a", "b", "c", "d"]
    assert metrics.recall_at(ranked, ["b", "d"], 2) == 0.5
    assert metrics.recall_at(ranked, ["b", "d"], 4) == 1
    assert metrics.all_gold_at(ranked, ["b", "d"], 3) == 0
    assert metrics.recall_at([], ["b"], 5) == 0


def test_no_choice_is_wrong() -> None:
    assert [metrics.choice_accuracy(choice, 2) for choice in (2, 1, None)] == [1, 0, 0]
