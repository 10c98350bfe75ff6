"""`repair` finds a graph that differs from its documents, and rebuilds it, in every store."""

import sqlite3
from pathlib import Path

import pytest

import qrmem
from qrmem.errors import StoreUnavailable
from qrmem.graphstore import GraphStore
from qrmem.graphstore.protocol import EntityRow, ViewUpdate

DOCUMENTS = [
    {"id": "a", "text": "Captain Ahab lost a leg to Moby Dick off Japan. Owen Chase saw Japan."},
    {"id": "b", "text": "Thomas Nickerson wrote to Owen Chase. Herman Melville read it in Oslo."},
]


@pytest.fixture(params=["memory", "sqlite"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> qrmem.Memory:
    uri = "memory://" if request.param == "memory" else str(tmp_path / "m.db")
    memory = await qrmem.open(uri, embedder="none")
    await memory.add(DOCUMENTS)
    return memory


async def test_a_whole_memory_is_not_changed(memory: qrmem.Memory) -> None:
    before = await memory.entities()
    done = await memory.repair()
    assert (done.differences, done.decisions, done.damaged) == ((), (), ())
    assert await memory.entities() == before
    await memory.close()


async def test_a_merge_behind_the_memorys_back_is_kept_as_a_decision(memory: qrmem.Memory) -> None:
    keys = {found.name: found.key for found in await memory.entities()}
    store, ns = memory._session.store, memory._session.ns
    await _apply(store, ns, ViewUpdate(names={keys["Thomas Nickerson"]: keys["Herman Melville"]}))
    done = await memory.repair()
    assert [(d.first, d.second, d.same) for d in done.decisions] == [
        ("Herman Melville", "Thomas Nickerson", True)
    ]
    assert (await memory.entity("Thomas Nickerson")).entity.key == (
        await memory.entity("Herman Melville")
    ).entity.key
    assert (await memory.repair()).differences == ()
    await memory.close()


async def test_a_name_of_two_types_is_listed_once(memory: qrmem.Memory) -> None:
    await memory.add([{"id": "c", "text": "The Ahab sank off Japan."}])
    await memory.add([{"id": "d", "text": "Captain Ahab saw Ahab. Ahab wept."}])
    store, ns = memory._session.store, memory._session.ns
    moved = [row.key for row in await store.names(ns) if row.surface == "Ahab"]
    assert len(moved) == 2
    await _apply(store, ns, ViewUpdate(names=dict.fromkeys(moved, "japan|")))
    done = await memory.repair()
    assert done.differences.count("'Ahab' was made a name of 'Japan': kept") == 1
    assert len(done.decisions) == 1
    await memory.close()


@pytest.mark.parametrize("body", [b"no deflate", b"\x03\x00"])
async def test_a_record_that_is_damaged_is_named_by_its_document_and_can_be_read_again(
    tmp_path: Path, body: bytes
) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add(DOCUMENTS)
        before = await memory.entities()
        db = sqlite3.connect(tmp_path / "m.db")
        db.execute(
            "UPDATE contribution SET body = ? WHERE segment ="
            " (SELECT s.num FROM segment s JOIN document d ON d.num = s.document WHERE d.id = 'b')",
            (body,),
        )
        db.commit()
        db.close()
        with pytest.raises(StoreUnavailable, match="is damaged: a record in it cannot be"):
            await memory.export(tmp_path / "a.qrmem")
        with pytest.raises(
            StoreUnavailable, match="what was extracted from 'b' cannot be understood"
        ):
            await memory.repair()
        await memory.delete("b")
        await memory.add(DOCUMENTS[1])
        assert (await memory.repair()).differences == ()
        assert await memory.entities() == before


async def test_repair_removes_unsupported_rows_and_restores_missing_ones(
    memory: qrmem.Memory,
) -> None:
    before = await memory.entities()
    store, ns = memory._session.store, memory._session.ns
    (segment, *_) = await store.segments(ns, documents=["a"])
    key = next(found.key for found in before if found.name == "Owen Chase")
    await _apply(store, ns, ViewUpdate(entities=[EntityRow(key, "Nobody Atall", "PERSON")]))
    await _apply(store, ns, ViewUpdate(clear=[segment.id]))
    done = await memory.repair()
    assert any("Nobody Atall" in text and "not kept" in text for text in done.differences)
    assert any("is missing" in text for text in done.differences)
    assert await memory.entities() == before
    assert (await memory.repair()).differences == ()
    await memory.close()


async def _apply(store: GraphStore, ns: str, change: ViewUpdate) -> None:
    info = await store.namespace(ns)
    assert info is not None
    await store.apply(ns, info.revision, change)


def test_the_command_says_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from qrmem.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QRMEM_EMBEDDER", "none")
    Path("a.txt").write_text(str(DOCUMENTS[0]["text"]), encoding="utf-8")
    assert main(["add", "a.txt", "--quiet", "--memory", "m.db"]) == 0
    capsys.readouterr()
    for flag in ("--compare", "--repair"):
        assert main(["doctor", flag, "--memory", "m.db"]) == 0
        assert "the graph matches the documents" in capsys.readouterr().out
    with sqlite3.connect("m.db") as db:
        db.execute("UPDATE entity SET name = 'Nobody Atall' WHERE name = 'Owen Chase'")
    db.close()
    assert main(["doctor", "--compare", "--memory", "m.db"]) == 1
    told = capsys.readouterr().out
    assert "'Owen Chase' was renamed to 'Nobody Atall'" in told
    assert "nothing was changed: the lines say what `qrmem doctor --repair` does" in told
    assert main(["doctor", "--compare", "--memory", "m.db"]) == 1
    assert main(["doctor", "--repair", "--memory", "m.db"]) == 0
    assert main(["doctor", "--compare", "--memory", "m.db"]) == 0
