"""A graph for LangGraph's server, named in langgraph.json: it answers from a memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import qrmem
from qrmem.integrations.strategy_graph import strategy_graph


@asynccontextmanager
async def make_graph() -> AsyncIterator[Any]:
    """Open the memory that QRMEM_MEMORY names, for as long as a run of the graph lasts."""
    async with qrmem.open(create=False) as memory:
        yield strategy_graph(memory)
