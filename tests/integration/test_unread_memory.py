"""A memory in which nothing was read gives no answer: `unanswerable` would be one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from servers.openai_server import serving

import qrmem
from qrmem.config import Secret, Settings
from qrmem.errors import AccessRefused, BadDocument, NotFound
from qrmem.memory import Memory
from qrmem.types import Document, Event, Segment

SETTINGS = Settings(embedder="none")
TEXT = "Captain Ahab lost his leg to a white whale."


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with qrmem.open(str(tmp_path / "m.db"), settings=SETTINGS) as opened:
        yield opened


@asynccontextmanager
async def refusing(memory: Memory) -> AsyncIterator[Memory]:
    """Yield the same memory with a model that refuses the key."""
    async with serving(key="right") as server:
        wrong = memory.settings.with_(model="test", base_url=server.url, api_key=Secret("wrong"))
        async with qrmem.open(settings=wrong) as opened:
            yield opened


async def assert_nothing_is_found(memory: Memory, words: str) -> None:
    for work in (memory.ask("Who lost a leg?"), memory.search("leg")):
        with pytest.raises(NotFound, match=words):
            await work


async def test_a_file_that_cannot_be_read_leaves_no_namespace(
    memory: Memory, tmp_path: Path
) -> None:
    with pytest.raises(BadDocument):
        await memory.add(tmp_path / "nowhere.txt")
    assert not await memory.namespaces()
    await assert_nothing_is_found(memory, "use `add` first")
    await memory.add({"id": "a", "text": TEXT})
    assert await memory.search("leg")


async def test_a_folder_of_nothing_but_bad_files_leaves_no_namespace(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "empty.txt").write_text("")
    report = await memory.add(tmp_path / "notes")
    assert len(report.problems) == 1
    assert not await memory.namespaces()


async def test_the_status_counts_segments_that_wait_to_be_read(memory: Memory) -> None:
    async with refusing(memory) as refused:
        with pytest.raises(AccessRefused):
            await refused.add({"id": "a", "text": TEXT})
    assert (await memory.status()).states == {"pending": 1}
    await assert_nothing_is_found(memory, "nothing has been read yet .* run the same `add`")


async def test_a_message_names_the_document_that_was_not_read(memory: Memory) -> None:
    await memory.add({"id": "read", "text": TEXT})
    async with refusing(memory) as refused:
        with pytest.raises(AccessRefused):
            await refused.add({"id": "unread", "text": TEXT + " Twice."})
    assert await memory.search("leg", documents=["read", "unread"])
    with pytest.raises(NotFound, match="nothing has been read yet of unread"):
        await memory.search("leg", documents=["unread"])


async def test_an_answer_from_a_memory_that_is_half_read_says_so(memory: Memory) -> None:
    events: list[Event] = []
    listening = memory.listening(events.append)
    await memory.add({"id": "read", "text": TEXT})
    await listening.ask("Who lost a leg?")
    assert not events or all(event.kind != "warning" for event in events)
    async with refusing(memory) as refused:
        with pytest.raises(AccessRefused):
            await refused.add({"id": "unread", "text": TEXT + " Twice."})
    await listening.ask("Who lost a leg?")
    (warning,) = [event for event in events if event.kind == "warning"]
    assert "1 of 2 segments" in warning.data["message"]
    await listening.ask("Who lost a leg?", documents=["read"])
    assert len([event for event in events if event.kind == "warning"]) == 1


async def test_an_emptied_memory_is_reported_as_empty(memory: Memory) -> None:
    await memory.add({"id": "a", "text": TEXT})
    await memory.delete("a")
    await assert_nothing_is_found(memory, "there is no document in namespace 'default'")


async def test_two_first_adds_at_once_make_one_namespace(tmp_path: Path) -> None:
    async with (
        qrmem.open(str(tmp_path / "m.db"), settings=SETTINGS) as one,
        qrmem.open(str(tmp_path / "m.db"), settings=SETTINGS) as other,
    ):
        await asyncio.gather(
            one.add({"id": "a", "text": TEXT}), other.add({"id": "b", "text": TEXT})
        )
        assert [info.id for info in await one.documents()] == ["a", "b"]
        assert len(await other.search("leg")) == 2


async def test_a_search_that_finds_nothing_says_what_is_not_read_yet(tmp_path: Path) -> None:
    """As while another process reads everything again."""
    said: list[Event] = []
    path = str(tmp_path / "m.db")
    async with qrmem.open(path, settings=SETTINGS, listener=said.append) as memory:
        await memory.add({"id": "a", "text": TEXT})
        assert await memory.search("Ishmael") == []
        assert [event for event in said if event.kind == "warning"] == []
        new = Document("Ishmael went to sea.", id="b")
        segments = [Segment("s", "b", 0, 0, 20, new.text, 6)]
        await memory._session.store.put_documents("default", [(new, segments)])
        assert await memory.search("Ishmael") == []
        (warning,) = [event for event in said if event.kind == "warning"]
        assert "1 of 2 segments are not read" in warning.data["message"]
