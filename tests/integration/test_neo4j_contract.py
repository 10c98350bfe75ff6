"""The contract on real Neo4j servers."""

from pathlib import Path

import pytest
from contract.suite import GraphStoreContract
from servers.neo4j_server import Server

from qrmem.graphstore import GraphStore, open_store

pytestmark = pytest.mark.neo4j


class TestNeo4j(GraphStoreContract):
    @pytest.fixture(autouse=True)
    def _use(self, neo4j: Server) -> None:
        self.server = neo4j

    async def make(self, folder: Path) -> GraphStore:
        self.server.clear()
        return await open_store(self.server.uri, self.server.settings)


class TestNeo4j2025(GraphStoreContract):
    @pytest.fixture(autouse=True)
    def _use(self, neo4j_2025: Server) -> None:
        self.server = neo4j_2025

    async def make(self, folder: Path) -> GraphStore:
        self.server.clear()
        return await open_store(self.server.uri, self.server.settings)
