"""Random operations on the oracle and on a real Neo4j give the same memory."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.graphstore import open_store
from qrmem.graphstore.testing.operations import Operation, operations, play

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
    oracle = await open_store("memory://", Settings())
    store = await open_store(server.uri, server.settings)
    try:
        await play(oracle, store, script)
        assert server.query(WRONG_COUNTS) == []
    finally:
        await store.close()


@_OPTIONS
@given(script=_SCRIPTS)
def test_neo4j_agrees_with_the_oracle(
    neo4j: Server, script: Sequence[tuple[str, Operation]]
) -> None:
    neo4j.clear()
    asyncio.run(_compare(neo4j, script))


@_OPTIONS
@given(script=_SCRIPTS)
def test_neo4j_2025_agrees_with_the_oracle(
    neo4j_2025: Server, script: Sequence[tuple[str, Operation]]
) -> None:
    neo4j_2025.clear()
    asyncio.run(_compare(neo4j_2025, script))
