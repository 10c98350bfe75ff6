"""A memory in a real Neo4j that grows and shrinks equals one made at once."""

import asyncio

import pytest
from contract.reference import ReferenceStore
from contract.suite.samples import INFO
from growing import GROWTH, Step, grow
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from servers.neo4j_server import Server

from qrmem.graphstore import GraphStore, open_store

pytestmark = pytest.mark.neo4j


async def _oracle() -> GraphStore:
    store = ReferenceStore()
    await store.create_namespace("n", INFO)
    return store


async def _grow(server: Server, steps: list[Step], same: bool) -> None:
    store = await open_store(server.uri, server.settings)
    try:
        await store.create_namespace("n", INFO)
        await grow(store, _oracle, steps, same=same)
    finally:
        await store.close()


def test_a_memory_grown_in_neo4j_is_the_one_made_at_once(
    neo4j: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of names become crowded, and cease to be, on the way."""
    monkeypatch.setattr("qrmem.graph.affected_names.MOST", 3)
    monkeypatch.setattr("qrmem.graph.resolution.MOST", 3)

    @settings(
        max_examples=6,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(GROWTH, st.booleans())
    def check(steps: list[Step], same: bool) -> None:
        neo4j.clear()
        asyncio.run(_grow(neo4j, steps, same))

    check()
