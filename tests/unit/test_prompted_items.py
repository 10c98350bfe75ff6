from qrmem.extraction import reply_items as items
from qrmem.types import Mention, Quote

TEXT = "Ann Lee left Rome in 1990. Mrs Lee, as they called her, never saw the Tiber again."


def read(*lines: str) -> list[Mention]:
    return items.mentions(items.split(lines), items.Shown(TEXT))


def test_a_name_takes_type_forms_and_count_from_the_text() -> None:
    (ann,) = read("Ann Lee|PERSON|Mrs Lee")
    assert ann == Mention("Ann Lee", "PERSON", ("Ann Lee", "Mrs Lee"), 2)


def test_an_entity_that_the_text_does_not_hold_is_dropped() -> None:
    assert read("Ann Leeds|PERSON", "Paris|PLACE", "", "|PERSON", "her|PERSON") == []


def test_a_name_is_written_as_the_text_writes_it() -> None:
    assert [m.name for m in read("ROME|PLACE", "tiber|PLACE")] == ["Rome", "Tiber"]


def test_part_of_a_word_is_no_name() -> None:
    assert read("Rom|PLACE", "call|THING") == []


def test_names_in_scripts_without_spaces_are_found() -> None:
    (found,) = items.mentions(items.split(["東京|PLACE"]), items.Shown("彼は東京へ行った。"))
    assert found == Mention("東京", "PLACE", ("東京",), 1)


def test_types_in_other_words_are_ours_and_unknown_ones_are_forms() -> None:
    assert [m.type for m in read("Rome|GPE", "1990|TIME", "Tiber|OBJECT")] == [
        "PLACE",
        "DATE",
        "THING",
    ]


def test_a_relation_stands_between_two_entities_of_the_text() -> None:
    known = read("Ann Lee|PERSON|Mrs Lee", "Rome|PLACE")
    lines = [
        "Mrs Lee|left in 1990|Rome",
        "Ann Lee|never saw again|Tiber",
        "Ann Lee|is|Ann Lee",
        "Ann Lee|married|Bob",
        "Ann Lee|Rome",
        "Ann Lee||Rome",
    ]
    stated, new = items.statements(items.split(lines), known, items.Shown(TEXT))
    assert [(s.head, s.description, s.tail) for s in stated] == [
        ("Ann Lee", "left in 1990", "Rome"),
        ("Ann Lee", "never saw again", "Tiber"),
    ]
    assert [m.name for m in new] == ["Tiber"]


def test_numbered_items_belong_to_their_question() -> None:
    asked = items.split(["2|Rome|PLACE", "Q1|Ann Lee|PERSON", "9|Tiber", "Tiber"], ["a?", "b?"])
    assert [(item.question, item.parts[0]) for item in asked] == [
        ("b?", "Rome"),
        ("a?", "Ann Lee"),
        ("a?", "Tiber"),
        ("a?", "Tiber"),
    ]


def test_a_number_is_a_name_where_no_questions_are_numbered() -> None:
    assert [m.name for m in read("1990|DATE")] == ["1990"]


def test_questions_lose_their_numbering_and_doubles() -> None:
    said = [
        "1. Who left Rome?",
        "- Who left Rome?",
        "?",
        "Q2: When did Ann leave?",
        "Where was it?",
    ]
    assert items.questions(said, 2) == ("Who left Rome?", "When did Ann leave?")


def test_quotes_have_labels_where_they_give_one() -> None:
    assert items.quotes(['[s1]|"left Rome"', "never saw", " | ", "S2|a|b"]) == (
        Quote("S1", "left Rome"),
        Quote("", "never saw"),
        Quote("S2", "a|b"),
    )
