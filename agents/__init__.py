"""LangGraph state machines: building a memory, and one per strategy for asking it."""

from qrmem.agents.building import build_document, build_documents
from qrmem.agents.state import AskDeps, AskOptions, BuildDeps, BuildOutcome, Outcome
from qrmem.agents.strategies import STRATEGIES, run_strategy

__all__ = [
    "STRATEGIES",
    "AskDeps",
    "AskOptions",
    "BuildDeps",
    "BuildOutcome",
    "Outcome",
    "build_document",
    "build_documents",
    "run_strategy",
]
