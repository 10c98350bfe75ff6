"""After any changes, the view equals one that is built from the final documents alone."""

import asyncio
import tempfile
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from contract.reference import ReferenceStore
from contract.suite.samples import INFO, contents, text
from growing import GROWTH, IDS, PIECES, Step, grow, put
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmem.config import Settings
from qrmem.errors import StoreConflict
from qrmem.graph.merging import current_merges, merge_documents, refresh_names
from qrmem.graphstore import open_store
from qrmem.graphstore.protocol import GraphStore, ViewUpdate
from qrmem.types import Contribution, LedgerRow, Mention, MergeDecision


async def fresh() -> ReferenceStore:
    store = ReferenceStore()
    await store.create_namespace("n", INFO)
    return store


async def view(store: ReferenceStore) -> dict[str, Any]:
    found = await contents(store, "n")
    stored = ("contributions", "ledger")  # earlier supplements may be kept; they do not count
    return {what: value for what, value in found.items() if what not in stored}


async def built(
    documents: dict[str, tuple[str, ...]], decisions: Sequence[MergeDecision] = ()
) -> dict[str, Any]:
    store = await fresh()
    for decision in decisions:
        await store.override_merge("n", decision)
    for id_ in sorted(documents):
        await put(store, id_, documents[id_])
    await merge_documents(store, "n", sorted(documents))
    return await view(store)


TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map(tuple)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), IDS, TEXTS),
        st.tuples(st.just("delete"), IDS, st.none()),
        st.tuples(st.just("put without merging"), IDS, TEXTS),
        st.tuples(
            st.just("decide"),
            st.sampled_from(["Mary", "Mr. Darcy", "Paris"]),
            st.sampled_from(["Mary Bennet", "London", "Fitzwilliam Darcy"]),
        ),
    ),
    max_size=7,
)


@pytest.mark.parametrize("together", [1, 1000])
def test_any_order_of_adds_replacements_and_deletions_gives_the_same_view(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many names are written together."""
    monkeypatch.setattr("qrmem.graph.merging._TOGETHER", together)

    async def run(steps: list[tuple[str, str, Any]], same: bool) -> None:
        store = await fresh()
        final: dict[str, tuple[str, ...]] = {}
        for what, id_, given_ in steps:
            if what == "delete":
                await store.delete_documents("n", id_)
                await refresh_names(store, "n")
                final.pop(id_, None)
            elif what == "decide":
                await store.override_merge("n", MergeDecision(id_, given_, same=same))
                await refresh_names(store, "n")
            else:
                await put(store, id_, given_)
                final[id_] = given_
                if what == "put":
                    await merge_documents(store, "n", [id_])
        await merge_documents(store, "n", sorted(final, reverse=True))
        assert await view(store) == await built(final, (await store.unmerged("n")).decisions)

    @settings(deadline=None, max_examples=60)
    @given(STEPS, st.booleans())
    def check(drawn: list[tuple[str, str, Any]], same: bool) -> None:
        asyncio.run(run(drawn, same))

    check()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_memories_grown_step_by_step_are_those_made_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of names become crowded, and cease to be, on the way."""
    monkeypatch.setattr("qrmem.graph.affected_names.MOST", 3)
    monkeypatch.setattr("qrmem.graph.resolution.MOST", 3)

    async def run(steps: list[Step], same: bool) -> None:
        names = count()
        with tempfile.TemporaryDirectory() as folder:

            async def opened() -> GraphStore:
                if kind == "memory":
                    return await fresh()
                store = await open_store(f"{folder}/{next(names)}.db", Settings())
                await store.create_namespace("n", INFO)
                return store

            grown = await opened()
            await grow(grown, opened, steps, same=same)
            await grown.close()

    @settings(deadline=None, max_examples=25 if kind == "memory" else 8)
    @given(GROWTH, st.booleans())
    def check(drawn: list[Step], same: bool) -> None:
        asyncio.run(run(drawn, same))

    check()


async def test_merging_again_changes_nothing() -> None:
    store = await fresh()
    await put(store, "a", PIECES)
    assert await merge_documents(store, "n", ["a"]) == len(PIECES)
    revision = await store.namespace("n")
    assert await merge_documents(store, "n", ["a"]) == 0
    assert await store.namespace("n") == revision


async def test_an_alias_becomes_clear_when_its_other_meaning_is_deleted() -> None:
    store = await fresh()
    await put(store, "a", ["Mary spoke. Mary Bennet heard. "])
    await put(store, "b", ["Mary King ran. "])
    await merge_documents(store, "n", ["a", "b"])
    assert {row.key: row.entity for row in await store.names("n")}["mary|PERSON"] == "mary|PERSON"
    await store.delete_documents("n", "b")
    await refresh_names(store, "n")
    names = {row.key: row.entity for row in await store.names("n")}
    assert names["mary|PERSON"] == "mary bennet|PERSON"
    assert [(m.name, m.into) for m in await current_merges(store, "n")] == [("Mary", "Mary Bennet")]


@pytest.mark.parametrize(
    ("texts", "merged"),
    [
        (["Mary Bennet heard. ", "Mary spoke. "], False),
        (["Mary Bennet heard, and Mary spoke. ", "Mary ran. "], False),
        (["Mary Bennet heard, and Mary spoke. Mary left. ", "Mary ran. "], True),
        (["Mary Bennet heard Mary. "] * 3 + ["Mary ran. "] * 8, True),
        (["Mary Bennet heard Mary. "] * 3 + ["Mary ran. "] * 12, False),
        (["Mary Ann Bennet heard. ", "Mary Bennet spoke. "], True),
        (["Henry Bennet Jr heard. ", "Henry Bennet spoke. "], False),
    ],
)
async def test_a_short_name_means_only_whom_most_documents_with_it_name(
    texts: list[str], merged: bool
) -> None:
    store = await fresh()
    for n, document in enumerate(texts):
        await put(store, f"{n:02}", [document])
        await merge_documents(store, "n", [f"{n:02}"])
    assert len(await current_merges(store, "n")) == merged


async def test_a_refused_merge_stays_refused_when_more_is_added() -> None:
    store = await fresh()
    await put(store, "a", ["Mary spoke. Mary Bennet heard. "])
    await merge_documents(store, "n", ["a"])
    await store.override_merge("n", MergeDecision("Mary", "Mary Bennet", same=False))
    await refresh_names(store, "n")
    await put(store, "b", ["Mary Bennet left, and Mary. "])
    await merge_documents(store, "n", ["b"])
    names = {row.key: row.entity for row in await store.names("n")}
    assert names["mary|PERSON"] == "mary|PERSON"


async def test_an_entity_is_called_by_the_best_spelling_of_its_name() -> None:
    store = await fresh()
    document, segments = text("a", "Mary, Mary and Mary McBride. ", "MARY MCBRIDE. ")
    await store.put_documents("n", [(document, segments)])
    for segment in segments:
        mention = Mention("Mary McBride", "PERSON", ("Mary", "MARY MCBRIDE"))
        made = Contribution(segment.id, "extraction", (mention,))
        await store.record("n", [(LedgerRow(segment.id, "ok"), made)])
    await merge_documents(store, "n", ["a"])
    (found,) = await store.entities("n", ["mary mcbride|PERSON"])
    assert found.forms[0][0] == "Mary"
    assert found.name == "Mary McBride"


class Contested(ReferenceStore):
    """Somebody else writes in between, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
        if self.times:
            self.times -= 1
            await super().apply(ns, revision, ViewUpdate())
        return await super().apply(ns, revision, change)


async def test_a_conflict_is_met_by_computing_again() -> None:
    store = Contested(2)
    await store.create_namespace("n", INFO)
    await put(store, "a", PIECES)
    await merge_documents(store, "n", ["a"])
    assert await view(store) == await built({"a": PIECES})


class Slow(ReferenceStore):
    """Others get their turn before a change is applied; says how often it came too late."""

    conflicts = 0

    async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
        await asyncio.sleep(0)
        try:
            return await super().apply(ns, revision, change)
        except StoreConflict:
            self.conflicts += 1
            raise


async def test_tasks_that_merge_at_once_wait_for_each_other() -> None:
    store = Slow()
    await store.create_namespace("n", INFO)
    ids = [f"d{n}" for n in range(50)]
    for id_ in ids:
        await put(store, id_, PIECES[:1])
    await asyncio.gather(*(merge_documents(store, "n", [id_]) for id_ in ids))
    assert store.conflicts == 0
    assert await view(store) == await built(dict.fromkeys(ids, PIECES[:1]))


class Busy(ReferenceStore):
    """Somebody else always changes the namespace before more than two segments are written."""

    async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
        if len(change.merged) > 2:
            await super().apply(ns, revision, ViewUpdate())
        return await super().apply(ns, revision, change)


@pytest.mark.parametrize(
    "documents", [{"a": PIECES}, dict(zip("abcdefg", zip(PIECES), strict=True))]
)
async def test_less_is_written_at_a_time_where_others_write_all_the_time(
    documents: dict[str, tuple[str, ...]],
) -> None:
    store = Busy()
    await store.create_namespace("n", INFO)
    for id_, pieces in documents.items():
        await put(store, id_, pieces)
    assert await merge_documents(store, "n", [*documents]) == len(PIECES)
    assert await view(store) == await built(documents)


async def test_endless_conflicts_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmem.graph.merging._ATTEMPTS", 2)
    store = Contested(100)
    await store.create_namespace("n", INFO)
    await put(store, "a", PIECES)
    with pytest.raises(StoreConflict):
        await merge_documents(store, "n", ["a"])
