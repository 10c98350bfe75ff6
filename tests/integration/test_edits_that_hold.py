"""A statement deleted by hand stays deleted, whoever says it again, until that is undone."""

import os
from pathlib import Path

import pytest
from servers.neo4j_server import Server

import qrmem
from qrmem import Memory
from qrmem.errors import UsageError

TEXT = "Ann Holt works for Acme. Ann Holt lives in Oslo."
SAID_AGAIN = [
    "Ann Holt works for Acme. She is kind.",
    "Ann Holt works for Acme!",
    "Ａnn Holt ｗorks for Acme.",
    "Ann Holt wor\u200dks for Acme.",
    "Ann\u200b Holt works for Ac\u00adme.",
    "An\u200bn Holt works for \u2060Acme.",
    "Ann\u00a0Holt  works\nfor Acme.",
    "Ann\ufe0f Holt wor\u034fks for Acme.",
    "Ann Holt wor\u115fk\u3164s for Acme.",
]


async def words(memory: Memory, *, deleted: bool = False) -> list[str]:
    return [fact.description for fact in await memory.facts(deleted=deleted)]


async def delete(memory: Memory) -> None:
    """Delete what is said of Acme."""
    facts = await memory.facts()
    await memory.delete_fact(next(fact.id for fact in facts if " for " in fact.description))


async def require_agreement(memory: Memory, folder: Path) -> None:
    """Check that the graph, its facts and an archive say the same."""
    assert (await memory.repair(compare_only=True)).differences == ()
    await memory.export(folder / "x.qr", overwrite=True)
    async with qrmem.open(":memory:", embedder="none") as other:
        await other.load(folder / "x.qr")
        assert await words(other) == await words(memory)
        assert await words(other, deleted=True) == await words(memory, deleted=True)


@pytest.mark.parametrize("said", SAID_AGAIN, ids=range(len(SAID_AGAIN)))
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_deletion_holds_for_what_is_said(said: str, is_first: bool, tmp_path: Path) -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add_text(said if is_first else TEXT, id="a")
        if is_first:
            await delete(memory)
            await memory.add_text(TEXT, id="b")
        else:
            await memory.add_text(said, id="b")
            await delete(memory)
        await memory.add_turn("user", said)
        assert await words(memory) == ["Ann Holt lives in Oslo."]
        assert len(await words(memory, deleted=True)) == 3
        await require_agreement(memory, tmp_path)


async def test_what_else_is_said_stays(tmp_path: Path) -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add_text(TEXT, id="a")
        await delete(memory)
        await memory.add_text("Ann Holt worked for Acme. Bob Stone works for Acme.", id="b")
        await memory.add_text("Acme works for Ann Holt.", id="c")
        assert len(await words(memory)) == 4
        await require_agreement(memory, tmp_path)


async def test_a_deletion_survives_a_change_of_its_own_document(tmp_path: Path) -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add_text(TEXT, id="a")
        await delete(memory)
        edited = next(f.id for f in await memory.facts())
        await memory.edit_fact(edited, "Ann Holt rents a flat in Oslo.")
        for text in (f"Bob Stone met Eve Gray. {TEXT}", TEXT.replace("Acme.", "Ac\u00adme."), TEXT):
            await memory.add({"id": "a", "text": text}, update=True)
            said = await words(memory)
            assert "Ann Holt rents a flat in Oslo." in said
            assert not [one for one in said if "Acme" in one]
            await require_agreement(memory, tmp_path)
        await memory.add({"id": "a", "text": TEXT}, rebuild=True)
        assert await words(memory) == ["Ann Holt rents a flat in Oslo."]
        await memory.add({"id": "a", "text": "Ann Holt lives in Rome."}, update=True)
        await memory.export(tmp_path / "y.qr")
        assert b"Acme" not in (tmp_path / "y.qr").read_bytes()
        assert b"rents" not in (tmp_path / "y.qr").read_bytes()


async def test_a_deletion_is_undone_for_all_who_say_it(tmp_path: Path) -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add_text(TEXT, id="a")
        await delete(memory)
        await memory.add_text(SAID_AGAIN[0], id="b")
        await memory.delete("a")
        (deleted,) = await memory.facts("Acme", deleted=True)
        assert (deleted.head, deleted.tail, deleted.document_id) == ("Ann Holt", "Acme", "b")
        await memory.add_text(TEXT, id="c")
        await memory.restore_fact(deleted.id)
        await memory.add_text("Ann Holt works for Acme!", id="d")
        assert len([one for one in await words(memory) if "Acme" in one]) == 3
        assert await words(memory, deleted=True) == []
        await require_agreement(memory, tmp_path)
        with pytest.raises(UsageError, match="not both"):
            await memory.facts(superseded=True, deleted=True)


async def test_a_users_deletion_holds_for_this_user(tmp_path: Path) -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        for user in ("ann", "bob", ""):
            await memory.add_turn("user", "Eve Gray works for Acme.", user=user)
        (own,) = await memory.facts(user="ann")
        await memory.delete_fact(own.id)
        await memory.add_turn("user", "Eve Gray works for Acme.", user="ann")
        assert await memory.facts(user="ann") == []
        assert len(await memory.facts(user="bob")) == 1
        assert await memory.facts(user="bob", deleted=True) == []
        assert len(await memory.facts()) == 2
        await require_agreement(memory, tmp_path)
        await memory.delete_fact((await memory.facts())[-1].id)  # of no user: it holds for all
        assert await memory.facts() == []


async def test_an_end_or_a_deletion_marks_the_passage() -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add_text(TEXT, id="a")
        await delete(memory)
        await memory.add_text("ANN HOLT works for Acme. Bob Stone met Ann Holt in Rome.", id="b")
        await memory.end_fact((await memory.facts())[0].id, "2020-05")
        (of_a, of_b) = sorted(
            await memory.search("Ann Holt works for Acme"), key=lambda hit: hit.document_id
        )
        assert of_a.ended == (
            "Ann Holt works for Acme. (deleted by hand)",
            "Ann Holt lives in Oslo. (until 2020-05)",
        )
        assert of_b.ended == ("ANN HOLT works for Acme. (deleted by hand)",)
        answer = await memory.ask("Who works for Acme?")
        assert "(deleted by hand)" in answer.text
        await memory.restore_fact((await memory.facts(deleted=True))[0].id)
        hits = await memory.search("Ann Holt works for Acme")
        assert [hit.ended for hit in hits if hit.document_id == "b"] == [()]


async def test_no_word_of_an_undone_edit_stays_in_the_files(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add_text(TEXT, id="a")
        (first, second) = await memory.facts()
        await memory.edit_fact(first.id, "was a spy of Xanadu")
        await memory.restore_fact(first.id)
        await memory.edit_fact(second.id, "hides in Xanadu")
        await memory.delete_fact(second.id)
        for name in os.listdir(tmp_path):
            assert b"Xanadu" not in (tmp_path / name).read_bytes(), name


@pytest.mark.neo4j
async def test_a_deletion_holds_in_neo4j(neo4j: Server, tmp_path: Path) -> None:
    settings = neo4j.settings.with_(embedder="none")
    async with qrmem.open(neo4j.uri, namespace="edits", settings=settings) as memory:
        await memory.add_text(TEXT, id="a")
        await delete(memory)
        await memory.add_text("Ann Holt works for Ac\u00adme.", id="b")
        await memory.add({"id": "a", "text": f"{TEXT} Bob Stone met Eve Gray."}, update=True)
        assert not [one for one in await words(memory) if "Ac" in one]
        assert len(await words(memory, deleted=True)) == 2
        await require_agreement(memory, tmp_path)
        await memory.restore_fact((await memory.facts(deleted=True))[0].id)
        assert len([one for one in await words(memory) if "Ac" in one]) == 2
        await memory.merge("Eve Gray", "Bob Stone")
        await require_agreement(memory, tmp_path)
        await memory.delete_all()
