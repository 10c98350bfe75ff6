"""The contract on the whole database: remains of deleted text, damage, snapshots."""

from pathlib import Path

import pytest
from contract.suite.base import Contract
from contract.suite.samples import add, contents, text

from qrmem.errors import StoreUnavailable
from qrmem.graphstore.protocol import GraphStore

SECRET = "xanadu"


class RemainsContract(Contract):
    """A store can be cleaned and checked, and shows a snapshot."""

    async def test_after_cleaning_no_file_holds_what_was_deleted(
        self, store: GraphStore, tmp_path: Path
    ) -> None:
        words = " ".join(f"Ann{n} met Bob" for n in range(50))
        for n in range(20):
            await add(store, "n", text(f"kept{n}", f"{words} "))
            await add(store, "n", text(f"gone{n}", f"{SECRET} {words} "))
        await store.delete_documents("n", *(f"gone{n}" for n in range(20)))
        before = await contents(store, "n")
        await store.clean()
        await store.clean(wholly=True)
        assert _files_with(SECRET, tmp_path) == []
        assert await contents(store, "n") == before
        assert len(await store.documents("n")) == 20

    async def test_a_whole_database_passes_its_check(self, store: GraphStore) -> None:
        await add(store, "n", text("d", "Ann met Bob "))
        await store.check()
        await store.clean()
        await store.check()

    async def test_a_snapshot_does_not_change(self, store: GraphStore) -> None:
        await add(store, "n", text("d", "Ann met Bob "))
        async with store.snapshot() as first:
            before = await contents(first, "n")
            assert before == await contents(store, "n")
        if not store.has_snapshots:
            return
        async with store.snapshot() as first:
            assert [info.id for info in await first.documents("n")] == ["d"]
            async with store.snapshot() as second, first.snapshot() as again:
                assert await contents(second, "n") == before
                assert await contents(again, "n") == before
        await add(store, "n", text("e", "Cy met Bob "))
        async with store.snapshot() as later:
            assert [info.id for info in await later.documents("n")] == ["d", "e"]

    async def test_a_closed_store_has_no_snapshot(self, store: GraphStore) -> None:
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            async with store.snapshot() as closed:
                await closed.documents("n")


def _files_with(word: str, folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if word.encode() in path.read_bytes()]
