"""The contract on the records of runs: trails, calls, cached replies."""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from contract.suite.base import Contract
from contract.suite.samples import INFO, add, text

from qrmem.graphstore.protocol import CacheEntry, CacheKind, GraphStore, relation_key
from qrmem.graphstore.reads import cached_value, every_trail
from qrmem.graphstore.redaction import REMOVED
from qrmem.types import (
    CallRecord,
    Citation,
    ScoredEdge,
    ScoredSegment,
    StageUsage,
    Step,
    Trail,
    Usage,
)

TRAIL = Trail(
    id="t",
    question="Who?",
    strategy="reflection",
    window=4096,
    status="answered",
    answer="Ann",
    steps=(Step(1, "start", reason="begin", tokens=7, seconds=0.25),),
    usage=Usage(online={"judge": StageUsage(calls=1, tokens_in=7, cost=0.5)}),
    choices=("Ann", "Bob"),
    created="2026-01-01T00:00:00Z",
)


class RunsContract(Contract):
    """Runs come back as they were, but for the words of what was deleted."""

    async def test_trails_come_back_newest_first(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        assert next(iter(await store.trails("n", 1)), None) is None
        later = replace(TRAIL, id="u", created="2026-01-02T00:00:00Z")
        twin = replace(later, id="v")
        for trail in (later, twin, TRAIL):
            await store.put_trail("n", trail)
        assert list(await store.trails("n")) == [twin, later, TRAIL]
        assert list(await store.trails("n", 2)) == [twin, later]
        assert list(await store.trails("n", 2, skip=1)) == [later, TRAIL]
        assert list(await store.trails("n", skip=3)) == []
        assert next(iter(await store.trails("n", 1)), None) == twin
        assert next(iter(await store.trails("n", 1, id="t")), None) == TRAIL
        assert next(iter(await store.trails("n", 1, id="unknown")), None) is None
        again = replace(TRAIL, answer="Bob")
        await store.put_trail("n", again)
        assert next(iter(await store.trails("n", 1, id="t")), None) == again
        assert list(await store.trails("n", 2, oldest_first=True)) == [again, later]
        assert list(await store.trails("n", 2, skip=2, oldest_first=True)) == [twin]
        assert (await store.counts("n"))["trails"] == 3

    async def test_every_trail_comes_once_though_trails_are_written_meanwhile(
        self, store: GraphStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("qrmem.graphstore.reads._PORTION", 2)
        await store.create_namespace("n", INFO)
        for name in "abcde":  # all of one moment: their order is that of writing
            await store.put_trail("n", replace(TRAIL, id=name))
        found = []
        async for trail in every_trail(store, "n"):
            found.append(trail.id)
            if trail.id in "abcde":
                await store.put_trail("n", replace(trail, answer="again"))
                await store.put_trail("n", replace(TRAIL, id=trail.id.upper()))
        assert found == [*"abcdeABCDE"]
        assert {trail.answer for trail in await store.trails("n")} == {"again", TRAIL.answer}

    async def test_calls_come_back_in_the_order_written(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        calls = [
            CallRecord(f"run{n}", "judge", "online", "judge.v1", "m", cost=None if n else 0.1)
            for n in range(5)
        ]
        await store.record("n", (), calls[:3])
        await store.record("n", (), calls[3:])
        assert list(await store.calls("n")) == calls

    async def test_a_value_is_kept_together_with_what_it_cost(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        calls = [CallRecord(f"r{n}", "judge", "online", "p", "m", tokens_in=n) for n in range(3)]
        await store.record("n", (), calls[:1])
        await store.put_cache_entry("n", "reply", "k", {"x": 1}, calls=calls[1:])
        assert list(await store.calls("n")) == calls

    async def test_a_cached_value_is_replaced_whole(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        assert await cached_value(store, "n", "reply", "k") is None
        await store.put_cache_entry("n", "reply", "k", {"a": [1, {"b": None}], "c": "ü\ud800"})
        assert await cached_value(store, "n", "reply", "k") == {
            "a": [1, {"b": None}],
            "c": "ü\ud800",
        }
        await store.put_cache_entry("n", "reply", "k", {})
        assert await cached_value(store, "n", "reply", "k") == {}

    async def test_all_that_is_kept_can_be_listed(self, store: GraphStore) -> None:
        assert list(await store.cache_keys("n", "reply")) == []
        _, (a, b) = given = text("d", "one ", "two ")
        await add(store, "n", given)
        keys = ["b", "a\x00", "ä", "🦉", "\uffee", "k" * 5000]
        for key in keys:
            await store.put_cache_entry("n", "reply", key, {"x": key}, segments=[b.id, a.id])
        await store.put_cache_entry("n", "reply", "free", {"y": [1.0, 1, None]})
        assert list(await store.cache_keys("n", "reply")) == sorted([*keys, "free"])
        asked = ["free", "unknown", *keys]
        ties = tuple(sorted((a.id, b.id)))
        expected = [
            CacheEntry("free", {"y": [1.0, 1, None]}),
            *(CacheEntry(k, {"x": k}, ties) for k in keys),
        ]
        assert list(await store.cache_entries("n", "reply", asked)) == expected
        assert list(await store.cache_entries("m", "reply", asked)) == []

    async def test_cached_values_can_be_deleted_by_their_key(self, store: GraphStore) -> None:
        for ns in ("n", "m"):
            await add(store, ns, text("d" + ns, "one "))
            for key in ("a", "ä" * 5000, "c"):
                await store.put_cache_entry(ns, "reply", key, {"x": key})
        await store.drop_cache_entries("n", "reply", ["a", "ä" * 5000, "unknown"])
        assert list(await store.cache_keys("n", "reply")) == ["c"]
        assert len(await store.cache_keys("m", "reply")) == 3
        await store.drop_cache_entries("gone", "reply", ["a"])

    async def test_one_key_means_something_else_in_each_kind(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        kinds: Sequence[CacheKind] = get_args(CacheKind)
        for kind in kinds:
            for key in ("k", "k:l", f"{kind}:k"):
                await store.put_cache_entry("n", kind, key, {"of": [kind, key]})
        for kind in kinds:
            assert list(await store.cache_keys("n", kind)) == sorted(["k", "k:l", f"{kind}:k"])
            (found,) = await store.cache_entries("n", kind, ["k"])
            assert found == CacheEntry("k", {"of": [kind, "k"]})
        await store.drop_cache_entries("n", "fold", ["k", "tree:k"])
        left = {kind: len(await store.cache_keys("n", kind)) for kind in kinds}
        assert left == dict.fromkeys(kinds, 3) | {"fold": 2}

    async def test_a_cached_value_is_deleted_with_any_of_its_segments(
        self, store: GraphStore
    ) -> None:
        _, (a, b) = given = text("d", "one ", "two ")
        await add(store, "n", given)
        await store.put_cache_entry("n", "reply", "one", {"x": 1}, segments=[a.id])
        await store.put_cache_entry("n", "reply", "both", {"x": 2}, segments=[a.id, b.id])
        await store.put_cache_entry("n", "reply", "two", {"x": 3}, segments=[b.id])
        await store.put_cache_entry("n", "reply", "none", {"x": 4})
        await store.put_cache_entry("n", "reply", "moved", {"x": 5}, segments=[a.id])
        await store.put_cache_entry("n", "reply", "moved", {"x": 6}, segments=[b.id])
        await store.put_documents("n", [text("d", "two ")])
        keys = ("one", "both", "two", "none", "moved")
        kept = [key for key in keys if await cached_value(store, "n", "reply", key) is not None]
        assert kept == ["two", "moved"]
        await store.delete_documents("n", "d")
        kept = [key for key in keys if await cached_value(store, "n", "reply", key) is not None]
        assert kept == []

    async def test_the_words_of_a_deleted_document_leave_the_trails(
        self, store: GraphStore
    ) -> None:
        _, (kept,) = first = text("a", "Ann met Bob ")
        _, (gone,) = second = text("b", "Bob met Cy ")
        await add(store, "n", first, second)
        trail = _trail_over(kept.id, gone.id)
        other = replace(TRAIL, id="other", steps=(Step(1, "read", read=_read(kept.id)),))
        await store.put_trail("n", trail)
        await store.put_trail("n", other)
        await store.delete_documents("n", "b")
        found = next(iter(await store.trails("n", 1, id="t")), None)
        assert found is not None
        assert "Cy" not in repr(found)
        assert (found.question, found.answer) == (trail.question, REMOVED)
        assert [c.quote for c in found.citations] == ["Ann", REMOVED]
        assert [c.document_id for c in found.citations] == [trail.citations[0].document_id, REMOVED]
        assert [c.segment_id for c in found.citations] == [kept.id, gone.id]
        assert [step.reason for step in found.steps] == ["Ann is there", REMOVED, REMOVED]
        assert found.steps[0] == trail.steps[0]
        assert found.steps[1].read == trail.steps[1].read
        assert found.steps[1].entities == ("Bob", REMOVED)
        assert found.steps[1].edges[0] == trail.steps[1].edges[0]
        assert found.steps[1].edges[1].description == REMOVED
        assert next(iter(await store.trails("n", 1, id="other")), None) == other

    async def test_how_a_segment_was_reached_goes_with_what_it_was_reached_over(
        self, store: GraphStore
    ) -> None:
        _, (kept,) = first = text("a", "Ann met Bob ")
        _, (gone,) = second = text("b", "Bob met Cy ")
        await add(store, "n", first, second)
        own = ScoredSegment(kept.id, 0.5, 3, "has the word Ann")
        over = ScoredSegment(kept.id, 0.5, 3, 'from "b", "Bob met Cy"', (gone.id,))
        itself = ScoredSegment(gone.id, 0.5, 3, "has the word Cy")
        step = Step(1, "read", read=(own, over), dropped=(itself,))
        await store.put_trail("n", replace(TRAIL, steps=(step,), citations=()))
        await store.delete_documents("n", "b")
        found = next(iter(await store.trails("n", 1, id=TRAIL.id)), None)
        assert found is not None
        assert found.steps[0].read == (own, replace(over, via=REMOVED))
        assert found.steps[0].dropped == (replace(itself, via=REMOVED),)

    async def test_the_words_of_a_replaced_segment_leave_the_trails(
        self, store: GraphStore
    ) -> None:
        _, (kept, gone) = given = text("a", "Ann met Bob ", "Bob met Cy ")
        await add(store, "n", given)
        await store.put_trail("n", _trail_over(kept.id, gone.id))
        await store.put_documents("n", [text("a", "Ann met Bob ", "Bob met Dee ")])
        found = next(iter(await store.trails("n", 1, id="t")), None)
        assert found is not None
        assert [c.quote for c in found.citations] == ["Ann", REMOVED]
        assert "Cy" not in repr(found)

    async def test_a_name_leaves_the_trails_whatever_its_letters(self, store: GraphStore) -> None:
        names = ('Zoë"', "Łu\\kasz", "Иван")
        for size in (1, 120):  # words of few and of many deleted segments are found differently
            more = [f"they met N{n} " for n in range(1, size)]
            await add(store, "n", text("b", f"{names[0]} {names[1]} {names[2]} ", *more))
            step = Step(1, "start", names)
            await store.put_trail("n", replace(TRAIL, steps=(step,)))
            await store.delete_documents("n", "b")
            (found,) = await store.trails("n", 1, id=TRAIL.id)
            assert found.steps[0].entities == (REMOVED,) * 3

    async def test_words_leave_the_last_of_many_trails(self, store: GraphStore) -> None:
        await add(store, "n", text("b", "they met Zoe "))
        step = Step(1, "start", ("Zoe", "Ann"))
        for n in range(260):
            await store.put_trail("n", replace(TRAIL, id=f"t{n}", steps=(step,)))
        await store.delete_documents("n", "b")
        found = await store.trails("n", 300)
        assert [trail.steps[0].entities for trail in found] == [(REMOVED, "Ann")] * 260


def _read(*ids: str) -> tuple[ScoredSegment, ...]:
    return tuple(ScoredSegment(id_, 0.5, 3) for id_ in ids)


def _trail_over(kept: str, gone: str) -> Trail:
    edges = (
        ScoredEdge(relation_key("Ann", "Bob"), "Ann", "Bob", "Ann meets Bob", 0.5, taken=True),
        ScoredEdge(relation_key("Cy", "Bob"), "Bob", "Cy", "Bob meets Cy", 0.25),
    )
    return replace(
        TRAIL,
        answer="Cy did",
        steps=(
            Step(1, "start", ("Bob",), read=_read(kept), reason="Ann is there"),
            Step(2, "read", ("Bob", "Cy"), edges, read=_read(kept, gone), reason="Cy is there"),
            Step(3, "force", ("Bob",), read=_read(kept), reason="Cy was there"),
        ),
        citations=(
            Citation("a", kept, 0, 3, "Ann", title="A"),
            Citation("b", gone, 8, 10, "Cy", title="The book of Cy", part="On Cy"),
        ),
    )
