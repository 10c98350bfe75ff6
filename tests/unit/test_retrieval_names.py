"""Names in texts, ragged columns, PageRank and features, each by itself."""

import numpy as np
import pytest

from qrmem.retrieval import pagerank, reasons, weights
from qrmem.retrieval.features import FEATURES, by_rank
from qrmem.retrieval.graph import Graph, Titled, lead_name
from qrmem.retrieval.links import Links
from qrmem.retrieval.ragged import Ragged
from qrmem.retrieval.spotting import Names, plain, title_forms, words_of
from qrmem.text.words import STOP_WORDS


def found(text: str, *names: str, needs_capital: bool = True) -> list[str]:
    known = Names()
    for name in names:
        known.add(plain(name))
    table = known.table()
    spots = table.spots(words_of(text), needs_capital=needs_capital, skip=STOP_WORDS)
    return [table.names[number] for number in spots]


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


def test_ragged_columns_group_and_gather() -> None:
    lists = Ragged.group(np.array([2, 0, 2]), np.array([5, 6, 7]), 4)
    assert [lists[n].tolist() for n in range(4)] == [[6], [], [5, 7], []]
    values, sizes = lists.gathered(np.array([2, 1, 0, 2]))
    assert values.tolist() == [5, 7, 6, 5, 7]
    assert sizes.tolist() == [2, 0, 1, 2]
    assert lists.gathered(np.zeros(0, dtype=np.int64))[0].size == 0


NO_ROWS = np.zeros(0, dtype=np.int64)
NO_LISTS = Ragged.group(NO_ROWS, NO_ROWS, 0)


def graph_of(mentions: list[list[int]], names: int) -> Graph:
    pairs = [(row, name) for row, found in enumerate(mentions) for name in found]
    rows, entities = (np.array([pair[n] for pair in pairs], dtype=np.int64) for n in (0, 1))
    return Graph(
        table=Names().table(),
        titled=Titled.of({}, 0),
        entities_of_name=NO_LISTS,
        mentions=Ragged.group(rows, entities, len(mentions)),
        mentioned=Ragged.group(entities, rows, names),
        rows_of_document=Ragged.group(rows, rows, len(mentions)),
    )


NO_LINKS = Links(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, np.zeros(0), np.zeros(0, dtype=bool))


def test_a_walk_reaches_what_shares_a_name_with_the_best_segment() -> None:
    graph = graph_of([[0], [0, 1], [1], [2], []], names=3)
    start = np.array([1.0, 0, 0, 0, 0])
    walk = pagerank.rank(graph, np.arange(5), start, NO_LINKS)
    assert walk[0] > walk[1] > walk[2] > 0
    assert walk[3] == walk[4] == 0
    assert walk.sum() < 1


def test_a_walk_without_a_link_stays_where_it_starts() -> None:
    walk = pagerank.rank(graph_of([[0], [1]], 2), np.arange(2), np.array([0.0, 1.0]), NO_LINKS)
    assert walk.tolist() == [0, 1]
    still = pagerank.rank(graph_of([[0], [0]], 1), np.arange(2), np.zeros(2), NO_LINKS)
    assert still.tolist() == [0, 0]


def test_places_are_shared_by_ties_and_nothing_has_none() -> None:
    ranked = by_rank(np.array([0.5, 0.0, 0.9, 0.5]))
    assert ranked.tolist() == pytest.approx([1 / np.sqrt(2), 0, 1, 1 / np.sqrt(2)])


def test_every_weight_belongs_to_a_feature() -> None:
    assert set(weights.WITH_EMBEDDER) == set(FEATURES)
    assert set(weights.WITHOUT_EMBEDDER) == set(FEATURES) - {"dense"}


@pytest.mark.parametrize("at", [0, 40, 120, 300])
def test_of_a_long_sentence_the_part_with_the_name_is_told(at: int) -> None:
    words = [f"word{n}" for n in range(60)]
    sentence = " ".join([*words[: at // 6], "Orla Venn", *words[at // 6 :]])
    told = reasons._around(sentence, "Orla Venn")
    assert "Orla Venn" in told
    assert len(told) <= 165
    assert all(piece in sentence.split() for piece in told.split() if piece != "…")
    assert reasons._around("Orla Venn wrote it.", "Orla Venn") == "Orla Venn wrote it."
