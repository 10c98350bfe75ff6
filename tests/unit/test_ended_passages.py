"""A model, and a reader without one, see what was ended or deleted by hand in a passage."""

from qrmem.answering.with_model import block
from qrmem.types import Passage, Segment


def test_a_prompt_says_what_was_deleted_by_hand() -> None:
    segment = Segment("s", "d", 0, 0, 24, "Ann Holt works for Acme.", 5)
    shown = block(Passage("S1", segment, "Staff", ended=("Ann works for Acme (deleted by hand)",)))
    assert "No longer so: Ann works for Acme (deleted by hand)" in shown
