"""An agent of the OpenAI Agents SDK (openai-agents) that looks things up in a memory."""

from agents import Agent, Runner, function_tool, set_default_openai_api

import qrmem
from qrmem.integrations.toolset import Toolset


async def answer(question: str, memory: qrmem.Memory, model: str = "gpt-4o-mini") -> str:
    """Let an agent answer; it decides when to search the memory and when to ask it."""
    set_default_openai_api("chat_completions")  # for servers that speak no other form
    functions = Toolset(memory)
    agent = Agent(
        name="reader",
        instructions="Look it up before you answer.",
        model=model,
        tools=[function_tool(functions.search_memory), function_tool(functions.ask_memory)],
    )
    return str((await Runner.run(agent, question)).final_output)
