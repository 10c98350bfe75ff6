"""The number of a deleted turn is never used again."""

from pathlib import Path

import pytest
from servers.neo4j_server import Server

import qrmem
from qrmem.config import Settings


async def last(settings: Settings, user: str = "") -> str:
    async with qrmem.open(settings=settings) as memory:
        return await memory.add_turn("user", "And one more word.", user=user)


async def require_growth(settings: Settings, folder: Path) -> None:
    async with qrmem.open(settings=settings) as memory:
        ids = [await memory.add_turn("user", f"Word {n}.", user="ann") for n in range(3)]
        await memory.delete(ids[-1])
        assert await memory.add_turn("user", "And one more word.") == "turn-00000004"
        await memory.delete("turn-00000004")
    assert await last(settings) == "turn-00000005"
    async with qrmem.open(settings=settings) as memory:
        await memory.delete("turn-00000005")
        await memory.forget_user("ann")
        assert await memory.turns() == []
    assert await last(settings, "bob") == "turn-00000006"
    async with qrmem.open(settings=settings) as memory:
        await memory.forget_user("bob")
        await memory.export(folder / "m.qr")
    async with qrmem.open(settings=settings.with_(namespace="other")) as memory:
        await memory.load(folder / "m.qr")
        assert await memory.add_turn("user", "And one more word.") == "turn-00000007"
        await memory.delete("turn-00000007")
        await memory.load(folder / "m.qr")  # into what is empty
        assert await memory.add_turn("user", "And one more word.") == "turn-00000008"
        await memory.delete_all()
    async with qrmem.open(settings=settings) as memory:
        await memory.delete_all()


async def test_numbers_of_turns_never_go_back(tmp_path: Path) -> None:
    await require_growth(Settings(memory=str(tmp_path / "m.db"), embedder="none"), tmp_path)


@pytest.mark.neo4j
async def test_numbers_of_turns_never_go_back_in_neo4j(neo4j: Server, tmp_path: Path) -> None:
    settings = neo4j.settings.with_(embedder="none", namespace="numbers")
    await require_growth(settings, tmp_path)
