"""No method of a memory blocks the event loop on a file or a lock: servers refuse that."""

from pathlib import Path

from blockbuster import blockbuster_ctx

import qrmem

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
