"""The meaning of the command line's arguments."""

import pytest

from qrmem.cli.parser import build_parser


@pytest.mark.parametrize(
    "words",
    [
        ["--memory", "a.db", "--json", "search", "Who?"],
        ["search", "Who?", "--memory", "a.db", "--json"],
        ["--memory", "b.db", "search", "Who?", "--memory", "a.db", "--json"],
    ],
)
def test_common_options_stand_before_the_command_or_behind_it(words: list[str]) -> None:
    found = build_parser().parse_args(words)
    assert (found.memory, found.json, found.quiet) == ("a.db", True, False)
