"""Turns that are corrected later: found, shown with their correction, marked for a model."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes import ScriptedReasoner
from servers.openai_server import OpenAIServer

import qrmem
from benchmarks.corrections import judgements
from qrmem.agents.search.run import Search
from qrmem.agents.search.steps import with_corrections
from qrmem.answering.with_model import block
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.integrations.toolset import Toolset
from qrmem.llm.run import Run
from qrmem.retrieval import corrections
from qrmem.types import Turn
from qrmem.types.options import AskOptions
from qrmem.types.turns import turn_id

DATA = Path(__file__).parent.parent / "eval/data/corrections"
LONG = "I want to be sure that what I do is sound, so can you please look at all of it with me?"
DENTIST = [
    ("user", "The dentist is on 3 May at ten."),
    ("assistant", "Noted."),
    ("user", "The dentist moved me to 5 May, same time."),
]


@pytest.mark.parametrize("name", ["dialogues", "own_words"])
def test_at_most_two_of_forty_dialogues_are_read_wrong(name: str) -> None:
    wrong = []
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 40
    for row in rows:
        turns = [
            Turn(str(n), n, said["role"], said["content"]) for n, said in enumerate(row["turns"], 1)
        ]
        found = corrections.corrections(turns, turns)
        pairs = [[int(old), new.number] for old, later in found.items() for new in later]
        if pairs != row["corrected"]:
            wrong.append(row["id"])
    assert len(wrong) <= 2, wrong


@pytest.mark.parametrize(
    ("earlier", "later", "corrects"),
    [
        ("Let us meet at 5.", "No, make it 6.", True),
        ("I live in Berlin.", "I moved from Berlin to Munich last month.", True),
        ("My favourite colour is blue.", "My favourite colour is green.", True),
        ("I take my coffee with sugar.", "I take my coffee without sugar these days.", True),
        ("My brother is a doctor.", "My brother is not at home.", False),
        ("Chapter 1 is finished.", "Chapter 2 is finished.", False),
        ("I ran five kilometres on Monday.", "I ran seven kilometres on Tuesday.", False),
        (
            "Sure, John! It's those moments of laughter that bring us closer.",
            "Agreed, John! It can be tough, but it's really satisfying.",
            False,
        ),
        ("Great catching up! Take care, talk soon.", "Take care! Can't wait to catch up.", False),
        ("Sounds good, John. Good luck!", "I'm sure you're wrong, John. City are bad.", False),
        ("Glad you liked it, Tim. Bye!", "Glad you liked it. Need any more suggestions.", False),
        ("I have a strategy game, John.", "I have a new strategy, Ben.", False),
        ("The flight leaves at seven.", "The flight leaves early, but it's at six.", True),
        (
            "Always use bold font for class names.",
            "class Names:\n    def use(self):\n        self.font = Font('Thin')  # not bold",
            False,
        ),
        ("I eat meat every day.", "I don't eat meat any more.", True),
        (
            f"The branch has 150 commits merged. {LONG}",
            f"Merged commits have reached 165. {LONG}",
            True,
        ),
        (
            f"The first sprint's deadline is April 1. {LONG}",
            f"My new deadline of April 5. {LONG}",
            False,
        ),
        (
            f"The first sprint has a deadline of April 1 for layout and navigation. {LONG}",
            f"The layout sprint has the new sprint deadline of April 5. {LONG}",
            True,
        ),
        (
            f"My Zoom meeting with Professor Weir is on March 22 at 3 PM. {LONG}",
            f"The meeting with Professor Weir is rescheduled to March 22 at 4:30 PM. {LONG}",
            True,
        ),
        (
            f"A flat in Shoreditch costs £1,800 for the relocation. {LONG}",
            f"My Shoreditch relocation budget is now $3,500. {LONG}",
            False,
        ),
        (
            f"The visits of my portfolio saw a 35% increase since August. {LONG}",
            f"The visits of my portfolio now saw a 25% increase since August. {LONG}",
            False,
        ),
        (
            f"I began as senior producer in Leeds on June 15. {LONG}",
            f"I am a senior producer in Leeds and it's now July 20. {LONG}",
            False,
        ),
        ("The ferry leaves on 3 June at 10.", "The meeting moved to 9 on 3 June.", False),
        ("The meeting is on 2 June at 10.", "The meeting moved to 9 on 3 June.", True),
        ("The ferry to Oslo leaves on 3 June.", "The meeting in Oslo moved to 5 June.", False),
        ("Keep me posted, James! Let me know.", "I won't quit. Gonna keep going.", False),
        ("Her name is Samantha. I'll call her.", "I actually met Samantha in town.", False),
        (
            "Harry Potter is amazing.",
            "Nope, but it's my first time. I'm here for the Harry Potter stuff.",
            False,
        ),
        (
            f"The start page of our harbour site loads in 120 ms for the guests. {LONG}",
            f"The start page of our harbour site has now improved to 300 ms. {LONG}",
            False,
        ),
        (
            f"The start page of our harbour site loads in 300 ms for the guests. {LONG}",
            f"The start page of our harbour site has now improved to 120 ms. {LONG}",
            True,
        ),
        (
            f"My Zotero library on whaling voyages has 45 sources by now. {LONG}",
            f"I've added 5 sources to my Zotero library on whaling voyages. {LONG}",
            False,
        ),
        (
            f"The harbour socket timeout of the tide gauge is 5 seconds. {LONG}",
            f"The harbour socket timeout of the tide gauge was raised to 60 seconds. {LONG}",
            False,
        ),
        (
            f"The harbour socket timeout of the tide gauge is 5 seconds. {LONG}",
            f"The socket timeout of the tide gauge was raised from 5 to 60 seconds. {LONG}",
            True,
        ),
        (
            f"The refresh token of the gauge has a 7 day expiry. {LONG}",
            f"The gauge gets a new refresh token 5 minutes before expiry. {LONG}",
            False,
        ),
    ],
)
def test_what_corrects_and_what_does_not(earlier: str, later: str, *, corrects: bool) -> None:
    one, other = Turn("a", 1, "user", earlier), Turn("b", 2, "user", later)
    assert bool(corrections.corrections([one], [other])) is corrects


async def test_a_number_that_changed_corrects_long_turns_and_one_of_something_else_does_not() -> (
    None
):
    long = "I want to be sure that the way I do this is sound, so can you look at it with me? "
    said = [
        f"I tagged the release with 150 commits merged into the main branch. {long}",
        f"My bike needs 150 grams of grease, and the chain has 116 links. {long}",
        f"The main branch has recently reached 165 commits merged after the release. {long}",
    ]
    async with qrmem.open("memory://", embedder="none") as memory:
        ids = await memory.add_messages([("user", text) for text in said])
        found = await memory.corrections(ids)
    assert {id: [one.number for one in later] for id, later in found.items()} == {ids[0]: [3]}


async def test_without_a_model_the_newer_turn_is_shown_before_the_one_that_it_corrects() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_messages(DENTIST)
        answer = await memory.ask("On which day is the dentist at ten?")
        assert [c.quote for c in answer.citations] == [DENTIST[2][1], DENTIST[0][1]]
        assert f"(corrected later) {DENTIST[0][1]}" in answer.text
        found = await Toolset(memory).search_memory("dentist at ten", k=1)
        assert "Corrected later by:" in found
        assert DENTIST[2][1] in found


async def test_a_model_is_shown_the_correction_and_which_turn_is_out_of_date() -> None:
    reasoner = ScriptedReasoner()
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_messages(DENTIST)
        session = memory._session
        searcher = await session.searcher()
        run = Search(
            parts=Run(reasoner),
            searcher=searcher,
            writer=BestEffortWriter(session.store),
            options=AskOptions(question="When is the dentist?", hits=1, window=4096),
        )
        segments = await session.store.segments(session.ns, documents=["turn-00000001"])
        old, new = await with_corrections(run, await run.graph.passages(segments))
    assert (old.superseded_by, new.superseded_by) == ((new.label,), ())
    assert f"out of date: corrected later by {new.label}" in block(old)


async def test_an_answer_of_a_model_says_what_the_newest_turn_replaced() -> None:
    def answer(request: Mapping[str, Any]) -> str:
        said = request["messages"][-1]["content"]
        label = re.search(r"<text (S\d+)>\nTitle: [^\n]*\n" + re.escape(DENTIST[2][1]), said)
        old = re.search(r"out of date: corrected later by (S\d+)\)\nThe dentist is on 3 May", said)
        is_told = label and old and label[1] == old[1] and "say what it replaced" in said
        text = "5 May (moved from 3 May)" if is_told else "3 May"
        quotes = [f"{label[1]}|{DENTIST[2][1]}"] if label else []
        return json.dumps({"reasoning": "r", "action": -2, "answer": text, "quotes": quotes})

    async with OpenAIServer(answer=answer) as server:
        settings = {"model": "test", "base_url": server.url, "embedder": "none"}
        async with qrmem.open("memory://", **settings) as memory:  # type: ignore[arg-type]
            await memory.add_messages(DENTIST)
            for strategy in (None, "reflection"):
                found = await memory.ask("On which day is the dentist at ten?", strategy=strategy)
                assert found.text == "5 May (moved from 3 May)"
                assert [c.quote for c in found.citations] == [DENTIST[2][1]]


def test_the_benchmark_knows_which_marks_were_read() -> None:
    pairs = [(turn_id(early), turn_id(late)) for early, late in ((101, 201), (75, 127), (101, 102))]
    assert judgements("100K/6", pairs) == [True, None, None]
    assert judgements("locomo/41", [(turn_id(128), turn_id(181))]) == [False]
