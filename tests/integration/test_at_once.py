"""Many calls on one memory at once: each part is created once, and no call uses it before."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers.openai_server import serving

import qrmem
from qrmem.errors import NotFound
from qrmem.graphstore.sqlite.connection import ConnectionThread
from qrmem.memory.runtime import Models
from qrmem.retrieval.exploring import explore

TEXTS = [
    f"Captain Hale{n} met Doctor Reed{n} in Port Anvil{n}. They bought the brig Swift{n}."
    for n in range(20)
]


async def test_three_asks_at_once_open_the_model_once_and_record_every_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Models] = []
    make = Models.open.__func__  # type: ignore[attr-defined]

    async def counted(*args: object) -> Models:
        await asyncio.sleep(0)
        opened.append(await make(*args))
        return opened[-1]

    path, tape = str(tmp_path / "m.db"), str(tmp_path / "tape.jsonl")
    questions = [f"Whom did Captain Hale{n} meet?" for n in range(3)]
    async with qrmem.open(path, embedder="none", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS[:3])])
    async with serving() as server:
        live = qrmem.Settings(
            memory=path,
            model="test",
            base_url=server.url,
            embedder="none",
            cache=False,
            record=tape,
        )
        monkeypatch.setattr(Models, "open", classmethod(counted))
        async with qrmem.open(settings=live) as memory:
            first = await asyncio.gather(*(memory.ask(question) for question in questions))
        assert len(opened) == 1
    async with qrmem.open(path, replay=tape, model="test", embedder="none") as memory:
        again = [await memory.ask(question) for question in questions]
    assert [answer.text for answer in again] == [answer.text for answer in first]


@pytest.mark.parametrize("place", ["memory://", "file"])
async def test_asks_and_searches_beside_the_first_adds_find_something(
    place: str, tmp_path: Path
) -> None:
    where = place if place == "memory://" else str(tmp_path / "m.db")
    async with qrmem.open(where, embedder="none", model="") as memory:
        calls = []
        for n, text in enumerate(TEXTS):
            calls += [
                memory.search(f"Who met Doctor Reed{n}?"),
                memory.ask(f"Who met Doctor Reed{n}?"),
                memory.add({"id": f"d{n}", "text": text}),
            ]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert [found for found in done if isinstance(found, BaseException)] == []
        assert len(await memory.documents()) == len(TEXTS)


async def test_a_search_beside_an_add_that_fails_is_refused() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        added = memory.add("/nowhere/at/all.txt")
        found, _ = await asyncio.gather(memory.search("Who?"), added, return_exceptions=True)
        assert isinstance(found, NotFound)


async def test_a_search_sees_the_memory_of_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "m.db")

    async with qrmem.open(path, embedder="none", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        before = await memory.search("Whom did Captain Hale3 meet?")

        async def interrupted(*args: Any) -> Any:
            await memory.delete("3")
            await memory.add_text("Captain Hale3 met Doctor Reed99 in Port Anvil99.", id="new")
            return await explore(*args)

        monkeypatch.setattr("qrmem.retrieval.searcher.explore", interrupted)
        assert await memory.search("Whom did Captain Hale3 meet?") == before
        monkeypatch.undo()
        after = await memory.search("Whom did Captain Hale3 meet?")
    assert before[0].document_id == "3"
    assert after[0].document_id == "new"


@settings(max_examples=12, deadline=None)
@given(
    before=st.dictionaries(st.sampled_from("abc"), st.integers(1, 6), min_size=1),
    after=st.dictionaries(st.sampled_from("abc"), st.integers(1, 6), min_size=1),
    at=st.integers(0, 24),
)
async def test_a_search_sees_all_of_an_add_or_nothing_whenever_that_comes(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, int], after: dict[str, int], at: int
) -> None:
    path = str(tmp_path_factory.mktemp("seen") / "m.db")
    async with qrmem.open(path, embedder="none", model="", segment_tokens=40) as memory:
        await memory.add(_texts(1, before))
        old = await memory.search("the zanthe", k=100)
        with pytest.MonkeyPatch.context() as patched:
            _before_read(patched, at, lambda: memory.add(_texts(2, after), update=True))
            seen = await memory.search("the zanthe", k=100)
            await memory.add(_texts(2, after), update=True)
        new = await memory.search("the zanthe", k=100)
    assert seen in (old, new)
    assert {hit.document_id for hit in new} == {*before, *after}


def _before_read(
    patched: pytest.MonkeyPatch, number: int, work: Callable[[], Awaitable[object]]
) -> None:
    """Have something done before the read of this number; what it reads itself is not counted."""
    read, left = ConnectionThread.read, number

    async def counted(self: ConnectionThread, *args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            patched.undo()
            await work()
        return await read(self, *args, **kwargs)

    patched.setattr(ConnectionThread, "read", counted)


def _texts(version: int, lengths: Mapping[str, int]) -> list[dict[str, str]]:
    """Return documents of so many segments, each of which names the version."""
    parts = [
        f"Version {version}: Ann Vell met Bob Marr of Port {place}, and they spoke of the zanthe"
        " and of the weather there for a good while, before they left again."
        for place in "ABCDEF"
    ]
    return [{"id": id, "text": " ".join(parts[:count])} for id, count in lengths.items()]


async def test_searches_of_one_file_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, most = 0, 0

    async def counted(*args: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await explore(*args)
        finally:
            under_way -= 1

    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        monkeypatch.setattr("qrmem.retrieval.searcher.explore", counted)
        questions = [f"Whom did Captain Hale{n} meet?" for n in range(8)]
        together = await asyncio.gather(*(memory.search(question) for question in questions))
        assert most == 1
        assert together == [await memory.search(question) for question in questions]
