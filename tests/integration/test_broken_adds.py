"""An `add` of many documents that an error or a deletion interrupts."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.reference import ReferenceStore

import qrmem
from qrmem import Document
from qrmem.errors import StoreUnavailable
from qrmem.graphstore.protocol import ViewUpdate
from qrmem.graphstore.sqlite import SqliteStore


def letter(n: int) -> Document:
    return Document(f"Tobias Hale wrote letter {n} to Ellen Ward of Skarrow.", id=f"letter{n}")


async def test_documents_before_an_error_of_a_source_are_kept() -> None:
    def letters() -> Iterator[Document]:
        yield from map(letter, range(3))
        raise ConnectionError("the mailbox is gone")

    async with qrmem.open("memory://") as memory:
        with pytest.raises(ConnectionError, match="mailbox"):
            await memory.add(letters())
        again = await memory.add([letter(n) for n in range(5)])
        assert again.resumed == ("letter0", "letter1", "letter2")
        assert again.added == ("letter3", "letter4")
        assert again.states == {"ok": 5}


@pytest.mark.parametrize("update", [False, True])
async def test_a_document_that_is_deleted_while_others_are_added_is_added_again(
    update: bool,
) -> None:
    async with qrmem.open("memory://") as memory:
        await memory.add([letter(n) for n in range(4)])

        async def letters() -> AsyncIterator[Document]:
            yield letter(4)
            await memory.delete("letter2")
            for n in range(4):
                yield letter(n)

        report = await memory.add(letters(), update=update)
        assert report.added == ("letter4", "letter2")
        assert report.unchanged == ("letter0", "letter1", "letter3")
        assert report.states == {"ok": 5}


async def test_names_that_a_broken_delete_left_unresolved_are_resolved_by_the_next_add() -> None:
    class Cut(ReferenceStore):
        """Breaks off before names are resolved."""

        is_cut = False

        async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
            if change.resolved and self.is_cut:
                raise StoreUnavailable("cut off")
            return await super().apply(ns, revision, change)

    note = Document("Moody spoke to Ellen Ward of Skarrow.", id="note")
    settings = qrmem.Settings(embedder="none")
    store = Cut()
    memory = qrmem.Memory(store, settings)
    await memory.add([note, Document("Captain Silas Moody met Moody.", id="other")])
    store.is_cut = True
    await memory.delete("other")  # it is deleted, so no error says that it is not
    assert (await store.unmerged("default")).stale
    store.is_cut = False
    assert (await memory.add(note)).unchanged == ("note",)
    calm = qrmem.Memory(ReferenceStore(), settings)
    await calm.add(note)
    assert not (await store.unmerged("default")).stale
    assert await memory.entities() == await calm.entities()


async def test_an_add_that_breaks_off_while_merging_leaves_nothing_half_done() -> None:
    class Cut(ReferenceStore):
        is_cut = True

        async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
            if self.is_cut:
                raise StoreUnavailable("cut off")
            return await super().apply(ns, revision, change)

    store = Cut()
    memory = qrmem.Memory(store, qrmem.Settings(embedder="none"))
    with pytest.raises(StoreUnavailable):
        await memory.add(letter(1))
    left = await store.unmerged("default", "letter1")
    assert left.contributions
    assert not left.merged
    assert not left.stale
    store.is_cut = False
    assert (await memory.add(letter(1))).resumed == ("letter1",)
    merged = await store.unmerged("default", "letter1")
    assert merged.merged
    assert not merged.stale
    assert merged.revision == 1


async def test_many_changed_and_deleted_documents_are_written_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite before 3.42 writes a namespace's whole index with each transaction that deletes."""
    calls: Counter[str] = Counter()

    def counted(name: str) -> None:
        work = getattr(SqliteStore, name)

        async def counting(self: SqliteStore, *args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return await work(self, *args, **kwargs)

        monkeypatch.setattr(SqliteStore, name, counting)

    counted("put_documents")
    counted("delete_documents")
    old = [
        {"id": f"d{n}", "text": f"Ada Lovelace met Guest Number{n}. Ada wrote."} for n in range(300)
    ]
    new = [one | {"text": one["text"] + " Charles Babbage came."} for one in old]
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", model="") as memory:
        await memory.add(old)
        calls.clear()
        report = await memory.add(new, update=True)
        assert (len(report.updated), report.states["ok"], calls["put_documents"]) == (300, 300, 2)
        assert (await memory.document("d7")).text.endswith("Babbage came.")
        await memory.delete(*(one["id"] for one in new[:299]))
        assert calls["delete_documents"] == 2
        assert [info.id for info in await memory.documents()] == ["d299"]
