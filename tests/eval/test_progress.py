"""The progress of a run on standard error."""

import re

import pytest

from qrmem.cli.evaluating import RunProgress
from qrmem.types import Event


def item(error: str = "") -> Event:
    return Event("item", {"item": "h1", "error": error})


def paid(calls: int, tokens: int, money: float | None) -> Event:
    return Event("paid", {"calls": calls, "tokens": tokens, "money": money})


def test_progress_shows_results_time_left_calls_and_money(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with RunProgress(quiet=False) as progress:
        progress(Event("items", {"total": 4}))
        for event in (item(), item("no"), item(), paid(6, 1500, 0.0125)):
            progress(event)
    told = capsys.readouterr().err
    line = r"qrmem: 3/4 results, \d+ s left, 6 calls, 1,500 tokens, 0\.0125 in money, 1 failed\n"
    assert re.fullmatch(line, told.splitlines(keepends=True)[-1])


def test_parts_of_a_preset_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(quiet=False) as progress:
        for _ in range(2):
            progress(Event("items", {"total": 1}))
            progress(item())
            progress(paid(5, 100, None))
    told = capsys.readouterr().err
    assert "2/2 results" in told
    assert "10 calls, 200 tokens\n" in told
    assert "money" not in told, "the price is not known"


def test_time_left_is_not_guessed_from_one_result(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(quiet=False) as progress:
        progress(Event("items", {"total": 9}))
        progress(item())
    assert "time left not known yet" in capsys.readouterr().err


def test_a_quiet_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(quiet=True) as progress:
        progress(Event("items", {"total": 1}))
        progress(item())
    assert capsys.readouterr().err == ""
