"""An answer, an `add` and an inspection when the store cannot write everything."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract.reference import ReferenceStore

import qrmem
from qrmem.config import Settings
from qrmem.errors import NotFound, StoreUnavailable, UsageError
from qrmem.graphstore.protocol import EntityRow, MentionRow, ViewUpdate
from qrmem.graphstore.sqlite import OpenMode, SqliteStore
from qrmem.graphstore.sqlite.driver_errors import error
from qrmem.memory import Memory
from qrmem.types import Contribution, Document, Event, Segment

TEXT = "Captain Ahab lost his leg to a white whale. Starbuck doubted Ahab in Nantucket."
SETTINGS = Settings(embedder="none")


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with qrmem.open("memory://", settings=SETTINGS) as opened:
        yield opened


@asynccontextmanager
async def locked(
    path: Path, events: list[Event]
) -> AsyncIterator[tuple[Memory, sqlite3.Connection]]:
    """Yield a memory, and the connection that keeps its file locked until it rolls back."""
    async with qrmem.open(str(path), settings=SETTINGS) as memory:
        await memory.add({"id": "a", "text": TEXT})
    store = await SqliteStore.open(str(path), OpenMode(timeout=0.05))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with Memory(store, SETTINGS, events.append) as memory:
            yield memory, other


async def test_an_answer_survives_a_store_that_is_locked(tmp_path: Path) -> None:
    events: list[Event] = []
    async with locked(tmp_path / "m.db", events) as (memory, other):
        answer = await memory.ask("Who lost his leg?")
        other.execute("ROLLBACK")
        with pytest.raises(NotFound):
            await memory.trail()
    assert "Captain Ahab" in answer.text
    assert [e for e in events if e.kind == "warning" and "locked" in e.data["message"]]


async def test_an_oriented_answer_survives_a_store_that_is_locked(tmp_path: Path) -> None:
    events: list[Event] = []
    async with locked(tmp_path / "m.db", events) as (memory, other):
        answer = await memory.ask("Who lost his leg?", orientation="local")
        assert "Captain Ahab" in answer.text
        assert "1 passage read again" in answer.trail.steps[0].reason
        warnings = [e.data["message"] for e in events if e.kind == "warning"]
        assert len(warnings) == 1
        assert "locked" in warnings[0]
        other.execute("ROLLBACK")
        await memory.ask("Who lost his leg?", orientation="local")
    assert len([e for e in events if e.kind == "warning"]) == 1


async def test_an_oriented_question_to_a_read_only_file_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with qrmem.open(str(path), settings=SETTINGS) as memory:
        await memory.add({"id": "a", "text": TEXT})
    events: list[Event] = []
    location = f"sqlite://{path}?mode=ro"
    async with qrmem.open(location, settings=SETTINGS, listener=events.append) as memory:
        answer = await memory.ask("Who lost his leg?", orientation="local")
    assert "Captain Ahab" in answer.text
    assert [e for e in events if e.kind == "warning" and "read-only" in e.data["message"]]


class _FullBeforeMerging(ReferenceStore):
    """A store whose disk is full when the first merge comes."""

    is_full = True

    async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
        if self.is_full:
            raise StoreUnavailable("no space left")
        return await super().apply(ns, revision, change)


async def test_segments_that_were_read_and_not_merged_are_reported_and_merged_later() -> None:
    store = _FullBeforeMerging()
    memory = Memory(store, SETTINGS)
    long = TEXT + " Nothing else was heard of them." * 200
    with pytest.raises(StoreUnavailable):
        await memory.add({"id": "a", "text": long})
    status = await memory.status()
    assert status.states.keys() == {"ok"}
    assert {(problem[0], problem[2]) for problem in status.problems} == {
        ("a", "read, but not merged")
    }
    assert status.warnings == (
        f"{len(status.problems)} segments are not complete: run the same `add` again",
    ), "replies are blamed for relations that are not merged yet"
    store.is_full = False
    report = await memory.add({"id": "a", "text": long})
    assert (report.resumed, report.read) == (("a",), 0)
    assert not (await memory.status()).problems
    assert await memory.search("Ahab")


async def test_a_turn_that_was_not_merged_is_completed_by_the_next_one() -> None:
    store = _FullBeforeMerging()
    memory = Memory(store, SETTINGS)
    assert await memory.add_turn("user", "Ann moved to Bergen.") == "turn-00000001"
    assert (await memory.status()).warnings == (
        "1 segment is not complete: the next turn that is kept completes turns",
    )
    store.is_full = False
    await memory.add_turn("user", "She likes it.")
    assert not (await memory.status()).problems


class _FullWhileWriting(ReferenceStore):
    """A store whose disk is full when it writes a document."""

    is_full = False

    async def put_documents(
        self,
        ns: str,
        written: Sequence[tuple[Document, Sequence[Segment]]],
        *,
        rebuild: bool = False,
        only_new: bool = False,
        edits: Sequence[Contribution] = (),
    ) -> None:
        if self.is_full:
            raise StoreUnavailable("no space left")
        await super().put_documents(ns, written, rebuild=rebuild, only_new=only_new, edits=edits)


async def test_a_rebuild_that_cannot_write_loses_nothing() -> None:
    store = _FullWhileWriting()
    memory = Memory(store, SETTINGS)
    await memory.add({"id": "a", "text": TEXT})
    store.is_full = True
    with pytest.raises(StoreUnavailable):
        await memory.add({"id": "a", "text": TEXT}, rebuild=True)
    assert (await memory.document("a")).text == TEXT
    assert await memory.search("leg")
    store.is_full = False
    report = await memory.add({"id": "a", "text": TEXT}, rebuild=True)
    assert (report.updated, report.read) == (("a",), 1)
    assert await memory.search("leg")


async def test_an_update_writes_new_metadata_and_reads_nothing_again(memory: Memory) -> None:
    document = {"id": "a", "title": "Moby", "text": TEXT}
    await memory.add(document)
    described = {**document, "metadata": {"year": 1851}}
    assert (await memory.add(described)).unchanged == ("a",)
    report = await memory.add(described, update=True)
    assert (report.updated, report.read) == (("a",), 0)
    assert await memory.search("Ahab", where={"year": 1851})
    assert (await memory.add(described, update=True)).unchanged == ("a",)


async def test_a_namespace_that_is_not_there_cannot_be_deleted() -> None:
    async with qrmem.open("memory://", namespace="typo", settings=SETTINGS) as memory:
        with pytest.raises(NotFound, match="typo"):
            await memory.delete_all()


async def test_a_window_of_zero_is_that_of_the_settings(tmp_path: Path) -> None:
    settings = replace(SETTINGS, window=900)
    async with qrmem.open(str(tmp_path / "m.db"), settings=settings) as memory:
        await memory.add({"id": "a", "text": TEXT})
        assert (await memory.ask("Who lost his leg?", window=700)).trail.window == 700
        assert (await memory.ask("Who lost his leg?", window=0)).trail.window == 900


async def test_a_graph_file_holds_every_entity(tmp_path: Path) -> None:
    keys = [f"name {number}|PERSON" for number in range(10_001)]
    async with qrmem.open(str(tmp_path / "m.db"), settings=SETTINGS) as memory:
        await memory.add({"id": "a", "text": "nothing is named here."})
    store = await SqliteStore.open(str(tmp_path / "m.db"), OpenMode())
    info = await store.namespace("default")
    assert info is not None
    (segment,) = await store.segments("default", documents=["a"])
    change = ViewUpdate(
        mentions=[MentionRow(segment.id, key, ((key, 1),)) for key in keys],
        names=dict(zip(keys, keys, strict=True)),
        entities=[EntityRow(key, key, "PERSON") for key in keys],
    )
    await store.apply("default", info.revision, change)
    async with Memory(store, SETTINGS) as memory:
        assert await memory.graphml(str(tmp_path / "g.graphml")) == len(keys)


def test_a_failing_disk_is_reported_in_words() -> None:
    failed = error(sqlite3.SQLITE_IOERR | 3 << 8, "m.db")
    assert isinstance(failed, StoreUnavailable)
    assert "free some space" in str(failed)


@pytest.mark.parametrize("question", ["Kokovoko", "Where is Kokovoko?"])
async def test_a_neighbour_without_a_word_of_the_question_does_not_lead(
    memory: Memory, question: str
) -> None:
    await memory.add(
        [
            {"id": "home", "text": "Queequeg came from Kokovoko. He sailed with Ishmael and Ahab."},
            {"id": "b", "text": "Ishmael slept in Nantucket. Queequeg carved his coffin there."},
            {"id": "c", "text": "Ahab walked the deck at night. Ishmael feared Ahab."},
        ]
    )
    hits = await memory.search(question)
    assert hits[0].document_id == "home"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": "somewhere"},
        {"on_exhausted": "guess"},
        {"orientation": "global"},
        {"choices": "ab"},
        {"documents": "a"},
    ],
)
async def test_a_word_that_no_option_has_is_refused(memory: Memory, wrong: dict[str, Any]) -> None:
    await memory.add({"id": "a", "text": TEXT})
    with pytest.raises(UsageError, match=next(iter(wrong))):
        await memory.ask("Who lost his leg?", **wrong)
