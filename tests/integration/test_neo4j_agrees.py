"""Random operations on the oracle, a file and a real Neo4j: the same memory, the same finds."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from agreeing import agree
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.graphstore import Change, FactRow, open_store
from qrmem.graphstore.neo4j.parts import Part, parts
from qrmem.graphstore.testing.operations import Operation, operations
from qrmem.graphstore.testing.samples import INFO, change, contents, series

pytestmark = pytest.mark.neo4j

WRONG_COUNTS = """
MATCH (e:Entity)
OPTIONAL MATCH (e)<-[:NAMES]-(n:Name)
WITH e, coalesce(sum(n.count), 0) AS counted
WHERE e.mentions <> counted
RETURN e.key, e.mentions, counted
"""
"""What a person sees in Neo4j Browser; the store itself does not read it."""

_SCRIPTS = st.lists(operations, min_size=1, max_size=14)
_OPTIONS = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


async def _compare(server: Server, script: Sequence[tuple[str, Operation]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            await open_store("memory://", Settings()),
            await open_store(str(Path(folder) / "memory.db"), Settings()),
            await open_store(server.uri, server.settings),
        ]
        try:
            await agree(stores, script)
            assert server.query(WRONG_COUNTS) == []
        finally:
            for store in stores:
                await store.close()


@_OPTIONS
@given(script=_SCRIPTS)
def test_the_oracle_a_file_and_neo4j_agree(
    neo4j: Server, script: Sequence[tuple[str, Operation]]
) -> None:
    neo4j.clear()
    asyncio.run(_compare(neo4j, script))


@_OPTIONS
@given(script=_SCRIPTS)
def test_the_oracle_a_file_and_neo4j_2025_agree(
    neo4j_2025: Server, script: Sequence[tuple[str, Operation]]
) -> None:
    neo4j_2025.clear()
    asyncio.run(_compare(neo4j_2025, script))


async def test_a_change_written_in_parts_leaves_what_it_leaves_as_a_whole(
    neo4j: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    neo4j.clear()
    sizes: list[int] = []

    def small(given: Change) -> Sequence[Part]:
        made = parts(given, 7)
        sizes.append(len(made))
        return made

    monkeypatch.setattr("qrmem.graphstore.neo4j.store.parts", small)
    texts = series("ann")
    segments = [segment for _, own in texts for segment in own]
    whole = replace(change(segments), clear=())
    early = FactRow(segments[0].id, 99, "Ann", whole.mentions[-1].name, "foretold")
    found = []
    for uri, chosen in (("memory://", Settings()), (neo4j.uri, neo4j.settings)):
        store = await open_store(uri, chosen)
        await store.create_namespace("n", INFO)
        for document, own in texts:
            await store.put_document("n", document, own)
        await store.apply("n", 0, replace(whole, facts=[early, *whole.facts]))
        found.append(await contents(store, "n"))
        await store.close()
    assert found[0] == found[1]
    assert sizes[0] > 3
    assert neo4j.query(WRONG_COUNTS) == []
