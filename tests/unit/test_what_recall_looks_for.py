"""What `recall` looks for, in short forms that give what the long ones give."""

import random
from datetime import date

import pytest

from qrmem.retrieval import turn_ranking
from qrmem.retrieval.turn_ranking import (
    Place,
    PromptTerms,
    TurnPart,
    best_first,
    in_context,
)
from qrmem.text import times
from qrmem.text.times import periods

SAID = date(2026, 5, 3)
TIMES = [
    *("on 2026-04-01", "the 3rd of May", "May 4th, 2025", "late in June", "in AUGUST 2024"),
    *("yesterday", "the day before yesterday", "last night", "tonight", "tomorrow", "today"),
    *("this morning", "this afternoon", "this evening", "two weeks ago", "a year ago"),
    *("3 months ago", "five days ago", "last weekend", "next Friday", "this spring"),
    *("by the fall", "in winter", "since autumn", "on Sunday", "back in 1998"),
]
OTHERS = [
    "The code is 12 lines long.",
    "We sailed.",
    "I like “tea”.",
    "",
    "The boat sank in 5 min.",
]


@pytest.mark.parametrize("said", TIMES)
def test_every_kind_of_time_is_still_found(said: str) -> None:
    assert periods(f"We met {said}.", SAID)


def test_texts_without_a_time_are_passed_over_as_the_whole_pattern_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [f"We met {said}." for said in TIMES] + OTHERS
    texts += [text.upper() for text in texts] + [" ".join(texts)]
    quick = [periods(text, SAID) for text in texts]
    assert [] in quick
    monkeypatch.setattr(times, "_TELLING", ("",))  # stands in every text
    assert [periods(text, SAID) for text in texts] == quick


def test_the_context_of_a_turn_counts_as_its_definition_says() -> None:
    draw = random.Random(5)
    for _ in range(50):
        numbers = [n for n in range(1, 40) if draw.random() < 0.7]
        places = {n: Place(n // 9, "", False, None) for n in numbers}
        own = {n: draw.random() for n in range(1, 40) if draw.random() < 0.5}
        found = turn_ranking.in_context(places, own, PromptTerms("Which ship?"))
        for n in numbers:
            beside = [(n - 1, 0.25), (n + 1, 0.25), (n - 2, 0.1), (n + 2, 0.1)]
            around = sum(
                worth * own[m]
                for m, worth in beside
                if m in own and m in places and places[m].session == places[n].session
            )
            best = max((own[m] for m in own if m in places and m // 9 == n // 9), default=0.0)
            assert found[n] == 0.2 * best + around


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What did the crane's repairs cost?", [1, 1, 2]),
        ("Give me a summary of the crane's repairs.", [1, 2, 1]),
        ("In which order did I mention the crane's repairs?", [1, 1, 2]),
    ],
)
def test_a_summary_prefers_another_turn_to_more_of_the_same(
    prompt: str, expected: list[int]
) -> None:
    parts = [TurnPart(1, 0, 1.0), TurnPart(1, 1, 0.9), TurnPart(2, 0, 0.6)]
    ordered = best_first(parts, PromptTerms(prompt), last=2)
    assert [part.turn for part in ordered] == expected


@pytest.mark.parametrize("best", [1.0, 2.0])
@pytest.mark.parametrize(
    "prompt",
    [
        "In which order did I mention the crane?",
        "How did my questions about the crane change?",
        "How many columns are to be added across my requests?",
    ],
)
def test_what_users_asked_goes_before_long_answers_with_and_without_vectors(
    prompt: str, best: float
) -> None:
    """With vectors the scores of parts are twice as high, and so is the bonus."""
    places = {1: Place("s", "", True, None), 9: Place("s", "", False, None)}
    own = {1: 0.5 * best, 9: best}
    context = in_context(places, own, PromptTerms(prompt))
    assert own[1] + context[1] > own[9] + context[9]


@pytest.mark.parametrize("thing", ["messages", "queries", "requests"])
def test_queries_of_a_program_do_not_ask_for_what_the_user_said(thing: str) -> None:
    places = {1: Place("s", "", True, None), 9: Place("s", "", False, None)}
    own = {1: 0.5, 9: 1.0}
    context = in_context(places, own, PromptTerms(f"How can my {thing} be made faster?"))
    assert own[1] + context[1] < own[9] + context[9]
