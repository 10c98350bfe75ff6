"""Recall across sessions in a memory of a few turns, where no word is rare."""

from typing import Any

import pytest

import qrmem
from qrmem.errors import UsageError

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


@pytest.mark.parametrize(
    ("wrong", "reason"), [(3, "reranker must be text"), ("http://", "a reranker's URL must")]
)
async def test_an_empty_memory_refuses_a_wrong_reranker(wrong: Any, reason: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match=reason):
            await memory.recall("Where is my boat?", reranker=wrong)


@pytest.mark.parametrize("prompt", ["INV-2026-0417", "When is INV-2026-0417 due?"])
async def test_an_identifier_finds_the_turns_that_hold_it_whole(prompt: str) -> None:
    long = "In 2026 the barley went to the loft of the western mill before the rain came down. "
    async with qrmem.open("memory://", embedder="none") as memory:
        for n in range(7):
            await memory.add_turn("user", long * 12, session=f"mill {n}")
        await kept(memory, *(f"Rope {n} is spliced." for n in range(4)))
        id = await memory.add_turn("user", "Please pay INV-2026-0417 by Friday.", session="bills")
        await memory.add_turn("user", "INV-2025-0417 is paid.", session="other")
        found = await memory.recall(prompt, session="new")
        assert id in [turn.id for turn in found.related]
        assert "barley" not in found.text
        found = await memory.recall("INV-2026-0999", session="new")
        assert "barley" in found.text


GOATS = [
    *("Mes chèvres sont dans le pré.", "Les chèvres ont mangé le foin.", "Il faut tondre le pré."),
    *("Les chèvres sont malades.", "Le vétérinaire a vu les chèvres.", "Le marché est à Dole."),
]
IN_JAPANESE = ["私のヤギは牧草地にいます。", "自転車は京都で買いました。", "今夜は映画を見ます。"]


@pytest.mark.parametrize(
    ("said", "prompt", "wanted"),
    [
        (GOATS * 2, "Où se trouvent mes chèvres ?", "dans le pré"),
        (GOATS[:1], "Où est ma chèvre ?", "dans le pré"),
        (["Vivo en Sevilla.", "Hoy llueve mucho."], "¿Dónde vivo?", "Sevilla"),
        (["Der Schlüssel liegt unter dem Topf."], "Wo ist nochmal der Schlüssel?", "Topf"),
        (["会议在星期四下午五点。", "今晚我要看电影。"], "会议是什么时候？", "星期四"),
        (IN_JAPANESE, "私のヤギはどこですか？", "牧草地"),
    ],
)
async def test_a_question_in_another_language_finds_a_turn(
    said: list[str], prompt: str, wanted: str
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await kept(memory, *said)
        assert wanted in (await memory.recall(prompt, session="new")).text
