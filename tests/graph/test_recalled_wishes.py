"""Wishes that later wishes take back or replace, as `recall` shows them."""

import pytest

import qrmem

BO = "Always call me Bo."
ROBERT = "Stop calling me Bo, call me Robert."
NO_BULLETS = "Never use bullet points in your answers."
BULLETS = "Forget what I said about bullet points, you can use them again."
FRENCH = "Always answer in French."
ENGLISH = "Always answer in English."


async def kept(memory: "qrmem.Memory", *said: str, session: str = "old") -> list[str]:
    """Keep turns with replies; return the ids of the user's."""
    turns = [turn for one in said for turn in (("user", one), ("assistant", "Noted."))]
    return (await memory.add_messages(turns, session=session))[::2]


@pytest.mark.parametrize(
    ("earlier", "later"), [(BO, ROBERT), (NO_BULLETS, BULLETS), (FRENCH, ENGLISH)]
)
@pytest.mark.parametrize(
    "prompt",
    ["How tall is Mount Everest?", "Which ropes did I splice?", "What about the granite crane?"],
)
async def test_a_wish_that_is_undone_comes_with_the_later_one(
    earlier: str, later: str, prompt: str
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        before, _ = await kept(memory, earlier, "Our harbour has a granite crane from 1911.")
        await kept(memory, *(f"We spliced rope number {n} by the crane." for n in range(30)))
        (now,) = await kept(memory, later)
        found = await memory.recall(prompt, session="new")
        assert {before, now} <= {turn.id for turn in found.related}
        assert found.corrections[before] == (now,)


async def test_a_wish_inside_a_long_turn_is_undone_too() -> None:
    long = " ".join(f"On quay {n} lies a ship with a cargo of barley and oak." for n in range(2))
    async with qrmem.open("memory://", embedder="none") as memory:
        (before,) = await kept(memory, f"{FRENCH} {long}")
        (now,) = await kept(memory, f"{long} {ENGLISH}")
        found = await memory.recall("How tall is Mount Everest?", session="new")
        assert found.corrections[before] == (now,)


async def test_a_wish_that_is_undone_in_the_last_turns_is_marked() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        (before,) = await kept(memory, BO)
        (now,) = await kept(memory, ROBERT, session="new")
        found = await memory.recall("How tall is Mount Everest?", session="new")
        assert [turn.id for turn in found.related] == [before]
        assert found.corrections[before] == (now,)
