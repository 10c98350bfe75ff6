"""The excerpt of each hit: the matching part; contents and title pages come last."""

from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

import qrmem
from qrmem import Document
from qrmem.cli.output import hit_lines
from qrmem.text.boilerplate import apparatus, boilerplate
from qrmem.text.numbers import counted

FILLER = "It rained again on the long wet road to nowhere. "
CONTENTS = "\n\n".join(f"Chapter {n}. The Whale and Ahab" for n in range(1, 12))
STORY = FILLER * 20 + "In the last chapter the whale killed Ahab. " + FILLER * 20


async def test_a_hit_shows_what_matches_not_its_beginning() -> None:
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(Document(STORY, title="Story", id="story"))
        hit = (await memory.search("When did the whale kill Ahab?"))[0]
    assert "the whale killed Ahab." in hit.excerpt
    assert hit.excerpt in hit.text
    assert hit.excerpt.endswith(".")
    assert len(hit.excerpt.split()) <= 50
    assert {hit.excerpt[a:b] for a, b in hit.matches} == {"whale", "killed", "Ahab"}
    assert "\x02whale\x03" in hit_lines(1, hit)[-1]


@pytest.mark.parametrize(
    ("text", "question", "found"),
    [
        ("Анна приехала. Вронский встретил Анну.", "Где Вронский встретил Анну?", "встретил"),
        ("Aleksis Kivi syntyi Nurmijärvellä.", "Missä Kivi syntyi?", "syntyi"),
        ("பாரதியார் எட்டயபுரத்தில் பிறந்தார்.", "பாரதியார் எங்கே பிறந்தார்?", "பிறந்தார்"),
        ("রবীন্দ্রনাথ কলকাতায় জন্মগ্রহণ করেন।", "রবীন্দ্রনাথ কোথায় জন্মগ্রহণ করেন?", "জন্মগ্রহণ"),
    ],
)
async def test_questions_in_other_languages_are_answered(
    text: str, question: str, found: str
) -> None:
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(Document(text, id="d"))
        answer = await memory.ask(question)
        (hit,) = await memory.search(question)
    assert answer.status == "passages"
    assert found in answer.citations[0].quote
    assert found in {hit.excerpt[a:b] for a, b in hit.matches}


async def test_a_table_of_contents_is_marked_and_comes_last() -> None:
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(
            [
                Document(CONTENTS, title="The Whale and Ahab", id="contents"),
                Document("A whale was seen off the coast.", id="news"),
            ]
        )
        hits = await memory.search("the whale and Ahab chapter")
    # The last line of the table is what a chapter would begin with.
    assert {hit.boilerplate for hit in hits[1:]} == {"contents", "heading"}
    assert hits[0].document_id == "news"
    assert hits[0].score >= hits[1].score >= hits[2].score
    table = next(hit for hit in hits if hit.boilerplate == "contents")
    assert "(contents)" in hit_lines(2, table)[0]


async def test_code_is_shown_in_whole_lines_from_the_definition_on(tmp_path: Path) -> None:
    body = "".join(f"    total += {n}\n" for n in range(6))
    code = f"import os\n\ntotal = 0\n\ndef first_step():\n{body}\ndef sail_home(ship):\n{body}"
    (tmp_path / "ship.py").write_text(code, encoding="utf-8")
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(tmp_path / "ship.py")
        hit = (await memory.search("What does sail_home do?"))[0]
    assert hit.excerpt.startswith("def sail_home(ship):\n    total += 0\n")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\n".join(f"{n}. The Long Road" for n in range(1, 9)), "contents"),
        ("\n".join(f"Dinners at sea ..... {n}" for n in range(1, 9)), "contents"),
        ("\n".join(f"{n}. buy {n} bags of flour" for n in range(1, 9)), ""),
        ("\n".join(f"{n}. Stir the flour into the milk." for n in range(1, 9)), ""),
        ("Chapter 11. The Whale", "heading"),
        ("Part 2 is missing", ""),
    ],
)
def test_a_list_with_numbers_is_no_table_of_contents(text: str, kind: str) -> None:
    assert boilerplate(text) == kind


async def test_an_excerpt_of_code_begins_with_the_line_that_opens_its_block(tmp_path: Path) -> None:
    text = 'def total(prices):\n    """Add up prices."""\n    return sum(prices)\n'
    (tmp_path / "bill.py").write_text(text, encoding="utf-8")
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(tmp_path / "bill.py")
        (hit,) = await memory.search("Where are prices added up?")
    assert hit.excerpt.startswith("def total(prices):")


async def test_excerpts_of_code_begin_at_the_definition_and_share_no_line(tmp_path: Path) -> None:
    text = "".join(
        f"def {name}_bill(prices):\n    total = sum(prices)\n    return total  # to be paid\n\n\n"
        for name in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last")
    )
    (tmp_path / "bill.py").write_text(text, encoding="utf-8")
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(tmp_path / "bill.py")
        answer = await memory.ask("What does fourth_bill do to the prices?")
    assert answer.citations[0].quote.startswith("def fourth_bill(prices):")
    spans = sorted((cited.start, cited.end) for cited in answer.citations)
    assert len(spans) > 1
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_a_count_of_one_is_in_the_singular() -> None:
    assert [counted(n, "entities") for n in (1, 2)] == ["1 entity", "2 entities"]
    assert [counted(n, "calls") for n in (0, 1, 1000)] == ["0 calls", "1 call", "1,000 calls"]


@pytest.mark.parametrize(
    "row", [f"| name |{' ' * 4_000}| 3 |", f"|{' ' * 4_000}|", " " * 40_000, "." * 4_000 + " x"]
)
def test_a_row_of_a_table_with_thousands_of_spaces_is_looked_at_once(row: str) -> None:
    text = "\n".join(["a"] * 6 + [row, "b"])
    began = process_time()
    boilerplate(text)
    apparatus(text)
    assert process_time() - began < 1
