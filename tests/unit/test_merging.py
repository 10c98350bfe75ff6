"""The view equals one built from the final documents alone, whatever happened before."""

import asyncio
import re
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmem.config import Settings
from qrmem.errors import StoreConflict
from qrmem.graph.merging import current_merges, merge_document, merge_documents, refresh_names
from qrmem.graph.view import decided
from qrmem.graphstore import open_store
from qrmem.graphstore.memory import MemoryStore
from qrmem.graphstore.protocol import Change, GraphStore
from qrmem.graphstore.testing.samples import INFO, contents, text
from qrmem.types import Contribution, LedgerRow, Mention, MergeDecision, Segment, Statement

PIECES = (
    "Mary Bennet met Mr. Darcy in Paris. ",
    "Mary spoke of Darcy, and MARY BENNET smiled. ",
    "Mary King ran from Paris to Fitzwilliam Darcy. ",
    "Miss Darcy saw Mary. ",
    "Henry IV fought Henry V near Paris. ",
    "Paris, said Mary, is far from London. ",
    "Nobody was there. ",
)
NAME = re.compile(r"(?:M(?:r|iss)\.? )?[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]*)*")


def extraction(segment: Segment) -> Contribution:
    """Read as a plain reasoner does: types where a title or a list tells them."""
    names = list(dict.fromkeys(NAME.findall(segment.text)))
    mentions = [Mention(name, _type(name), (name,)) for name in names]
    if "Mary Bennet" in names:
        mentions[names.index("Mary Bennet")] = Mention(
            "Mary Bennet", "PERSON", ("Mary Bennet", "Mary")
        )
    statements = [Statement(head, tail, f"{head} with {tail}") for head, tail in pairwise(names)]
    questions = tuple(f"What did {name} do there?" for name in names)
    return Contribution(segment.id, "extraction", tuple(mentions), tuple(statements), questions)


def supplement(segment: Segment, questions: tuple[str, ...]) -> Contribution:
    words = re.findall(r"[a-z]{4,}", segment.text)
    mentions = [
        Mention(word, "", (word,), question=question)
        for word, question in zip(words, questions, strict=False)
    ]
    return Contribution(segment.id, "supplement", tuple(mentions), asked=questions)


def _type(name: str) -> str:
    if name.startswith("M") or "Henry" in name:
        return "PERSON"
    return "PLACE" if name == "London" else ""


async def put(store: GraphStore, id_: str, pieces: Sequence[str]) -> None:
    """Put a document and read what was not read, as a build does."""
    document, segments = text(id_, *pieces)
    await store.put_document("n", document, segments)
    states = {row.segment_id: row.state for row in await store.ledger("n", id_)}
    for segment in segments:
        if states[segment.id] == "pending":
            await store.record("n", LedgerRow(segment.id, "extracted"), extraction(segment))
    made = await store.contributions("n", id_)
    firsts = [c for c in made if c.kind == "extraction"]
    asked = {(c.segment_id, c.asked) for c in made if c.kind == "supplement"}
    by_id = {segment.id: segment for segment in segments}
    for first, questions in zip(firsts, decided(firsts), strict=True):
        row = LedgerRow(first.segment_id, "ok")
        if questions and (first.segment_id, questions) not in asked:
            await store.record("n", row, supplement(by_id[first.segment_id], questions))
        else:
            await store.record("n", row)


async def fresh() -> MemoryStore:
    store = MemoryStore()
    await store.create_namespace("n", INFO)
    return store


async def view(store: MemoryStore) -> dict[str, Any]:
    found = await contents(store, "n")
    stored = ("contributions", "ledger")  # earlier supplements may be kept; they do not count
    return {what: value for what, value in found.items() if what not in stored}


async def built(
    documents: dict[str, tuple[str, ...]], decisions: Sequence[MergeDecision] = ()
) -> dict[str, Any]:
    store = await fresh()
    for decision in decisions:
        await store.decide("n", decision)
    for id_ in sorted(documents):
        await put(store, id_, documents[id_])
    await merge_documents(store, "n", sorted(documents))
    return await view(store)


IDS = st.sampled_from("abc")
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


@settings(deadline=None, max_examples=60)
@given(STEPS, st.booleans())
def test_any_order_of_adds_replacements_and_deletions_gives_the_same_view(
    steps: list[tuple[str, str, Any]], same: bool
) -> None:
    async def run() -> None:
        store = await fresh()
        final: dict[str, tuple[str, ...]] = {}
        for what, id_, given_ in steps:
            if what == "delete":
                await store.delete_document("n", id_)
                await refresh_names(store, "n")
                final.pop(id_, None)
            elif what == "decide":
                await store.decide("n", MergeDecision(id_, given_, same=same))
                await refresh_names(store, "n")
            else:
                await put(store, id_, given_)
                final[id_] = given_
                if what == "put":
                    await merge_document(store, "n", id_)
        await merge_documents(store, "n", sorted(final, reverse=True))
        assert await view(store) == await built(final, await store.decisions("n"))

    asyncio.run(run())


async def held(store: GraphStore) -> dict[str, Any]:
    """Return all that a memory holds, but for what no longer counts."""
    found = await contents(store, "n")
    return {what: value for what, value in found.items() if what not in ("contributions", "ledger")}


CROWDED = st.lists(
    st.sampled_from(
        [
            *PIECES,
            "Mary Hill met Mary Ford and Mary Lane. ",
            "Mr. Darcy and Georgiana Darcy left with Henry Darcy. ",
            "M. Bennet wrote to M. King. ",
            "Captain Ahab, Ahab Smith and Ahab Stone met Ahab. ",
        ]
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_memories_grown_step_by_step_are_those_made_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of names become crowded, and cease to be, on the way."""
    monkeypatch.setattr("qrmem.graph.merging.MOST", 3)
    monkeypatch.setattr("qrmem.graph.resolution.MOST", 3)

    async def opened(folder: str, name: str) -> GraphStore:
        if kind == "memory":
            store: GraphStore = MemoryStore()
        else:
            store = await open_store(f"{folder}/{name}.db", Settings())
        await store.create_namespace("n", INFO)
        return store

    async def run(steps: list[tuple[str, str, Any]], same: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            grown, final = await opened(folder, "grown"), dict[str, tuple[str, ...]]()
            for number, (what, id_, given_) in enumerate(steps):
                if what == "delete":
                    await grown.delete_document("n", id_)
                    final.pop(id_, None)
                elif what == "decide":
                    await grown.decide("n", MergeDecision(id_, given_, same=same))
                else:
                    await put(grown, id_, given_)
                    await merge_document(grown, "n", id_)
                    final[id_] = given_
                await refresh_names(grown, "n")
                fresh = await opened(folder, f"fresh{number}")
                for decision in await grown.decisions("n"):
                    await fresh.decide("n", decision)
                for document_id in sorted(final):
                    await put(fresh, document_id, final[document_id])
                await merge_documents(fresh, "n", sorted(final))
                assert await held(grown) == await held(fresh)
                assert not await grown.stale_names("n")
                await fresh.close()
            await grown.close()

    steps = st.lists(
        st.one_of(
            st.tuples(st.just("put"), IDS, CROWDED),
            st.tuples(st.just("delete"), IDS, st.none()),
            st.tuples(
                st.just("decide"),
                st.sampled_from(["Mary", "Ahab", "Mr. Darcy"]),
                st.sampled_from(["Mary Bennet", "Captain Ahab", "Henry Darcy"]),
            ),
        ),
        min_size=2,
        max_size=5,
    )

    @settings(deadline=None, max_examples=25 if kind == "memory" else 8)
    @given(steps, st.booleans())
    def grow(drawn: list[tuple[str, str, Any]], same: bool) -> None:
        asyncio.run(run(drawn, same))

    grow()


async def test_merging_again_changes_nothing() -> None:
    store = await fresh()
    await put(store, "a", PIECES)
    assert await merge_document(store, "n", "a") == len(PIECES)
    revision = await store.namespace("n")
    assert await merge_document(store, "n", "a") == 0
    assert await store.namespace("n") == revision


async def test_an_alias_becomes_clear_when_its_other_meaning_is_deleted() -> None:
    store = await fresh()
    await put(store, "a", ["Mary spoke. Mary Bennet heard. "])
    await put(store, "b", ["Mary King ran. "])
    await merge_documents(store, "n", ["a", "b"])
    assert {row.key: row.entity for row in await store.names("n")}["mary|PERSON"] == "mary|PERSON"
    await store.delete_document("n", "b")
    await refresh_names(store, "n")
    names = {row.key: row.entity for row in await store.names("n")}
    assert names["mary|PERSON"] == "mary bennet|PERSON"
    assert [(m.name, m.into) for m in await current_merges(store, "n")] == [("Mary", "Mary Bennet")]


async def test_a_refused_merge_stays_refused_when_more_is_added() -> None:
    store = await fresh()
    await put(store, "a", ["Mary spoke. Mary Bennet heard. "])
    await merge_document(store, "n", "a")
    await store.decide("n", MergeDecision("Mary", "Mary Bennet", same=False))
    await refresh_names(store, "n")
    await put(store, "b", ["Mary Bennet left, and Mary. "])
    await merge_document(store, "n", "b")
    names = {row.key: row.entity for row in await store.names("n")}
    assert names["mary|PERSON"] == "mary|PERSON"


async def test_an_entity_is_called_by_the_best_spelling_of_its_name() -> None:
    store = await fresh()
    document, segments = text("a", "Mary, Mary and Mary McBride. ", "MARY MCBRIDE. ")
    await store.put_document("n", document, segments)
    for segment in segments:
        mention = Mention("Mary McBride", "PERSON", ("Mary", "MARY MCBRIDE"))
        made = Contribution(segment.id, "extraction", (mention,))
        await store.record("n", LedgerRow(segment.id, "ok"), made)
    await merge_document(store, "n", "a")
    (found,) = await store.entities("n", ["mary mcbride|PERSON"])
    assert found.forms[0][0] == "Mary"
    assert found.name == "Mary McBride"


class Contested(MemoryStore):
    """Somebody else writes in between, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def apply(self, ns: str, revision: int, change: Change) -> int:
        if self.times:
            self.times -= 1
            await super().apply(ns, revision, Change())
        return await super().apply(ns, revision, change)


async def test_a_conflict_is_met_by_computing_again() -> None:
    store = Contested(2)
    await store.create_namespace("n", INFO)
    await put(store, "a", PIECES)
    await merge_document(store, "n", "a")
    assert await view(store) == await built({"a": PIECES})


async def test_endless_conflicts_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmem.graph.merging._ATTEMPTS", 2)
    store = Contested(100)
    await store.create_namespace("n", INFO)
    await put(store, "a", PIECES)
    with pytest.raises(StoreConflict):
        await merge_document(store, "n", "a")
