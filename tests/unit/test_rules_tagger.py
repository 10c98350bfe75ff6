"""Texts that the built-in rules recognise as entities, and texts that they do not."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.extraction.rules_tagger import RulesTagger, tagged
from qrmem.extraction.sentence_reading import read
from qrmem.extraction.summaries import surprises

DATA = Path(__file__).parent / "data"


def names(text: str) -> list[str]:
    return [mention.name for mention in tagged(text).mentions]


def types(text: str) -> dict[str, str]:
    return {mention.name: mention.type for mention in tagged(text).mentions}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("At noon Ellen Ward met Tobias on the Long Quay.", ["Ellen Ward", "Tobias", "Long Quay"]),
        ("He saw Mr. Thorne, Dr. Agnes Pruett and Captain Moody.",
         ["Mr. Thorne", "Dr. Agnes Pruett", "Captain Moody"]),
        ("She went to the University of Leyden and the Bank of the North.",
         ["University of Leyden", "Bank of the North"]),
        ("There sat Lady Catherine de Bourgh with Mrs. van der Berg.",
         ["Lady Catherine de Bourgh", "Mrs. van der Berg"]),
        ("They knew H. J. Ormsby and M. T. well.", ["H. J. Ormsby", "M. T."]),
        ("In the play Henry IV meets Henry V. It ends there.", ["Henry IV", "Henry V"]),
        ("They watched as Apollo 11 landed and Apollo 13 failed.", ["Apollo 11", "Apollo 13"]),
        ("He worked at NASA, then in the U.S. for Smith & Sons.",
         ["NASA", "U.S.", "Smith & Sons"]),
        ("Na to v Praze 25. ledna 1921 a w Warszawie 6 marca 1810.", ["Praze", "1921", "Warszawie",
                                                                       "1810"]),
        ("Dün akşam İstanbul'da İsmet İnönü ile Selanik'ten geldi.", ["İstanbul", "İsmet İnönü",
                                                                  "Selanik"]),
        ("There Qur'an and Ch'in met Genelia D'souza.", ["Qur'an", "Ch'in", "Genelia D'souza"]),
        ("L'écrivain Victor Hugo vint. C'est Jean Valjean.", ["Victor Hugo", "Jean Valjean"]),
        ("We stood in St. Orrin's Church and at King's College.",
         ["St. Orrin's Church", "King's College"]),
    ],
)  # fmt: skip
def test_capitals_in_mid_sentence_make_a_name(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The rain fell. Then it stopped. Nobody spoke, and I went home.",
        '"Come here," he said. "Nonsense! What do you want?"',
        "It was on Monday, I think, or I would have come.",
        "¿Dónde estaba? ¡Qué bien!",
        "CHAPTER IV\n\nHe woke late and was hungry.",
        "Silence was all they heard. Breakfast had been laid.",
    ],
)
def test_a_capital_that_any_word_would_have_is_no_name(text: str) -> None:
    assert names(text) == []


def test_a_word_at_the_start_of_a_sentence_is_a_name_if_the_segment_shows_it_elsewhere() -> None:
    mention = tagged("Marigold, lost with all hands! Everybody loved the Marigold.").mentions[0]
    assert (mention.name, mention.count) == ("Marigold", 2)


def test_an_adjective_at_the_start_of_a_sentence_is_no_part_of_the_name() -> None:
    assert names("Poor Ellen was cold. Seeing Darcy, she laughed.") == ["Ellen", "Darcy"]


def test_a_short_name_folds_into_the_one_longer_name_it_can_stand_for() -> None:
    (mention,) = tagged("They met Ellen Ward. Everyone liked Ellen, and Ellen knew.").mentions
    assert mention.forms == ("Ellen Ward", "Ellen")
    assert mention.count == 3


def test_a_name_that_fits_two_longer_ones_stays_apart() -> None:
    found = names("They met Martin Fenwick and Marcus Fenwick; the Fenwick house was shut.")
    assert found == ["Martin Fenwick", "Marcus Fenwick", "Fenwick"]


def test_titles_of_different_people_stay_apart() -> None:
    assert names("There Mr. Bennet sat with Mrs. Bennet.") == ["Mr. Bennet", "Mrs. Bennet"]


def test_a_name_broken_over_two_lines_is_one_name() -> None:
    (mention,) = tagged("and then Ellen\nWard came, for Ellen Ward\nwas late").mentions
    assert (mention.name, mention.forms, mention.count) == ("Ellen Ward", ("Ellen Ward",), 2)


def test_figures_keep_their_unit_and_stay_distinct() -> None:
    found = types("It is 7 kilometres, not 77 kilometres; it cost $5.4 million, or 45%.")
    assert found == dict.fromkeys(
        ["7 kilometres", "77 kilometres", "$5.4 million", "45%"], "NUMBER"
    )


@pytest.mark.parametrize(
    "figure", ["a thousand miles", "A THOUSAND miles", "a thou\u017fand miles"]
)
def test_numbers_in_words_are_found_in_every_print(figure: str) -> None:
    assert types(f"It was {figure} from there.") == {figure: "NUMBER"}


@pytest.mark.parametrize(
    "date",
    ["4 March 1926", "March 4, 1926", "October 1901", "22nd of May", "2024-05-01", "1890s", "1884"],
)
def test_dates_are_found(date: str) -> None:
    assert types(f"She came in the end on {date}, with her trunk.") == {date: "DATE"}


def test_strong_evidence_gives_a_type_and_weak_evidence_none() -> None:
    found = types(
        "He saw Miss Grey in Candle Street by Lake Avern, where the Meridian Dock Company had "
        'Skarrow in its hand. He read the novel "Low Water" there. "No," sighed Tobias.'
    )
    assert found == {
        "Miss Grey": "PERSON",
        "Candle Street": "PLACE",
        "Lake Avern": "PLACE",
        "Meridian Dock Company": "ORGANISATION",
        "Skarrow": "",
        "Low Water": "WORK",
        "Tobias": "PERSON",
    }


@pytest.mark.parametrize(
    ("text", "is_person"),
    [
        ("“Bring me the map,” said Ilagin, and closed the door.", True),
        ('"Bring my map," Ilagin added.', True),
        ("‘Where is the map?’ asked Ilagin.", True),
        ("Then Ilagin said to him, “I have the map.”", True),
        ("“Bring it!” cried the old man. “It is gone,” said Ilagin.", True),
        ("“Sales rose,” said Ilagin. I doubt it.", False),
        ('Ilagin said: "No." I doubt it.', False),
        ("Ilagin said that prices would rise.", False),
        ("A note said Ilagin had closed the door.", False),
        ("They asked Ilagin, and he came.", False),
        ("“Bring the map.” Ilagin closed the door.", False),
        ("The mayor of Ilagin said, “Bring the map.”", False),
        ("A spokesman for Ilagin said: “Bring the map.”", False),
        ("A clerk in Ilagin replied that the map was lost.", False),
        # Only people have a face or a wife, and only they glance or shake their heads.
        ("The lamp lit Ilagin’s pale face.", True),
        ("They met Ilagin's wife there.", True),
        ("They met Ilagin's old grandmother there.", True),
        ("The map was old, and Ilagin shook his head.", True),
        ("The map was old, and Ilagin glanced at it.", True),
        ("They met Ilagin's head of state there.", False),
        ("They met a man of Ilagin and his wife there.", False),
        ("They walked in Ilagin's streets.", False),
    ],
)
def test_who_speaks_or_has_a_body_is_a_person(text: str, is_person: bool) -> None:
    (mention,) = (m for m in tagged(text).mentions if m.name == "Ilagin")
    assert mention.type == ("PERSON" if is_person else "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("и тогда Анна встретила Вронского в Москве.", ["Анна", "Вронского", "Москве"]),
        ("Η βάρκα πήγε στην Ιθάκη με τον Οδυσσέα.", ["Ιθάκη", "Οδυσσέα"]),
        (
            "田中さんは『吾輩は猫である』をロンドンで読んだ。",
            ["田中", "吾輩は猫である", "ロンドン"],
        ),
        ('קרא את הספר "מלחמה ושלום" אתמול.', ["מלחמה ושלום"]),
        ("김철수 씨는 집에 갔다.", ["김철수"]),
    ],
)
def test_names_in_other_scripts_keep_all_their_letters(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_names_are_the_same_whether_accents_are_letters_or_marks() -> None:
    text = "Yesterday José Núñez met Ján d'Été-Müller in Łódź. L'élève Béatrice Ångström came."
    expected = ["José Núñez", "Ján", "Łódź", "Béatrice Ångström"]
    assert names(text) == expected
    decomposed = names(unicodedata.normalize("NFD", text))
    assert [unicodedata.normalize("NFC", name) for name in decomposed] == expected


async def test_the_tagger_finds_the_same_as_the_reasoner_uses() -> None:
    text = "At noon Ellen Ward met Tobias."
    assert tuple(await RulesTagger().tag(text)) == tagged(text).mentions


@given(st.text(max_size=400))
def test_any_text_gives_entities_that_occur_in_it(text: str) -> None:
    folded = " ".join(text.split())
    found = tagged(text)
    for mention in found.mentions:
        assert mention.name in mention.forms
        assert mention.count >= 1
        assert all(" ".join(form.split()) in folded for form in mention.forms)
    ends = [0, *(place.end for place in found.occurrences)]
    assert all(a <= p.start < p.end for a, p in zip(ends, found.occurrences, strict=False))


@pytest.mark.parametrize(
    ("spelled", "isolated"),
    [("forty-two thousand crowns", True), ("two crowns", False), ("twenty-six years", True)],
)
def test_spelled_numbers_count_if_they_are_large(spelled: str, isolated: bool) -> None:
    assert (types(f"it was {spelled} at least") == {spelled: "NUMBER"}) is isolated


def test_headings_contents_licences_and_notes_of_editors_name_nothing() -> None:
    lines = (DATA / "apparatus.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        reading = read(row["text"])
        forms = {form for mention in reading.mentions for form in (mention.name, *mention.forms)}
        assert set(row["names"]) <= forms, row["text"]
        assert not [one for one in row["absent"] if any(one in form for form in forms)]
        sentences = [sentence.text for sentence in reading.sentences]
        assert not any(one in text for one in row["absent"] for text in sentences), row["text"]


def test_a_licence_and_a_heading_surprise_nobody() -> None:
    told = "The whaler left the harbour at dawn with oil and salt on board. " * 8
    text = f"CHAPTER 1. Loomings.\n\n{told}\n\nAhab's Leg\n\n{told}"
    assert surprises(text)
    assert not [one for one in surprises(text) if "CHAPTER" in one or "Leg" in one]


def test_a_name_at_the_head_of_a_short_text_is_found_and_nearly_nothing_else() -> None:
    lines = (DATA / "short_names.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = [
        ({name for name, kind in types(row["text"]).items() if kind != "NUMBER"}, {*row["names"]})
        for row in rows
    ]
    right = sum(len(one & wanted) for one, wanted in found)
    assert right >= 0.99 * sum(len(one) for one, _ in found)
    assert right >= 0.87 * sum(len(wanted) for _, wanted in found)


@pytest.mark.parametrize("text", ["A forty years war began.", "There was a forty years silence."])
def test_an_article_before_a_number_is_no_part_of_it(text: str) -> None:
    assert names(text) == ["forty years"]
