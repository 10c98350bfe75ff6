"""BM25, cosine over windows and fusion, against numbers worked out by hand or by plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graphstore.protocol import Catalog, Postings
from qrmem.retrieval import bm25, dense, fusion


def catalog(numbers: list[int]) -> Catalog:
    size = len(numbers)
    return Catalog(
        revision=1,
        numbers=np.array(numbers, dtype=np.int64),
        segment_ids=[f"s{n}" for n in numbers],
        document_ids=["d"] * size,
        indexes=np.arange(size),
        lengths=np.ones(size, dtype=np.int64),
    )


def postings(**found: int) -> Postings:
    numbers = sorted(int(name[1:]) for name in found)
    return Postings(
        numbers=np.array(numbers, dtype=np.int64),
        counts=np.array([found[f"n{n}"] for n in numbers], dtype=np.int64),
    )


def test_ordinals_with_gaps_become_rows_and_unknown_ones_are_left_out() -> None:
    found = bm25.occurrences(catalog([3, 7, 9]), {"whale": postings(n7=2, n8=5, n9=1, n40=1)})
    assert found["whale"].rows.tolist() == [1, 2]
    assert found["whale"].counts.tolist() == [2, 1]


def test_postings_of_an_empty_catalog_have_no_rows() -> None:
    assert bm25.occurrences(catalog([]), {"whale": postings(n1=1)})["whale"].rows.size == 0


def test_a_rare_word_in_a_short_text_scores_as_the_formula_says() -> None:
    lengths = np.array([4, 8, 12])
    found = bm25.occurrences(catalog([0, 1, 2]), {"whale": postings(n0=2)})
    weighted = bm25.weights({"whale": 1.0}, found, 3)
    expected_idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = expected_idf * 2 * 2.5 / (2 + 1.5 * (1 - 0.75 + 0.75 * 4 / 8))
    assert bm25.scores(weighted, found, bm25.norms(lengths)).tolist() == pytest.approx(
        [expected, 0, 0]
    )


def test_a_word_asked_twice_counts_twice() -> None:
    found = bm25.occurrences(catalog([0, 1]), {"whale": postings(n0=1)})
    once, twice = (
        bm25.scores(bm25.weights({"whale": n}, found, 2), found, bm25.norms(np.array([5, 5])))
        for n in (1.0, 2.0)
    )
    assert twice[0] == pytest.approx(2 * once[0])


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), min_size=1, max_size=8),
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True),
)
def test_bm25_agrees_with_a_plain_loop(texts: list[list[str]], query: list[str]) -> None:
    lengths = np.array([len(text) for text in texts])
    found = {
        term: bm25.Occurrences(
            np.array(rows, dtype=np.int64),
            np.array([texts[row].count(term) for row in rows], dtype=np.int64),
        )
        for term in query
        if (rows := [row for row, text in enumerate(texts) if term in text])
    }
    weighted = bm25.weights(dict.fromkeys(query, 1.0), found, len(texts))
    mean = sum(map(len, texts)) / len(texts)
    for text, score in zip(texts, bm25.scores(weighted, found, bm25.norms(lengths)), strict=True):
        expected = 0.0
        for term in query:
            df = sum(term in other for other in texts)
            rarity = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            tf = text.count(term)
            expected += rarity * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * len(text) / mean))
        assert score == pytest.approx(expected, abs=1e-12)


def test_a_segments_cosine_is_the_best_of_its_windows() -> None:
    matrix = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    scores = dense.cosines(matrix, np.array([0, 0, 2]), np.array([0, 1], dtype=np.float32), 3)
    assert scores.tolist() == pytest.approx([1, 0, 0.8])


def test_a_memory_without_vectors_has_no_cosines() -> None:
    empty = np.zeros((0, 4), dtype=np.float32)
    scores = dense.cosines(empty, np.zeros(0, dtype=np.int64), np.ones(4, dtype=np.float32), 2)
    assert scores.tolist() == [0, 0]


def test_normalised_scores_end_at_one_and_never_go_below_zero() -> None:
    assert fusion.normalised(np.array([-1.0, 2.0, 4.0])).tolist() == [0, 0.5, 1]
    assert fusion.normalised(np.zeros(3)).tolist() == [0, 0, 0]
    assert fusion.normalised(np.array([-3.0])).tolist() == [0]


def test_fusion_weighs_what_was_normalised() -> None:
    fused = fusion.fused([(0.25, np.array([10.0, 5.0])), (0.75, np.array([0.0, 0.1]))], 2)
    assert fused.tolist() == pytest.approx([0.25, 0.875])


def test_ties_after_rounding_go_by_rank() -> None:
    scores = np.array([0.5, 0.50001, 0.9, 0.5])
    assert fusion.best(scores, np.array([3, 2, 1, 0]), 3) == [2, 3, 1]
    assert fusion.best(scores, np.array([0, 1, 2, 3]), 10) == [2, 0, 1, 3]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 35))
def test_the_best_k_are_the_first_k_of_the_whole_order(values: list[int], k: int) -> None:
    scores = np.array(values, dtype=float)
    ranks = np.arange(scores.size)[::-1].copy()
    whole = sorted(range(scores.size), key=lambda row: (-scores[row], ranks[row]))
    assert fusion.best(scores, ranks, k) == whole[:k]
