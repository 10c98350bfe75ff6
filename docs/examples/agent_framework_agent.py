"""An agent of Microsoft Agent Framework (agent-framework-openai) that looks up a memory."""

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

import qrmem
from qrmem.integrations.toolset import Toolset


async def answer(question: str, memory: qrmem.Memory, model: str = "gpt-4o-mini") -> str:
    """Let an agent answer; it decides when to search the memory and when to ask it."""
    functions = Toolset(memory)
    agent = Agent(
        OpenAIChatCompletionClient(model=model),
        instructions="Look it up before you answer.",
        tools=[functions.search_memory, functions.ask_memory],
    )
    return (await agent.run(question)).text
