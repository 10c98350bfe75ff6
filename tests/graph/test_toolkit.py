"""`qrmem.tools` in the worked example of the docs: a LangGraph agent that looks things up."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

import qrmem

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "langgraph_agent.py"


class OneLookUp(BaseChatModel):
    """Calls one tool, then answers with what the tool said."""

    tool: str
    arguments: dict[str, Any]
    offered: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "one-look-up"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self.offered.extend(tool.name for tool in tools)
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage(content=f"It says: {messages[-1].content}")
        else:
            call = {"name": self.tool, "args": self.arguments, "id": "1", "type": "tool_call"}
            message = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


def example() -> Any:
    spec = importlib.util.spec_from_file_location("langgraph_agent", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def said(memory: qrmem.Memory, tool: str, **arguments: Any) -> str:
    model = OneLookUp(tool=tool, arguments=arguments)
    agent = example().build_agent(model, memory)
    state = await agent.ainvoke({"messages": [("user", "Please look it up.")]})
    assert model.offered == ["search_memory", "ask_memory", "look_up_entity"]
    return str(state["messages"][-1].content)


async def test_an_agent_searches_asks_and_looks_entities_up() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "note", "text": "Ada Lovelace met Charles Babbage in London."})
        assert "Charles Babbage in London" in await said(memory, "search_memory", query="Babbage")
        answer = await said(memory, "ask_memory", question="Whom did Ada Lovelace meet?")
        assert answer.count("Ada Lovelace met Charles Babbage") == 1, "each passage stands once"
        assert "Charles Babbage" in answer
        assert "characters 0-" in answer
        unknown = await said(memory, "ask_memory", question="What did the elephant weigh?")
        assert "do not answer this" in unknown
        looked_up = await said(memory, "look_up_entity", name="Ada Lovelace")
        assert "- Charles Babbage: " in looked_up
        assert looked_up.endswith("named in: note\n</text>")
        assert "no entity is called" in await said(memory, "look_up_entity", name="Zeus")
