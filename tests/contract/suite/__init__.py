"""The contract that every store passes.

A subclass of `GraphStoreContract` says how an empty store is made; it cannot override a test.
"""

from contract.suite.base import Contract
from contract.suite.facts import FactsContract
from contract.suite.naming import NamingContract
from contract.suite.remains import RemainsContract
from contract.suite.runs import RunsContract
from contract.suite.search import SearchContract
from contract.suite.view import ViewContract
from contract.suite.walls import WallsContract


class GraphStoreContract(
    FactsContract,
    ViewContract,
    NamingContract,
    SearchContract,
    RunsContract,
    WallsContract,
    RemainsContract,
):
    """All of the contract."""


__all__ = ["Contract", "GraphStoreContract"]
