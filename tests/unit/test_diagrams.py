"""The diagrams in the documents are those of the code."""

from pathlib import Path

from tools.diagrams import page


def test_the_page_of_diagrams_is_what_the_command_prints() -> None:
    assert (Path(__file__).parents[2] / "docs" / "diagrams.md").read_text() == page()
