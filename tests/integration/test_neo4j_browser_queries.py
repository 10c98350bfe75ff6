"""What the saved queries for Neo4j Browser return; that they are drawn is tested in the Browser."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from neo4j import GraphDatabase, NotificationSeverity
from servers.neo4j_server import Server
from servers.openai_server import OpenAIServer, in_thread

import qrmem
from qrmem.errors import NotFound, UsageError
from qrmem.graphstore.neo4j import browser_queries, browser_script

pytestmark = pytest.mark.neo4j

NS = "views"
OTHER = "other"
DOCUMENTS = [
    {
        "id": "a",
        "title": "The log",
        "text": "Captain Ahab lost a leg to Moby Dick off Japan. The Coast Lights Board heard of "
        "it. Herman Melville wrote to Owen Chase. " * 3,
    },
    {
        "id": "b",
        "title": "The inquiry",
        "text": "Captain Ahab never met Moby Dick, said Owen Chase. Nobody saw how Ahab came to "
        "Japan. The CLB, or Coast Lights Board, believed Owen Chase. The cousin of Owen Chase, "
        "one Thomas Nickerson, sailed with the Acushnet.",
    },
]
QUESTION = "Who lost a leg?"


@pytest.fixture
async def memory(neo4j: Server) -> AsyncIterator[qrmem.Memory]:
    neo4j.clear()
    settings = neo4j.settings.with_(namespace=NS, embedder="none", segment_tokens=24)
    async with qrmem.open(settings=settings.with_(namespace=OTHER)) as other:
        await other.add({"id": "z", "text": "Ahab lost an arm to Moby Dick. Zadok Pine saw it."})
        await other.ask(QUESTION)
    async with qrmem.open(settings=settings) as opened:
        await opened.add(DOCUMENTS)
        await opened.merge("Thomas Nickerson", "Herman Melville")
        await opened.build_tree()
        for strategy in ("entity-trial", "reflection"):
            await opened.ask(QUESTION, strategy=strategy)
        with in_thread(OpenAIServer()) as server:  # rules make no questions
            chosen = settings.with_(model="gpt-5-mini", base_url=server.url, questions=5)
            async with qrmem.open(settings=chosen) as reading:
                await reading.add({"id": "c", "text": "Orla Quist sold the Heron Key in Bergen."})
        yield opened


async def rows(memory: qrmem.Memory, neo4j: Server, title: str, **chosen: str) -> Any:
    """Run the query whose title begins so; return records by column."""
    (query,) = [q for q in await memory.neo4j_queries() if q.title.startswith(title)]
    auth = (neo4j.user, neo4j.password)
    with GraphDatabase.driver(neo4j.uri, auth=auth) as driver:
        values = dict(query.parameters) | chosen
        return [record.data() for record in driver.execute_query(query.text, values).records]


async def test_no_query_is_warned_of_and_none_leaves_the_namespace(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    with GraphDatabase.driver(neo4j.uri, auth=(neo4j.user, neo4j.password)) as driver:
        for query in await memory.neo4j_queries():
            records, summary, _ = driver.execute_query(query.text, dict(query.parameters))
            warned = [
                status.status_description
                for status in summary.gql_status_objects
                if status.severity is NotificationSeverity.WARNING
            ]
            assert not warned, (query.title, warned)
            if "not read completely" not in query.title:
                assert records, query.title
            assert "Zadok" not in str(records), query.title
            assert "lost an arm" not in str(records), query.title


async def test_an_entity_is_found_by_a_part_of_its_name_and_shown_with_its_statements(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    told = await rows(memory, neo4j, "What is said of an entity", name="moby")
    assert {row["entity"] for row in told} == {"Moby Dick"}
    said = {(row["document"], row["said"]) for row in told}
    assert ("b", "Captain Ahab never met Moby Dick, said Owen Chase.") in said
    assert ("a", "Captain Ahab lost a leg to Moby Dick off Japan.") in said


async def test_merged_names_come_with_the_reason(memory: qrmem.Memory, neo4j: Server) -> None:
    found = await rows(memory, neo4j, "Names that were merged")
    why = {(row["entity"], row["name"]): row["why"] for row in found}
    assert why["Coast Lights Board", "CLB"] == "its initials"
    assert why["Captain Ahab", "Ahab"] == "a part of the name"
    ((entity, decided),) = [(e, w) for (e, name), w in why.items() if name == "Thomas Nickerson"]
    assert (entity, decided) == (
        "Herman Melville",
        "you said that Herman Melville is Thomas Nickerson",
    )


async def test_statements_about_the_same_pair_are_together(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    found = await rows(memory, neo4j, "Possible contradictions")
    between = [row["between"] for row in found]
    assert between == sorted(between, key=between.index), "pairs are not torn apart"
    ours = [row for row in found if row["between"] == "Captain Ahab – Moby Dick"]
    assert {row["document"] for row in ours} == {"a", "b"}
    assert await rows(memory, neo4j, "Possible contradictions", name="Acushnet") == []


async def test_a_trail_is_shown_from_its_first_step(memory: qrmem.Memory, neo4j: Server) -> None:
    told = await rows(memory, neo4j, "A trail as a table")
    trail = await memory.trail()
    assert [row["step"] for row in told] == [step.n for step in trail.steps]
    assert told[0]["action"] == "start"
    reads = [row["read"] for row in told]
    assert [len(read) for read in reads] == [len(step.read) for step in trail.steps]
    drawn = await rows(memory, neo4j, "A trail as a picture")
    assert {row["p"]["n"] for row in drawn} == {step.n for step in trail.steps}
    (earlier,) = [t for t in await memory.trails() if t.strategy == "entity-trial"]
    told = await rows(memory, neo4j, "A trail as a table", trail=earlier.id)
    assert len(told) == len(earlier.steps)


async def test_two_trails_of_a_question_stand_side_by_side(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    found = await rows(memory, neo4j, "Two trails of one question, side")
    assert [row["step"] for row in found] == list(range(len(found)))
    assert found[0]["the earlier one"].startswith("entity-trial: ")
    assert found[0]["the later one"].startswith("reflection: ")
    assert found[1]["the later one"].startswith("start")
    assert await rows(memory, neo4j, "Two trails of one question, side", question="Why?") == []


async def test_the_chain_continues_from_where_it_is_asked_to(neo4j: Server) -> None:
    neo4j.clear()
    settings = neo4j.settings.with_(namespace=NS, embedder="none", segment_tokens=16)
    async with qrmem.open(settings=settings) as memory:
        text = " ".join(
            f"On day {n} the ship sailed on and nothing at all was seen." for n in range(40)
        )
        await memory.add({"id": "d", "text": text})
        first = await rows(memory, neo4j, "A document's chain")
        later = await rows(memory, neo4j, "A document's chain", **{"from": "20"})
    assert [row["s"]["index"] for row in first] == list(range(15))
    assert [row["s"]["index"] for row in later] == list(range(20, 35))


async def test_queries_of_an_entity_take_any_of_its_names_and_refuse_others(
    memory: qrmem.Memory,
) -> None:
    for query in await memory.neo4j_queries("CLB"):
        assert query.parameters.get("name", "Coast Lights Board") == "Coast Lights Board"
    with pytest.raises(NotFound, match="no entity is called 'Nobody'"):
        await memory.neo4j_queries("Nobody")


async def test_a_memory_that_is_not_in_neo4j_has_no_queries_and_a_namespace_has_to_be_there(
    neo4j: Server,
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "d", "text": "Ann met Bob."})
        with pytest.raises(UsageError, match="not a memory in Neo4j"):
            await memory.neo4j_queries()
    async with qrmem.open(settings=neo4j.settings.with_(namespace="nope")) as memory:
        with pytest.raises(NotFound, match="nope"):
            await memory.neo4j_queries()


def test_values_are_quoted_so_that_no_name_can_end_the_line() -> None:
    script = browser_script(browser_queries('a"b\\', name='x"}; MATCH (n)\nDETACH DELETE n //'))
    line = script.splitlines()[1]
    assert line.startswith(r':params {ns: "a\"b\\", name: "x\"}; MATCH (n)\nDETACH DELETE n //", ')


async def test_a_tree_is_drawn_from_its_roots_to_segments_and_goes_with_its_document(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    drawn = await rows(memory, neo4j, "The tree of summaries")
    roots = {row["root"]["key"]: row["root"] for row in drawn}
    (before, after) = await memory.trees()
    assert {root["summary"] for root in roots.values()} <= {
        node.summary for tree in (before, after) for node in tree.nodes
    }
    assert any("text" in (row["lowest"] or row["below"] or {}) for row in drawn)
    await memory.delete("a", "b")
    assert not await rows(memory, neo4j, "The tree of summaries")
