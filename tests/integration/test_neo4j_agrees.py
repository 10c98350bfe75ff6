"""Random operations on the oracle, a file and a real Neo4j: the same memory, the same finds."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from agreeing import agree
from contract.reference import ReferenceStore
from contract.suite.operations import Operation, operations
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.graphstore import open_store

pytestmark = pytest.mark.neo4j

WRONG_COUNTS = """
MATCH (n:Name)-[:NAMES]->(e:Entity)
OPTIONAL MATCH (e)<-[m:MENTIONS {name: n.key}]-(:Segment)
WITH n, count(m) AS mentions, sum(reduce(all = 0, one IN m.counts | all + one)) AS counted
WHERE n.mentions <> mentions OR n.count <> counted
RETURN n.key, n.mentions, mentions, n.count, counted
"""
"""What is kept with a name is what its mentions say."""

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
            ReferenceStore(),
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
