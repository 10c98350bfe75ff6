"""Edits in Neo4j Browser break nothing, and `repair` keeps those that are decisions on names."""

from collections.abc import AsyncIterator

import pytest
from servers.neo4j_server import Server

import qrmem
from qrmem.errors import NotFound

pytestmark = pytest.mark.neo4j

DOCUMENTS = [
    {"id": "a", "text": "Captain Ahab lost a leg to Moby Dick off Japan. Owen Chase saw Japan."},
    {"id": "b", "text": "Thomas Nickerson wrote to Owen Chase. Herman Melville read it in Oslo."},
]
LATER = {"id": "c", "text": "Moby Dick was seen by Owen Chase and Thomas Nickerson off Japan."}
DELETE = "MATCH (e:Entity {ns: 'edited', name: $name}) DETACH DELETE e"
MERGE = """
MATCH (one:Entity {ns: 'edited', name: $one})<-[old:NAMES]-(n:Name)
MATCH (other:Entity {ns: 'edited', name: $other})
DELETE old
CREATE (n)-[:NAMES]->(other)
"""
EDIT = "MATCH ()-[r:RELATES {ns: 'edited'}]->() WITH r LIMIT 1 SET r.description = 'edited by hand'"
SEPARATE = """
MATCH (n:Name {ns: 'edited', surface: 'Ahab'})-[old:NAMES]->(:Entity)
DELETE old
CREATE (n)-[:NAMES]->(made:Entity {ns: 'edited', name: 'The Captain'})
WITH made
MATCH (s:Segment {ns: 'edited', document: 'n'})-[mentioned:MENTIONS {name: 'ahab|PERSON'}]->()
DELETE mentioned
CREATE (s)-[:MENTIONS {name: 'ahab|PERSON', forms: ['Ahab'], counts: [1]}]->(made)
"""
DELETE_OF = """
MATCH (:Name {ns: 'edited', surface: 'Ahab'})-[:NAMES]->(e:Entity)
DETACH DELETE e
"""
NAMED_ZANZIBAR = "MATCH (n {ns: 'edited'}) WHERE n.key CONTAINS 'zanzibar' RETURN labels(n), n.key"
BY_HAND = "MATCH (e:Entity {ns: 'edited'}) WHERE e.name = $name RETURN e.key"
ORPHANS = "MATCH (n:Name {ns: 'edited'}) WHERE NOT (n)-[:NAMES]->() RETURN n.key"


@pytest.fixture
async def memory(neo4j: Server) -> AsyncIterator[qrmem.Memory]:
    neo4j.clear()
    settings = neo4j.settings.with_(namespace="edited", embedder="none")
    async with qrmem.open(settings=settings) as opened:
        await opened.add(DOCUMENTS)
        await opened.ask("Who lost a leg?", strategy="reflection")
        yield opened


async def test_reads_and_writes_continue_after_edits_and_repair_restores(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    neo4j.query(DELETE, name="Moby Dick")
    neo4j.query(DELETE, name="Owen Chase")
    neo4j.query(EDIT)
    assert "Moby Dick" not in {found.name for found in await memory.entities()}
    assert await memory.search("Who saw Japan?")
    assert (await memory.ask("Who lost a leg?")).text
    assert (await memory.add(LATER)).added == ("c",)
    await memory.delete("b")
    await memory.add(DOCUMENTS[1])
    assert neo4j.query(DELETE, name="Captain Ahab") == []
    done = await memory.repair()
    assert done.differences
    assert done.decisions == ()
    assert neo4j.query(ORPHANS) == []
    async with qrmem.open("memory://", embedder="none") as oracle:
        await oracle.add([*DOCUMENTS, LATER])
        assert await memory.entities() == await oracle.entities()
    assert (await memory.repair()).differences == ()
    assert neo4j.query("MATCH (:Trail)-[:STEP]->(:Step)-[r:READ]->(:Segment) RETURN 1 LIMIT 1")


async def test_a_merge_by_hand_is_kept_as_the_users_decision(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    neo4j.query(MERGE, one="Thomas Nickerson", other="Herman Melville")
    done = await memory.repair()
    assert [(d.first, d.second, d.same) for d in done.decisions] == [
        ("Herman Melville", "Thomas Nickerson", True)
    ]
    one, other = [await memory.entity(n) for n in ("Thomas Nickerson", "Herman Melville")]
    assert one.entity.key == other.entity.key
    assert (await memory.repair()).differences == ()


async def test_a_hand_made_entity_is_shown_and_can_be_deleted(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    neo4j.query("CREATE (:Entity {ns: 'edited', name: 'By Hand'})")
    neo4j.query("CREATE (:Entity {ns: 'edited', name: 'With Key', key: 'with key|'})")
    done = await memory.repair()
    assert done.differences == ("2 entities made by hand, in no text: not kept",)
    assert neo4j.query(BY_HAND, name="By Hand") == neo4j.query(BY_HAND, name="With Key") == []
    assert (await memory.repair()).differences == ()
    neo4j.query("CREATE (:Entity {ns: 'edited', name: 'By Hand'})")
    await memory.delete_all()
    assert neo4j.query(BY_HAND, name="By Hand") == []


async def test_a_namespace_whose_deletion_was_killed_is_deleted_by_another(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    neo4j.query("MATCH (n:QrmemNamespace {ns: 'edited'}) SET n.deleting = true")
    with pytest.raises(NotFound):
        await memory.delete_all()
    assert neo4j.query("MATCH (n {ns: 'edited'}) RETURN n LIMIT 1") == []


async def test_a_name_given_to_a_new_entity_without_a_key_breaks_nothing(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    await memory.add({"id": "n", "text": "Captain Ahab saw Oslo. Ahab wept."})
    neo4j.query(SEPARATE)
    assert await memory.search("Who was Captain Ahab?")
    assert (await memory.ask("Who saw Oslo?", strategy="reflection")).text
    assert (await memory.add(LATER)).added
    assert await memory.entities()
    assert await memory.entity("Ahab")
    await memory.merges()
    done = await memory.repair()
    assert [(d.first, d.second, d.same) for d in done.decisions] == [
        ("Ahab", "Captain Ahab", False)
    ]
    assert neo4j.query(BY_HAND, name="The Captain") == []
    assert (await memory.repair()).differences == ()
    one, other = [await memory.entity(name) for name in ("Ahab", "Captain Ahab")]
    assert one.entity.key != other.entity.key


@pytest.mark.parametrize("edit", [DELETE_OF, SEPARATE])
async def test_a_document_leaves_no_name_behind_after_its_entities_were_edited(
    memory: qrmem.Memory, neo4j: Server, edit: str
) -> None:
    await memory.add({"id": "n", "text": "Captain Zanzibar Blum saw Oslo. Zanzibar Blum wept."})
    assert neo4j.query(NAMED_ZANZIBAR) != []
    neo4j.query(edit.replace("Ahab", "Zanzibar Blum").replace("ahab", "zanzibar blum"))
    await memory.delete("n")
    assert neo4j.query(NAMED_ZANZIBAR) == []


async def test_a_text_whose_last_segment_is_deleted_is_named_and_comes_back(
    memory: qrmem.Memory, neo4j: Server
) -> None:
    neo4j.query("MATCH (s:Segment {ns: 'edited', document: 'a'}) DETACH DELETE s")
    assert all(hit.document_id == "b" for hit in await memory.search("Who saw Japan?"))
    assert (await memory.repair()).damaged == ("a",)
    assert (await memory.add(DOCUMENTS[0], rebuild=True)).updated == ("a",)
    assert (await memory.search("Who saw Japan?"))[0].document_id == "a"
    done = await memory.repair()
    assert (done.differences, done.damaged) == ((), ())
