"""A pydantic-ai agent that looks things up in a memory."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

import qrmem
from qrmem.integrations.toolset import Toolset


async def answer(question: str, memory: qrmem.Memory, model: str = "gpt-4o-mini") -> str:
    """Let an agent answer; it decides when to search the memory and when to ask it."""
    functions = Toolset(memory)
    agent = Agent(
        OpenAIChatModel(model),
        instructions="Look it up before you answer.",
        tools=[functions.search_memory, functions.ask_memory],
    )
    return (await agent.run(question)).output
