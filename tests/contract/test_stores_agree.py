"""Random operations on the oracle and on a backend give the same memory.

A backend is added to `BACKENDS` with a function that returns an empty store in an empty folder.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from agreeing import agree
from contract.reference import ReferenceStore
from contract.suite.operations import Operation, operations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store


async def _sqlite(folder: Path) -> GraphStore:
    return await open_store(str(folder / "memory.db"), Settings())


async def _in_memory(folder: Path) -> GraphStore:
    return await open_store("memory://", Settings())


BACKENDS: dict[str, Callable[[Path], Awaitable[GraphStore]]] = {
    "sqlite": _sqlite,
    "sqlite in memory": _in_memory,
}


@pytest.mark.parametrize("backend", BACKENDS)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(script=st.lists(operations, min_size=1, max_size=14))
def test_a_backend_agrees_with_the_oracle(
    backend: str, script: Sequence[tuple[str, Operation]]
) -> None:
    async def compare() -> None:
        oracle = ReferenceStore()
        with tempfile.TemporaryDirectory() as folder:
            store = await BACKENDS[backend](Path(folder))
            try:
                await agree([oracle, store], script)
            finally:
                await store.close()

    asyncio.run(compare())
