"""Sentences by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.text.sentences import sentences

WORDS = ["Mr.", "He", "said", "no", "U.S.", "1.", "J.", "I", "e.g.", "水", "🐳"]
MARKS = [".", "!", "?", "…", "...", '"', "”", ")", "(", "。", "」", "-", "#"]
SPACES = [" ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "- ", "# "]
PIECES = st.lists(st.sampled_from(WORDS + MARKS + SPACES)).map("".join)


def split(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentences(text)]


@pytest.mark.parametrize(
    "text",
    [
        "It was late.| Nobody came.",
        "Mr. Harker met Dr. Seward and Mrs. Westenra at St. Pancras.| They spoke.",
        "J. R. Whitlow wrote it.| Samuel A. A. Porter did not.",
        "They live in the U.S. Navy yard.| It moved to the U.S.| The yard stayed.",
        "He came at 5 p.m. Monday.| She came at 6 p.m.| He was gone.",
        "It costs 3.50 dollars.| He paid 1.000.000 lire.",
        "See No. 7 and Fig. 3 on p. 12.| Vol. II follows.",
        '"No."| I turned.| "Yes."| He left.',
        '"Is it you?" he asked.| "Stop!" she cried.',
        "“Go away.”| “I will not!”| She stayed.",
        "Well ... perhaps.| He waited …| Nothing . . . at all.| Then it came.",
        "(He was wrong.)| She knew.",
        "Use tools, e.g. Hammers, i.e. Heavy ones, etc.| The rest is easy.",
        "Acme Inc. sold it to Bolt & Co. in 1990.| The price rose.",
        "i went home.| then i slept.| It rained.",
        "Really?!| Yes.| Oh! how he laughed.",
        "今日は雨です。|明日は晴れる！|本当？|はい。",
        "「行こう。」|彼は言った。",
        "هل أنت هنا؟| نعم.| أنا هنا.",
        "वह आया।| वह गया।",
        "ខ្ញុំមក។| គាត់ទៅ។",
        "Am 22. März 1832 starb er.| Im 19. Jahrhundert war er 22.| Sie war 23.",
        "A heading without a stop\n\n|The text begins.",
        "One line\nof a paragraph that\ngoes on.| And ends.",
        "To buy:\n|- bread\n|- milk.\n|1. first\n|2. second",
        "Title\n|# Heading\n|Text here.",
        "IV. The storm.| It blew.",
        "She is tall.| 7 feet.",
        "**Note.**| This holds.",
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str) -> None:
    expected = [piece.strip() for piece in text.split("|")]
    assert split(text.replace("|", "")) == expected


def test_leading_white_space_belongs_to_the_first_sentence() -> None:
    assert sentences("\n\n  One.  Two.\n") == [(0, 10), (10, 15)]


def test_white_space_alone_is_one_span_and_nothing_is_none() -> None:
    assert sentences(" \n\n ") == [(0, 4)]
    assert sentences("") == []


@given(PIECES | st.text())
def test_spans_partition_the_text(text: str) -> None:
    spans = sentences(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(start < end for start, end in spans)
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]


@given(PIECES | st.text())
def test_every_sentence_of_a_text_with_letters_has_something_in_it(text: str) -> None:
    if text.strip():
        assert all(text[start:end].strip() for start, end in sentences(text))


@pytest.mark.parametrize(
    "run", [".", "a.", ".)", " ", "\n", "\n ", "a", ". ", "。", "- ", "J.", ".'"]
)
def test_a_long_run_takes_linear_time(run: str) -> None:
    text = run * (400_000 // len(run)) + "x"
    assert sentences(text)[-1][1] == len(text)
