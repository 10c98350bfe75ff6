"""What a SQLite file does while the names of a change are still being found out."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from qrmem.config import Settings
from qrmem.errors import StoreConflict, StoreUnavailable
from qrmem.graphstore import open_store
from qrmem.graphstore.protocol import Change, GraphStore, IndexRow, Naming
from qrmem.graphstore.sqlite import Opening, SqliteStore, connection
from qrmem.graphstore.testing.naming import CHANGES, ONE, OTHER
from qrmem.graphstore.testing.samples import INFO, contents, later, parted

pytestmark = pytest.mark.timeout(20)

ROWS, NAMING = parted(CHANGES[0])


async def _begun(path: Path, opening: Opening | None = None) -> SqliteStore:
    store = await SqliteStore.open(path, opening)
    await store.create_namespace("n", INFO)
    for document, segments in (ONE, OTHER):
        await store.put_document("n", document, segments)
    return store


def _never() -> asyncio.Future[Naming]:
    return asyncio.get_running_loop().create_future()


async def _waiting(store: GraphStore, naming: asyncio.Future[Naming]) -> asyncio.Task[int]:
    """Return a write that has got as far as to wait for its names."""
    writing = asyncio.create_task(store.apply("n", 0, ROWS, naming))
    await asyncio.sleep(0.05)
    assert not writing.done()
    return writing


def _dump(path: Path) -> list[str]:
    db = sqlite3.connect(path)
    lines = list(db.iterdump())
    db.close()
    return lines


async def test_a_file_is_the_same_row_by_row_wherever_its_names_come_from(tmp_path: Path) -> None:
    for name in ("at once", "later"):
        store = await _begun(tmp_path / name)
        for revision, given in enumerate(CHANGES):
            rows, naming = parted(given)
            if name == "later":
                await store.apply("n", revision, rows, later(naming))
            else:
                await store.apply("n", revision, given)
        await store.close()
    assert _dump(tmp_path / "later") == _dump(tmp_path / "at once")


async def test_a_conflict_does_not_wait_for_names(tmp_path: Path) -> None:
    store = await _begun(tmp_path / "a.db")
    never = _never()
    with pytest.raises(StoreConflict):
        await store.apply("n", 1, ROWS, never)
    assert await store.apply("n", 0, CHANGES[0]) == 1
    assert never.cancelled()
    await store.close()


async def test_a_full_disk_does_not_wait_for_names(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await (await _begun(path)).close()
    pages = path.stat().st_size // connection.PAGE_SIZE
    small = await SqliteStore.open(path, Opening(pragmas={"max_page_count": pages + 10}))
    before = await contents(small, "n")
    (first, _) = ONE[1]
    terms = {f"a long word {n:05} of many": n for n in range(1, 20_000)}
    many = [IndexRow(first.id, 1, terms)]
    with pytest.raises(StoreUnavailable, match="no space left"):
        await small.apply("n", 0, Change(index=many), _never())
    assert await contents(small, "n") == before
    assert await small.apply("n", 0, ROWS, later(NAMING)) == 1
    await small.close()


async def test_others_see_rows_and_names_together(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store, other = await _begun(path), await SqliteStore.open(path, Opening(timeout=0.05))
    before = await contents(other, "n")
    naming = _never()
    writing = await _waiting(store, naming)
    assert await contents(other, "n") == before
    with pytest.raises(StoreUnavailable, match="locked"):
        await other.set_summary("n", "d", "meanwhile")
    naming.set_result(NAMING)
    assert await writing == 1
    await other.set_summary("n", "d", "afterwards")
    assert await contents(other, "n") == await contents(store, "n") != before
    await store.close()
    await other.close()


async def test_a_file_is_closed_when_its_names_have_come(tmp_path: Path) -> None:
    store = await _begun(tmp_path / "a.db")
    naming = _never()
    writing = await _waiting(store, naming)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    naming.set_result(NAMING)
    await closing
    assert await writing == 1
    assert os.listdir(tmp_path) == ["a.db"]
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.apply("n", 1, ROWS, later(NAMING))


def test_nobody_waits_for_names_from_an_event_loop_that_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LOOK", 0.02)
    path = tmp_path / "a.db"
    loop = asyncio.new_event_loop()

    async def interrupted() -> tuple[SqliteStore, asyncio.Task[int]]:
        store = await _begun(path)
        return store, await _waiting(store, _never())

    async def write_elsewhere() -> int:
        other = await open_store(str(path), Settings())
        try:
            return await other.apply("n", 0, CHANGES[0])
        finally:
            await other.close()

    store, writing = loop.run_until_complete(interrupted())
    assert asyncio.run(write_elsewhere()) == 1
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(writing)
    loop.run_until_complete(store.close())
    loop.close()
