"""The copy of a namespace's vectors beside the file: extended, rebuilt, deleted with a text."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from contract.store_process import start
from contract.suite.samples import add, text

from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store
from qrmem.graphstore.sqlite import vectors

PIECES = [f"w{n} " for n in range(30)]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LEAST", 10)


async def filled(path: Path) -> tuple[GraphStore, list[str]]:
    store = await open_store(str(path), Settings())
    given = [text(f"d{n:02}", piece) for n, piece in enumerate(PIECES)]
    await add(store, "n", *given)
    ids = [segments[0].id for _, segments in given]
    await store.put_vectors("n", "segment", ids, rows(range(30)))
    return store, ids


def rows(numbers: Sequence[int]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    angles = np.array(numbers) / 30
    return np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1).astype(np.float32)


def copies(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}-vectors-*"))


def holding(data: bytes, folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if data in file.read_bytes()]


async def nearest(store: GraphStore, number: int, k: int = 3) -> list[str]:
    return list(await store.nearest("n", rows([number])[0], k))


async def test_a_copy_is_made_appended_and_read_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store, ids = await filled(path)
    assert copies(path) == []
    assert await nearest(store, 7, 1) == [ids[7]]
    (copy,) = copies(path)
    before = copy.stat().st_size
    document, segments = text("new", "new ")
    await add(store, "n", (document, segments))
    await store.put_vectors("n", "segment", [segments[0].id], rows([40]))
    assert await nearest(store, 40, 1) == [segments[0].id]
    assert copy.stat().st_size == before // 30 * 31
    other = await open_store(str(path), Settings())
    assert await nearest(other, 40, 2) == [segments[0].id, ids[29]]
    await other.close()
    await store.close()


async def test_three_processes_write_each_vector_into_the_copy_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store, ids = await filled(path)
    await nearest(store, 7)
    (copy,) = copies(path)
    each = copy.stat().st_size // len(ids)
    processes = [start("nearest", path) for _ in range(3)]
    assert [looked_up(process, 7) for process in processes] == [ids[7]] * 3
    document, segments = text("new", *(f"new{n} " for n in range(20)))
    await add(store, "n", (document, segments))
    await store.put_vectors("n", "segment", [s.id for s in segments], rows(range(40, 60)))
    assert [looked_up(process, 45) for process in processes] == [segments[5].id] * 3
    assert await nearest(store, 45, 1) == [segments[5].id]
    assert copy.stat().st_size == each * 50
    for process in processes:
        process.communicate()
    await store.close()


def looked_up(process: subprocess.Popen[str], number: int) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{number}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.parametrize("harm", ["gone", "cut", "empty"])
async def test_a_copy_that_is_gone_or_torn_is_made_again(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "a.db"
    store, ids = await filled(path)
    await nearest(store, 7)
    await store.close()
    (copy,) = copies(path)
    if harm == "gone":
        copy.unlink()
    else:
        copy.write_bytes(copy.read_bytes()[: 100 if harm == "cut" else 0])
    store = await open_store(str(path), Settings())
    assert await nearest(store, 7, 1) == [ids[7]]
    assert len(await store.nearest("n", rows([7])[0], 50)) == 30
    await store.close()


async def test_a_deleted_text_leaves_no_vector_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store, ids = await filled(path)
    await nearest(store, 7)
    await store.delete_documents("n", "d07")
    assert copies(path) == []
    assert ids[7] not in await nearest(store, 7, 30)
    assert len(await nearest(store, 7, 50)) == 29
    await store.delete_namespace("n")
    assert copies(path) == []
    await store.close()


async def test_a_search_that_outlives_a_deletion_leaves_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store, ids = await filled(path)
    async with store.snapshot() as first:
        assert await nearest(first, 7, 1) == [ids[7]]
        async with store.snapshot() as second:
            assert await nearest(second, 7, 1) == [ids[7]]
            await store.delete_documents("n", "d07")
            await store.clean()
        # It still sees the text, for which it reads all vectors again.
        assert await nearest(first, 7, 1) == [ids[7]]
    assert holding(rows([7])[0].tobytes(), tmp_path) == []
    assert path.with_name("a.db-wal").stat().st_size == 0
    assert ids[7] not in await nearest(store, 7, 3)
    await store.close()
