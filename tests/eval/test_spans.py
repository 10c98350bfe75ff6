"""The short-answer rule that stands in where there is no model."""

import pytest

from qrmem.eval.spans import best_span


@pytest.mark.parametrize(
    ("question", "answer", "short"),
    [
        ("Where was Strake born?", "Lemuel Strake was born in Vantry.", "Vantry"),
        (
            "When did the Marigold sink?",
            "The Marigold sank on 3 May 1811 near Dunmore.",
            "3 May 1811",
        ),
        ("In which year did the Marigold sink?", "The Marigold sank on 3 May 1811.", "1811"),
        ("How many bells hang there?", "In Vantry hang 12 bells of bronze.", "12"),
        ("Was Ada Holm the mayor?", "Ada Holm was the mayor of Vantry.", "yes"),
        ("Did Ada Holm leave Vantry?", "Ada Holm never left Vantry.", "no"),
        ("What did he eat?", "he ate bread and cheese", "he ate bread and cheese"),
        (
            "Who was born first, Ada Holm or Piet Arden?",
            "Ada Holm (born 1782) was a mayor. Piet Arden (born 1770) kept an inn.",
            "Piet Arden",
        ),
        (
            "Who was younger, Ada Holm or Piet Arden?",
            "Ada Holm (born 1782) was a mayor. Piet Arden (born 1770) kept an inn.",
            "Ada Holm",
        ),
        ("Who kept the inn, Ada Holm or Piet Arden?", "Piet Arden kept the inn.", "Piet Arden"),
        ("Which river passes Vantry?", "Near Corrin, the river Luss passes Vantry.", "Luss"),
    ],
)
def test_the_span_that_is_asked_for(question: str, answer: str, short: str) -> None:
    assert best_span(question, answer) == short
