"""The list of the longest tests names tests that are there."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
LISTED = [
    line.split("::")
    for line in (TESTS / "longest.txt").read_text().splitlines()
    if line and line[0] != "#"
]


def test_every_listed_test_is_there() -> None:
    assert LISTED
    for file, function in LISTED:
        assert f"def {function}(" in (TESTS.parent / file).read_text(), f"{file}::{function}"


def test_no_test_is_listed_twice() -> None:
    assert len(LISTED) == len({tuple(one) for one in LISTED})
