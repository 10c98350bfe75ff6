"""A strategy as a LangGraph graph of its own: a node for a graph of the user's."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from qrmem import sync
from qrmem.memory import Memory
from qrmem.memory.keywords import AskKeywords
from qrmem.types import Answer, Step


class AskState(TypedDict, total=False):
    """What the graph reads and writes; a graph around it has keys of the same names.

    Attributes:
        question: what is asked; it alone has to be there.
        answer: the text, "" where the memory does not say.
        status: `answered`, `passages`, `forced` or `unanswerable`.
        citations: `document_id`, `start`, `end` and `quote` of each.
        trail: id of the recorded run; see `Memory.trail`.
    """

    question: str
    answer: str
    status: str
    citations: list[Mapping[str, Any]]
    trail: str


def strategy_graph(
    memory: Memory | sync.Memory, **options: Unpack[AskKeywords]
) -> CompiledStateGraph[AskState, None, AskState, AskState]:
    """Return a compiled graph that answers `question` by a strategy; it has to be awaited.

    Its steps are told to `stream_mode="custom"` as `Step`s, and the nodes of the strategy are seen
    with `subgraphs=True`.

    Args:
        options: of `Memory.ask`, such as `strategy="reflection"`; without one it is chosen by the
            question.
    """

    async def answered(opened: Memory, question: str, tell: Any) -> AskState:
        async for item in opened.stream(question, **options):
            if isinstance(item, Step):
                tell(item)
            elif isinstance(item, Answer):
                return _state(item)
        raise AssertionError("a stream ends with its answer")

    async def ask(state: AskState) -> AskState:
        tell, question = get_stream_writer(), state.get("question", "")
        if isinstance(memory, sync.Memory):
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
