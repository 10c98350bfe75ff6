"""Time words: what spans of days they name."""

from datetime import date

import pytest

from qrmem.text.times import periods

SAID = date(2023, 8, 9)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I went yesterday", "2023-08-08", "2023-08-08"),
        ("the day before yesterday", "2023-08-07", "2023-08-07"),
        ("the one of last summer", "2022-06-01", "2022-08-31"),
        ("last winter was cold", "2022-12-01", "2023-02-28"),
        ("In May 2021 we met", "2021-05-01", "2021-05-31"),
        ("what happened in May?", "2023-05-01", "2023-05-31"),
        ("what happened in November?", "2022-11-01", "2022-11-30"),
        ("on October 13, 2023", "2023-10-13", "2023-10-13"),
        ("on the 3rd of June 2022", "2022-06-03", "2022-06-03"),
        ("two weeks ago", "2023-07-24", "2023-07-30"),
        ("last Friday", "2023-08-04", "2023-08-04"),
        ("next Monday", "2023-08-14", "2023-08-14"),
        ("next month", "2023-09-01", "2023-09-30"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("this weekend", "2023-08-12", "2023-08-13"),
        ("it was 2019", "2019-01-01", "2019-12-31"),
        ("2022-02-03", "2022-02-03", "2022-02-03"),
    ],
)
def test_time_words_are_resolved_against_the_day_they_were_said(
    text: str, first: str, last: str
) -> None:
    (found,) = periods(text, SAID)
    assert (str(found.first), str(found.last)) == (first, last)


@pytest.mark.parametrize("text", ["May I ask?", "They march on.", "31 February", "99999 years ago"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert periods(text, SAID) == []


def test_only_what_depends_on_the_day_is_relative() -> None:
    found = periods("In May 2021, and again last May", SAID)
    assert [one.is_relative for one in found] == [False, True]


def test_ago_beyond_the_calendar_is_passed_over() -> None:
    assert periods("999 years ago", date(500, 1, 1)) == []
