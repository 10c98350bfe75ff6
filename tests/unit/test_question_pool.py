import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]

from qrmem.graph.questions import QuestionPool, accept_in_order, least_overlap
from qrmem.text.words import rouge_l, tokens
from qrmem.types import Contribution

VOCABULARY = ["a", "b", "c", "d", "what", "who", "is", "the", "of", "ahab", "whale", "leg"]
TEXTS = st.lists(st.sampled_from(VOCABULARY), max_size=14).map(" ".join)


def official(first: str, second: str) -> float:
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    return float(scorer.score(first, second)["rougeL"].fmeasure)


def by_all_pairs(questions: Sequence[str], seeds: Sequence[str] = ()) -> list[bool]:
    pool = [seed for seed in seeds if tokens(seed)]
    taken = []
    for question in questions:
        is_new = bool(tokens(question)) and all(official(q, question) < 0.6 for q in pool)
        taken.append(is_new)
        if is_new:
            pool.append(question)
    return taken


@given(TEXTS, TEXTS)
def test_rouge_l_equals_the_official_scorer(first: str, second: str) -> None:
    assert rouge_l(tokens(first), tokens(second)) == official(first, second)


@settings(deadline=None, max_examples=150)
@given(st.lists(TEXTS, max_size=25), st.lists(TEXTS, max_size=3))
def test_decisions_equal_all_pairs_with_the_official_scorer(
    questions: list[str], seeds: list[str]
) -> None:
    pool = QuestionPool(seeds)
    assert [pool.accept(question) for question in questions] == by_all_pairs(questions, seeds)


@given(st.integers(1, 200), st.integers(1, 200))
def test_least_overlap_is_where_the_measure_reaches_the_threshold(first: int, second: int) -> None:
    least = least_overlap(first, second)
    assert least == next(
        (n for n in range(min(first, second) + 1) if _fmeasure(n, first, second) >= 0.6),
        min(first, second) + 1,
    )


def _fmeasure(common: int, first: int, second: int) -> float:
    return rouge_l(
        [*range(common), *(["x"] * (first - common))],
        [*range(common), *(["y"] * (second - common))],
    )


@pytest.mark.parametrize("text", ["", "   ", "?!", "…", "\n\t--\n"])
def test_a_question_without_a_word_is_refused(text: str) -> None:
    assert not QuestionPool().accept(text)


def test_exact_duplicates_are_refused_whatever_their_case_and_punctuation() -> None:
    pool = QuestionPool()
    assert pool.accept("Who lost a leg?")
    assert not pool.accept("who lost a leg")
    assert not pool.accept("Who lost a leg?")
    assert len(pool) == 1


def test_exactly_at_the_threshold_the_official_scorer_decides() -> None:
    first, second = "a b c d e", "a b c x y"
    assert official(first, second) == pytest.approx(0.6)
    pool = QuestionPool([first])
    assert pool.accept(second) is (official(first, second) < 0.6)


def test_the_order_of_words_counts() -> None:
    pool = QuestionPool(["one two three four five six"])
    assert pool.accept("six five four three two one")


def test_repeated_words_are_counted_one_to_one() -> None:
    pool = QuestionPool(["the the the the"])
    assert pool.accept("the cat and an old ship")
    assert not pool.accept("the the the ship")


def test_a_seed_keeps_a_question_like_it_out() -> None:
    assert not QuestionPool(["Who lost a leg?"]).accept("Who lost a leg then?")


def test_questions_in_another_script_stay_distinct() -> None:
    pool = QuestionPool()
    assert pool.accept("Кто потерял ногу?")
    assert not pool.accept("Кто потерял ногу?")
    assert pool.accept("Где стоит старый корабль?")


def test_an_earlier_segment_wins() -> None:
    extractions = [
        Contribution("s0", "extraction", questions=("Who lost a leg?", "Where is the ship?")),
        Contribution("s1", "extraction"),
        Contribution("s2", "extraction", questions=("Who lost a leg once?", "Why did he sail?")),
    ]
    assert accept_in_order(extractions) == [
        ("Who lost a leg?", "Where is the ship?"),
        (),
        ("Why did he sail?",),
    ]
    assert accept_in_order(extractions, ["Why did he sail?"])[2] == ()


@pytest.mark.data
def test_real_questions_are_decided_as_by_all_pairs() -> None:
    folder = os.environ.get("QRMEM_DATA")
    if not folder:
        pytest.skip("QRMEM_DATA is not set")
    questions = _real_questions(Path(folder))[:300]
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    pool = QuestionPool()
    kept: list[str] = []
    for question in questions:
        alike = any(
            scorer.score(other, question)["rougeL"].fmeasure >= 0.6
            for other in kept
            if set(tokens(other)) & set(tokens(question))
        )
        assert pool.accept(question) is not alike
        if not alike:
            kept.append(question)
    assert len(kept) < len(questions)


def _real_questions(folder: Path) -> list[str]:
    articles = json.loads((folder / "squad" / "xquad.en.json").read_text(encoding="utf-8"))["data"]
    return [
        entry["question"]
        for article in articles
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]
