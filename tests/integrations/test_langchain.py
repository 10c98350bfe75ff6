"""LangChain's own standard tests, and what an agent meets with wrong arguments."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

import qrmem
from qrmem import sync
from qrmem.errors import UsageError
from qrmem.integrations.langchain import MemoryRetriever, tools
from qrmem.integrations.toolset import Toolset, as_text, openai_tools

TEXTS = [
    {"id": "a", "text": "Ada Lovelace met Charles Babbage in London."},
    {"id": "b", "text": "Charles Babbage built an engine in London."},
    {"id": "c", "text": "Mary Somerville taught Ada Lovelace in London."},
]


MEMORY = sync.open("memory://", embedder="none")


@pytest.fixture(autouse=True, scope="module")
def filled() -> Iterator[None]:
    with MEMORY:
        MEMORY.add(TEXTS)
        yield


def by_name(name: str) -> BaseTool:
    (found,) = tools(MEMORY, [name])
    return found


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": MEMORY}

    @property
    def retriever_query_example(self) -> str:
        return "Who was in London?"


class TestSearchTool(ToolsIntegrationTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return by_name("search_memory")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "Who was in London?", "k": 2}


class TestSearchToolAlone(ToolsUnitTests):
    tool_constructor = property(lambda self: by_name("search_memory"))
    tool_invoke_params_example = property(lambda self: {"query": "Who was in London?"})


class TestAskTool(ToolsIntegrationTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return by_name("ask_memory")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": "Who taught Ada Lovelace?"}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("search_memory", {"query": "London", "k": 0}, "k must be at least 1"),
        ("search_memory", {"query": "London", "k": "many"}, "k should be a valid integer"),
        ("search_memory", {"query": "London", "k": True}, "k should be a number, not true"),
        ("search_memory", {"query": "  "}, "query is empty"),
        ("search_memory", {}, "query is missing"),
        ("look_up_entity", {"name": "Zeus"}, "no entity is called"),
        ("recall_conversation", {"prompt": "x", "tokens": -1}, "tokens must be"),
        ("recall_conversation", {"prompt": "x", "min_score": True}, "min_score should be a number"),
        ("recall_conversation", {"prompt": "x", "min_score": -1}, "min_score must be at least 0"),
        ("recall_conversation", {"prompt": "x", "as_of": "May"}, "as_of 'May' is not a date"),
        ("show_trail", {"trail_id": "none"}, "no trail"),
    ],
)
async def test_a_wrong_argument_comes_back_as_text(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    tool = by_name(name)
    for content in (tool.invoke(arguments), await tool.ainvoke(arguments)):
        assert content.startswith("error: ")
        assert said in content


async def test_an_error_that_ends_a_tool_call_is_marked_as_one() -> None:
    memory = sync.open("memory://", embedder="none")
    memory.add(TEXTS)
    search, entity = tools(memory, ["search_memory", "look_up_entity"])
    unknown = {"type": "tool_call", "id": "1", "name": entity.name, "args": {"name": "Zeus"}}
    wrong = {"type": "tool_call", "id": "2", "name": search.name, "args": {"q": "Zeus"}}
    assert entity.invoke(unknown).status == search.invoke(wrong).status == "error"
    memory.close()
    closed = {"type": "tool_call", "id": "3", "name": search.name, "args": {"query": "Zeus"}}
    for message in (search.invoke(closed), await search.ainvoke(closed)):
        assert message.status == "error"
        assert message.content == "error: the memory is closed; open it again"


async def test_a_user_of_whom_nothing_is_kept_meets_no_error() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(TEXTS)
        search, ask = tools(memory, ["search_memory", "ask_memory"], user="ann")
        assert await search.ainvoke({"query": "Babbage"}) == "Nothing in the memory matches."
        assert await ask.ainvoke({"question": "Who?"}) == "The documents do not answer this."


async def test_a_title_of_any_length_takes_little_of_a_prompt() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "a", "title": "T" * 1_000, "text": "Ada met Babbage in London."})
        search, ask = tools(memory, ["search_memory", "ask_memory"])
        for shown in (
            await search.ainvoke({"query": "Babbage"}),
            await ask.ainvoke({"question": "Where did Ada meet Babbage?"}),
        ):
            assert "TTT" in shown
            assert len(shown) < 1_000


async def test_tools_of_an_awaited_memory_are_awaited() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(TEXTS)
        (tool,) = tools(memory, ["search_memory"])
        assert "Babbage" in await tool.ainvoke({"query": "engine"})
        assert "ainvoke" in tool.invoke({"query": "engine"})
        found = await MemoryRetriever(memory=memory, k=1).ainvoke("Who built an engine?")
        assert [document.metadata["document_id"] for document in found] == ["b"]


async def test_a_retriever_refuses_to_find_nothing() -> None:
    retriever = MemoryRetriever(memory=MEMORY)
    with pytest.raises(UsageError, match="k must be at least 1"):
        retriever.invoke("engine", k=0)
    with pytest.raises(UsageError, match="k must be at least 1"):
        await retriever.ainvoke("engine", k=0)


async def test_a_later_tool_call_finds_what_an_earlier_one_stored() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        kept, said, search, recall = tools(
            memory, ["add_text", "add_turn", "search_memory", "recall_conversation"]
        )
        text = "Grace Hopper wrote a compiler in 1952."
        assert "note" in await kept.ainvoke({"text": text, "document_id": "note"})
        assert "compiler" in await search.ainvoke({"query": "Grace Hopper"})
        await said.ainvoke({"role": "user", "text": "The ferry leaves at noon.", "session": "s"})
        assert "noon" in await recall.ainvoke({"prompt": "When does the ferry leave?"})


async def test_tools_of_a_user_read_and_write_what_is_the_users() -> None:
    names = ("add_turn", "add_text", "recall_conversation", "search_memory", "ask_memory")
    async with qrmem.open("memory://", embedder="none") as memory:
        ann = {tool.name: tool for tool in tools(memory, names, user="ann")}
        ben = {tool.name: tool for tool in tools(memory, names, user="ben")}
        for tool, boat in ((ann, "Nell"), (ben, "Brig")):
            await tool["add_turn"].ainvoke({"role": "user", "text": f"My boat is called {boat}."})
            await tool["add_text"].ainvoke(
                {"text": f"The boat {boat} is blue.", "document_id": "b"}
            )
            await tool["add_text"].ainvoke({"text": "A boat floats."})
        for asked in (
            ann["recall_conversation"].ainvoke({"prompt": "What is my boat called?"}),
            ann["search_memory"].ainvoke({"query": "boat"}),
            ann["ask_memory"].ainvoke({"question": "What is my boat called?"}),
        ):
            said = await asked
            assert "Nell" in said
            assert "Brig" not in said
        assert "A boat floats." in await ben["search_memory"].ainvoke({"query": "boat floats"})
        assert [tool.name for tool in tools(memory, user="ann")] == ["search_memory", "ask_memory"]
        with pytest.raises(qrmem.QrmemError, match="no tool is called 'look_up_entity'"):
            tools(memory, ["look_up_entity"], user="ann")
        refused = await as_text(Toolset(memory, "ann"), "show_trail")
        assert "no function 'show_trail'; there are search_memory, ask_memory" in refused
        assert await memory.forget_user("ann") == 3


def test_the_openai_schema_has_every_function_with_its_arguments() -> None:
    described = [tool["function"] for tool in openai_tools(write=True)]
    assert [tool["name"] for tool in described] == list(Toolset.functions(write=True))
    search = next(tool for tool in described if tool["name"] == "search_memory")
    assert search["parameters"]["required"] == ["query"]
    assert search["parameters"]["properties"]["k"]["type"] == "integer"
    assert "passages" in search["description"]


def test_tools_of_what_is_no_memory_are_refused() -> None:
    with pytest.raises(UsageError, match="tools need an open memory, not int"):
        tools(5)  # type: ignore[arg-type]
    with (
        sync.open("memory://", embedder="none") as memory,
        pytest.raises(UsageError, match="names is a list of tools, not one text"),
    ):
        tools(memory, "search_memory")


def test_an_unknown_tool_is_named() -> None:
    with pytest.raises(qrmem.QrmemError, match="no tool is called 'fly'"):
        tools(MEMORY, ["fly"])
