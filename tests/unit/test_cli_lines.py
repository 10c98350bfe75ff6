"""Lines that the command prints beside its results."""

import pytest

from qrmem.cli.progress import Warnings
from qrmem.types import Event


def retry(number: int) -> Event:
    return Event("warning", {"what": "retry", "message": f"refused {number}; trying again"})


def test_of_many_retries_one_in_a_few_seconds_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    warnings = Warnings(quiet=False, clock=lambda: now[0])
    for number in range(20):
        warnings(retry(number))
        now[0] += 0.5
    told = capsys.readouterr().err.splitlines()
    assert told == ["qrmem: refused 0; trying again", "qrmem: refused 10; trying again"]


def test_every_other_warning_is_told_unless_it_has_no_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for warnings in (Warnings(quiet=False), Warnings(quiet=True)):
        warnings(Event("warning", {"message": "first\nline"}))
        warnings(Event("warning", {"message": "second"}))
        warnings(Event("warning", {"what": "excess"}))
        warnings(Event("step", {"message": "no warning"}))
    told = capsys.readouterr()
    assert told.err == "qrmem: first line\nqrmem: second\n"
    assert not told.out
