"""A memory that was opened and stayed empty."""

import asyncio
import os
from pathlib import Path

import pytest

import qrmem
from qrmem.cli import main
from qrmem.config import Settings
from qrmem.errors import NotFound, UsageError
from qrmem.graphstore.sqlite import OpenMode, SqliteStore

SETTINGS = Settings(embedder="none")


async def test_an_unused_file_is_deleted_on_close(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), settings=SETTINGS) as memory:
        with pytest.raises(UsageError):
            await memory.add(str(tmp_path / "nowhere.txt"))
    assert os.listdir(tmp_path) == []
    with pytest.raises(NotFound):
        await qrmem.open(str(tmp_path / "m.db"), create=False, settings=SETTINGS)


async def test_a_file_stays_while_another_program_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with qrmem.open(str(path), settings=SETTINGS):
        other = await SqliteStore.open(path, OpenMode())
    assert "m.db" in os.listdir(tmp_path)
    await other.close()


async def test_a_file_stays_once_something_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with qrmem.open(str(path), settings=SETTINGS) as memory:
        await memory.add(qrmem.Document("Ada Lovelace met Charles Babbage.", id="d"))
    async with qrmem.open(f"sqlite://{path}", create=False, settings=SETTINGS) as memory:
        assert [found.id for found in await memory.documents()] == ["d"]


@pytest.mark.parametrize("address", [":memory:", "sqlite://:memory:", "memory://"])
async def test_a_memory_in_memory_makes_no_file(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QRMEM_MEMORY", address)
    for given in (address, None):
        async with qrmem.open(given, embedder="none") as memory:
            await memory.add_text("Ada Lovelace met Charles Babbage.", id="d")
            assert [one.id for one in await memory.documents()] == ["d"]
        async with qrmem.open(given, embedder="none") as memory:
            assert list(await memory.documents()) == []
    await asyncio.to_thread(main, ["status", "--memory", address])
    assert os.listdir(tmp_path) == []
