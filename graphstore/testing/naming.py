"""The contract on changes whose names are still being found out."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from qrmem.errors import StoreConflict
from qrmem.graphstore.protocol import Change, EntityRow, FactRow, GraphStore, MentionRow, Naming
from qrmem.graphstore.testing.base import Contract
from qrmem.graphstore.testing.samples import (
    INFO,
    change,
    contents,
    later,
    parted,
    text,
)

_, (FIRST, SECOND) = ONE = text("d", "Ann met Bob why? ", "Bob met Anna ")
_, (THIRD,) = OTHER = text("e", "Cy met Ann ")

CHANGES = [
    change([FIRST, SECOND]),
    Change(names={"Anna": "Ann"}),  # moves a name
    Change(names={"Anna": "Q"}, entities=[EntityRow("Q", "Anna", "PERSON")]),
    Change(entities=[EntityRow("Ann", "Dr Ann", "PERSON")]),  # moves none
    change([THIRD], ["Ann"]),
    Change(  # has the rows of a segment replaced, and a name that they use moved
        clear=[FIRST.id],
        mentions=[MentionRow(FIRST.id, "Dee", (("D.", 2),)), MentionRow(FIRST.id, "Ann", ())],
        facts=[FactRow(FIRST.id, 0, "Dee", "Ann", "D. left Ann")],
        names={"Dee": "Dee", "Ann": "Dee", "Q": "Dee"},
        entities=[EntityRow("Dee", "Dee", "PERSON")],
    ),
    Change(  # names what no row speaks of
        clear=[THIRD.id],
        mentions=[MentionRow(THIRD.id, "Eve", (("Eve", 1),))],
        names={"Aaron": "Aaron", "Eve": "Eve", "Zoe": "Eve"},
        entities=[EntityRow("Aaron", "Aaron", ""), EntityRow("Eve", "Eve", "")],
    ),
    Change(clear=[SECOND.id]),
]


def _known(naming: Naming) -> Awaitable[Naming]:
    known: asyncio.Future[Naming] = asyncio.get_running_loop().create_future()
    known.set_result(naming)
    return known


def _being_made(naming: Naming) -> Awaitable[Naming]:
    return asyncio.ensure_future(later(naming))


async def _refused(_: Naming) -> Naming:
    raise ZeroDivisionError("no names")


async def _refused_later(_: Naming) -> Naming:
    await asyncio.sleep(0.01)
    raise ZeroDivisionError("no names")


class NamingContract(Contract):
    """Names may come after the rows; a change is kept with them, or not at all."""

    async def test_names_that_come_later_make_the_same_memory(self, store: GraphStore) -> None:
        for ns in ("at once", "later"):
            await self._put(store, ns)
        for revision, given in enumerate(CHANGES):
            await store.apply("at once", revision, given)
            assert await store.apply("later", revision, *_with(given)) == revision + 1
            assert await store.names("later") == await store.names("at once")
            assert await store.counts("later") == await store.counts("at once")
        assert await contents(store, "later") == await contents(store, "at once")

    @pytest.mark.parametrize("awaited", [later, _known, _being_made])
    async def test_names_come_in_whatever_can_be_awaited(
        self, store: GraphStore, awaited: Callable[[Naming], Awaitable[Naming]]
    ) -> None:
        await self._put(store, "n")
        rows, naming = parted(CHANGES[0])
        assert await store.apply("n", 0, rows, awaited(naming)) == 1
        assert [row.key for row in await store.list_entities("n")] == ["Bob", "Ann", "Anna"]

    @pytest.mark.parametrize("awaited", [_refused, _refused_later])
    async def test_names_that_cannot_be_found_out_leave_nothing(
        self, store: GraphStore, awaited: Callable[[Naming], Awaitable[Naming]]
    ) -> None:
        await self._begun(store)
        before = await contents(store, "n")
        rows, naming = parted(CHANGES[-2])
        with pytest.raises(ZeroDivisionError, match="no names"):
            await store.apply("n", 5, rows, awaited(naming))
        assert await contents(store, "n") == before
        assert await store.apply("n", 5, CHANGES[-2]) == 6

    async def test_who_stops_waiting_for_names_leaves_nothing(self, store: GraphStore) -> None:
        await self._begun(store)
        before = await contents(store, "n")
        rows, naming = parted(CHANGES[-2])
        for seconds in (0.0, 0.05):
            never: asyncio.Future[Naming] = asyncio.get_running_loop().create_future()
            writing = asyncio.create_task(store.apply("n", 5, rows, never))
            await asyncio.sleep(seconds)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            async with asyncio.timeout(10):
                assert await contents(store, "n") == before
            assert never.cancelled()
        assert await store.apply("n", 5, rows, later(naming)) == 6

    async def test_names_are_kept_at_the_present_revision_alone(self, store: GraphStore) -> None:
        await self._begun(store)
        before = await contents(store, "n")
        for revision in (4, 6):
            with pytest.raises(StoreConflict):
                await store.apply("n", revision, *_with(CHANGES[-1]))
        assert await contents(store, "n") == before

    async def test_of_two_that_wait_for_names_one_is_kept(self, store: GraphStore) -> None:
        for ns in ("n", "alone"):
            await self._begun(store, ns)
        await store.apply("alone", 5, CHANGES[-2])
        outcomes = await asyncio.gather(
            *(store.apply("n", 5, *_with(CHANGES[-2])) for _ in range(2)), return_exceptions=True
        )
        assert sorted(map(type, outcomes), key=str) == [int, StoreConflict]
        assert await contents(store, "n") == await contents(store, "alone")

    async def test_what_is_read_meanwhile_is_from_before_or_after(self, store: GraphStore) -> None:
        await self._begun(store)
        seen = [await store.names("n")]
        writing = asyncio.create_task(store.apply("n", 5, *_with(CHANGES[-2])))
        while not writing.done():
            await asyncio.sleep(0)
            seen.append(await store.names("n"))
        after = await store.names("n")
        assert seen[0] != after
        assert all(names in (seen[0], after) for names in seen)
        assert await writing == 6

    @pytest.mark.parametrize(
        "lacking",
        [
            Naming(),
            Naming({"Aaron": "Aaron"}, [EntityRow("Aaron", "Aaron", "")]),
            Naming({"Eve": "no entity"}),
        ],
    )
    async def test_names_that_lack_what_the_rows_speak_of_are_refused(
        self, store: GraphStore, lacking: Naming
    ) -> None:
        await self._begun(store)
        before = await contents(store, "n")
        rows, _ = parted(CHANGES[-2])
        with pytest.raises(ValueError, match="not there"):
            await store.apply("n", 5, rows, later(lacking))
        assert await contents(store, "n") == before

    async def _put(self, store: GraphStore, ns: str) -> None:
        await store.create_namespace(ns, INFO)
        for document, segments in (ONE, OTHER):
            await store.put_document(ns, document, segments)

    async def _begun(self, store: GraphStore, ns: str = "n") -> None:
        await self._put(store, ns)
        for revision, given in enumerate(CHANGES[:5]):
            await store.apply(ns, revision, given)


def _with(given: Change) -> tuple[Change, Awaitable[Naming]]:
    rows, naming = parted(given)
    return rows, later(naming)
