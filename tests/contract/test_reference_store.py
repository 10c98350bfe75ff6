"""The reference store holds a whole book: its time grows in proportion to its content."""

import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import pytest
from contract.reference import ReferenceStore

from qrmem.graphstore.protocol import EntityRow, MentionRow, NamespaceInfo, ViewUpdate
from qrmem.types import Contribution, Document, LedgerRow, Segment

Work = Callable[[ReferenceStore, int], Awaitable[object]]


async def filled(size: int) -> ReferenceStore:
    """Return a store of `size` documents of one segment, each with a name of its own."""
    store = ReferenceStore()
    await store.create_namespace("a", NamespaceInfo("a", "builtin-v1", 600))
    ids = [f"s{n}" for n in range(size)]
    for id_ in ids:
        segment = Segment(id_, f"d{id_}", 0, 0, 1, "x", 1)
        await store.put_documents("a", [(Document("x", id=f"d{id_}"), [segment])])
    change = ViewUpdate(
        mentions=[MentionRow(id_, f"n{id_}|", (("x", 1),)) for id_ in ids],
        names={f"n{id_}|": f"e{id_}" for id_ in ids},
        entities=[EntityRow(f"e{id_}", f"N{id_}", "") for id_ in ids],
    )
    await store.apply("a", 0, change)
    return store


async def names(store: ReferenceStore, size: int) -> object:
    return await store.names("a")


async def entities(store: ReferenceStore, size: int) -> object:
    return await store.list_entities("a", size)


async def contributions(store: ReferenceStore, size: int) -> object:
    rows = [(LedgerRow(f"s{n}", "ok"), Contribution(f"s{n}", "extraction")) for n in range(size)]
    await store.record("a", rows)
    return [await store.contributions("a", f"ds{n}") for n in range(size)]


async def documents(store: ReferenceStore, size: int) -> object:
    return await store.documents("a")


@pytest.mark.parametrize("work", [names, entities, contributions, documents])
async def test_four_times_as_much_takes_about_four_times_the_steps(work: Work) -> None:
    few, many = [await _steps(work, await filled(size), size) for size in (50, 200)]
    assert many < 6 * few


async def _steps(work: Work, store: ReferenceStore, size: int) -> int:
    """Count the lines that are run: the clock would tell the machine's load too."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        await work(store, size)
    finally:
        sys.settrace(before)
    return count
