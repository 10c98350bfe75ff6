"""The short answers of the local reasoner, pointed at in passages."""

import pytest

from qrmem.language.local import LocalReasoner
from qrmem.language.local.brief import brief
from qrmem.language.local.brief.moments import moments
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import AskContext, Passage, Segment

HARBOUR = (
    (
        "The Salt Road (film)",
        "The Salt Road is a 1931 French drama film directed by the German painter Odile Brandt and "
        "starring Max Teller.",
    ),
    (
        "Odile Brandt",
        "Odile Brandt (3 May 1889 in Lüneburg – 9 June 1960 in Vantry) was a German film maker. "
        "She was the daughter of Jakob Brandt and the singer Mina Losch, and married Karel Voss.",
    ),
    ("Mina Losch", "Mina Losch (born 1860) sang in Lüneburg. She died of pneumonia in 1911."),
    (
        "Grey Water",
        "Grey Water is a 1950 Irish film directed by Sean Daly and written by Ada Holm.",
    ),
    ("Sean Daly", "Sean Daly (born 4 March 1921) is an Irish film director. He lives in Cork."),
    (
        "Vantry",
        "Vantry is a town on the river Luss in the county of Merrow. It has 4,200 inhabitants.",
    ),
    ("Merrow", "Merrow is a county whose seat is Corrin. The county was founded in 1702."),
)


def passages(*texts: tuple[str, str]) -> list[Passage]:
    return [
        Passage(f"S{n}", Segment(f"s{n}", f"d{n}", 0, 0, len(text), text, 40), title)
        for n, (title, text) in enumerate(texts, 1)
    ]


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("Who directed The Salt Road?", "Odile Brandt"),
        ("When was the director of the film The Salt Road born?", "3 May 1889"),
        ("Where was the director of The Salt Road born?", "Lüneburg"),
        ("Where did the director of the film The Salt Road die?", "Vantry"),
        ("Who is the mother of the director of The Salt Road?", "Mina Losch"),
        ("Who is Odile Brandt's father?", "Jakob Brandt"),
        ("Who is the spouse of the director of The Salt Road?", "Karel Voss"),
        ("What is the cause of death of Odile Brandt's mother?", "pneumonia"),
        ("What nationality is the director of the film Grey Water?", "Irish"),
        ("Which film came out first, Grey Water or The Salt Road?", "The Salt Road"),
        ("Which film was released later, Grey Water or The Salt Road?", "Grey Water"),
        ("Which film has the director who is older, Grey Water or The Salt Road?", "The Salt Road"),
        ("Are the directors of Grey Water and The Salt Road of the same nationality?", "no"),
        ("Are Odile Brandt and Sean Daly both film makers?", "no"),
        ("Who was born later, Odile Brandt or Sean Daly?", "Sean Daly"),
    ],
)
def test_relations_are_followed_from_passage_to_passage(question: str, short: str) -> None:
    assert brief(question, passages(*HARBOUR)).text == short


@pytest.mark.parametrize(
    ("question", "text", "short"),
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
def test_one_passage_without_a_title_is_enough(question: str, text: str, short: str) -> None:
    assert brief(question, passages(("", text))).text == short


def test_what_the_answer_rests_on_is_told() -> None:
    found = brief("When was the director of the film The Salt Road born?", passages(*HARBOUR))
    assert [passage.label for passage, _ in found.stated] == ["S1", "S2"]
    for passage, sentence in found.stated:
        assert sentence in passage.segment.text


@pytest.mark.parametrize("text", ["", "he ate bread and cheese", "???", "a" * 3000])
def test_nothing_to_point_at_is_no_short_answer_and_no_error(text: str) -> None:
    assert brief("What did he eat?", passages(("", text))).text in text
    assert brief(text, passages(*HARBOUR)).text in " ".join(f"{t} {s}" for t, s in HARBOUR)
    assert brief("Who?", []).text == ""


async def test_the_short_answer_comes_with_the_sentences_that_are_quoted() -> None:
    reasoner = LocalReasoner(BuiltinTokenizer())
    asked = AskContext("Who directed The Salt Road?")
    verdict = await reasoner.judge(asked, passages(*HARBOUR), force=True)
    assert verdict.short == "Odile Brandt"
    assert verdict.short in verdict.answer


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("on 24 August 1886", (1886, 8, 24)),
        ("on August 24, 1886", (1886, 8, 24)),
        ("in August 1886", (1886, 8, 0)),
        ("in 1886", (1886, 0, 0)),
    ],
)
def test_dates_compare_by_year_month_and_day(text: str, order: tuple[int, int, int]) -> None:
    assert [moment.order for moment in moments(text)] == [order]
