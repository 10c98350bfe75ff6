"""LangChain adapters: tools for agents, and a retriever for chains."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ConfigDict, Field

from qrmem.errors import QrmemError, UsageError
from qrmem.integrations.toolset import Toolset
from qrmem.memory import BlockingMemory, Memory
from qrmem.types import Hit

TOOLS = ("search_memory", "ask_memory", "look_up_entity")
"""The default tools."""
_AWAITED = "this memory is asynchronous: use ainvoke, or open it with qrmem.sync.open"


def tools(
    memory: Memory | BlockingMemory, names: Sequence[str] = (), *, user: str = ""
) -> list[BaseTool]:
    """Return tools bound to one memory: `search_memory`, `ask_memory` and `look_up_entity`.

    Each tool returns text for the model; an error is returned as text, too. With a memory from
    `qrmem.open` the tools are asynchronous only (`ainvoke`); with a memory from `qrmem.sync.open`
    they also work synchronously (`invoke`).

    Args:
        memory: an open memory.
        names: names of methods of `qrmem.integrations.toolset.Toolset`; empty: the three above.
        user: limits the tools to the turns and documents of this user; "" sets no limit. With a
            user there is no `look_up_entity`, which shows data of all users.

    Raises:
        UsageError: `memory` is not an open memory, or no tool has one of the names.
    """
    if not isinstance(memory, Memory | BlockingMemory):
        raise UsageError(f"tools need an open memory, not {type(memory).__name__}")
    if isinstance(names, str):
        raise UsageError(f"names is a list of tools, not one text: [{names!r}]")
    functions = Toolset.functions(write=True, user=user)
    names = names or [name for name in TOOLS if name in functions]
    if unknown := [name for name in names if name not in functions]:
        raise UsageError(f"no tool is called {unknown[0]!r}; there are {', '.join(functions)}")
    return [_tool(memory, name, user) for name in names]


def _tool(memory: Memory | BlockingMemory, name: str, user: str) -> StructuredTool:
    async def coroutine(**options: Any) -> str:
        with _errors_as_text():
            text: str = await _acall(memory, lambda m: getattr(Toolset(m, user), name)(**options))
        return text

    def function(**options: Any) -> str:
        with _errors_as_text():
            if isinstance(memory, Memory):
                raise UsageError(_AWAITED)
            text: str = memory.call(lambda m: getattr(Toolset(m, user), name)(**options))
        return text

    structured_tool = StructuredTool.from_function(
        func=function,
        coroutine=coroutine,
        name=name,
        description=Toolset.described(name),
        args_schema=Toolset.arguments(name),
    )

    def invalid(error: Any) -> str:
        return f"error: {Toolset.wrong(name, error.errors())}"

    structured_tool.handle_validation_error = invalid
    structured_tool.handle_tool_error = True
    return structured_tool


@contextmanager
def _errors_as_text() -> Iterator[None]:
    """Turn an error into text for the model, so that the agent can continue without its memory."""
    try:
        yield
    except QrmemError as exc:
        raise ToolException(f"error: {exc}") from exc


class MemoryRetriever(BaseRetriever):
    """Ranked segments of a memory as LangChain documents; no chat model is called.

    Attributes:
        memory: from `qrmem.open` (asynchronous use only) or from `qrmem.sync.open` (both).
        k: upper bound on the number of segments, at least 1.
        where: limits the search to documents with this metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory | BlockingMemory
    k: int = Field(default=5, ge=1)
    where: dict[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if isinstance(self.memory, Memory):
            raise UsageError(_AWAITED)
        most = self.k if k is None else k
        hits = self.memory.call(lambda m: m.search(query, k=most, where=self.where))
        return _documents(hits)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        most = self.k if k is None else k
        hits = await _acall(self.memory, lambda m: m.search(query, k=most, where=self.where))
        return _documents(hits)


async def _acall(memory: Memory | BlockingMemory, function: Any) -> Any:
    return await (function(memory) if isinstance(memory, Memory) else memory.acall(function))


def _documents(hits: Sequence[Hit]) -> list[Document]:
    return [
        Document(
            id=hit.segment_id,
            page_content=hit.text,
            metadata={
                "document_id": hit.document_id,
                "title": hit.title,
                "part": hit.part,
                "score": hit.score,
                "via": hit.via,
            },
        )
        for hit in hits
    ]
