"""Turns of several processes in one file: each has a number of its own, in order."""

import asyncio
from pathlib import Path

import pytest

import qrmem
from qrmem.memory.chat import conversation
from qrmem.memory.session import Session


async def test_turns_that_two_memories_keep_at_once_are_all_there(tmp_path: Path) -> None:
    at = str(tmp_path / "m.db")
    said = {who: [f"{who} says {n}" for n in range(8)] for who in ("Ann", "Ben", "Cora")}

    async def keep(who: str) -> None:
        async with qrmem.open(at, embedder="none") as memory:
            for text in said[who]:
                await memory.add_turn("user", text, session=who)

    await asyncio.gather(*map(keep, said))
    async with qrmem.open(at, embedder="none") as memory:
        for who, texts in said.items():
            assert [turn.text for turn in await memory.turns(who)] == texts


@pytest.mark.parametrize("theirs", ["Hello.", "Good day."])
async def test_messages_whose_numbers_another_took_are_kept_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    at = str(tmp_path / "m.db")
    last = conversation.last_of
    seen = [0]  # as if the other had written in between

    async def late(memory: Session) -> int:
        return seen.pop() if seen else await last(memory)

    async with (
        qrmem.open(at, embedder="none") as other,
        qrmem.open(at, embedder="none") as memory,
    ):
        await other.add_turn("user", theirs)
        monkeypatch.setattr(conversation, "last_of", late)
        added = await memory.add_messages([("user", "Hello."), ("assistant", "Good day.")])
        assert added == ["turn-00000002", "turn-00000003"]
        said = [turn.text for turn in await other.turns()]
    assert said == [theirs, "Hello.", "Good day."]
