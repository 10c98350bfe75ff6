"""Ada-LEval's scorers against 200 outputs, whose values were written down before the scorers."""

import json
from pathlib import Path
from typing import Any

import pytest

from qrmem.eval.datasets import adaleval

OUTPUTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "ada_leval_outputs.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def test_there_are_200_different_outputs() -> None:
    assert len({json.dumps(one, sort_keys=True) for one in OUTPUTS}) == 200


@pytest.mark.parametrize("one", OUTPUTS, ids=lambda one: f"{one['task']} {one['output'][:30]!r}")
def test_an_output_is_parsed_by_the_form_that_was_asked_for(one: dict[str, Any]) -> None:
    output = one["output"]
    if one["task"] == "bestanswer":
        n = one["n"]
        assert adaleval.official_answer(output, n) == one["official"]
        assert adaleval.strict_answer(output, n) == one["strict"]
        assert adaleval.names_answer(output, n) == one["follows"]
        return
    wanted = None if one["official"] == "raises" else one["official"]
    n = len(one["gold"])
    assert adaleval.official_is_right(output, one["gold"]) == wanted
    assert adaleval.strict_order(output, n) == one["strict"]
    assert adaleval.holds_order(output, n) == one["follows"]


@pytest.mark.parametrize(("n", "order"), [(2, [2, 1]), (4, [4, 1, 3, 2]), (5, [5, 1, 4, 2, 3])])
def test_the_sample_order(n: int, order: list[int]) -> None:
    assert adaleval.sample_order(n) == order
