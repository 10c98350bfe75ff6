"""Recalled parts of long turns, standing wishes, and prompts that no turn answers."""

import json
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

import qrmem
from qrmem.errors import UsageError
from qrmem.retrieval.standing import wishes
from qrmem.retrieval.turn_ranking import (
    PART_TOKENS,
    PromptTerms,
    TurnPart,
    best_first,
)

DATA = Path(__file__).parents[1] / "integration" / "data"
CARGO = "The crates of barley went to the loft of the western mill before the rain came down. "
WANTED = "The spare key of the lighthouse hangs behind the green barometer in the hall. "
TALK = [
    ("user", "Our harbour has a crane from 1911 that still lifts granite."),
    ("assistant", "A crane of that age wants its chains looked at every spring."),
    ("user", "The ferry to Skarrow leaves at seven, and Mina sells the tickets."),
    ("assistant", "Then be at the pier by half past six; the queue is long in summer."),
]


def opened() -> "qrmem.memory.Opening":
    return qrmem.open("memory://", embedder="none")


async def far_away(memory: "qrmem.Memory", rounds: int = 40) -> None:
    """Keep enough other turns that nothing before them is recent."""
    said = [("user", f"Tell me about rope number {n} and its splices.") for n in range(rounds)]
    await memory.add_messages(said, session="ropes")


async def test_the_relevant_part_of_a_long_turn_is_shown() -> None:
    text = CARGO * 30 + WANTED + CARGO * 30
    async with opened() as memory:
        id = await memory.add_turn("assistant", text, session="old")
        await far_away(memory)
        found = await memory.recall("Where is my spare key of the lighthouse?", tokens=600)
        (turn,) = [one for one in found.related if one.id == id]
        assert WANTED.strip() in turn.text
        assert turn.text.startswith("… ")
        assert turn.text.endswith(" …")
        assert len(turn.text) < len(text) / 4
        assert found.tokens <= 600
        (kept,) = await memory.turns("old")
        assert kept.text.strip() == text.strip()


async def test_parts_that_follow_each_other_keep_the_lines_of_the_turn() -> None:
    place = "hangs behind the green barometer in the hall"
    keys = "".join(f"\n- The key number {n} of the lighthouse {place}" for n in range(12))
    text = f"Where the keys are\n{keys}\n\nCalculation\n\nThe sum of the keys is twelve."
    async with opened() as memory:
        id = await memory.add_turn("assistant", text, session="old")
        await far_away(memory)
        found = await memory.recall("Which sum of keys has the lighthouse?", tokens=1000)
        (turn,) = [one for one in found.related if one.id == id]
        assert "Calculation\n\nThe sum" in turn.text


async def test_parts_of_a_turn_stand_in_its_order() -> None:
    other = "The green barometer was a gift from the pilot, who had it from his father. "
    async with opened() as memory:
        id = await memory.add_turn("assistant", other + CARGO * 20 + WANTED, session="old")
        await far_away(memory)
        found = await memory.recall("What do we know of the green barometer?", tokens=1000)
        (turn,) = [one for one in found.related if one.id == id]
        assert turn.text.index("gift from the pilot") < turn.text.index(WANTED.strip())
        assert " …\n" in turn.text


async def test_a_short_turn_is_shown_whole() -> None:
    async with opened() as memory:
        await memory.add_messages(TALK, session="old")
        await far_away(memory)
        found = await memory.recall("When does my ferry to Skarrow leave?")
        assert TALK[2][1] in [turn.text for turn in found.related]


@pytest.mark.parametrize("session", ["ropes", "new"])
async def test_a_standing_wish_comes_back_for_a_prompt_without_its_words(session: str) -> None:
    wish = "Always answer me in metric units, whatever the sources say."
    async with opened() as memory:
        await memory.add_turn("user", wish, session="old")
        await memory.add_turn("assistant", "I will always do so.", session="old")
        await far_away(memory)
        found = await memory.recall("How deep is my harbour?", session=session, tokens=500)
        assert wish in [turn.text for turn in found.related]
        (info,) = [i for i in await memory.documents() if i.metadata.get("standing")]
        assert info.metadata["role"] == "user"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please include a comparison whenever I ask about areas.", True),
        ("I prefer short answers.", True),
        ("From now on call me Skipper.", True),
        ("The ferry leaves at seven.", False),
        ("We keep bees behind the mill.", False),
        ("I want to make sure the crane is safe.", False),
        ("I've never seen the mill.", False),
        ("Never mind.", False),
        ("I always feel calm there.", False),
        ("You should never put salt in my tea.", True),
    ],
)
def test_wishes_are_distinguished_from_statements(text: str, expected: bool) -> None:
    assert bool(wishes(text)) is expected


WISHES = [
    "Always give prices in Norwegian kroner.",
    "I prefer short bullet lists to long paragraphs.",
    "Never suggest vinyl flooring.",
    "From now on, use metric units.",
]


def lines_with(found: "qrmem.Recalled", part: str) -> str:
    return "\n".join(line for line in found.text.splitlines() if part in line)


async def test_wishes_have_room_beside_many_turns_that_match_better() -> None:
    async with opened() as memory:
        await memory.add_messages([("user", wish) for wish in WISHES], session="old")
        for n in range(60):
            await memory.add_turn("user", f"What does heat pump number {n} cost?", session="pumps")
            reply = f"Heat pump {n} costs {n} thousand. " * 4
            await memory.add_turn("assistant", reply, session="pumps")
        found = await memory.recall("Which heat pump should I buy, and what does it cost?")
        texts = [turn.text for turn in found.related]
        assert set(WISHES) < set(texts)
        assert sum(turn.session == "pumps" for turn in found.related) > 10
        assert found.tokens <= 2000


async def test_wishes_about_other_things_take_a_quarter_at_most() -> None:
    async with opened() as memory:
        wishes = [("user", f"I prefer chair number {n} in the hall.") for n in range(150)]
        await memory.add_messages(wishes, session="old")
        id = await memory.add_turn("assistant", "Kari charges 620 kroner an hour.", session="s")
        found = await memory.recall("How much does Kari charge?", session="new", tokens=2000)
        assert id in [turn.id for turn in found.related]
        text = lines_with(found, "chair number")
        counter = (await memory._session.models()).counter
        assert 0 < counter.count(text) <= 500


async def test_wishes_that_touch_the_prompt_come_before_newer_ones() -> None:
    async with opened() as memory:
        wish = "Never paint the ferry green."
        await memory.add_turn("user", wish, session="old")
        wishes = [("user", f"I prefer chair number {n} in the hall.") for n in range(60)]
        await memory.add_messages(wishes, session="old")
        said = [
            ("user", f"Is the ferry on quay {n} of oak, or is the ferry new?") for n in range(90)
        ]
        await memory.add_messages(said, session="ferries")
        found = await memory.recall("Which ferry is new, and which ferry is of oak?", tokens=600)
        assert wish in [turn.text for turn in found.related]


async def test_turns_that_have_nothing_of_the_prompt_do_not_fill_the_room() -> None:
    async with opened() as memory:
        await memory.add_messages(TALK, session="old")
        await far_away(memory)
        found = await memory.recall("Who sells tickets for my ferry to Skarrow?", session="new")
        assert {turn.number for turn in found.related} <= {1, 2, 3, 4, 5, 6}


async def test_prompts_whose_words_stand_in_several_short_turns_find_them() -> None:
    text = (DATA / "prompts_about_several_turns.jsonl").read_text(encoding="utf-8")
    rows = list(map(json.loads, text.splitlines()))
    sessions = {row["session"] for row in rows if "session" in row}
    missed = []
    async with opened() as memory:
        await memory.add_messages([row for row in rows if "content" in row])
        await far_away(memory)
        for row in (row for row in rows if "asked" in row):
            found = await memory.recall(row["asked"], session="new")
            text = "\n".join(turn.text for turn in found.related)
            # A prompt about the whole names nothing: it gets something of each session.
            is_found = all(some in text for some in row["shown"]) and (
                row["shown"] or sessions <= {turn.session for turn in found.related}
            )
            missed += [] if is_found else [row["asked"]]
    assert len(missed) <= 2, missed


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("recap please", True),
        ("In which order did we do things?", True),
        ("what have we talked about?", True),
        ("Summarise this conversation.", True),
        ("summarize that", False),
        ("give me a recap of the Iliad", False),
        ("Summarize what Clara said so far.", False),
        ("thanks, talk to you later", False),
        ("what should we do?", False),
    ],
)
def test_prompts_about_the_whole_are_distinguished_from_those_about_a_subject(
    prompt: str, expected: bool
) -> None:
    assert PromptTerms(prompt).is_of_conversation is expected


async def test_a_recap_takes_turns_from_all_of_a_long_conversation() -> None:
    async with opened() as memory:
        await far_away(memory, 1000)
        found = await memory.recall("recap please", session="new")
        numbers = [0, *(turn.number for turn in found.related), 1000]
        assert max(later - one for one, later in pairwise(numbers)) <= 60
        assert 1000 < found.tokens <= 2000


async def test_a_recap_for_one_user_takes_the_turns_of_this_user() -> None:
    async with opened() as memory:
        await memory.add_messages([("user", "The crane is old.")], user="ann", session="old")
        await far_away(memory, 100)
        found = await memory.recall("recap please", session="new", user="ann")
        assert [turn.text for turn in found.related] == ["The crane is old."]


@pytest.mark.parametrize(
    "prompt",
    [
        "What about the crane?",
        "Is the whole crew of Mina ill?",
        "Does Mina sell tickets?",
        "what did we say of granite",
    ],
)
async def test_prompts_about_what_was_said_find_it(prompt: str) -> None:
    async with opened() as memory:
        await memory.add_messages(TALK, session="old")
        await far_away(memory)
        assert (await memory.recall(prompt, session="new")).related


async def test_a_turns_parts_are_its_segments_and_small() -> None:
    async with opened() as memory:
        id = await memory.add_turn("assistant", CARGO * 40)
        segments = await memory._session.store.segments("default", documents=[id])
        assert len(segments) > 5
        assert all(segment.tokens <= PART_TOKENS for segment in segments)


async def test_scores_stand_beside_turns_and_can_be_asked_for() -> None:
    async with opened() as memory:
        await memory.add_messages(TALK, session="old")
        await far_away(memory)
        found = await memory.recall("Who sells tickets for my ferry to Skarrow?", session="new")
        assert found.scores.keys() == {turn.id for turn in found.related}
        best = max(found.scores, key=lambda id: found.scores[id])
        assert "Mina sells" in next(turn.text for turn in found.related if turn.id == best)
        least = found.scores[best]
        few = await memory.recall("Who sells tickets for my ferry to Skarrow?", min_score=least)
        assert [turn.id for turn in few.related] == [best]
        assert all(score >= least for score in few.scores.values())


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "much", True])
async def test_an_invalid_score_is_refused_in_one_line(wrong: Any) -> None:
    async with opened() as memory:
        with pytest.raises(UsageError, match=r"^min_score must be [^\n]*$"):
            await memory.recall("Where is my boat?", min_score=wrong)


async def test_wishes_that_stand_are_listed_and_go_with_their_turn() -> None:
    async with opened() as memory:
        said = (
            "The crane is old. Always answer in metric units. I had soup. I prefer short answers."
        )
        id = await memory.add_turn("user", said, user="ann", session="old")
        await memory.add_turn("assistant", "I will always do so.", user="ann", session="old")
        other = await memory.add_turn("user", "Never mention the fog.", user="ben")
        assert [(turn.id, turn.text) for turn in await memory.standing("ann")] == [
            (id, "Always answer in metric units. … I prefer short answers.")
        ]
        assert [turn.id for turn in await memory.standing()] == [id, other]
        assert await memory.standing("nobody") == []
        await memory.delete(id)
        assert await memory.standing("ann") == []


async def test_a_wish_that_is_said_by_hand_is_kept_whole_whatever_its_words() -> None:
    async with opened() as memory:
        id = await memory.add_turn("user", "Prices are in kroner. Be brief.", standing=True)
        (turn,) = await memory.standing()
        assert (turn.id, turn.text, turn.standing) == (id, "Prices are in kroner. Be brief.", True)
        await far_away(memory)
        found = await memory.recall("How deep is my harbour?", session="new")
        assert "Prices are in kroner. Be brief." in [turn.text for turn in found.related]
        assert not any(turn.standing for turn in await memory.turns("ropes"))


async def test_enough_long_turns_are_read_for_a_large_budget() -> None:
    async with opened() as memory:
        long = [("assistant", f"On quay {n} lies a ship. " + CARGO * 30) for n in range(150)]
        await memory.add_messages(long, session="old")
        found = await memory.recall("Which ships lie at our quays?", tokens=7000, session="new")
        assert len(found.related) > 64


async def test_many_wishes_do_not_keep_what_was_said_from_being_read() -> None:
    async with opened() as memory:
        id = await memory.add_turn("assistant", "The ferry to Skarrow leaves at 7.", session="s")
        wishes = [("user", f"I prefer chair number {n} in the hall.") for n in range(150)]
        await memory.add_messages(wishes, session="old")
        found = await memory.recall("When does the ferry to Skarrow leave?", tokens=400)
        assert id in [turn.id for turn in found.related]


@pytest.mark.parametrize(
    ("prompt", "is_spread"),
    [
        ("Give me a summary of the crane's repairs.", False),
        ("In which order did I mention the crane's repairs?", True),
    ],
)
def test_a_summary_takes_the_best_parts_and_an_order_parts_from_everywhere(
    prompt: str, is_spread: bool
) -> None:
    near = [TurnPart(turn, 0, 1.0) for turn in range(1, 16)]
    far = [TurnPart(turn, 0, 0.5) for turn in range(100, 400, 10)]
    ordered = best_first([*near, *far], PromptTerms(prompt), last=400)
    first = [part.turn for part in islice(ordered, len(near))]
    assert (max(first) >= 100) is is_spread
