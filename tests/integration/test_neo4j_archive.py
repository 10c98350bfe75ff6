"""An archive goes through a real Neo4j and comes back the same, byte for byte."""

from pathlib import Path

import pytest
from archives import fill, fill_runs, read
from contract.reference import ReferenceStore
from contract.suite.samples import contents
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.graphstore import GraphStore, NamespaceInfo, open_store
from qrmem.io.archive import export_archive, import_archive

pytestmark = pytest.mark.neo4j


async def _load(store: GraphStore, path: Path) -> None:
    await import_archive(store, "n", path, accept=lambda info: info, listener=lambda event: None)


@pytest.mark.parametrize("runs", [False, True])
async def test_sqlite_to_neo4j_to_sqlite_is_byte_identical(
    neo4j: Server, tmp_path: Path, runs: bool
) -> None:
    neo4j.clear()
    first = await open_store(str(tmp_path / "first.db"), Settings())
    between = await open_store(neo4j.uri, neo4j.settings)
    last = await open_store(str(tmp_path / "last.db"), Settings())
    try:
        await fill(first, "n")
        await fill_runs(first, "n")
        await export_archive(first, "n", tmp_path / "1", runs=runs)
        await _load(between, tmp_path / "1")
        await export_archive(between, "n", tmp_path / "2", runs=runs)
        await _load(last, tmp_path / "2")
        await export_archive(last, "n", tmp_path / "3", runs=runs)
        assert read(tmp_path / "1") == read(tmp_path / "2") == read(tmp_path / "3")
        if runs:
            expected = await contents(first, "n")
            assert await contents(between, "n") == expected
            assert await contents(last, "n") == expected
        with pytest.raises(UsageError, match="not empty"):
            await _load(between, tmp_path / "1")
    finally:
        for store in (first, between, last):
            await store.close()


async def test_a_memory_built_in_neo4j_exports_the_bytes_of_one_built_elsewhere(
    neo4j: Server, tmp_path: Path
) -> None:
    neo4j.clear()
    oracle = ReferenceStore()
    store = await open_store(neo4j.uri, neo4j.settings)
    try:
        for each, order in ((oracle, 1), (store, -1)):
            await fill(each, "n", order=order)
            await fill_runs(each, "n")
            await export_archive(each, "n", tmp_path / f"{order}", runs=True)
        assert read(tmp_path / "1") == read(tmp_path / "-1")
    finally:
        await store.close()


async def test_what_a_killed_import_left_in_neo4j_is_started_again(
    neo4j: Server, tmp_path: Path
) -> None:
    neo4j.clear()
    oracle = ReferenceStore()
    store = await open_store(neo4j.uri, neo4j.settings)
    try:
        await fill(oracle, "n")
        await export_archive(oracle, "n", tmp_path / "1")
        await store.create_namespace("n", NamespaceInfo("n", "t", 9, importing="killed"))
        await _load(store, tmp_path / "1")
        assert (await contents(store, "n"))["facts"] == (await contents(oracle, "n"))["facts"]
        assert neo4j.query("MATCH (n:QrmemNamespace) RETURN n.importing") == [[""]]
    finally:
        await store.close()
