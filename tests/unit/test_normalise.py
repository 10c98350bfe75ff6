"""Normalising a text when it is read."""

from hypothesis import given
from hypothesis import strategies as st

from qrmem.text.normalise import normalise


def test_line_ends_become_newlines() -> None:
    assert normalise("a\r\nb\rc\nd\r\r\ne") == "a\nb\nc\nd\n\ne"


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    assert normalise("\ufeffa\ufeffb") == "a\ufeffb"


def test_control_characters_become_spaces_and_keep_their_place() -> None:
    assert normalise("a\x00b\x0cc\x85d\x7fe\tf\ng") == "a b c d e\tf\ng"


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert normalise("a\ud800b\udfff") == "a\ufffdb\ufffd"


def test_composed_and_decomposed_letters_are_left_as_they_are() -> None:
    assert normalise("é e\u0301 ﬁ 🐳\u200d") == "é e\u0301 ﬁ 🐳\u200d"


@given(st.text(st.characters(exclude_categories=())))
def test_normalising_twice_changes_nothing_and_the_result_can_be_stored(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert once.encode("utf-8").decode("utf-8") == once
    assert "\x00" not in once
    assert "\r" not in once
