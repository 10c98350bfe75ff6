import pytest

from qrmem.answering.multiple_choice import chosen, shown

CHOICES = ("a red dog", "the blue whale", "none of them")


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ("(B)", 1),
        ("B", 1),
        ("b", 1),
        ("B.", 1),
        ("B) the blue whale", 1),
        ("(B) the blue whale", 1),
        ("Answer: B", 1),
        ("The answer is (B).", 1),
        ("2", 1),
        ("(2)", 1),
        ("The Blue Whale", 1),
        ("blue whale.", 1),
        ("a red dog", 0),
        ("None of them", 2),
        ("D", None),
        ("0", None),
        ("4", None),
        ("", None),
        ("A green dog", None),
        ("I cannot say", None),
        ("(A) or (B)", None),
        ("1990", None),
    ],
)
def test_a_reply_means_an_option(reply: str, index: int | None) -> None:
    assert chosen(reply, CHOICES) == index


def test_an_option_that_is_a_label_counts_by_its_text() -> None:
    assert chosen("2", ("3", "4", "2")) == 2
    assert chosen("A", ("C", "B", "A")) == 2


def test_many_options_are_numbered() -> None:
    choices = [f"option {n}" for n in range(30)]
    assert "(30) option 29" in shown("Which?", choices)
    assert chosen("30", choices) == 29
    assert chosen("B", choices) is None


def test_options_are_listed_under_the_question() -> None:
    assert shown("Which?", ("x", "y")) == "Question: Which?\nOptions:\n(A) x\n(B) y"
