"""LongBench's words and chunks (S03, S06)."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.graph.segmenting import chunks, longbench_words

unhurried = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def test_words_are_lower_case_and_cjk_characters_count_each() -> None:
    assert longbench_words("Don't panic_now: 你好 42!") == [
        "don",
        "t",
        "panic_now",
        "你",
        "好",
        "42",
    ]


def test_chunks_are_whole_sentences_up_to_the_size() -> None:
    text = "One two three. Four five! Six; seven eight nine ten eleven twelve. End"
    assert [text[a:b] for a, b in chunks(text, 5)] == [
        "One two three. Four five!",
        " Six;",
        " seven eight nine ten eleven twelve.",
        " End",
    ]


@unhurried
@given(st.text(alphabet="ab .!\n;。你", max_size=200), st.integers(1, 20))
def test_chunks_together_are_the_text(text: str, size: int) -> None:
    assert "".join(text[a:b] for a, b in chunks(text, size)) == text
