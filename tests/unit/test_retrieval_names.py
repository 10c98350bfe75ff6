"""Names in texts, and what ranks candidates, each by itself."""

import numpy as np
import pytest

from qrmem.retrieval.ranking import FEATURES, WEIGHTS, _around, by_rank
from qrmem.text.names import lead_name, longest_names, plain, possible_names, title_forms, words_of
from qrmem.text.words import STOP_WORDS


def found(text: str, *names: str, needs_capital: bool = True) -> list[str]:
    words = words_of(text)
    places = list(possible_names(words, needs_capital=needs_capital, skip=STOP_WORDS))
    return list(longest_names(words, places, {plain(name) for name in names}))


def test_words_keep_their_places_and_lose_a_possessive() -> None:
    text = "Orla's café: 7 BEES"
    words = words_of(text)
    assert list(words.words) == ["orla", "cafe", "7", "bees"]
    assert [text[a:b] for a, b in zip(words.starts, words.ends, strict=True)] == [
        "Orla",
        "café",
        "7",
        "BEES",
    ]
    assert list(words.marked) == [True, False, True, True]


def test_letters_of_other_scripts_are_kept() -> None:
    assert plain("Лев Толстой") == "лев толстой"
    assert plain("東京タワー") == "東京タワー"
    assert plain("Émile") == plain("Emile")


@pytest.mark.parametrize(
    ("title", "form"),
    [
        ("Tinted Windows (band)", "tinted windows"),
        ("Springfield, Illinois", "springfield"),
        ("The Grey Keel", "grey keel"),
        ("John, King of England", "king john"),
        ("John, King of England", "john of england"),
        ("Shady Lady (Gene Pitney song)", "shady lady gene pitney song"),
    ],
)
def test_a_title_goes_by_shorter_forms(title: str, form: str) -> None:
    assert form in dict(title_forms(title))


def test_a_first_name_alone_stands_for_no_ruler() -> None:
    assert "john" not in dict(title_forms("John, King of England"))


def test_the_longest_name_is_found() -> None:
    assert found("She left Port Hallam North.", "Port Hallam", "Port Hallam North") == [
        "port hallam north"
    ]


def test_in_a_text_a_name_needs_capitals_and_in_a_question_only_a_short_one_does() -> None:
    assert found("the grey keel sank", "Grey Keel") == []
    assert found("the grey keel sank", "Grey Keel", needs_capital=False) == ["grey keel"]
    assert found("who likes chess", "Chess", needs_capital=False) == []
    assert found("who likes Chess", "Chess", needs_capital=False) == ["chess"]


def test_a_stop_word_alone_is_no_name() -> None:
    assert found("Who sang it?", "Who", "It", needs_capital=False) == []


def test_a_name_within_a_name_is_not_that_name() -> None:
    assert found("It was John Knox.", "John") == []
    assert found("In Paris they met John.", "John", "Paris") == ["paris", "john"]


@pytest.mark.parametrize(
    ("text", "title", "name"),
    [
        ("William Jefferson Clinton (born 1946) is", "Bill Clinton", "william jefferson clinton"),
        ("The Grey Keel is a ballad.", "Grey Keel (song)", "grey keel"),
        ("Born in Rome, she sang.", "Anna", ""),
        ("", "Anna", ""),
    ],
)
def test_the_opening_name_counts_if_it_shares_a_word_with_the_title(
    text: str, title: str, name: str
) -> None:
    assert lead_name(text, title) == name


def test_places_are_shared_by_ties_and_nothing_has_none() -> None:
    ranked = by_rank(np.array([0.5, 0.0, 0.9, 0.5]))
    assert ranked.tolist() == pytest.approx([1 / np.sqrt(2), 0, 1, 1 / np.sqrt(2)])


def test_every_weight_belongs_to_a_feature_and_none_counts_against_a_segment() -> None:
    assert set(WEIGHTS) == set(FEATURES)
    assert min(WEIGHTS.values()) > 0


@pytest.mark.parametrize("at", [0, 40, 120, 300])
def test_a_long_sentence_is_shown_by_its_part_with_the_name(at: int) -> None:
    words = [f"word{n}" for n in range(60)]
    sentence = " ".join([*words[: at // 6], "Orla Venn", *words[at // 6 :]])
    told = _around(sentence, "Orla Venn")
    assert "Orla Venn" in told
    assert len(told) <= 165
    assert all(piece in sentence.split() for piece in told.split() if piece != "…")
    assert _around("Orla Venn wrote it.", "Orla Venn") == "Orla Venn wrote it."
