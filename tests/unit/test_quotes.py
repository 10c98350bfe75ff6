from hypothesis import given
from hypothesis import strategies as st

from qrmem.answering.citations import locate, supporting, whole
from qrmem.types import Passage, Quote, Segment

TEXT = "It was dark. He  left the\nharbour in May, and “nobody” saw him again. The bell rang."
OFFSET = 100


def passage(text: str = TEXT, label: str = "S1", start: int = OFFSET) -> Passage:
    segment = Segment(f"id-{label}", "doc", 0, start, start + len(text), text, 20)
    return Passage(label, segment, "Title")


def cited(quote: str, label: str = "S1") -> list[str]:
    document = " " * OFFSET + TEXT
    found = locate([Quote(label, quote)], [passage()])
    assert all(document[c.start : c.end] == c.quote for c in found)
    return [c.quote for c in found]


def test_a_verbatim_quote_is_found_where_it_stands() -> None:
    assert cited("in May, and") == ["in May, and"]


def test_spaces_case_and_marks_may_differ() -> None:
    assert cited('he left the harbour in may, and "nobody" saw') == [
        "He  left the\nharbour in May, and “nobody” saw"
    ]


def test_a_nearly_verbatim_quote_is_aligned_to_whole_words() -> None:
    assert cited("left the harbor in May, and nobody saw him agan") == [
        "left the\nharbour in May, and “nobody” saw him again"
    ]


def test_absent_names_are_dropped() -> None:
    assert cited("She married the captain in the autumn of that year") == []
    assert cited("dank") == []
    assert cited("   ") == []


def test_the_parts_around_an_elision_are_located_separately() -> None:
    assert cited("left the harbour in May ... The bell rang") == [
        "left the\nharbour in May",
        "The bell rang",
    ]


def test_a_wrong_label_does_not_lose_a_quote() -> None:
    assert cited("The bell rang", label="S7") == ["The bell rang"]


def test_the_labelled_passage_goes_first() -> None:
    both = [passage(label="S1"), passage(label="S2", start=500)]
    assert [c.segment_id for c in locate([Quote("S2", "The bell rang.")], both)] == ["id-S2"]


def test_one_place_is_cited_once() -> None:
    assert len(locate([Quote("S1", "It was dark.")] * 2, [passage()])) == 1


def test_a_whole_segment_is_marked_as_one() -> None:
    citation = whole(passage())
    assert citation.whole
    assert citation.quote == TEXT
    assert (citation.start, citation.end) == (OFFSET, OFFSET + len(TEXT))


def test_without_quotes_the_passage_that_shares_most_words_supports() -> None:
    other = passage("Nothing of the kind happened here.", label="S2")
    assert supporting("the bell rang", (), [other, passage()]) == [passage()]
    assert supporting("the bell rang", [Quote("S2", "gone")], [other, passage()]) == [other]
    assert supporting("anything", (), []) == []


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_quote_gives_true_offsets_or_nothing(quote: str, text: str) -> None:
    document = " " * OFFSET + text
    for citation in locate([Quote("S1", quote)], [passage(text)]):
        assert document[citation.start : citation.end] == citation.quote
