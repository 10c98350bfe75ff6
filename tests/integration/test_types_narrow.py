"""`types=`: only segments that speak of entities or relations of some types are looked at."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from servers.openai_server import OpenAIServer

import qrmem
from qrmem import Schema
from qrmem.errors import NotFound, UsageError
from qrmem.integrations.toolset import Toolset, as_text


class Person(BaseModel):
    """A human being."""


class Company(BaseModel):
    """A business."""


class Ship(BaseModel):
    """A ship."""


class WorksFor(BaseModel):
    """A person is employed by a company."""

    head: ClassVar = Person
    tail: ClassVar = Company


OWN = Schema(entities=[Person, Company, Ship], relations=[WorksFor])
TEXTS = {
    "job": "Ann Lee works in the harbour for Acme Ltd.",
    "walk": "Ann Lee walks in the harbour with Bo Ray.",
    "fog": "Fog lies in the harbour all day.",
}
READ: Mapping[str, tuple[list[str], list[str]]] = {
    "job": (["Ann Lee|Person", "Acme Ltd|Company"], ["Ann Lee|works for|Acme Ltd|WorksFor"]),
    "walk": (["Ann Lee|Person", "Bo Ray|Person"], []),
    "fog": ([], []),
}


def _answer(request: Mapping[str, Any]) -> str:
    asked = str(request["messages"])
    name = next((name for name, text in TEXTS.items() if text in asked), "fog")
    return json.dumps({"entities": READ[name][0], "relations": READ[name][1], "questions": []})


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[qrmem.Memory]:
    path = str(tmp_path / "types.db")
    async with (
        OpenAIServer(answer=_answer) as server,
        qrmem.open(
            path, model="gpt-4o-mini", base_url=server.url, embedder="none", schema=OWN
        ) as made,
    ):
        await made.add([{"id": id, "text": text} for id, text in TEXTS.items()])
    async with qrmem.open(path, schema=OWN) as opened:
        yield opened


async def test_search_ask_and_tools_look_at_segments_of_the_types_alone(
    memory: qrmem.Memory,
) -> None:
    question = "What is in the harbour?"

    async def found(*types: str, **more: Any) -> set[str]:
        hits = await memory.search(question, types=types, **more)
        for strategy in ("passages", "reflection", "temp-mem", "overview"):
            answer = await memory.ask(question, types=types, strategy=strategy, **more)
            assert {one.document_id for one in answer.citations} <= {h.document_id for h in hits}
        return {hit.document_id for hit in hits}

    assert len(await memory.search(question)) == 3
    assert await found("Company") == await found("WorksFor") == {"job"}
    assert await found("Person") == await found("person") == {"job", "walk"}
    assert await found("Person", "Company", documents=["walk"]) == {"walk"}
    tools = Toolset(memory)
    told = await as_text(tools, "search_memory", question, types="Company, Ship")
    assert "Acme" in told
    assert "Bo Ray" not in told
    assert "no type is called 'Boat'" in await as_text(tools, "ask_memory", question, types="Boat")


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ("Person", "a list of names, such as Person"),
        ([], "types are 1 to 50 names, not 0"),
        (["Person"] * 2000, "not 2,000"),
        (
            ["Boat", "Person"],
            "no type is called 'Boat'; there are: Company, Person, Ship, WorksFor",
        ),
        ([5], "a list of names"),
    ],
)
async def test_types_that_cannot_be_are_refused_in_one_line(
    memory: qrmem.Memory, types: Any, told: str
) -> None:
    for asked in (memory.search, memory.ask):
        with pytest.raises(UsageError) as caught:
            await asked("What is in the harbour?", types=types)
        assert told in str(caught.value)
    with pytest.raises(NotFound, match=r"nothing in namespace .* is of type Ship"):
        await memory.search("harbour", types=["Ship"])
    with pytest.raises(UsageError, match="strategy raptor does not support types"):
        await memory.ask("harbour?", types=["Person"], strategy="raptor")


async def test_recall_brings_back_turns_of_the_types_alone() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        said = ("I met Mr. Elias Thorne in Lisbon.", "The weather in Lisbon is fine.")
        await memory.add_messages([("user", text) for text in said], session="old")
        both = await memory.recall("What of Lisbon?", session="new")
        assert [turn.text for turn in both.related] == list(said)
        people = await memory.recall("What of Lisbon?", session="new", types=["Person"])
        assert [turn.text for turn in people.related] == [said[0]]
        with pytest.raises(UsageError, match="no type is called 'Boat'"):
            await memory.recall("What of Lisbon?", types=["Boat"])
