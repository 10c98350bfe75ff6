"""The contract that every store passes, for tests of backends here and elsewhere.

Subclass `GraphStoreContract`, say how an empty store is made, and run it with pytest and
pytest-asyncio in auto mode. Tests cannot be overridden.
"""

from qrmem.graphstore.testing.base import Contract
from qrmem.graphstore.testing.facts import FactsContract
from qrmem.graphstore.testing.naming import NamingContract
from qrmem.graphstore.testing.runs import RunsContract
from qrmem.graphstore.testing.search import SearchContract
from qrmem.graphstore.testing.view import ViewContract
from qrmem.graphstore.testing.walls import WallsContract


class GraphStoreContract(
    FactsContract, ViewContract, NamingContract, SearchContract, RunsContract, WallsContract
):
    """All of the contract."""


__all__ = ["Contract", "GraphStoreContract"]
