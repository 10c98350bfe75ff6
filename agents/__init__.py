"""LangGraph state machines: building a memory, and one for all strategies of asking it."""

from qrmem.agents.building import build_documents
from qrmem.agents.search.run import Search
from qrmem.agents.search.state import Outcome
from qrmem.agents.state import BuildDeps, BuildOutcome
from qrmem.agents.strategies import STRATEGIES, run_strategy, strategy_of

__all__ = [
    "STRATEGIES",
    "BuildDeps",
    "BuildOutcome",
    "Outcome",
    "Search",
    "build_documents",
    "run_strategy",
    "strategy_of",
]
