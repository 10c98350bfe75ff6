"""Several clients at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from contract.reference import ReferenceStore
from contract.suite.samples import INFO, Text, add, change, contents, series, text
from servers.neo4j_server import Server

from qrmem.errors import QrmemError, StoreConflict
from qrmem.graphstore import GraphStore, open_store
from qrmem.graphstore.neo4j.connection import Work
from qrmem.graphstore.neo4j.store import Neo4jStore

pytestmark = pytest.mark.neo4j


async def _stores(server: Server, count: int) -> list[GraphStore]:
    opened = (open_store(server.uri, server.settings) for _ in range(count))
    return list(await asyncio.gather(*opened))


async def _add_beside_others(store: GraphStore, ns: str, texts: Sequence[Text]) -> None:
    """Add texts while others do; a conflict means: read and compute again."""
    await store.create_namespace(ns, INFO)
    for document, segments in texts:
        await store.put_documents(ns, [(document, segments)])
        while True:
            info = await store.namespace(ns)
            assert info is not None
            made = change(segments, [row.key for row in await store.names(ns)])
            try:
                await store.apply(ns, info.revision, made)
                break
            except StoreConflict:
                continue


async def _expected(ns: str, texts: Sequence[Text]) -> dict[str, object]:
    oracle = ReferenceStore()
    await add(oracle, ns, *texts)
    return await contents(oracle, ns)


async def _close(stores: Sequence[GraphStore]) -> None:
    for store in stores:
        await store.close()


async def test_clients_that_open_an_empty_database_at_once_all_get_in(neo4j: Server) -> None:
    neo4j.clear()
    neo4j.query("MATCH (v:QrmemSchema) DELETE v")
    for (name,) in neo4j.query("SHOW CONSTRAINTS YIELD name WHERE name STARTS WITH 'qrmem_'"):
        neo4j.query(f"DROP CONSTRAINT {name}")
    for (name,) in neo4j.query("SHOW INDEXES YIELD name WHERE name STARTS WITH 'qrmem_'"):
        neo4j.query(f"DROP INDEX {name}")
    stores = await _stores(neo4j, 4)
    await add(stores[0], "n", text("d", "Ann met Bob "))
    assert await stores[3].counts("n") == await stores[0].counts("n")
    found = neo4j.query("SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'qrmem_'")
    assert found
    assert {state for _, state in found} == {"ONLINE"}
    await _close(stores)


async def test_clients_that_add_at_once_leave_what_one_would(neo4j: Server) -> None:
    neo4j.clear()
    stores = await _stores(neo4j, 3)
    shared = series("ann")[:4]
    shares = [series("ann")[:6], [*shared, *series("bob")[:4]], [*series("cy")[:4], *shared]]
    await asyncio.gather(
        *(
            _add_beside_others(store, "n", share)
            for store, share in zip(stores, shares, strict=True)
        )
    )
    found = await contents(stores[0], "n")
    texts = {document.id: (document, segments) for s in shares for document, segments in s}
    expected = await _expected("n", list(texts.values()))
    for part in expected:
        assert found[part] == expected[part], part
    await _close(stores)


async def test_clients_in_namespaces_of_their_own_do_not_meet(neo4j: Server) -> None:
    neo4j.clear()
    stores = await _stores(neo4j, 3)
    share = series("ann")[:4]
    await asyncio.gather(
        *(_add_beside_others(store, f"n{at}", share) for at, store in enumerate(stores))
    )
    expected = await _expected("n", share)
    for at, store in enumerate(stores):
        assert await contents(store, f"n{at}") == expected
    await _close(stores)


async def test_clients_whose_embedder_is_the_first_of_its_dimension_all_keep_vectors(
    neo4j: Server,
) -> None:
    neo4j.clear()
    stores = await _stores(neo4j, 4)
    for length in range(11, 19):
        ns = f"of {length}"
        given = text("d", *"abcd")
        await stores[0].create_namespace(ns, replace(INFO, dimension=length))
        await stores[0].put_documents(ns, [given])
        await asyncio.gather(
            *(
                store.put_vectors(ns, "segment", [segment.id], np.ones((1, length), np.float32))
                for store, segment in zip(stores, given[1], strict=True)
            )
        )
        assert len(await stores[0].owners(ns, "segment")) == 4
        neo4j.query(f"DROP INDEX qrmem_vectors_{length}")
    await _close(stores)


async def test_reads_go_to_a_reader_and_see_what_was_written(neo4j: Server) -> None:
    """In a cluster `neo4j://` sends sessions of read access to replicas, which take no write."""
    (store,) = await _stores(neo4j, 1)
    assert isinstance(store, Neo4jStore)
    await store.create_namespace("n", INFO)
    with pytest.raises(QrmemError, match="read access mode"):
        await store.db.read(Work.lock, "n")
    assert await store.db.write(Work.lock, "n") >= 0
    # A replica is asked for nothing older than this.
    assert await store.db._bookmarks.get_bookmarks()
    await _close([store])
