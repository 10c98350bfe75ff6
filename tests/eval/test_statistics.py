"""Intervals and tests: known cases, the same numbers every time, refusals."""

import numpy as np
import pytest

from qrmem.errors import UsageError
from qrmem.eval.sampling import require_same_sample
from qrmem.eval.statistics import difference, mean


def scores(values: list[float]) -> dict[str, float]:
    return {f"q{n}": value for n, value in enumerate(values)}


def test_the_interval_of_a_mean_is_that_of_theory() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.2, 400)
    found = mean(list(values))
    assert found is not None
    half = 1.96 * values.std(ddof=1) / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.003)
    assert found.high == pytest.approx(values.mean() + half, abs=0.003)
    assert found == mean(list(values)), "the draws are seeded"


def test_nothing_scored_has_no_mean() -> None:
    assert mean([]) is None
    assert difference({"a": 1.0}, {"b": 1.0}) is None


def test_a_constant_gap_is_certain_and_an_empty_one_has_no_interval() -> None:
    ours, theirs = scores([0.6] * 30), scores([0.5] * 30)
    found = difference(ours, theirs)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert found.p < 0.001
    same = difference(ours, ours)
    assert same is not None
    assert (same.value, same.p) == (0, 1)


def test_the_sign_flip_test_is_exact_where_it_can_be_counted() -> None:
    found = difference(scores([1, 1, 1, 1, 1, 1]), scores([0] * 6))
    assert found is not None
    assert found.p == pytest.approx(2 / 2**6, abs=0.006)


def test_items_that_one_side_lacks_are_left_out_of_both() -> None:
    found = difference({"a": 1.0, "b": 0.0}, {"b": 0.0, "c": 1.0})
    assert found is not None
    assert (found.n, found.value) == (1, 0)


def test_runs_over_different_items_are_not_compared() -> None:
    require_same_sample({"one": ["a", "b"], "two": ["b", "a"]})
    with pytest.raises(UsageError, match="only one has 'c'"):
        require_same_sample({"one": ["a", "b"], "two": ["a", "b", "c"]})
