"""Words for BM25 and for ROUGE-L."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.tokenizers import DefaultTokenizer  # type: ignore[import-untyped]

from qrmem.text.spelling import LATIN, MARKS
from qrmem.text.words import terms, tokens

ASCII = st.text(st.characters(max_codepoint=127))
ACCENTED = st.text("abcXYZ089 éÉüßœñÅçİ\u0301\u0308.,'-_\n")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Большие дома", "большой дом"),
        ("Οι δρόμοι της πόλης", "δρόμος, πόλη"),
        ("في المدينة الكبيرة", "مدينة كبيرة"),
        ("लड़कियों की किताबें", "लड़की किताब"),
        ("մեծ տներ", "տուն տներ"),
    ],
)
def test_words_of_a_script_are_stemmed_in_its_language(text: str, other: str) -> None:
    assert set(terms(text)) & set(terms(other))
    assert len(terms(f"{text} houses")) == len(terms(text)) + 1
    assert terms(f"{text} houses")[-1] == "hous"


@given(st.text(min_size=1, max_size=8))
def test_no_word_outside_english_is_stemmed_to_nothing(text: str) -> None:
    words = [word for word in tokens(text) if not word.isascii()]
    assert bool(words) <= bool(terms(text))


def test_terms_are_stemmed_lower_cased_and_free_of_stop_words() -> None:
    assert terms("The whales were chasing the Whale's ships") == ["whale", "chase", "whale", "ship"]


def test_terms_leave_nothing_of_a_question_without_content() -> None:
    assert terms("Who is it, and why don't they?") == ["don"]


def test_thousands_separators_do_not_split_a_number() -> None:
    assert terms("1,250 men") == terms("1250 men")
    assert terms("rooms 1, 2 and 3") == ["room", "1", "2", "3"]


def test_accents_do_not_keep_a_name_from_being_found() -> None:
    assert terms("Zoë Brontë") == terms("Zoe Bronte")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("die Straße", "DIE STRASSE"),
        ("Iğdır, Isparta", "IĞDIR, ISPARTA"),
        ("in Łódź", "in Lodz"),
        ("Søren traf Đà Nẵng", "Soren traf Da Nang"),
        ("Cæsar's phœnix", "Caesar's phoenix"),
        ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
        ("Ｆｕｌｌ ﬁre １２", "full fire 12"),
        ("김소월의 시는 서울에서", "김소월 시는 서울"),
    ],
)
def test_a_word_is_found_as_it_is_typed_elsewhere(text: str, typed: str) -> None:
    assert terms(text) == terms(typed)


def test_a_term_has_no_space_and_no_mark_of_ascii() -> None:
    assert terms("ﷺ ⑴") == ["صلىاللهعليهوسلم", "1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京大学 in 2004", ["北", "京", "大", "学", "in", "2004"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Анна Каренина", ["анна", "каренина"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
    ],
)
def test_words_of_any_script_are_kept_whole(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected
    one_by_one = [terms(word) for word in expected]
    assert [[term] for term in terms(text)] == [found for found in one_by_one if found]


@given(ASCII | ACCENTED)
def test_tokens_of_latin_text_are_those_of_rouge_score(text: str) -> None:
    assert tokens(text) == DefaultTokenizer(use_stemmer=False).tokenize(text)


@given(st.text())
def test_no_letter_outside_latin_is_lost(text: str) -> None:
    def kept(char: str) -> bool:
        latin = char.isascii() or re.match(f"[{LATIN}]", char)
        return char.isalnum() and not latin

    joined = "".join(tokens(text))
    assert [c for c in text.lower() if kept(c)] == [c for c in joined if kept(c)]


def test_the_class_of_marks_holds_every_mark_of_this_python() -> None:
    marks = re.compile(f"[{MARKS}]")
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        char = chr(code)
        if unicodedata.category(char)[0] == "M":
            assert marks.match(char), hex(code)
        if marks.match(char):
            assert unicodedata.category(char)[0] in "MC", hex(code)
