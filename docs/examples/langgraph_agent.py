"""A LangGraph agent that looks things up in a qrmem memory before it answers."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import qrmem


def build_agent(model: BaseChatModel, memory: qrmem.Memory) -> Any:
    """Return a compiled graph: the model calls tools until it answers.

    Args:
        model: any LangChain chat model that can call tools, e.g. `ChatOpenAI`.
    """
    tools = qrmem.tools(memory)
    caller = model.bind_tools(tools)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await caller.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile()
