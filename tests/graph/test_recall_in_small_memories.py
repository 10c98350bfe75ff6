"""Recall across sessions in a memory of a few turns, where no word is rare."""

import pytest

import qrmem
from qrmem.integrations.toolset import recalled_text

SAID = [
    ("The rabbit is called Fern.", "Fern eats only hay.", "What does the rabbit eat?", "hay"),
    ("The server runs Debian.", "The server has 64 GB.", "How much has the server?", "64 GB"),
    ("The tiles are blue.", "The tiles cost 40 euros.", "How much were the tiles?", "40 euros"),
    ("The quern is of 1820.", "The mill is of 1790.", "Is the quern older or the mill?", "1790"),
    ("My kiln fires at 1,040 degrees.", "The kiln is hotter.", "How hot is the kiln?", "1,040"),
]


async def kept(memory: "qrmem.Memory", *said: str, others: int = 0) -> None:
    walks = [f"Entry {n}: a walk of {n} hours by the quay." for n in range(others)]
    turns = [turn for one in (*walks, *said) for turn in (("user", one), ("assistant", "Noted."))]
    await memory.add_messages(turns, session="old")


@pytest.mark.parametrize("others", [0, 4, 30])
async def test_a_question_about_one_of_a_few_turns_finds_it(others: int) -> None:
    missed = []
    for first, second, prompt, wanted in SAID:
        async with qrmem.open("memory://", embedder="none") as memory:
            await kept(memory, first, second, others=others)
            found = await memory.recall(prompt, session="new")
            missed += [] if wanted in found.text else [prompt]
    assert missed == []


@pytest.mark.parametrize("prompt", ["hi", "thanks a lot!", "What is the capital of Mongolia?"])
async def test_a_prompt_about_nothing_finds_nothing_in_a_few_turns(prompt: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await kept(memory, *SAID[0][:2], *SAID[1][:2])
        found = await memory.recall(prompt, session="new")
        assert not found.related
        assert recalled_text(found) == "No earlier turns match."
