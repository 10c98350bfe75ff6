"""What commands print for people."""

import sys
from typing import Any

import pytest

from qrmem.cli import output
from qrmem.cli.lines import problem_lines
from qrmem.cli.output import citation_line
from qrmem.types import Citation


def test_segments_in_a_row_with_the_same_trouble_share_a_line() -> None:
    problems = [("a.txt", n, "pending") for n in (0, 1, 2, 5)]
    problems += [("a.txt", 6, "no answer"), ("b.txt", 7, "no answer"), ("c.pdf", -1, "empty")]
    assert problem_lines(problems) == [
        "problem:   a.txt segments 0-2: pending",
        "problem:   a.txt segment 5: pending",
        "problem:   a.txt segment 6: no answer",
        "problem:   b.txt segment 7: no answer",
        "problem:   c.pdf: empty",
    ]


def test_a_reason_that_names_its_document_is_not_repeated() -> None:
    assert problem_lines([("a.txt", -1, "a.txt is empty")]) == ["problem:   a.txt is empty"]


def test_a_long_list_of_problems_says_how_much_is_left_out() -> None:
    lines = problem_lines([("a", 2 * n, "pending") for n in range(25)])
    assert len(lines) == 21
    assert "5 more" in lines[-1]


class Terminal:
    """Standard output that a person sees."""

    def __init__(self) -> None:
        self.seen = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.seen += text

    def flush(self) -> None: ...


QUOTE = "Ahab lost a leg\x1b[31m near Japan. Nobody else did."
CITED = Citation("a", "s", 0, len(QUOTE), QUOTE, matches=((0, 4), (12, 15)))


@pytest.mark.parametrize(
    ("environment", "bold"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_words_of_the_question_are_marked_on_a_terminal(
    environment: dict[str, str], bold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal: Any = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.show(citation_line(CITED))
    assert ("\x1b[1;33mAhab\x1b[0m lost a \x1b[1;33mleg\x1b[0m" in terminal.seen) is bold
    assert "\x1b[31m" not in terminal.seen
    assert "\x02" not in terminal.seen


def test_a_pipe_gets_words_without_marks(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(citation_line(CITED))
    assert capsys.readouterr().out.startswith('cited:  "Ahab lost a leg')
