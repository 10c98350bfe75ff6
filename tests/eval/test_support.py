"""The sentences that a citation overlaps."""

from pathlib import Path

import pytest

from qrmem.eval import Corpus, load
from qrmem.eval.systems.passage_reader import cited_sentences
from qrmem.types import Citation

DATASET = load("hotpotqa", Path(__file__).parent / "data" / "hotpot.json", Corpus())
CONTEXT = DATASET.contexts["h1"]
STRAKE = CONTEXT.documents[1]


def citation(quote: str, *, whole: bool = False) -> Citation:
    start = STRAKE.text.index(quote)
    return Citation(STRAKE.id or "", "s", start, start + len(quote), quote, whole=whole)


@pytest.mark.parametrize(
    ("quote", "places"),
    [
        ("Lemuel Strake was", [0]),
        ("bell-founder.", [0]),
        ("He was born in Vantry", [1]),
        ("1770.", [1]),
        ("bell-founder. He was", [0, 1]),
    ],
)
def test_a_quotation_stands_in_its_sentences(quote: str, places: list[int]) -> None:
    found = cited_sentences([citation(quote)], CONTEXT)
    assert found == tuple((STRAKE.id, place) for place in places)


def test_a_whole_segment_and_an_unknown_document_name_no_sentence() -> None:
    elsewhere = Citation("other", "s", 0, 5, "x")
    assert cited_sentences([citation("He was", whole=True), elsewhere], CONTEXT) == ()
