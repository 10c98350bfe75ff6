"""What a search works out beforehand is kept in the file, and never changes what is found."""

import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest
from fakes import HashEmbedder

import qrmem
from qrmem import Document, Hit
from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store
from qrmem.graphstore.sqlite import SqliteStore
from qrmem.graphstore.sqlite.connection import Opening
from qrmem.io.archive import export_archive
from qrmem.retrieval import Searcher, embed_segments, keeping
from qrmem.retrieval.columns import Columns
from qrmem.retrieval.graph import Graph

QUESTIONS = (
    "In which town was the author of The Grey Keel born?",
    "What is sixty-four squares wide?",
    "Émile",
)
PAGES = {
    "keel": ("The Grey Keel", "The Grey Keel is a ballad. Orla Venn wrote it in 1871."),
    "venn": ("Orla Venn (poet)", "Orla Venn was a poet. She was born in Port Hallam."),
    "hallam": ("Port Hallam, Norland", "Port Hallam is a harbour town. Its lighthouse burned."),
    "chess": ("", "Chess is played on a board of sixty-four squares by Émile Zoll."),
    "zoll": ('"Zoll"\n', "Émile Zoll was born in Port Hallam; Orla Venn taught him chess."),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what even a small memory's search works out."""
    monkeypatch.setattr(keeping, "LEAST", 1)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A memory with vectors that was never searched."""
    path = tmp_path / "a.db"
    async with qrmem.open(str(path), namespace="n", model="", embedder="none") as memory:
        await memory.add(
            Document(text, title, id=name, metadata={"length": len(text)})
            for name, (title, text) in PAGES.items()
        )
    store = await open_store(str(path), Settings())
    embedder = HashEmbedder()
    await store.set_embedder("n", embedder.name, embedder.dimension)
    ids = (await store.catalog("n")).segment_ids
    segments = await store.segments("n", ids)
    owners, matrix = await embed_segments(embedder, segments, [""] * len(segments))
    await store.put_vectors("n", "segment", owners, matrix)
    await store.close()
    forget(path)
    return path


def forget(path: Path) -> None:
    """Leave the file as one that was never searched."""
    db = sqlite3.connect(path)
    db.execute("DELETE FROM search_index")
    db.commit()
    db.close()


async def found(store: GraphStore) -> list[list[Hit]]:
    searcher = Searcher(store, "n", HashEmbedder())
    hits = [await searcher.search(question) for question in QUESTIONS]
    return [*hits, await searcher.search(QUESTIONS[0], where={"length": len(PAGES["chess"][1])})]


async def searched(path: Path, opening: Opening | None = None) -> list[list[Hit]]:
    """Search the file anew."""
    store = await SqliteStore.open(path, opening)
    try:
        return await found(store)
    finally:
        await store.close()


def rows(path: Path) -> list[tuple[str, int]]:
    db = sqlite3.connect(path)
    result = db.execute("SELECT part, revision FROM search_index ORDER BY part").fetchall()
    db.close()
    return result


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be worked out."""

    async def read(*_: object) -> None:
        raise AssertionError("worked out again")

    monkeypatch.setattr(Columns, "read", read)
    monkeypatch.setattr(Graph, "read", read)


async def test_a_second_process_finds_the_same_without_working_it_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await searched(path)
    assert [part for part, _ in rows(path)] == ["columns", "graph"]
    forbid(monkeypatch)
    assert await searched(path) == first
    assert all(hits and hits[0].via for hits in first)


async def test_a_file_and_a_memory_that_keeps_nothing_find_the_same(path: Path) -> None:
    await searched(path)
    read_only = await searched(path, Opening(read_only=True))
    forget(path)
    assert await searched(path, Opening(read_only=True)) == read_only
    assert rows(path) == []


async def test_a_changed_memory_is_worked_out_again(path: Path) -> None:
    before = await searched(path)
    async with qrmem.open(str(path), namespace="n", model="") as memory:
        await memory.merge("Orla Venn", "Émile Zoll")
    kept = rows(path)
    await searched(path)
    assert rows(path) != kept
    store = await open_store(str(path), Settings())
    await store.delete_document("n", "venn")
    after = await found(store)
    await store.close()
    assert {hit.document_id for hits in before for hit in hits} >= {"venn"}
    assert {hit.document_id for hits in after for hit in hits} == PAGES.keys() - {"venn"}


async def test_what_is_deleted_leaves_the_index_at_once(path: Path) -> None:
    await searched(path)
    assert b"port hallam norland" in b"".join(parts(path))
    store = await open_store(str(path), Settings())
    await store.delete_document("n", "hallam")
    await store.close()
    assert rows(path) == []


def parts(path: Path) -> list[bytes]:
    db = sqlite3.connect(path)
    result = [data for (data,) in db.execute("SELECT data FROM search_index")]
    db.close()
    return result


@pytest.mark.parametrize(
    "damage", ["x'00'", "x''", "substr(data, 1, 100)", "CAST(data || x'00' AS BLOB)"]
)
async def test_a_damaged_index_is_worked_out_and_written_again(path: Path, damage: str) -> None:
    first = await searched(path)
    whole = parts(path)
    db = sqlite3.connect(path)
    db.execute(f"UPDATE search_index SET data = {damage}")
    db.commit()
    db.close()
    assert await searched(path) == first
    assert parts(path) == whole


async def test_another_writer_is_not_waited_for(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    first = await searched(path, Opening(timeout=600))
    assert rows(path) == []
    other.execute("ROLLBACK")
    other.close()
    assert await searched(path) == first
    assert rows(path)


async def test_an_index_of_a_revision_that_is_past_is_not_kept(path: Path) -> None:
    store = await open_store(str(path), Settings())
    info = await store.namespace("n")
    assert info is not None
    await store.put_index("n", info.revision - 1, {"columns": b"old"})
    await store.put_index("nowhere", 0, {"columns": b"none"})
    assert await store.index("n", info.revision - 1, "columns") is None
    await store.put_index("n", info.revision, {"columns": b"new"})
    assert await store.index("n", info.revision, "columns") == b"new"
    assert await store.index("n", info.revision, "graph") is None
    assert await store.index("other", info.revision, "columns") is None
    await store.delete_namespace("n")
    await store.close()
    assert rows(path) == []


async def test_an_archive_has_nothing_of_it(path: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        store = await open_store(str(path), Settings())
        await export_archive(store, "n", tmp_path / f"{number}.qrmem", runs=True)
        await store.close()
        await searched(path)
    assert (tmp_path / "1.qrmem").read_bytes() == (tmp_path / "2.qrmem").read_bytes()


async def test_a_small_memory_keeps_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "LEAST", 6)
    await searched(path)
    assert rows(path) == []


async def test_what_a_large_add_leaves_is_ready_for_the_first_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.db"

    async def add(count: int, prefix: str) -> None:
        async with qrmem.open(str(path), namespace="n", model="", embedder="none") as memory:
            await memory.add(
                Document(f"Kay {prefix}{n} sang.", id=f"{prefix}{n}") for n in range(count)
            )

    await add(20, "x")
    whole = rows(path)
    assert whole
    await add(1, "y")
    assert rows(path) == whole  # too little has changed for making it again
    await add(5, "z")
    assert rows(path) != whole
    forbid(monkeypatch)
    async with qrmem.open(str(path), namespace="n", model="", embedder="none") as memory:
        assert [hit.document_id for hit in await memory.search("z3", k=1)] == ["z3"]


@pytest.mark.parametrize("seed", range(2))
async def test_after_any_changes_search_finds_what_a_fresh_index_finds(
    tmp_path: Path, seed: int
) -> None:
    path, random = tmp_path / "a.db", Random(seed)
    texts = [text for _, text in PAGES.values()]
    for _ in range(6):
        async with qrmem.open(str(path), namespace="n", model="", embedder="none") as memory:
            await memory.add(
                Document(text, title, id=name) for name, (title, text) in PAGES.items()
            )
            present = [info.id for info in await memory.documents()]
            change = random.choice(["add", "replace", "delete", "merge"])
            if change == "delete" and len(present) > 2:
                await memory.delete(random.choice(present))
            elif change == "merge":
                await memory.merge("Orla Venn", "Port Hallam")
            else:
                name = random.choice(present) if change == "replace" else f"x{random.random()}"
                text = " ".join(random.sample(texts, 2))
                await memory.add([Document(text, name.title(), id=name)], update=True)
        found = await searched(path)
        fresh = tmp_path / "fresh.db"
        shutil.copy(path, fresh)
        forget(fresh)
        assert await searched(fresh, Opening(read_only=True)) == found
        assert await searched(path) == found
