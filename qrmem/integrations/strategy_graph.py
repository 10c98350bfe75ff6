"""A strategy as a LangGraph graph, for use as a node of the user's own graph."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from qrmem.errors import UsageError
from qrmem.memory import BlockingMemory, Memory
from qrmem.memory.keywords import AskKeywords
from qrmem.types import Answer, Step
from qrmem.types.options import AskOptions, options_of


class AskState(TypedDict, total=False):
    """The state of the graph; an outer graph shares the keys with the same names.

    Attributes:
        question: the question; the only required key.
        answer: the answer's text, "" if the memory has none.
        status: `answered`, `passages`, `forced` or `unanswerable`.
        citations: a dict with `document_id`, `start`, `end` and `quote` for each citation.
        trail: id of the recorded run, for `Memory.trail`.
    """

    question: str
    answer: str
    status: str
    citations: list[Mapping[str, Any]]
    trail: str


def strategy_graph(
    memory: Memory | BlockingMemory, **options: Unpack[AskKeywords]
) -> CompiledStateGraph[AskState, None, AskState, AskState]:
    """Return a compiled graph that answers `question` by a strategy; it is asynchronous only.

    `stream_mode="custom"` yields each step as a `Step`; `subgraphs=True` shows the nodes of the
    strategy.

    Args:
        memory: from `qrmem.open` or from `qrmem.sync.open`.
        options: options of `Memory.ask`, such as `strategy="reflection"`. Without a strategy the
            question decides.

    Raises:
        UsageError: an option is unknown or has a bad value, or `memory` is no open memory.
    """
    if not isinstance(memory, Memory | BlockingMemory):
        raise UsageError(
            f"memory must be from qrmem.open or qrmem.sync.open, not {type(memory).__name__}"
        )
    options_of(AskOptions, options, question="any")  # checked now, not at the first question

    async def answered(opened: Memory, question: str, tell: Any) -> AskState:
        async for item in opened.stream(question, **options):
            if isinstance(item, Step):
                tell(item)
            elif isinstance(item, Answer):
                return _state(item)
        raise AssertionError("a stream ends with its answer")

    async def ask(state: AskState) -> AskState:
        tell, question = get_stream_writer(), state.get("question", "")
        if isinstance(memory, BlockingMemory):
            loop = asyncio.get_running_loop()
            return await memory.acall(
                lambda opened: answered(
                    opened, question, lambda step: loop.call_soon_threadsafe(tell, step)
                )
            )
        return await answered(memory, question, tell)

    graph = StateGraph(AskState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile(name=options.get("strategy") or "ask")


def _state(answer: Answer) -> AskState:
    cited: list[Mapping[str, Any]] = [
        {"document_id": c.document_id, "start": c.start, "end": c.end, "quote": c.quote}
        for c in answer.citations
    ]
    return {
        "answer": answer.text,
        "status": answer.status,
        "citations": cited,
        "trail": answer.trail.id,
    }


__all__ = ["AskState", "strategy_graph"]
