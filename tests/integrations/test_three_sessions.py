"""A LangGraph agent that keeps what it hears and recalls it, over three sessions and restarts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import qrmem

TOOLS = ["recall_conversation", "add_turn", "search_memory"]


class Scripted(BaseChatModel):
    """Recalls what the user says, keeps it, then answers with what the recall brought."""

    session: str

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        assert [tool.name for tool in tools] == TOOLS
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        said = next(str(m.content) for m in messages if m.type == "human")
        results = [m for m in messages if isinstance(m, ToolMessage)]
        if not results:
            return reply(call("recall_conversation", prompt=said, session=self.session))
        if len(results) == 1:
            return reply(call("add_turn", role="user", text=said, session=self.session))
        return reply(AIMessage(content=f"I remember: {results[0].content}"))


def call(tool: str, **arguments: Any) -> AIMessage:
    calls = [{"name": tool, "args": arguments, "id": tool, "type": "tool_call"}]
    return AIMessage(content="", tool_calls=calls)


def reply(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


async def turn(path: Path, session: str, said: str) -> str:
    """Open the memory again, run a new agent for one turn, and close everything."""
    async with qrmem.open(str(path), embedder="none") as memory:
        tools = qrmem.tools(memory, TOOLS)
        caller = Scripted(session=session).bind_tools(tools)

        async def think(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await caller.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
        begun: Any = {"messages": [("user", said)]}
        state = await graph.compile().ainvoke(begun)
    return str(state["messages"][-1].content)


async def test_an_agent_keeps_and_recalls_over_three_sessions(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    first = await turn(path, "monday", "My sister Clara is allergic to walnuts.")
    assert "walnuts" not in first
    second = await turn(path, "tuesday", "What is my sister allergic to?")
    assert "Clara is allergic to walnuts" in second
    await turn(path, "tuesday", "The dinner with Clara is on Friday at eight.")
    third = await turn(path, "thursday", "What must I not cook for the dinner with Clara?")
    assert "Clara is allergic to walnuts" in third
    assert "Friday at eight" in third
    async with qrmem.open(str(path)) as memory:
        kept = await memory.turns()
    assert [turn.session for turn in kept] == ["monday", "tuesday", "tuesday", "thursday"]
    assert kept[0].text == "My sister Clara is allergic to walnuts."
