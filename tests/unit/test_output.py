"""What commands print for people."""

from qrmem.cli.output import problem_lines


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


def test_a_reason_that_names_its_document_is_not_told_twice() -> None:
    assert problem_lines([("a.txt", -1, "a.txt is empty")]) == ["problem:   a.txt is empty"]


def test_a_long_list_of_problems_says_how_much_is_left_out() -> None:
    lines = problem_lines([("a", 2 * n, "pending") for n in range(25)])
    assert len(lines) == 21
    assert "5 more" in lines[-1]
