"""The questions in Cypher of docs/neo4j-browser.md, on a real server."""

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from neo4j import GraphDatabase, NotificationSeverity
from pydantic import BaseModel
from servers.neo4j_server import Server
from servers.openai_server import OpenAIServer

import qrmem
from qrmem import Schema

pytestmark = pytest.mark.neo4j
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "neo4j-browser.md"
BOOK = ROOT / "qrmem" / "sample" / "harbour.md"
TURNS = [
    {"role": "user", "content": "Ann Miller keeps the keys at Rome House.", "at": "2026-01-03"},
    {"role": "assistant", "content": "Rome House is a long way off.", "at": "2026-01-03"},
    {"role": "user", "content": "Ann Miller keeps the keys at Oslo House.", "at": "2026-03-05"},
]
JOBS = {"Acme Ltd": "2024-03-01", "Bell Works": "2025-06-01"}


class Person(BaseModel):
    pass


class Company(BaseModel):
    pass


class WorksFor(BaseModel):
    single: ClassVar = True


def employed(request: Any) -> str:
    company = next(name for name in JOBS if name in json.dumps(request))
    return json.dumps(
        {
            "entities": ["Ann Lee|Person", f"{company}|Company"],
            "relations": [f"Ann Lee|works for|{company}|WorksFor"],
            "questions": [],
        }
    )


def questions() -> dict[str, list[str]]:
    """Return the queries of the page by their heading."""
    page = PAGE.read_text(encoding="utf-8").partition("## Questions in Cypher")[2]
    found = {}
    for part in re.split(r"^### ", page.partition("\n## ")[0], flags=re.MULTILINE)[1:]:
        heading = part.partition("\n")[0]
        found[heading] = re.findall(r"```cypher\n(.*?)```", part, re.DOTALL)
    return found


async def test_every_question_of_the_page_is_answered_without_a_warning(neo4j: Server) -> None:
    neo4j.clear()
    base = neo4j.settings.with_(embedder="none")
    asked = questions()
    spaces = dict(zip(asked, ("book", "talk", "firm"), strict=True))
    async with qrmem.open(settings=base.with_(namespace="book")) as memory:
        await memory.add(str(BOOK))
    async with qrmem.open(settings=base.with_(namespace="talk")) as memory:
        await memory.add_messages(TURNS, session="work", user="kim")
    async with OpenAIServer(answer=employed) as server:
        given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url}
        schema = Schema([Person, Company], [WorksFor])
        settings = base.with_(namespace="firm", **given)
        async with qrmem.open(settings=settings, schema=schema) as memory:
            for company, date in JOBS.items():
                text = f"Ann Lee works for {company}."
                await memory.add({"id": company, "text": text, "metadata": {"date": date}})
    neo4j.query("CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()")
    answers = {}
    with GraphDatabase.driver(neo4j.uri, auth=(neo4j.user, neo4j.password)) as driver:
        for heading, queries in asked.items():
            for text in queries:
                records, summary, _ = driver.execute_query(text, {"ns": spaces[heading]})
                warned = [
                    status.status_description
                    for status in summary.gql_status_objects
                    if status.severity is NotificationSeverity.WARNING
                ]
                assert not warned, (text, warned)
                assert records, text
                answers[text] = [record.data() for record in records]
    now, before = (answers[text] for text in asked["Over own types, in time"][:2])
    assert [row["employer"] for row in now] == ["Bell Works"]
    assert [(row["employer"], row["until"]) for row in before] == [("Acme Ltd", "2025-06-01")]


class Owns(BaseModel):
    pass


SAID = (
    ("2024-01", "Ann Lee works for Acme Ltd.", "Ann Lee|works for|Acme Ltd|WorksFor"),
    ("2024-02", "Ann Lee joined Acme Ltd.", "Ann Lee|joined|Acme Ltd|WorksFor"),
    ("2024-03", "Ann Lee owns Acme Ltd.", "Ann Lee|owns|Acme Ltd|Owns"),
    ("2024-04", "Ann Lee bought Acme Ltd.", "Ann Lee|bought|Acme Ltd|Owns"),
    ("2025-01", "Bob Ray works for Acme Ltd.", "Bob Ray|works for|Acme Ltd|WorksFor"),
    (
        "2026-05",
        "Bob Ray worked for Acme Ltd until 2025-06.",
        "Bob Ray|worked for|Acme Ltd|WorksFor|valid_until=2025-06",
    ),
    ("2026-05", "Cy Dow works for Acme Ltd.", "Cy Dow|works for|Acme Ltd|WorksFor"),
)


def stated(request: Any) -> str:
    asked = json.dumps(request)
    relations = [relation for _, text, relation in SAID if text in asked]
    people = [f"{relation.split('|')[0]}|Person" for relation in relations]
    return json.dumps(
        {"entities": [*people, "Acme Ltd|Company"], "relations": relations, "questions": []}
    )


async def test_the_questions_keep_types_apart_and_know_what_is_over(neo4j: Server) -> None:
    neo4j.clear()
    merged_from = questions()["Over a book"][2]
    now, before, _ = questions()["Over own types, in time"]
    (facts_page,) = re.findall(
        r"```cypher\n(.*?)```", (ROOT / "docs" / "facts.md").read_text("utf-8"), re.DOTALL
    )
    async with OpenAIServer(answer=stated) as server:
        given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url}
        settings = neo4j.settings.with_(embedder="none", namespace="firm", **given)
        schema = Schema([Person, Company], [WorksFor, Owns])
        async with qrmem.open(settings=settings, schema=schema) as memory:
            for n, (date, text, _) in enumerate(SAID):
                await memory.add({"id": f"d{n}", "text": text, "metadata": {"date": date}})
            (cy,) = await memory.facts(entity="Cy Dow")
            await memory.end_fact(cy.id, "2999")

            def rows(text: str, ns: str = "firm", **parameters: str) -> list[dict[str, Any]]:
                found, _, _ = driver.execute_query(text, {"ns": ns, **parameters})
                return [record.data() for record in found]

            with GraphDatabase.driver(neo4j.uri, auth=(neo4j.user, neo4j.password)) as driver:
                of_ann = [row for row in rows(merged_from) if row["who"] == "Ann Lee"]
                assert {row["statement"] for row in of_ann} == {
                    *("works for", "joined", "owns", "bought")
                }
                assert len(of_ann) == 4
                behind = next(q for q in await memory.neo4j_queries() if "behind" in q.title)
                assert len(rows(behind.text, name="Ann Lee")) == 2
                assert {row["who"] for row in rows(now)} == {"Ann Lee", "Cy Dow"}
                assert [(row["who"], row["until"]) for row in rows(before)] == [
                    ("Bob Ray", "2025-06")
                ]
                held = facts_page.replace(":RELATES", ":WORKS_FOR")
                assert {row["who"] for row in rows(held)} == {"Ann Lee", "Cy Dow"}
                assert rows(held, ns="other") == []
