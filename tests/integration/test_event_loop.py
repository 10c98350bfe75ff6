"""No method of a memory blocks the event loop on a file or a lock: servers refuse that."""

import threading
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

import qrmem
from qrmem.memory import add
from qrmem.memory.chat import recall, stored_turns

TEXT = "Ada Lovelace met Charles Babbage in London in 1833."


async def use(path: Path) -> None:
    async with qrmem.open(str(path), embedder="none") as memory:
        await memory.add_text(TEXT, id="note")
        notes = path.parent / "notes"
        await memory.add([str(notes / "a.txt"), notes])
        await memory.add(notes / "b.txt", update=True)
        await memory.add_turn("user", "I live in Rome.", user="ann", session="monday")
        assert await memory.recall("Where do I live?", user="ann")
        assert await memory.search("Whom did Ada Lovelace meet?")
        assert (await memory.ask("Whom did Ada Lovelace meet?")).citations
        assert await memory.entity("Ada Lovelace")
        assert await memory.trails()
        assert await memory.status()
        await memory.delete("note")


async def test_opening_and_using_a_file_blocks_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "notes" / name).write_text(f"{name}: Ada Lovelace wrote to Mary Somerville.")
    await use(tmp_path / "first.db")  # imports read files, too: all are done after this
    with blockbuster_ctx("qrmem"):
        await use(tmp_path / "second.db")


async def test_rules_read_a_long_turn_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, int] = {}

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*given: Any) -> Any:
            threads[name] = threading.get_ident()
            return real(*given)

        monkeypatch.setattr(module, name, watched)

    for module, name in ((stored_turns, "wish_spans"), (add, "cut"), (recall, "periods")):
        watch(module, name)
    async with qrmem.open("memory://", embedder="none") as memory:
        text = "My cat went to Rome on 3 June. " * 1_000
        await memory.add_turn("user", text, at="2026-05-01", session="s")
        await memory.recall("Where did my cat go?", session="x")
    assert set(threads) == {"wish_spans", "cut", "periods"}
    assert threading.get_ident() not in threads.values()
