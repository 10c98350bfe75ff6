"""Dates of statements: valid forms, comparison, dates in a sentence."""

import pytest

from qrmem.errors import UsageError
from qrmem.text.dates import (
    Validity,
    checked,
    checked_moment,
    checked_validity,
    end_of,
    said_at,
    start_of,
    stated_validity,
)


@pytest.mark.parametrize("given", ["2026", "2026-05", "2026-05-03", "0001", ""])
def test_days_months_and_years_are_dates(given: str) -> None:
    assert checked(f" {given} ", "valid_from") == given


@pytest.mark.parametrize(
    "given",
    ["2026-02-31", "0000", "2026-13", "2026-5-3", "26", "soon", "2026-05-03T10:00"],
)
def test_an_invalid_date_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked(given, "valid_from")
    assert str(refused.value).startswith(f"valid_from {given!r} is not a date: write it as 2026")


def test_a_moment_may_have_a_time_of_day() -> None:
    assert checked_moment("2026-05-03T10:00:00+02:00", "as_of") == "2026-05-03T10:00:00+02:00"
    for given in ("", "tomorrow", "2026-02-31T10:00"):
        with pytest.raises(UsageError, match="as_of"):
            checked_moment(given, "as_of")


def test_an_end_before_its_beginning_is_refused() -> None:
    assert checked_validity("2026-05-03", "2026-05") == ("2026-05-03", "2026-05")
    with pytest.raises(UsageError, match="valid_until 2025 lies before valid_from 2026"):
        checked_validity("2026", "2025")


def test_spans_compare_as_times_do_whatever_their_zone() -> None:
    assert start_of("2026-05") == "2026-05-01T00:00:00"
    assert end_of("2024-02") == "2024-02-29T23:59:59"
    assert start_of("2026-05-03T01:00:00+02:00") == end_of("2026-05-02T23:00:00Z")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"at": "2026-05-01T10:00:00+02:00"}, "2026-05-01T10:00:00+02:00"),
        ({"date": 1851}, "1851"),
        ({"date": "3 May 1923"}, "1923-05-03"),
        ({"at": "noon", "date": "2026-05"}, "2026-05"),
        ({"date": "2026-02-31"}, ""),
        ({"date": "May"}, ""),
        ({"date": True}, ""),
        ({"date": 0}, ""),
        ({}, ""),
    ],
)
def test_a_document_is_dated_by_its_metadata(metadata: dict[str, object], expected: str) -> None:
    assert said_at(metadata) == expected


@pytest.mark.parametrize(
    ("sentence", "ends", "expected"),
    [
        ("Ann has lived in Berlin since May 2019.", ("Ann", "Berlin"), ("2019-05", "")),
        ("Ann lived in Paris until 2019 and moved to Rome.", ("Ann", "Paris"), ("", "2019")),
        ("Ann lived in Paris until 2019 and moved to Rome.", ("Ann", "Rome"), ("", "")),
        ("Ann lived in Paris, worked in Lyon until 2019.", ("Ann", "Paris"), ("", "")),
        ("Since last March Ann works at Acme.", ("Ann", "Acme"), ("2026-03", "")),
        ("Ann worked at Acme from 2010 to 2014.", ("Ann", "Acme"), ("2010", "2014")),
        (
            "Ann stays with Bob from 3 May until 8 May.",
            ("Ann", "Bob"),
            ("2026-05-03", "2026-05-08"),
        ),
        ("Ann worked at Acme until 2025-06.", ("Ann", "Acme"), ("", "2025-06")),
        ("Ann works at Acme since 2019-04.", ("Ann", "Acme"), ("2019-04", "")),
        ("Ann was at Acme from 2018-03 to 2019-11.", ("Ann", "Acme"), ("2018-03", "2019-11")),
        ("Ann worked at Acme from 2014 to 2010.", ("Ann", "Acme"), ("", "")),
        ("Ann met Bob in 2019.", ("Ann", "Bob"), ("", "")),
        ("Ann came from Berlin to Rome in 2019.", ("Ann", "Berlin"), ("", "")),
    ],
)
def test_a_sentence_says_from_when_until_when(
    sentence: str, ends: tuple[str, str], expected: tuple[str, str]
) -> None:
    assert stated_validity(sentence, ends, "2026-04-01T10:00:00") == Validity(*expected)


def test_without_a_date_of_the_text_only_times_with_a_year_count() -> None:
    assert stated_validity("Ann works at Acme since May.", ("Ann", "Acme"), "") == ("", "")
