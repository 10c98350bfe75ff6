"""A change that is written in parts and stops between two of them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.errors import StoreConflict
from qrmem.graphstore import Change, GraphStore, open_store
from qrmem.graphstore.neo4j.parts import Part, parts
from qrmem.graphstore.testing.samples import INFO, change, contents, series

pytestmark = pytest.mark.neo4j

TEXTS = series("ann")
WHOLE = replace(change([segment for _, own in TEXTS for segment in own]), clear=())
MISCOUNTED = """
MATCH (n:Name)-[:NAMES]->(e:Entity)
OPTIONAL MATCH (e)<-[m:MENTIONS {name: n.key}]-(:Segment)
WITH n, e, count(m) AS mentions
WITH e, sum(n.count) AS counted, collect(n.mentions) AS kept, collect(mentions) AS there
WHERE kept <> there OR e.mentions <> counted
RETURN e.key, kept, there
"""


async def _filled(uri: str, settings: Settings) -> GraphStore:
    store = await open_store(uri, settings)
    await store.create_namespace("n", INFO)
    for document, own in TEXTS:
        await store.put_document("n", document, own)
    return store


@pytest.fixture
async def broken_off(neo4j: Server, monkeypatch: pytest.MonkeyPatch) -> int:
    """Leave a memory whose writer died after two parts; return its revision."""

    def two(given: Change) -> Sequence[Part]:
        made = parts(given, 7)
        assert len(made) > 3
        return made[:2]

    neo4j.clear()
    store = await _filled(neo4j.uri, neo4j.settings)
    with monkeypatch.context() as patch:
        patch.setattr("qrmem.graphstore.neo4j.store.parts", two)
        revision = await store.apply("n", 0, WHOLE)
    await store.close()
    assert neo4j.query(MISCOUNTED)
    return revision


async def test_the_next_writer_works_from_names_that_are_counted_right(
    neo4j: Server, broken_off: int
) -> None:
    store = await open_store(neo4j.uri, neo4j.settings)
    with pytest.raises(StoreConflict):
        await store.apply("n", broken_off, WHOLE)
    assert neo4j.query(MISCOUNTED) == []
    info = await store.namespace("n")
    assert info is not None
    await store.apply("n", info.revision, WHOLE)
    oracle = await _filled("memory://", Settings())
    await oracle.apply("n", 0, WHOLE)
    assert await contents(store, "n") == await contents(oracle, "n")
    assert neo4j.query(MISCOUNTED) == []
    await store.close()


async def test_what_is_deleted_is_counted_out_of_what_is_there(
    neo4j: Server, broken_off: int
) -> None:
    store = await open_store(neo4j.uri, neo4j.settings)
    await store.delete_document("n", TEXTS[0][0].id or "")
    assert neo4j.query(MISCOUNTED) == []
    for document, _ in TEXTS:
        await store.delete_document("n", document.id or "")
    assert await store.names("n") == []
    assert (await store.counts("n"))["entities"] == 0
    await store.close()
