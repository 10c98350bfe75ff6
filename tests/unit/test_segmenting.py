"""Segments: nothing lost, nothing too long, cut where a reader would cut."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graph.segmenting import cut
from qrmem.text.headings import headings
from qrmem.text.normalise import normalise
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Document, Part, Segment, Tokenizer

BUILTIN = BuiltinTokenizer()


@dataclass(frozen=True)
class Characters:
    """Counts three characters a token, rounded up, so that counts do not add up."""

    name: str = "characters"

    def count(self, text: str) -> int:
        return -(-len(text) // 3)

    def cut(self, text: str, limit: int) -> str:
        return text[: 3 * limit]


WORDS = [
    "The",
    "keeper",
    "Mr.",
    "Hale",
    "wrote.",
    "“Stop!”",
    "in",
    "1904.",
    "港は静か。",
    "naïve",
    "🐳",
]
MARKS = [" ", " ", "\n", "\n\n", "Passage 3:", "\n\nChapter 2\n\n", "\n# A heading\n", "x" * 90]
MIXED = st.lists(st.sampled_from(WORDS + MARKS), max_size=60).map(" ".join)
TEXTS = (MIXED | st.text(max_size=400)).map(normalise)
LIMITS = st.integers(16, 60)


def segments(
    text: str, limit: int = 60, tokenizer: Tokenizer = BUILTIN, **more: object
) -> list[Segment]:
    return cut("d", Document(text, **more), tokenizer, limit)  # type: ignore[arg-type]


@given(TEXTS, LIMITS, st.sampled_from([BUILTIN, Characters()]), st.data())
def test_every_character_belongs_to_exactly_one_segment(
    text: str, limit: int, tokenizer: Tokenizer, data: st.DataObject
) -> None:
    places = st.lists(st.integers(0, len(text)), max_size=4, unique=True).map(sorted)
    parts = tuple(Part(start, f"page {start}") for start in data.draw(places))
    found = segments(text, limit, tokenizer, parts=parts)
    assert "".join(s.text for s in found) == (text if text.strip() else "")
    assert [s.index for s in found] == list(range(len(found)))
    for s in found:
        assert s.text == text[s.start : s.end]
        assert s.tokens == tokenizer.count(s.text) <= limit
    assert [s.start for s in found[1:]] == [s.end for s in found[:-1]]
    assert len({s.id for s in found}) == len(found)


@given(TEXTS, LIMITS)
def test_the_same_document_is_cut_the_same_way(text: str, limit: int) -> None:
    assert segments(text, limit) == segments(text, limit)


def test_ids_depend_on_document_text_and_occurrence_only() -> None:
    text = "Passage 1:\nThe same.\n\nPassage 1:\nThe same.\n\n"
    first, second = segments(text)
    assert first.text == second.text
    assert first.id != second.id
    assert [s.id for s in segments("Passage 0:\nNew.\n\n" + text)][1:] == [first.id, second.id]
    assert cut("other", Document(text), BUILTIN, 60)[0].id != first.id
    assert len(first.id) == 16
    assert int(first.id, 16) >= 0


def test_sentences_are_packed_whole_up_to_the_limit() -> None:
    text = " ".join(f"The keeper wrote line number {n} in the ledger." for n in range(100))
    found = segments(text, 60)
    assert all(s.text.rstrip().endswith(".") for s in found)
    assert all(s.text.startswith("The") for s in found)
    tight = [
        BUILTIN.count(this.text + following.text.split(". ")[0] + ".") > 60 - 3
        for this, following in pairwise(found)
    ]
    assert tight.count(False) <= 2


def test_a_passage_starts_a_segment() -> None:
    text = "Passage 1:\nTolliver\nShe came.\n\nPassage 2:\nHale\nHe left.\n"
    assert [(s.text.split(":")[0], s.part) for s in segments(text)] == [
        ("Passage 1", "Passage 1"),
        ("Passage 2", "Passage 2"),
    ]


def test_a_chapter_starts_a_segment_and_gives_its_name() -> None:
    text = "Title\n\nChapter 1\n\nIt began.\n\n\nCHAPTER II.\n\nIt went on.\n\n"
    assert [(s.part, s.text.strip()) for s in segments(text)] == [
        ("", "Title"),
        ("Chapter 1", "Chapter 1\n\nIt began."),
        ("CHAPTER II", "CHAPTER II.\n\nIt went on."),
    ]


def test_the_parts_of_a_document_name_its_segments() -> None:
    text = "One. Two.\n\nThree."
    found = segments(text, parts=(Part(0, "page 1"), Part(11, "page 2")))
    assert [(s.part, s.text) for s in found] == [("page 1", "One. Two.\n\n"), ("page 2", "Three.")]


def test_a_blank_page_is_no_segment_of_its_own() -> None:
    text = "One.\n\n \n\nThree.\n\n"
    parts = (Part(0, "page 1"), Part(5, "page 2"), Part(9, "page 3"), Part(16, "page 4"))
    found = segments(text, parts=parts)
    assert [(s.part, s.text) for s in found] == [
        ("page 1", "One.\n\n \n\n"),
        ("page 3", "Three.\n\n"),
    ]


def test_headings_of_a_table_of_contents_are_no_chapters() -> None:
    contents = "".join(f"Chapter {n}\n\n" for n in range(1, 9))
    text = f"Contents\n\n{contents}Chapter 1\n\nIt began.\n\nChapter 2\n\nIt ended.\n"
    assert [part.label for part in headings(text)] == ["Chapter 1", "Chapter 1", "Chapter 2"]
    assert [s.text.strip()[-9:] for s in segments(text)] == [
        "Contents",
        "Chapter 8",
        "It began.",
        "It ended.",
    ]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("# One\n\ntext\n\n## Two\ntext\n\n### Three\ntext", ["One", "Two"]),
        ("```\n# no heading\n```\n\n# One\ntext", ["One"]),
        ("PART I\n\nCHAPTER I\n\ntext", ["PART I"]),
        ("Letter 1\n\ntext\n\nLETTER IV.\n\ntext", ["Letter 1", "LETTER IV"]),
        (
            "Chapter Twenty-One\n\ntext\n\nChapter the Last\n\ntext",
            ["Chapter Twenty-One"] * 1 + ["Chapter the Last"],
        ),
        ("Chapter 1: The Sea\n\ntext", ["Chapter 1: The Sea"]),
        ("He wrote\nChapter 7\nin a day.", []),
        ("Chapter and verse\n\ntext", []),
        ("#hashtag\n\ntext", []),
        ("Passage 1:\n\nPassage 2:\n", ["Passage 1", "Passage 2"]),
    ],
)
def test_headings(text: str, labels: list[str]) -> None:
    assert [part.label for part in headings(text)] == labels


def test_a_sentence_longer_than_the_limit_is_cut_at_words() -> None:
    text = "word " * 500 + "end."
    found = segments(text, 40)
    assert len(found) >= 12
    assert all(s.text.split()[-1] in ("word", "end.") for s in found)
    assert all(s.tokens >= 35 for s in found[:-1])


def test_a_word_longer_than_the_limit_is_cut_at_a_character() -> None:
    text = "x" * 100_000
    found = segments(text, 600)
    assert "".join(s.text for s in found) == text
    assert all(s.tokens > 500 for s in found[:-1])


@pytest.mark.parametrize("run", ["x", " ", "é", "港", "0", ". ", "\n", "a ", "qz9"])
def test_a_long_run_is_cut_in_linear_time(run: str) -> None:
    text = "Begin. " + run * (300_000 // len(run)) + " End."
    found = segments(text, 600)
    assert "".join(s.text for s in found) == text
    assert all(s.tokens <= 600 for s in found)


def test_white_space_gives_no_segment() -> None:
    assert segments(" \n\n\t ") == []
    assert segments("") == []


def test_an_edit_leaves_most_other_segments_as_they_are() -> None:
    def sentence(n: int) -> str:
        return f"On day {n} the keeper wrote {n * 7919 % 1000} names and {n * 31 % 17} cargoes."

    text = " ".join(map(sentence, range(4000)))
    before = {s.id for s in segments(text, 200)}
    after = segments("A new beginning was written. " + text, 200)
    changed: list[Segment] = [s for s in after if s.id not in before]
    assert len(changed) < len(after) / 4
