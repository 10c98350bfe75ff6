"""The list of the longest tests and the page of attacks name existing tests."""

import re
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


def test_every_row_of_the_page_of_attacks_names_tests_that_are_there() -> None:
    page = (TESTS.parent / "docs" / "attacks.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    rows = [row for row in rows if not row.startswith(("|---", "| tried"))]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(tests/[^`:]+)::(\w+)`", row)
        assert named, row
        for file, function in named:
            assert f"def {function}(" in (TESTS.parent / file).read_text(), f"{file}::{function}"
