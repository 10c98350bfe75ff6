"""The contract on every backend that runs without a server."""

from pathlib import Path

import pytest
from contract.reference import ReferenceStore
from contract.suite import Contract, GraphStoreContract

from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store


class TestReferenceStore(GraphStoreContract):
    async def make(self, folder: Path) -> GraphStore:
        return ReferenceStore()


class TestSqliteInMemory(GraphStoreContract):
    async def make(self, folder: Path) -> GraphStore:
        return await open_store("memory://", Settings())


class TestSqliteStore(GraphStoreContract):
    async def make(self, folder: Path) -> GraphStore:
        return await open_store(str(folder / "memory.db"), Settings())


def test_a_backend_cannot_change_the_contract() -> None:
    with pytest.raises(TypeError, match="test_a_namespace_is_made_once"):

        class Lenient(GraphStoreContract):
            async def test_a_namespace_is_made_once(self, store: GraphStore) -> None:
                return

    unfinished: type[Contract] = type("Unfinished", (GraphStoreContract,), {})
    with pytest.raises(TypeError, match="abstract"):
        unfinished()
