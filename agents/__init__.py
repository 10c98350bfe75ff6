"""LangGraph state machines: one builds a memory, one runs all strategies that answer questions.

They are imported on first use, so a worker that only reads segments does not load LangGraph.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qrmem.agents.build_state import Build, BuildOutcome
    from qrmem.agents.building import build_documents
    from qrmem.agents.search.run import Search
    from qrmem.agents.search.state import Outcome
    from qrmem.agents.strategies import STRATEGIES, run_strategy, strategy_of

__all__ = [
    "STRATEGIES",
    "Build",
    "BuildOutcome",
    "Outcome",
    "Search",
    "build_documents",
    "run_strategy",
    "strategy_of",
]

_LAZY = {
    "STRATEGIES": "qrmem.agents.strategies",
    "Build": "qrmem.agents.build_state",
    "BuildOutcome": "qrmem.agents.build_state",
    "Outcome": "qrmem.agents.search.state",
    "Search": "qrmem.agents.search.run",
    "build_documents": "qrmem.agents.building",
    "run_strategy": "qrmem.agents.strategies",
    "strategy_of": "qrmem.agents.strategies",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'qrmem.agents' has no attribute {name!r}")
