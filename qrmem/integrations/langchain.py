"""A memory as LangChain tools, for LangGraph agents and anything else that takes `BaseTool`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from qrmem.memory import Memory

EXCERPT = 1200


def tools(memory: "Memory") -> "list[BaseTool]":
    """Return `search_memory`, `ask_memory` and `look_up_entity`, bound to one memory.

    Each returns text: what a model reads next. What a document says stands between marks, as data.
    """
    from langchain_core.tools import StructuredTool

    async def search_memory(query: str, k: int = 5) -> str:
        """Find passages of the documents that fit a query; returns them with their ids."""
        hits = await memory.search(query, k=k)
        shown = [
            f"[{hit.segment_id}] {hit.title or hit.document_id} {hit.part}\n"
            f"<<<\n{hit.text[:EXCERPT]}\n>>>"
            for hit in hits
        ]
        return "\n\n".join(shown) or "Nothing in the memory fits."

    async def ask_memory(question: str) -> str:
        """Answer a question from the documents, with quoted sources; says so if they do not."""
        answer = await memory.ask(question)
        if answer.status == "unanswerable":
            return f"The documents do not answer this. {answer.reason}".strip()
        quotes = [
            f'- "{c.quote[:EXCERPT]}" ({c.title or c.document_id}, characters {c.start}-{c.end})'
            for c in answer.citations
        ]
        return "\n".join([answer.text, *quotes])

    async def look_up_entity(name: str) -> str:
        """Show what the memory knows of a person, place or thing: relations and where it occurs."""
        from qrmem.errors import NotFound

        try:
            view = await memory.entity(name)
        except NotFound as exc:
            return str(exc)
        lines = [f"{view.entity.name} ({view.entity.type or 'type unknown'})"]
        lines += [f"- {relation.description[:EXCERPT]}" for relation in view.relations[:10]]
        return "\n".join(lines)

    return [
        StructuredTool.from_function(coroutine=function, name=function.__name__)
        for function in (search_memory, ask_memory, look_up_entity)
    ]
