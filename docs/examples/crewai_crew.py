"""A CrewAI agent that looks things up in a memory."""

from crewai import LLM, Agent
from crewai.tools import tool

from qrmem import sync
from qrmem.integrations.toolset import Toolset


def answer(question: str, memory: sync.Memory, model: str = "gpt-4o-mini") -> str:
    """Let an agent answer; it decides when to search the memory."""

    @tool("search_memory")
    def search_memory(query: str, k: int = 5) -> str:
        """Find passages of the documents that fit a query."""
        return memory.call(lambda m: Toolset(m).search_memory(query, k))

    agent = Agent(
        role="reader",
        goal="Answer from the documents.",
        backstory="Looks it up before it answers.",
        llm=LLM(model=f"openai/{model}"),
        tools=[search_memory],
    )
    return str(agent.kickoff(question))
