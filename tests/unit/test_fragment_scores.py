"""FragRel's equations: by hand, against plain Python, and by what must always hold (F22)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qrmem.errors import UsageError
from qrmem.retrieval.fragments import (
    Blend,
    Fragments,
    FragmentSettings,
    Links,
    Semantic,
    Structure,
    WeightMatrix,
)
from qrmem.retrieval.fragments.gathering import jaccard, within_words
from qrmem.retrieval.fragments.operators import EXACT
from qrmem.retrieval.fragments.scorer import _semantic, best, environment, relation_aware

unhurried = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def oracle(
    weights: list[list[float]], alone: list[float], alpha: float, with_self: bool = True
) -> tuple[list[float], list[float]]:
    """Equations 9 and 10 as they stand, in plain Python."""
    around, scores = [], []
    for i in range(len(alone)):
        sums = total = 0.0
        for j in range(len(alone)):
            if i != j or with_self:
                sums += weights[i][j] * alone[j]
                total += weights[i][j]
        around.append(sums / total if total > 1e-6 else 0.0)
        scores.append(alone[i] + alpha * around[i])
    return around, scores


def row(*places: int, w_rel: float, document: tuple[int, ...] = ()) -> Structure:
    documents = np.array(document or (0,) * len(places), dtype=np.int64)
    return Structure(documents, np.array(places, dtype=np.int64), w_rel)


def whole(relation: WeightMatrix) -> list[list[float]]:
    found: list[list[float]] = dense(relation).tolist()
    return found


def dense(relation: WeightMatrix) -> NDArray[np.float64]:
    """Return W, pair by pair as the paper's equations say."""
    if isinstance(relation, Blend):
        mean: NDArray[np.float64] = np.mean([dense(part) for part in relation.parts], axis=0)
        return mean
    if isinstance(relation, Structure):
        apart = np.abs(relation.places[:, None] - relation.places).astype(np.float64)
        same = relation.documents[:, None] == relation.documents
        return np.where(same, relation.w_rel**apart, 0.0)
    if isinstance(relation, Links):
        found = relation.own * np.eye(relation.size)
        np.add.at(found, (relation.heads, relation.tails), relation.weights)
        return found
    assert isinstance(relation, Semantic)
    vectors = relation.vectors.astype(np.float64)
    return 1 - vectors @ vectors.T if relation.is_printed else np.maximum(vectors @ vectors.T, 0)


def test_a_sample_of_fragments_is_spread_over_the_whole_text() -> None:
    """Equation 9 over many fragments: those at the end count as those at the beginning do."""
    vectors = np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (9_000, 1))
    alone = np.repeat([0.0, 1.0], 4_500)
    around = environment(Semantic(vectors, is_sampled=True), alone)
    assert around == pytest.approx(np.full(9_000, 0.5), abs=0.01)


# --- by hand -------------------------------------------------------------------------------------


def test_structure_by_hand() -> None:
    # Equation 7 with w_rel 0.5: 1, 0.5, 0.25 by distance.
    assert whole(row(0, 1, 2, w_rel=0.5)) == [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]


def test_environment_and_score_by_hand() -> None:
    # s_env of the first: (1*1 + 0.5*0 + 0.25*0.4) / 1.75 = 1.1 / 1.75; of the second: 0.7 / 2;
    # of the third: 0.65 / 1.75.
    alone = np.array([1.0, 0.0, 0.4])
    around = environment(row(0, 1, 2, w_rel=0.5), alone)
    assert around == pytest.approx([1.1 / 1.75, 0.35, 0.65 / 1.75], abs=1e-12)
    scores = relation_aware(alone, around, 0.5)
    assert scores == pytest.approx([1 + 0.55 / 1.75, 0.175, 0.4 + 0.325 / 1.75], abs=1e-12)
    assert best(scores, 2) == [0, 2]


def test_semantic_by_hand() -> None:
    # Equation 6: cosines 0.6 and 0, and -1, which is clipped; as it is printed, 1 - cosine.
    vectors = np.array([[1, 0], [0.6, 0.8], [-1, 0]], dtype=np.float32)
    clipped = [[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert np.allclose(whole(Semantic(vectors)), clipped, atol=1e-6)
    printed = [[0.0, 0.4, 2.0], [0.4, 0.0, 1.6], [2.0, 1.6, 0.0]]
    assert np.allclose(whole(Semantic(vectors, is_printed=True)), printed, atol=1e-6)


def test_without_itself_a_lone_fragment_has_no_surroundings() -> None:
    alone = np.array([0.7])
    assert environment(row(0, w_rel=0.5), alone) == pytest.approx([0.7])
    assert environment(row(0, w_rel=0.5), alone, with_self=False) == pytest.approx([0.0])


def test_fragments_of_other_documents_are_no_neighbours() -> None:
    alone = np.array([1.0, 0.0, 1.0])
    around = environment(row(0, 1, 0, w_rel=0.5, document=(0, 0, 1)), alone)
    assert around == pytest.approx([1 / 1.5, 0.5 / 1.5, 1.0])


def test_a_relation_of_one_s_own_from_pairs() -> None:
    links = Links.both_ways(3, [(0, 2, 0.5)], own=1.0)
    assert whole(links) == [[1, 0, 0.5], [0, 1, 0], [0.5, 0, 1]]
    assert links.diagonal().tolist() == [1, 1, 1]
    assert whole(Blend([links, row(0, 1, 2, w_rel=0.0)]))[0] == [1, 0, 0.25]


# --- against plain Python ------------------------------------------------------------------------

RELATIONS = ["structure", "semantic", "printed", "links", "blend"]


def made(kind: str, n: int, seed: int) -> WeightMatrix:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((n, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    documents = np.sort(random.integers(0, 3, n))
    places = np.concatenate(
        [np.sort(random.integers(0, 9, int(count))) for count in np.bincount(documents)]
    )
    pairs = [
        (int(random.integers(n)), int(random.integers(n)), float(random.random())) for _ in range(n)
    ]
    structure = Structure(documents, places, float(random.choice([0, 0.3, 0.8, 1])))
    relations: dict[str, WeightMatrix] = {
        "structure": structure,
        "semantic": Semantic(vectors),
        "printed": Semantic(vectors, is_printed=True),
        "links": Links.both_ways(n, pairs),
        "blend": Blend([structure, Semantic(vectors), Links.both_ways(n, pairs)]),
    }
    return relations[kind]


@pytest.mark.parametrize("kind", RELATIONS)
@pytest.mark.parametrize("with_self", [True, False])
@unhurried
@given(st.integers(1, 25), st.integers(0, 10_000))
def test_products_agree_with_sums_over_pairs(kind: str, with_self: bool, n: int, seed: int) -> None:
    relation = made(kind, n, seed)
    alone = np.random.default_rng(seed + 1).random(n)
    around, scores = oracle(whole(relation), alone.tolist(), 0.5, with_self)
    found = environment(relation, alone, with_self=with_self)
    assert np.allclose(found, around, rtol=0, atol=1e-7)
    assert np.allclose(relation_aware(alone, found, 0.5), scores, rtol=0, atol=1e-7)


def test_blocks_are_the_matrix() -> None:
    # Three blocks, the last one short.
    vectors = np.random.default_rng(0).standard_normal((2_500, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alone = np.random.default_rng(1).random((2_500, 2))
    relation = Semantic(vectors)
    whole = np.maximum(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 0) @ alone
    assert np.allclose(relation.times(alone), whole, rtol=1e-5)


# --- what must always hold -----------------------------------------------------------------------

scores_of = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@unhurried
@given(scores_of, st.sampled_from(RELATIONS[:3]), st.integers(0, 99))
def test_without_alpha_the_ranking_is_that_of_the_scores_alone(
    alone: list[float], kind: str, seed: int
) -> None:
    given_scores = np.array(alone)
    around = environment(made(kind, len(alone), seed), given_scores)
    assert best(relation_aware(given_scores, around, 0.0), 99) == best(given_scores, 99)


@unhurried
@given(scores_of, st.floats(0, 2))
def test_without_a_relation_the_ranking_is_that_of_the_scores_alone(
    alone: list[float], alpha: float
) -> None:
    given_scores = np.round(np.array(alone), 6)
    around = environment(row(*range(len(alone)), w_rel=0.0), given_scores)
    assert around == pytest.approx(given_scores)
    assert best(relation_aware(given_scores, around, alpha), 99) == best(given_scores, 99)


@unhurried
@given(st.integers(1, 20), st.floats(0, 1), st.sampled_from(["structure", "semantic", "blend"]))
def test_equal_scores_stay_equal(n: int, score: float, kind: str) -> None:
    around = environment(made(kind, n, n), np.full(n, score))
    assert np.allclose(around, score)


@unhurried
@given(scores_of, st.floats(0.01, 100))
def test_scores_scale_with_their_parts(alone: list[float], factor: float) -> None:
    relation = row(*range(len(alone)), w_rel=0.4)
    one, other = np.array(alone), np.array(alone) * factor
    assert np.allclose(environment(relation, one) * factor, environment(relation, other))


@unhurried
@given(st.integers(2, 30), st.floats(0.05, 0.95))
def test_nearer_fragments_are_related_more(n: int, w_rel: float) -> None:
    first = dense(row(*range(n), w_rel=w_rel))[0]
    assert (np.diff(first) < 0).all()


def test_ties_go_to_the_earlier_fragment() -> None:
    assert best(np.array([0.5, 0.7, 0.5, 0.7]), 3) == [1, 3, 0]


# --- independent scores and settings -------------------------------------------------------------


def test_jaccard_is_the_share_in_common() -> None:
    assert jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert jaccard(frozenset(), frozenset()) == 0.0


def test_a_cap_in_words_keeps_the_first_whatever_its_size() -> None:
    assert within_words([300, 300, 300], 700) == 2
    assert within_words([900, 10], 700) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"w_rel": 1.1},
        {"alpha": -0.1},
        {"alpha": float("nan")},
        {"score": "magic"},
        {"order": "random"},
        {"top": 0},
        {"relation": ()},
        {"cutoff": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        FragmentSettings(**wrong)


def test_relations_may_be_listed() -> None:
    chosen = FragmentSettings(relation=["structure", "semantic"])
    assert chosen.relations == ("structure", "semantic")
    assert FragmentSettings().relations == ("structure",)


def test_hidden_fragments_surround_no_other() -> None:
    relation = Structure(np.zeros(4, dtype=np.int64), np.arange(4), 0.5)
    alone, seen = np.array([0.1, 0.9, 0.2, 0.3]), np.array([1.0, 0.0, 1.0, 1.0])
    found = environment(relation, alone, counts=seen)
    # Of the first fragment: itself, 0.25 of the third, 0.125 of the fourth.
    assert found[0] == pytest.approx((0.1 + 0.25 * 0.2 + 0.125 * 0.3) / 1.375)
    other = environment(relation, np.where(seen > 0, alone, 7.0), counts=seen)
    assert found == pytest.approx(other)


@pytest.mark.parametrize("mean", [0.0, 0.07, 0.5])
def test_over_10_000_fragments_environments_are_those_of_the_whole_matrix(mean: float) -> None:
    """Equations 6 and 9 over more fragments than are computed whole, against the dense rows.

    A straight line stood for clipping here: at a mean cosine of 0.07 some scores were 0.
    """
    n, drawn = EXACT + 500, np.random.default_rng(3)
    vectors = drawn.standard_normal((n, 24))
    vectors[:, 0] += drawn.normal(1, 0.5, n) * np.sqrt(24 * mean / (1 - mean))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[7] = 0  # has no vector
    given = vectors.astype(np.float32)
    alone = np.maximum(vectors @ vectors[0], 0)
    relation = _semantic(_gathered(given), FragmentSettings(relation="semantic"))
    found = environment(relation, alone)
    rows = drawn.choice(n, 300, replace=False)
    weights = np.maximum(vectors[rows] @ vectors.T, 0)
    exact = weights @ alone / weights.sum(axis=1)
    known = vectors[rows].any(axis=1)
    assert np.abs(found[rows] - exact)[known].max() < 0.02
    assert np.corrcoef(found[rows][known], exact[known])[0, 1] > 0.97
    assert found[7] == 0
    without = environment(relation, alone, with_self=False)
    lone = weights @ alone - alone[rows]
    assert np.abs(without[rows] - lone / (weights.sum(axis=1) - 1))[known].max() < 0.02


def _gathered(vectors: "NDArray[np.float32]") -> Fragments:
    places = np.arange(len(vectors))
    zeros = np.zeros(len(vectors), dtype=np.int64)
    return Fragments([str(n) for n in places], (), zeros, zeros, places, vectors)


def test_a_sample_is_a_relation_like_any_other() -> None:
    drawn = np.random.default_rng(4).standard_normal((40, 8))
    given = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    made = Semantic(given, is_sampled=True)
    columns = np.random.default_rng(5).random((40, 2))
    assert np.allclose(made.times(columns), Semantic(given).times(columns), atol=1e-5)
    assert np.allclose(made.diagonal(), np.diag(made.times(np.eye(40))))
