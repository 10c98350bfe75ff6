"""Time words, and the spans of days that they name."""

import json
from datetime import date
from pathlib import Path

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
        ("in 2022-02", "2022-02-01", "2022-02-28"),
        ("the season 2019-20", "2019-01-01", "2019-12-31"),
    ],
)
def test_time_words_are_resolved_against_the_day_they_were_said(
    text: str, first: str, last: str
) -> None:
    (found,) = periods(text, SAID)
    assert (str(found.first), str(found.last)) == (first, last)


@pytest.mark.parametrize("text", ["May I ask?", "They march on.", "31 February", "99999 years ago"])
def test_a_text_without_a_time_gives_none(text: str) -> None:
    assert periods(text, SAID) == []


def test_only_what_depends_on_the_day_is_relative() -> None:
    found = periods("In May 2021, and again last May", SAID)
    assert [one.is_relative for one in found] == [False, True]


def test_ago_beyond_the_calendar_is_passed_over() -> None:
    assert periods("999 years ago", date(500, 1, 1)) == []


@pytest.mark.parametrize(("file", "count"), [("dates.jsonl", 60), ("dates_more.jsonl", 50)])
def test_of_the_sentences_three_at_most_are_read_wrong_and_no_plan_lies_in_the_past(
    file: str, count: int
) -> None:
    lines = (Path(__file__).parent / "data" / file).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == count
    wrong = []
    for row in rows:
        said = date.fromisoformat(row["said"])
        found = periods(row["text"], said)
        if [[str(one.first), str(one.last)] for one in found] != row["times"]:
            wrong.append((row["text"], found))
        assert not row["is_ahead"] or not found or found[-1].last >= said, row["text"]
    assert len(wrong) <= 3, wrong


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The flight leaves on 3 May, said Ann.", "2024-05-03"),
        ("The dentist moved me to 5 May.", "2024-05-05"),
        ("I booked a table for Friday.", "2023-08-11"),
        ("We were on the train until Monday.", "2023-08-07"),
        ("They were closed since the winter.", "2022-12-01"),
        ("I was born on 29 February.", "2020-02-29"),
        ("We met the team by July 1, 2024.", "2024-07-01"),
        ("I want to finish by October 20.", "2023-10-20"),
        ("I am excited about the launch with Amy on November 15.", "2023-11-15"),
        ("I'm kinda worried about the August 20 meeting.", "2023-08-20"),
        ("I'm starting an advanced workshop on August 15.", "2023-08-15"),
        ("I just uploaded my application for the grant on August 12.", "2023-08-12"),
        ("It ends next winter.", "2023-12-01"),
        ("It began last August.", "2022-08-01"),
    ],
)
def test_a_sentence_says_whether_its_time_lies_ahead(text: str, first: str) -> None:
    assert str(periods(text, SAID)[0].first) == first


@pytest.mark.parametrize(
    "text", ["Ann's birthday, 8 February", "Every Monday we swim.", "We built it in two weeks."]
)
def test_a_time_that_nothing_decides_is_not_guessed(text: str) -> None:
    assert periods(text, SAID) == []


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("Pay invoice INV-2026-0417.", []),
        ("Where is order #2025-88-1?", []),
        ("The war of 2019-2021 and the season 2023-24.", ["2019", "2021", "2023"]),
        ("It was 1999-2000-2001, or mid-2003.", ["1999", "2000", "2001", "2003"]),
    ],
)
def test_a_number_of_an_invoice_is_no_year(text: str, years: list[str]) -> None:
    assert [period.text for period in periods(text, date(2026, 3, 1))] == years


IN_MARCH = date(2026, 3, 5)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The deadline changed from 12 June to 19 June.", ["2026-06-12", "2026-06-19"]),
        ("They shifted the exam from April to May.", ["2026-04-01", "2026-05-01"]),
        ("The flight was cancelled; the new one is on 2 April.", ["2026-04-02"]),
        ("I've got an April 1 deadline.", ["2026-04-01"]),
        ("It was postponed from April 2 until May 4.", ["2026-04-02", "2026-05-04"]),
        ("They brought it forward from 20 March to 10 March.", ["2026-03-20", "2026-03-10"]),
        ("Rescheduled: 12 June → 19 June.", ["2026-06-12", "2026-06-19"]),
        ("I'll come on 19 June instead of 12 June.", ["2026-06-19", "2026-06-12"]),
        ("It is not on 3 June but on 10 June.", ["2026-06-03", "2026-06-10"]),
        ("We were in Rome from 28 December to 3 January.", ["2025-12-28", "2026-01-03"]),
        ("The course runs from May 3 to May 5.", ["2026-05-03", "2026-05-05"]),
        ("It ran from 12 June 2025 to 19 June.", ["2025-06-12", "2025-06-19"]),
        ("The exam was on 12 June and is now on 19 June.", []),
        ("The shop is open from Monday to Friday.", []),
    ],
)
def test_dates_that_belong_together_are_resolved_together_or_left_alone(
    text: str, days: list[str]
) -> None:
    assert [str(one.first) for one in periods(text, IN_MARCH)] == days


@pytest.mark.parametrize(
    "text",
    [
        "We meet on Friday, 5 June 2026.",
        "We met on 3 June 2025. That 3 June was hot.",
        "See you tomorrow (6 March 2026).",
    ],
)
def test_nothing_is_told_of_a_time_that_the_text_gives_in_full(text: str) -> None:
    assert not any(one.is_relative for one in periods(text, IN_MARCH))


@pytest.mark.parametrize(
    "text",
    [
        "Die Frist wurde vom 12. Juni auf den 19. Juni verschoben.",
        "La fecha cambió del 12 de junio al 19 de junio.",
        "Le vol est reporté du 12 juin au 19 juin.",
    ],
)
def test_dates_of_other_languages_are_left_alone(text: str) -> None:
    assert periods(text, IN_MARCH) == []


def test_a_longer_time_is_none() -> None:
    assert periods(f"We met on 3 {' ' * 60} June.", IN_MARCH) == []
