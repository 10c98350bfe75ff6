"""Hits and quotations on a terminal."""

from qrmem.cli.output import excerpt


def test_code_keeps_its_lines_and_their_indentation() -> None:
    text = "    def f(x):\n\n        return x\n"
    assert excerpt(text, "lines 3-5") == ["def f(x):", "    return x"]


def test_long_code_is_shown_by_its_first_lines() -> None:
    text = "".join(f"x{n} = {n}\n" for n in range(20))
    assert excerpt(text, "lines 1-20") == [*(f"x{n} = {n}" for n in range(8)), "…"]
    (line,) = excerpt("y = '" + "z" * 300 + "'", "line 7")
    assert len(line) == 100


def test_other_text_is_one_line() -> None:
    assert excerpt("One\n  two.", "Chapter 3") == ["One two."]
    assert excerpt("\x1b[31mred", "line 1") == ["\N{REPLACEMENT CHARACTER}[31mred"]
