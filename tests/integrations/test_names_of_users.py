"""Every interface refuses a name of a user or a session, or reads it in its stored form."""

import json
import unicodedata
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from archives import sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError
from mcp import Client

import qrmem
from qrmem import sync
from qrmem.errors import QrmemError, UsageError
from qrmem.integrations.langchain import MemoryRetriever
from qrmem.integrations.langgraph import MemoryStore
from qrmem.integrations.mcp import server
from qrmem.integrations.toolset import Toolset, openai_tools
from qrmem.memory import Memory
from qrmem.web.api import api

JSON = {"content-type": "application/json"}
SAID = "My boat is called Nell."
CLEAN = [
    "alice",
    "Alice",
    "Zoë",
    "Zoe\u0308",
    "team/bob",
    "a b",
    "山田\u3000太郎",
    "नि\u200dन",
    "%",
]
DIRTY = [
    "\ufeffalice",
    "ali\ufeffce",
    "alice\r\n",
    "a\nb",
    "a\tb",
    "a\0b",
    "\ud800",
    "a\udc00",
    "  ",
    " alice",
    "alice ",
    "alice\u00a0",
    "a\u202eb",
    "a\u2066b",
    "a\u200bb",
    "a\u00adb",
    "a\u2028b",
    "a\x85b",
    "a\x1b[31mb",
    "a" * 201,
]
NAMES = st.one_of(
    st.sampled_from([*CLEAN, *DIRTY]),
    st.text(st.characters(), min_size=1, max_size=12),
    st.text("aB\u0308\u0301é \n\0\ufeff\ud800\u200b\u202e/%", min_size=1, max_size=6),
)

Door = Callable[[Memory, str], Coroutine[Any, Any, list[str]]]
"""Keeps something under a name, and returns the names that it is then read under."""


async def turns(memory: Memory, name: str) -> list[str]:
    await memory.add_turn("user", SAID, session=name, user=name)
    return [n for turn in await memory.turns(name, user=name) for n in (turn.user, turn.session)]


async def messages(memory: Memory, name: str) -> list[str]:
    await memory.add([{"role": "user", "content": SAID}], user=name, session=name)
    found = await memory.recall("What is my boat called?", session=name, user=name)
    return [turn.user for turn in (*found.recent, *found.related)]


async def metadata(memory: Memory, name: str) -> list[str]:
    await memory.add(qrmem.Document(SAID, metadata={"user": name, "chat": name}))
    found = await memory.documents(where={"user": name, "chat": name})
    hits = await memory.search("boat", where={"user": name})
    assert {hit.document_id for hit in hits} <= {info.id for info in found}
    assert (await memory.ask("What is my boat called?", where={"user": name})).citations
    return [str(info.metadata[key]) for info in found for key in ("user", "chat")]


async def toolset(memory: Memory, name: str) -> list[str]:
    tools = Toolset(memory, name)
    await tools.add_text(SAID, document_id="notes")
    await tools.add_turn("user", SAID, session=name)
    assert "Nell" in await tools.search_memory("boat")
    assert "Nell" in await tools.recall_conversation("boat", session=name)
    hits = await MemoryRetriever(memory=memory, where={"user": name}).ainvoke("boat")
    assert "Nell" in hits[0].page_content
    return [str(info.metadata["user"]) for info in await memory.documents(where={"user": name})]


async def mcp(memory: Memory, name: str) -> list[str]:
    async with Client(server(memory, write=True, user=name)) as client:
        for tool in ("add", "add_turn"):
            given = {"text": SAID, **({"role": "user"} if tool == "add_turn" else {})}
            assert not (await client.call_tool(tool, given)).is_error
        found = await client.call_tool("search", {"query": "boat"})
        assert "Nell" in str(found.content)
    return [str(info.metadata["user"]) for info in await memory.documents(where={"user": name})]


async def rest(memory: Memory, name: str) -> list[str]:
    transport = httpx.ASGITransport(app=api(memory, write=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        said = {"role": "user", "text": SAID, "user": name, "session": name}

        async def post(path: str, body: dict[str, Any]) -> Any:
            # As any client can send it: escaped, half letters too.
            text = json.dumps(body)
            got = await client.post(
                path, content=text, headers={"content-type": "application/json"}
            )
            if got.status_code == 400:
                raise UsageError(got.json()["error"])
            assert got.status_code == 200, got.text
            return got.json()

        await post("/turns", said)
        recalled = await post("/recall", {"prompt": "boat?", "session": name, "user": name})
        assert "Nell" in str(recalled)
        hits = await post("/search", {"query": "boat", "where": {"user": name}})
        assert hits
    return [turn.user for turn in await memory.turns(name, user=name)]


DOORS: list[Door] = [turns, messages, metadata, toolset, mcp, rest]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@given(name=NAMES)
@settings(max_examples=25, deadline=None)
def test_a_name_is_refused_or_read_as_it_is_kept(door: Door, name: str) -> None:
    with sync.open("memory://", embedder="none") as memory:
        form = unicodedata.normalize("NFC", name)
        try:
            kept = memory.call(lambda own: door(own, name))
        except QrmemError:
            assert not form.isprintable() or form != form.strip() or len(form) > 200 or hides(form)
            assert not memory.documents()
            for read in (
                lambda: memory.turns(user=name),
                lambda: memory.turns(name),
                lambda: memory.recall("boat?", user=name),
                lambda: memory.forget_user(name),
                lambda: memory.documents(where={"user": name}),
                lambda: memory.search("boat", where={"chat": name}),
            ):
                with pytest.raises(UsageError):
                    read()
            return
        assert kept
        assert set(kept) == {form}
        other = unicodedata.normalize("NFD", name)
        assert memory.turns(user=other) == memory.turns(user=name)
        if form.swapcase() != form:
            assert not memory.documents(where={"user": form.swapcase()})
        assert memory.forget_user(other) == len(set(kept)) or memory.documents() == []
        assert not memory.documents()


def hides(name: str) -> bool:
    return any(unicodedata.category(c) in ("Cf", "Cc", "Zl", "Zp", "Cs") for c in name)


@pytest.mark.parametrize("name", DIRTY, ids=ascii)
def test_a_dirty_name_is_refused_by_what_serves_a_user(name: str) -> None:
    with sync.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match=r"^(user|session) "):
            memory.add_turn("user", SAID, user=name)
        with pytest.raises(UsageError):
            qrmem.tools(memory, user=name)
        with pytest.raises(UsageError):
            openai_tools(user=name)


@given(name=NAMES, key=NAMES)
@settings(max_examples=25, deadline=None)
def test_a_label_of_the_store_of_langgraph_is_read_as_it_is_kept(name: str, key: str) -> None:
    with sync.open("memory://", embedder="none") as memory:
        store = MemoryStore(memory)
        try:
            store.put((name, "x"), key, {"text": SAID})
        except InvalidNamespaceError:
            return
        (found,) = store.search((name,))
        assert (found.namespace, found.key) == ((name, "x"), key)
        assert store.list_namespaces() == [(name, "x")]
        assert store.get((name, "x"), key) is not None
        store.delete((name, "x"), key)
        assert not memory.documents()


async def test_an_archive_brings_names_in_their_one_form_or_is_refused(tmp_path: Path) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_turn("user", SAID, session="Zoë", user="Zoë")
        await memory.export(tmp_path / "a.qrmem")
    *lines, _ = (tmp_path / "a.qrmem").read_bytes().splitlines()
    for put, is_clean in (("Zoe\u0308", True), ("a\\nb", False), ("\\ufeffZoe", False)):
        other = [line.replace("Zoë".encode(), put.encode()) for line in lines]
        assert other != lines
        sealed(tmp_path / "b.qrmem", other)
        async with qrmem.open("memory://", embedder="none") as memory:
            if is_clean:
                await memory.load(tmp_path / "b.qrmem")
                assert [turn.user for turn in await memory.turns("Zoë", user="Zoë")] == ["Zoë"]
            else:
                with pytest.raises(UsageError, match=r"(user|session)"):
                    await memory.load(tmp_path / "b.qrmem")


@pytest.mark.parametrize(
    ("user", "id", "other", "taken"),
    [
        ("team", "bob/notes", "team/bob", "notes"),
        ("team%2Fbob", "notes", "team/bob", "notes"),
        ("a", "b/c/d", "a/b", "c/d"),
        ("Zoë", "notes", "Zoe", "\u0308/notes"),
    ],
)
async def test_no_user_replaces_what_is_anothers(
    user: str, id: str, other: str, taken: str
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        async with Client(server(memory, write=True, user=other)) as client:
            await client.call_tool("add", {"text": SAID, "document_id": taken})
        async with Client(server(memory, write=True, user=user)) as client:
            await client.call_tool("add", {"text": "It is Brig.", "document_id": id})
            await client.call_tool("add", {"text": "It is Dora.", "document_id": id})
        (kept,) = await memory.documents(where={"user": other})
        assert (await memory.document(kept.id)).text == SAID
        (own,) = await memory.documents(where={"user": user})
        assert (await memory.document(own.id)).text == "It is Dora."


async def test_a_user_replaces_no_document_that_is_nobodys() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "team/notes", "text": SAID})
        with pytest.raises(UsageError, match="choose another"):
            await Toolset(memory, "team").add_text("It is Brig.", document_id="notes")
        assert (await memory.document("team/notes")).text == SAID
