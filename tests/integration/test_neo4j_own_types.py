"""Types of a schema as labels and types of relationships, for queries in Cypher."""

import json
import re
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from servers.neo4j_server import Server
from servers.openai_server import OpenAIServer

import qrmem
from qrmem import Schema

pytestmark = pytest.mark.neo4j
TEXT = "Ann Lee was born in 1990. Ann Lee works for Acme Ltd since 2020. Bo Ray met Ann Lee."
READ = {
    "entities": ["Ann Lee|Person|born=1990", "Acme Ltd|Company", "Bo Ray|Person"],
    "relations": [
        "Ann Lee|is employed there|Acme Ltd|WorksFor|since=2020",
        "Bo Ray|met her|Ann Lee",
    ],
    "questions": [],
}
EMPLOYED = "MATCH (p:Person)-[w:WORKS_FOR]->(c:Company) WHERE w.valid_until IS NULL"
MET = "MATCH (p:Person)-[r:RELATES]->(q:Person) RETURN p.name, r.description, q.name"


class Person(BaseModel):
    born: int | None = None


class Company(BaseModel):
    pass


class WorksFor(BaseModel):
    head: ClassVar = Person
    tail: ClassVar = Company
    since: int | None = None


async def test_a_person_writes_cypher_over_own_types(neo4j: Server) -> None:
    neo4j.clear()
    async with OpenAIServer(answer=lambda request: json.dumps(READ)) as server:
        given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url}
        schema = Schema([Person, Company], [WorksFor])
        async with qrmem.open(
            neo4j.uri, settings=neo4j.settings.with_(**given), embedder="none", schema=schema
        ) as memory:
            await memory.add({"id": "d", "text": TEXT})
            found = neo4j.query(f"{EMPLOYED} RETURN p.name, p.born, w.since, c.name")
            assert found == [["Ann Lee", 1990, 2020, "Acme Ltd"]]
            assert neo4j.query(MET) == [["Bo Ray", "met her", "Ann Lee"]]
            (info,) = await memory.documents()
            assert info.facts == (await memory.status()).counts["facts"] == 2
            view = await memory.entity("Ann Lee")
            assert sorted(f.type for r in view.relations for f in r.facts) == ["", "WORKS_FOR"]
            await memory.merge("Bo Ray", "Acme Ltd")
            assert neo4j.query(f"{EMPLOYED.replace(':Company', '')} RETURN count(*)") == [[1]]
            await memory.delete("d")
            assert neo4j.query("MATCH (:Entity)-[r]->(:Entity) RETURN count(r)") == [[0]]
            assert neo4j.query("MATCH (n) WHERE n:Person OR n:Company RETURN count(n)") == [[0]]


async def test_nodes_and_edges_have_the_value_that_was_said_last(neo4j: Server) -> None:
    def say(request: Any) -> str:
        year = re.findall(r"in (\d{4})", request["messages"][-1]["content"])[-1]
        names = [f"Ann Lee|Person|born={year}", "Acme Ltd|Company"]
        told = [f"Ann Lee|is with|Acme Ltd|WorksFor|since={year}"]
        return json.dumps({"entities": names, "relations": told, "questions": []})

    neo4j.clear()
    async with OpenAIServer(answer=say) as server:
        given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url}
        schema = Schema([Person, Company], [WorksFor])
        settings = neo4j.settings.with_(**given, shared_tokens=0)
        async with qrmem.open(
            neo4j.uri, settings=settings, embedder="none", schema=schema
        ) as memory:
            for name, year, date in (("a", 1992, "2025"), ("b", 1990, ""), ("c", 1991, "2020-05")):
                text = f"Ann Lee was born in {year} and is with Acme Ltd."
                metadata = {"date": date} if date else {}
                await memory.add({"id": name, "text": text, "metadata": metadata})
            shown = "MATCH (p:Person)-[w:WORKS_FOR]->(:Company) RETURN p.born, w.since"
            assert neo4j.query(shown) == [[1992, 1992]]
            await memory.delete("a")
            assert neo4j.query(shown) == [[1991, 1991]]


LIVES = "MATCH (:Person {name: 'Ann Lee'})-[l:LIVES_IN]->(c)"


class LivesIn(BaseModel):
    single: ClassVar = True


def moved(request: Any) -> str:
    said = json.dumps(request)
    city = next(name for name in ("Rome", "Oslo", "Bonn") if f"in {name}" in said)
    relations = [f"Ann Lee|lives in|{city}|LivesIn"]
    return json.dumps({"entities": ["Ann Lee|Person"], "relations": relations, "questions": []})


async def test_an_edge_ends_where_a_later_statement_replaces_it_and_a_deletion_undoes_that(
    neo4j: Server,
) -> None:
    neo4j.clear()
    said = {"a": ("Rome", "2024-03-01"), "b": ("Oslo", "2025-06-01"), "c": ("Bonn", "2026-01-01")}
    async with OpenAIServer(answer=moved) as server:
        given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url}
        settings = neo4j.settings.with_(**given)
        schema = Schema([Person], [LivesIn])
        async with qrmem.open(settings=settings, embedder="none", schema=schema) as memory:
            for id, (city, date) in said.items():
                text = f"Ann Lee lives in {city}."
                await memory.add({"id": id, "text": text, "metadata": {"date": date}})
            until = f"{LIVES} RETURN c.name, l.valid_until ORDER BY c.name"
            assert neo4j.query(until) == [
                ["Bonn", None],
                ["Oslo", "2026-01-01"],
                ["Rome", "2025-06-01"],
            ]
            assert neo4j.query(f"{LIVES} WHERE l.valid_until IS NULL RETURN c.name") == [["Bonn"]]
            await memory.delete("c")
            assert neo4j.query(until) == [["Oslo", None], ["Rome", "2025-06-01"]]
            await memory.delete("b")
            assert neo4j.query(until) == [["Rome", None]]
            held = [fact.tail for fact in await memory.facts(entity="Ann Lee")]
            assert held == ["Rome"]


class Anywhere(BaseModel):
    pass


Anywhere.__name__ = "LivesIn"


async def test_edges_are_drawn_by_what_the_memory_keeps_of_single_types(neo4j: Server) -> None:
    neo4j.clear()
    until = f"{LIVES} RETURN c.name, l.valid_until ORDER BY c.name"
    async with OpenAIServer(answer=moved) as server:
        given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url}
        settings = neo4j.settings.with_(**given)

        def opened(*relations: type[BaseModel]) -> Any:
            schema = Schema([Person], relations) if relations else None
            return qrmem.open(settings=settings, embedder="none", schema=schema)

        async with opened(Anywhere) as memory:
            for city, date in (("Rome", "2024-03-01"), ("Oslo", "2025-06-01")):
                text = f"Ann Lee lives in {city}."
                await memory.add({"id": city, "text": text, "metadata": {"date": date}})
            assert neo4j.query(until) == [["Oslo", None], ["Rome", None]]
        async with opened(LivesIn) as memory:
            new = {"id": "c", "text": "Ann Lee lives in Bonn.", "metadata": {"date": "2026-01-01"}}
            await memory.add(new)
        ended = [["Bonn", None], ["Oslo", "2026-01-01"], ["Rome", "2025-06-01"]]
        assert neo4j.query(until) == ended
        async with opened() as memory:  # as any other program opens it
            await memory.delete("c")
            assert neo4j.query(until) == [["Oslo", None], ["Rome", "2025-06-01"]]
            assert [fact.tail for fact in await memory.facts(entity="Ann Lee")] == ["Oslo"]
            assert (await memory.repair(compare_only=True)).differences == ()
            neo4j.query(f"{LIVES} SET l.valid_until = null")
            found = await memory.repair(compare_only=True)
            assert found.differences == ("1 edge missing or edited: drawn again",)
            assert neo4j.query(until) == [["Oslo", None], ["Rome", None]]
            assert (await memory.repair()).differences == found.differences
            assert neo4j.query(until) == [["Oslo", None], ["Rome", "2025-06-01"]]
        async with opened(Anywhere) as memory:
            await memory.add_turn("user", "Good morning.")
        assert neo4j.query(until) == [["Oslo", None], ["Rome", None]]
