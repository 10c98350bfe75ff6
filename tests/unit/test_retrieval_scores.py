"""BM25 against numbers worked out by hand or by a plain loop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graphstore.protocol import Vocabulary
from qrmem.retrieval import scoring


def bm25(texts: list[list[str]], query: dict[str, float]) -> list[float]:
    frequencies = {term: n for term in query if (n := sum(term in text for text in texts))}
    known = Vocabulary(len(texts), sum(map(len, texts)), frequencies)
    weights = scoring.weighted(query, known)
    counts = scoring.saturated(texts, list(weights), known.mean_length)
    scores: list[float] = (counts @ np.array(list(weights.values()))).tolist()
    return scores


def test_a_rare_word_in_a_short_text_scores_as_the_formula_says() -> None:
    texts = [["whale", "whale", "a", "b"], ["a"] * 8, ["b"] * 12]
    expected_idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = expected_idf * 2 * 2.5 / (2 + 1.5 * (1 - 0.75 + 0.75 * 4 / 8))
    assert bm25(texts, {"whale": 1.0}) == pytest.approx([expected, 0, 0])


def test_a_word_asked_twice_counts_twice() -> None:
    once, twice = (bm25([["whale", "a"], ["a"]], {"whale": n}) for n in (1.0, 2.0))
    assert twice[0] == pytest.approx(2 * once[0])


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), min_size=1, max_size=8),
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True),
)
def test_bm25_agrees_with_a_plain_loop(texts: list[list[str]], query: list[str]) -> None:
    mean = sum(map(len, texts)) / len(texts)
    for text, score in zip(texts, bm25(texts, dict.fromkeys(query, 1.0)), strict=True):
        expected = 0.0
        for term in query:
            df = sum(term in other for other in texts)
            rarity = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            tf = text.count(term)
            expected += rarity * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * len(text) / mean))
        assert score == pytest.approx(expected, abs=1e-12)


def test_no_text_and_no_term_give_nothing() -> None:
    assert scoring.saturated([], ["a"], 1.0).shape == (0, 1)
    assert scoring.saturated([["a"]], [], 1.0).shape == (1, 0)


def test_normalised_scores_end_at_one_and_never_go_below_zero() -> None:
    assert scoring.normalised(np.array([-1.0, 2.0, 4.0])).tolist() == [0, 0.5, 1]
    assert scoring.normalised(np.zeros(3)).tolist() == [0, 0, 0]
    assert scoring.normalised(np.array([-3.0])).tolist() == [0]
