"""Every use of a closed memory is an error that says so, in every method and interface."""

import asyncio
import inspect
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

import qrmem
import qrmem.sync
from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.types import Event

SETTINGS = Settings(embedder="none")
METHODS = sorted(
    name
    for name, _ in inspect.getmembers(qrmem.sync.Memory, inspect.isfunction)
    if not name.startswith("_") and name not in ("close", "call", "acall")
)


@pytest.fixture(params=["memory://", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory://" else str(tmp_path / "m.db")


async def test_every_awaited_method_is_refused(place: str) -> None:
    memory = await qrmem.open(place, settings=SETTINGS)
    await memory.add({"id": "a", "text": "Ann met Bob."})
    await memory.search("Bob")
    listening = memory.listening(_silent)
    await memory.close()
    await memory.close()
    for name in METHODS:
        for each in (memory, listening):
            with pytest.raises(UsageError, match="the memory is closed"):
                await _called(each, name)


def test_every_synchronous_method_is_refused(place: str) -> None:
    memory = qrmem.sync.open(place, settings=SETTINGS)
    memory.add({"id": "a", "text": "Ann met Bob."})
    memory.close()
    memory.close()
    for name in METHODS:
        with pytest.raises(UsageError, match="the memory is closed"):
            next(iter(getattr(memory, name)(*_arguments(name))))


async def _called(memory: qrmem.Memory, name: str) -> object:
    result = getattr(memory, name)(*_arguments(name))
    return await (anext(result) if name == "stream" else result)


def _arguments(name: str) -> list[object]:
    """Return something for whatever a method must be given."""
    if name == "plan":  # one of two things, neither of which must be there
        return ["a text"]
    _, *parameters = inspect.signature(getattr(qrmem.Memory, name)).parameters.values()
    wanted = [p for p in parameters if p.default is p.empty]
    return [
        [] if p.name in ("messages", "keys", "ids") else f"name {n}"
        for n, p in enumerate(wanted)
        if p.kind is p.POSITIONAL_OR_KEYWORD
    ]


def _silent(event: Event) -> None:
    """Take an event and do nothing."""


def test_ctrl_c_returns_when_the_call_has_ended() -> None:
    told: list[str] = []

    async def slow(_: qrmem.Memory) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            told.append("let go")

    with qrmem.sync.open("memory://", embedder="none") as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.call(slow)
        assert told == ["let go"]


async def test_a_memory_of_another_loop_is_refused_at_once() -> None:
    async with qrmem.open("memory://", settings=SETTINGS) as memory:
        await memory.add({"id": "a", "text": "Ann met Bob."})

        def elsewhere() -> None:
            for call in (
                lambda: memory.search("Bob"),
                lambda: memory.add({"id": "b", "text": "Cid met Dot."}),
                lambda: memory.ask("Whom did Ann meet?"),
                lambda: memory.add_turn("user", "Hello."),
                lambda: memory.recall("Hello?"),
            ):
                with pytest.raises(UsageError, match="opened in another event loop"):
                    asyncio.run(asyncio.wait_for(call(), 10))

        await asyncio.to_thread(elsewhere)
        assert await memory.search("Bob")


async def test_an_opening_that_is_cancelled_leaves_no_file(tmp_path: Path) -> None:
    async def opened(path: Path) -> None:
        async with qrmem.open(str(path), settings=SETTINGS):
            await asyncio.sleep(60)

    for n in range(40):
        opening = asyncio.create_task(opened(tmp_path / f"{n}.db"))
        await asyncio.sleep(n * 0.0005)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    assert os.listdir(tmp_path) == []


async def test_a_memory_whose_file_was_removed_closes(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    async with qrmem.open(str(tmp_path / "m" / "m.db"), settings=SETTINGS) as memory:
        await memory.add({"id": "a", "text": "Ann met Bob."})
        shutil.rmtree(tmp_path / "m")
