"""Statements with their times: listed, decided on by hand, gone with their document."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from servers.neo4j_server import Server

import qrmem
from qrmem.cli.fact_commands import fact_lines
from qrmem.cli.output import hit_lines
from qrmem.errors import NotFound, UsageError
from qrmem.graph.merging import merge_documents
from qrmem.graph.superseding import judged_pairs, pair_key
from qrmem.graphstore.reads import facts_of
from qrmem.integrations.tool_texts import facts_text, hits_text
from qrmem.types import Contribution, LedgerRow, Statement

ANN = {
    "id": "ann",
    "text": "Ann Miller has worked at Acme since May 2019. Ann Miller lives in Berlin.",
    "metadata": {"date": "2026-01-03"},
}
BOB = {"id": "bob", "text": "Bob Stone met Ann Miller in Rome.", "metadata": {"user": "bob"}}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[qrmem.Memory]:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", model="") as opened:
        await opened.add([ANN, BOB])
        yield opened


async def at_acme(memory: qrmem.Memory, *, superseded: bool = False) -> qrmem.types.FactView:
    found = await memory.facts(entity="Acme", superseded=superseded)
    return next(fact for fact in found if fact.head == "Ann Miller")


async def test_statements_are_listed_with_times_source_and_quotation(memory: qrmem.Memory) -> None:
    fact = await at_acme(memory)
    assert (fact.said_at, fact.valid_from, fact.valid_until) == ("2026-01-03", "2019-05", "")
    assert (fact.document_id, fact.superseded_by) == ("ann", "")
    assert fact.quotation == "Ann Miller has worked at Acme since May 2019."
    assert {f.document_id for f in await memory.facts(user="bob")} == {"bob"}
    assert {f.document_id for f in await memory.facts()} == {"ann", "bob"}
    assert await memory.facts(user="nobody") == []
    with pytest.raises(NotFound, match="near: Acme"):
        await memory.facts(entity="Acm")


@pytest.mark.parametrize("wrong", ["2026-02-31", "0000", "soon"])
async def test_a_document_whose_date_cannot_be_read_is_named_and_kept(
    tmp_path: Path, wrong: str
) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", model="") as memory:
        texts = [ANN | {"id": name, "metadata": {"date": wrong}} for name in ("a", "b")]
        report = await memory.add([*texts, BOB])
        (warning,) = report.warnings
        assert warning.startswith(f"the dates of 2 documents cannot be read, first {wrong!r} of a,")
        assert {fact.said_at for fact in await memory.facts(entity="Acme")} == {""}
        dated = ANN | {"id": "a", "metadata": {"date": "2026-02-28"}}
        again = await memory.add([dated], update=True)
        assert again.warnings == ()
        assert "2026-02-28" in {fact.said_at for fact in await memory.facts(entity="Acme")}


async def test_as_of_counts_what_was_said_and_held_by_then(memory: qrmem.Memory) -> None:
    undated = {f.id for f in await memory.facts(user="bob")}
    assert {f.id for f in await memory.facts(as_of="2026-01-02")} == undated
    assert (await memory.facts(as_of="2026-01"))[0].document_id == "ann"
    with pytest.raises(UsageError, match="as_of '2026-02-31' is not a date"):
        await memory.facts(as_of="2026-02-31")


async def test_a_statement_that_is_ended_is_listed_only_when_asked_for(
    memory: qrmem.Memory,
) -> None:
    id = (await at_acme(memory)).id
    assert (await memory.end_fact(id, "2025-12")).valid_until == "2025-12"
    assert id not in {f.id for f in await memory.facts(entity="Acme")}
    assert (await at_acme(memory, superseded=True)).id == id
    await memory.restore_fact(id)
    assert (await at_acme(memory)).valid_until == ""


async def test_decisions_survive_a_repair_an_archive_and_reading_again(
    memory: qrmem.Memory, tmp_path: Path
) -> None:
    first, *_, last = await memory.facts(entity="Ann Miller", user="")
    await memory.edit_fact(first.id, "is employed by", valid_from="2018")
    await memory.delete_fact(last.id)
    shown = [(f.id, f.description, f.valid_from) for f in await memory.facts()]
    assert (first.id, "is employed by", "2018") in shown
    assert last.id not in {id for id, *_ in shown}
    assert (await memory.repair()).differences == ()
    await memory.add([ANN, BOB], rebuild=True)
    assert [(f.id, f.description, f.valid_from) for f in await memory.facts()] == shown
    exported = await memory.export(tmp_path / "one.qrmem")
    async with qrmem.open(str(tmp_path / "other.db"), embedder="none", model="") as other:
        await other.load(tmp_path / "one.qrmem")
        assert [(f.id, f.description, f.valid_from) for f in await other.facts()] == shown
        again = await other.export(tmp_path / "two.qrmem")
        assert again.checksum == exported.checksum
        await other.restore_fact(last.id)
        assert last.id in {f.id for f in await other.facts()}


async def test_a_deleted_document_takes_decisions_on_its_statements_with_it(
    memory: qrmem.Memory, tmp_path: Path
) -> None:
    await memory.delete_fact((await memory.facts(user="bob"))[0].id)
    await memory.delete("bob")
    async with qrmem.open(str(tmp_path / "new.db"), embedder="none", model="") as other:
        await other.add([ANN])
        one = await memory.export(tmp_path / "one.qrmem")
        assert (await other.export(tmp_path / "two.qrmem")).checksum == one.checksum


async def test_a_new_date_of_a_document_is_that_of_its_statements(memory: qrmem.Memory) -> None:
    await memory.add([{**ANN, "metadata": {"date": 2025}}], update=True)
    assert (await at_acme(memory)).said_at == "2025"


@pytest.mark.parametrize("wrong", ["2026-02-31", "0000", "2018"])
async def test_impossible_requests_are_refused_and_change_nothing(
    memory: qrmem.Memory, wrong: str
) -> None:
    fact = await at_acme(memory)
    with pytest.raises(UsageError, match=r"is not a date|lies before"):
        await memory.end_fact(fact.id, wrong)
    for id in ("", "x", f"{fact.segment_id}:99", f"{fact.segment_id}:-1", "none:0"):
        with pytest.raises(NotFound, match="no fact"):
            await memory.delete_fact(id)
    with pytest.raises(UsageError, match="the id of a fact must be text, not int"):
        await memory.delete_fact(5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nothing to change"):
        await memory.edit_fact(fact.id)
    with pytest.raises(UsageError, match="the text"):
        await memory.edit_fact(fact.id, " ")
    assert await at_acme(memory) == fact


TURNS = [
    {"role": "user", "content": "I keep my spare keys with Ann Miller.", "at": "2026-01-03T10:00"},
    {"role": "user", "content": "I keep my spare keys with Bob Stone.", "at": "2026-03-05T10:00"},
]


async def test_search_ask_and_recall_see_the_memory_of_their_start(memory: qrmem.Memory) -> None:
    await memory.add_messages(TURNS)
    question = "Who has the spare keys?"
    hits = await memory.search(question, as_of="2026-02")
    assert "Ann Miller" in hits[0].text
    assert not any("with Bob Stone" in hit.text for hit in hits)
    answer = await memory.ask(question, as_of="2026-02", strategy="passages")
    assert "Ann Miller" in answer.text
    assert not any(c.document_id == "turn-00000002" for c in answer.citations)
    for how in ("turns", "fragrel"):
        found = await memory.recall(question, as_of="2026-02", how=how)
        assert [turn.number for turn in (*found.related, *found.recent)] == [1]
    assert len((await memory.recall(question)).recent) == 2
    with pytest.raises(NotFound, match="was said by 1999"):
        await memory.search(question, as_of="1999", where={"role": "user"})
    for call in (memory.search, memory.ask, memory.recall, memory.entity):
        with pytest.raises(UsageError, match="as_of '2026-02-31' is not a date"):
            await call("Ann Miller", as_of="2026-02-31")


async def test_an_entity_shows_what_held_then(memory: qrmem.Memory) -> None:
    await memory.end_fact((await at_acme(memory)).id, "2024")

    async def told(as_of: str) -> str:
        view = await memory.entity("Acme", as_of=as_of)
        return " ".join(relation.description for relation in view.relations)

    assert "(from 2019-05 until 2024)" in await told("")
    assert await told("2020") == ""  # there are no turns yet


async def record_single(memory: qrmem.Memory) -> None:
    """Record a type as an `add` under a schema does."""
    await memory._session.store.set_single(memory._session.ns, ["LIVES_IN"])


LIVES = (("one", "Ann lives in Rome. ", "2024"), ("two", "Ann lives in Oslo. ", "2026-01"))


async def typed(memory: qrmem.Memory, documents: tuple[tuple[str, str, str], ...]) -> None:
    """Read documents as a chat model with a schema would."""
    store, ns = memory._session.store, memory._session.ns
    for id, text, date in documents:
        await memory.add([{"id": id, "text": text, "metadata": {"date": date}}])
        (segment,) = await store.segments(ns, documents=[id])
        tail = text.partition(" in ")[2].split()[0].rstrip(".")
        stated = Statement("Ann", tail, "lives in", type="LIVES_IN")
        read = Contribution(segment.id, "extraction", statements=(stated,))
        await store.record(ns, [(LedgerRow(segment.id, "ok"), read)])
        await merge_documents(store, ns, [id])


async def test_a_later_statement_of_a_single_type_is_shown_with_the_one_that_it_replaces(
    memory: qrmem.Memory,
) -> None:
    await record_single(memory)
    await memory.delete("ann", "bob")
    await typed(memory, LIVES)
    (now,) = await memory.facts(entity="Ann")
    assert (now.tail, now.type) == ("Oslo", "LIVES_IN")
    old, new = await memory.facts(entity="Ann", superseded=True)
    assert (old.superseded_by, old.superseded_at) == (new.id, "2026-01")
    assert old.then == "Ann — lives in — Oslo"
    (earlier,) = await memory.facts(entity="Ann", as_of="2025")
    assert earlier.tail == "Rome"
    view = await memory.entity("Rome")
    assert view.relations[0].description == "lives in (until 2026-01; then: lives in Oslo)"
    hits = {hit.document_id: hit for hit in await memory.search("Who lives in Rome?")}
    told = "Ann lives in Rome (until 2026-01; then: Ann lives in Oslo)"
    assert (hits["one"].ended, hits["two"].ended) == ((told,), ())
    assert f"   no longer: {told}" in hit_lines(1, hits["one"])
    assert "No longer: <text>" in hits_text(list(hits.values()))
    alone = await memory.search("Who lives in Rome?", documents=["one"])
    then = await memory.search("Who lives in Rome?", as_of="2025")
    assert alone[0].ended == then[0].ended == ()
    # A question that finds the older one alone reads the newer with it.
    answer = await memory.ask("Who lives in Rome?", strategy="reflection")
    texts = " ".join(citation.quote for citation in answer.citations)
    assert "Rome" in texts
    await memory.delete("two")
    assert [f.tail for f in await memory.facts(entity="Ann")] == ["Rome"]
    assert (await memory.entity("Rome")).relations[0].description == "lives in"


PLACES = ("Rome", "Oslo", "Bonn", "Cork")
DAYS = ("2024", "2025-03", "2025-03-09", "2026-01-03")


async def _play(
    memory: qrmem.Memory, documents: Mapping[str, tuple[str, str, str]], decided: Mapping[str, str]
) -> None:
    """Add documents, and do with their statements what was decided."""
    for given in documents.values():
        await typed(memory, (given,))
    for id, decision in decided.items():
        found = [f for f in await memory.facts(superseded=True) if f.document_id == id]
        for fact in (f for f in found if f.type):
            if decision == "delete":
                await memory.delete_fact(fact.id)
            elif decision == "edit":
                await memory.edit_fact(fact.id, "dwells in")
            else:
                await memory.end_fact(fact.id, decision)


async def _judge(memory: qrmem.Memory, verdicts: Mapping[tuple[str, str], str]) -> None:
    """Keep what a chat model would say of the statements of two documents."""
    store, ns = memory._session.store, memory._session.ns
    stated = {f.segment_id: f for f in await facts_of(store, ns, ["ann|"]) if f.type}
    places = {s.document_id: s.id for s in await store.segments(ns, list(stated))}
    for (old, new), verdict in verdicts.items():
        if {old, new} <= places.keys():
            pair = places[old], places[new]
            key = pair_key(stated[pair[0]], stated[pair[1]])
            await store.put_cache_entry(ns, "judgement", key, {"verdict": verdict}, segments=pair)


EDGES = (
    "MATCH (a:Entity {ns: $ns})-[r]->(b:Entity) RETURN a.name, type(r), b.name, r.description,"
    " r.statements, r.said_at, r.valid_from, r.valid_until ORDER BY a.name, b.name, type(r)"
)
STATED = (
    "MATCH (s:Segment {ns: $ns})-[:STATES]->(f:Statement) RETURN s.key, properties(f)"
    " ORDER BY s.key, f.n"
)


class LivesIn(BaseModel):
    single: ClassVar = True


def _opened(server: Server | None, path: Path, name: str, schema: Any = None) -> Any:
    given: dict[str, Any] = {"embedder": "none", "model": "", "schema": schema}
    if server is None:
        return qrmem.open(str(path / f"{name}.db"), **given)
    return qrmem.open(settings=server.settings.with_(**given, namespace=name))


def _seen_by_cypher(server: Server | None, name: str) -> Any:
    """Return what a person reads in Neo4j Browser, without what names the namespace."""
    if server is None:
        return ()
    edges: Any = server.query(EDGES, ns=name)
    stated: Any = server.query(STATED, ns=name)
    assert edges
    own = [(key, {k: v for k, v in found.items() if v != name}) for key, found in stated]
    return json.loads(json.dumps([edges, own]).replace(name, ""))


ON_NEO4J = [pytest.param(seed, "neo4j", marks=pytest.mark.neo4j) for seed in range(2)]


@pytest.mark.parametrize(("seed", "store"), [*((n, "sqlite") for n in range(6)), *ON_NEO4J])
async def test_deleted_documents_leave_no_trace_in_what_supersedes_what(
    seed: int,
    store: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    server: Server | None = None if store == "sqlite" else request.getfixturevalue("neo4j")
    if server:
        server.clear()
    # without a schema judgements alone end statements
    schema = qrmem.Schema(relations=[LivesIn]) if seed % 2 else None
    chance = Random(seed)
    documents = {
        f"d{n}": (f"d{n}", f"Ann lives in {chance.choice(PLACES)}. ", chance.choice(DAYS))
        for n in range(8)
    }
    decided = {
        id: chance.choice(["2025-06", "edit", "delete"]) for id in chance.sample(list(documents), 3)
    }
    pairs = [tuple(chance.sample(list(documents), 2)) for _ in range(24)]
    verdicts = {(a, b): chance.choice(["replaces", "replaces", "beside"]) for a, b in pairs}
    gone = chance.sample(list(documents), 3)
    left = {id: given for id, given in documents.items() if id not in gone}
    exported = []
    for name, kept in (("one", documents), ("other", left)):
        async with _opened(server, tmp_path, name, schema) as memory:
            await _play(memory, kept, {id: what for id, what in decided.items() if id in kept})
        async with _opened(server, tmp_path, name) as memory:  # the memory keeps what is single
            await _judge(memory, verdicts)
            if name == "one":
                assert any(f.superseded_by for f in await memory.facts(superseded=True))
                assert await judged_pairs(memory._session.store, memory._session.ns)
                await memory.delete(*gone)
            path = tmp_path / f"{name}.jsonl"
            await memory.export(path)
            shown = [await memory.facts(superseded=True), await memory.facts(as_of="2025-04")]
            by_cypher = _seen_by_cypher(server, name)
            lines = path.read_bytes().replace(f'"{name}"'.encode(), b'"m"')
            exported.append((shown, by_cypher, lines))
            assert (await memory.repair()).differences == ()
            assert _seen_by_cypher(server, name) == by_cypher
    assert exported[0][0] == exported[1][0]
    assert exported[0][1] == exported[1][1]
    assert exported[0][2] == exported[1][2]


async def test_a_future_fact_is_marked_and_ends_nothing_yet(memory: qrmem.Memory) -> None:
    await record_single(memory)
    await memory.delete("ann", "bob")
    await typed(memory, (LIVES[0], ("two", "Ann lives in Oslo from 2999 on.", "2026-01")))
    await memory.edit_fact(await _fact_id(memory, "two"), valid_from="2999")
    (now,) = await memory.facts(entity="Ann")
    assert (now.tail, now.superseded_by, now.then, now.is_ahead) == ("Rome", "", "", False)
    _, plan = await memory.facts(entity="Ann", superseded=True)
    assert (plan.tail, plan.is_ahead) == ("Oslo", True)
    assert "    said 2026-01, not yet: from 2999" in fact_lines([plan], 1)
    assert "not yet: from 2999" in facts_text([plan])
    for place, shown in (("Rome", "lives in"), ("Oslo", "lives in (not yet: from 2999)")):
        assert (await memory.entity(place)).relations[0].description == shown
    hits = {hit.document_id: hit for hit in await memory.search("Who lives in Rome?")}
    assert hits["one"].ended == ()
    answer = await memory.ask("Who lives in Rome?", strategy="reflection")
    assert "Rome" in " ".join(citation.quote for citation in answer.citations)
    (then,) = await memory.facts(entity="Ann", as_of="2999")
    assert (then.tail, then.is_ahead) == ("Oslo", False)
    old, _ = await memory.facts(entity="Ann", as_of="2999", superseded=True)
    assert (old.superseded_by, old.superseded_at) == (plan.id, "2999")


async def _fact_id(memory: qrmem.Memory, document: str) -> str:
    found = await memory.facts(superseded=True)
    return next(fact.id for fact in found if fact.document_id == document and fact.type)


class Visits(BaseModel):
    single: ClassVar = True


async def test_the_memory_keeps_which_types_are_single(tmp_path: Path) -> None:
    def opened(*relations: type[BaseModel]) -> Any:
        schema = qrmem.Schema(relations=relations) if relations else None
        return _opened(None, tmp_path, "m", schema)

    async def ended(memory: qrmem.Memory) -> list[str]:
        return [f.tail for f in await memory.facts(superseded=True) if f.superseded_by]

    async with opened() as memory:
        await typed(memory, LIVES)
        assert await ended(memory) == []
    async with opened(LivesIn) as memory:
        assert await ended(memory) == ["Rome"]  # shown under the schema, and nothing is written
    async with opened() as memory:
        assert await ended(memory) == []
    async with opened(LivesIn) as memory:
        await memory.add_turn("user", "Good morning.")
    async with opened(Visits) as memory:
        assert await ended(memory) == ["Rome"]  # another schema says nothing about this type
        await memory.add_turn("user", "Good evening.")
    async with opened() as memory:
        assert await ended(memory) == ["Rome"]
        await memory.export(tmp_path / "m.jsonl")
    async with opened(type("LivesIn", (BaseModel,), {})) as memory:
        assert await ended(memory) == []
        await memory.add({"id": "three", "text": "Ann saw Bob."})
    async with opened() as memory:
        assert await ended(memory) == []
    async with _opened(None, tmp_path, "other") as memory:
        await memory.load(tmp_path / "m.jsonl")
        assert await ended(memory) == ["Rome"]


async def test_a_later_statement_with_an_end_ends_the_one_about_the_same_two(
    memory: qrmem.Memory,
) -> None:
    await record_single(memory)
    await memory.delete("ann", "bob")
    over = ("three", "Ann lived in Rome until 2025-06.", "2026-05")
    await typed(memory, (LIVES[0], over))
    assert await memory.facts(entity="Ann") == []
    assert await memory.facts(entity="Ann", as_of="2026-12") == []
    first, last = await memory.facts(entity="Ann", superseded=True)
    assert (first.document_id, first.valid_until, first.superseded_by) == ("one", "2025-06", "")
    assert (last.document_id, last.valid_until) == ("three", "2025-06")
    (earlier,) = await memory.facts(entity="Ann", as_of="2025")
    assert (earlier.document_id, earlier.valid_until) == ("one", "")
    await memory.delete("three")
    (now,) = await memory.facts(entity="Ann")
    assert (now.document_id, now.valid_until) == ("one", "")


async def test_an_entity_as_of_a_date_has_only_what_was_said_by_then(memory: qrmem.Memory) -> None:
    later = "Ann Miller met Ann Miller's sister. Miller left."
    await memory.add([{"id": "late", "text": later, "metadata": {"date": "2026-05-01"}}])
    now = await memory.entity("Ann Miller")
    assert [s.document_id for s in now.segments] == ["ann", "bob", "late"]
    then = await memory.entity("Ann Miller", as_of="2026-03")
    assert [s.document_id for s in then.segments] == ["ann", "bob"]
    assert then.entity.segments == now.entity.segments[:2]
    assert then.entity.forms == (("Ann Miller", 3),)
    before = await memory.entity("Ann Miller", as_of="2025")
    assert ([s.document_id for s in before.segments], before.entity.forms) == (
        ["bob"],
        (("Ann Miller", 1),),
    )
    assert (await memory.entity("Ann Miller", as_of="2026-05")).entity == now.entity
