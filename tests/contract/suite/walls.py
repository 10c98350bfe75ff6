"""The contract on namespaces: no method reads or changes another namespace."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from contract.suite.base import Contract
from contract.suite.runs import TRAIL
from contract.suite.samples import INFO, add, apply, contents, indexed, matching, text

from qrmem.errors import NotFound, StoreConflict
from qrmem.graphstore.protocol import EntityRow, FactRow, GraphStore, MentionRow, ViewUpdate
from qrmem.graphstore.reads import cached_value, entities_in, facts_of
from qrmem.types import CallRecord, Contribution, LedgerRow, MergeDecision, Question

ODD_NAMES = (
    "n",
    "N",
    "n ",
    "n'",
    'n"',
    "n%",
    "n_",
    "n*",
    "n\x00",
    "n\x00n",
    "n'; DROP TABLE segment; --",
    "n}) DETACH DELETE n //",
    "`n`",
    "$ns",
    "../n",
    "🦉",
    "e\u0301",
    "\u00e9",
    "n" * 10_000,
    "n" * 9_999 + "m",
)


class WallsContract(Contract):
    """The same ids in two namespaces have nothing to do with each other."""

    async def test_namespaces_with_similar_names_are_separate(self, store: GraphStore) -> None:
        for number, ns in enumerate(ODD_NAMES):
            await add(store, ns, text("d", f"Ann{number} ran ", "Bob ran ", title=ns))
        assert list(await store.namespaces()) == sorted(ODD_NAMES)
        for number, ns in enumerate(ODD_NAMES):
            names = [row.key for row in await store.names(ns)]
            assert names == sorted([f"Ann{number}", "Bob"])
            document = await store.document(ns, "d")
            assert document is not None
            assert document.title == ns
            assert (await store.counts(ns))["segments"] == 2

    async def test_a_namespace_that_is_imported_is_declared_whole_by_that_import_alone(
        self, store: GraphStore
    ) -> None:
        for ns in ("n", "m", "whole"):
            token = "" if ns == "whole" else "mine"
            made = await store.create_namespace(ns, replace(INFO, importing=token))
            assert made.importing == token
        again = await store.create_namespace("n", replace(INFO, importing="other"))
        assert again.importing == "mine"
        for ns, token in (("n", "other"), ("n", ""), ("whole", ""), ("unknown", "mine")):
            with pytest.raises(StoreConflict, match="taken over"):
                await store.finish_import(ns, token)
        await store.finish_import("n", "mine")
        assert await store.namespace("n") == replace(INFO, name="n")
        assert await store.namespace("m") == replace(INFO, name="m", importing="mine")
        with pytest.raises(StoreConflict):
            await store.finish_import("n", "mine")

    async def test_odd_ids_and_words_come_back_whole(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        given = []
        for word in ODD_NAMES:
            document, segments = text(word, f"A{word} met B{word}")
            pair = document, [replace(s, id=f"{word}{s.id}") for s in segments]
            given.append(pair)
            await store.put_documents("n", [pair])
        index = {s.id: {f"word{n}": 1} for n, (_, own) in enumerate(given) for s in own}
        await apply(store, "n", ViewUpdate(index=index))
        assert sorted(await indexed(store, "n")) == sorted(index)
        assert {e.document_id for e in await store.entries("n", await indexed(store, "n"))} == set(
            ODD_NAMES
        )
        for odd in ODD_NAMES:  # whatever a question holds, it is no query language
            await matching(store, "n", [[odd, "word0"]], 9)
        for document, segments in given:
            assert await store.document("n", document.id or "") == document
            assert list(await store.segments("n", [s.id for s in segments])) == segments
        assert [info.id for info in await store.documents("n")] == sorted(ODD_NAMES)
        await store.delete_documents("n", "n%")
        assert (await store.counts("n"))["documents"] == len(ODD_NAMES) - 1

    async def test_odd_names_of_entities_come_back_whole(self, store: GraphStore) -> None:
        _, (segment, other) = given = text("d", "one ", "two ")
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [given])
        mentions = [MentionRow(segment.id, name, ((name, 1),), name) for name in ODD_NAMES]
        facts = [
            FactRow(segment.id, n, head, tail, f"{head} met {tail}", tail)
            for n, (head, tail) in enumerate(pairwise(ODD_NAMES))
        ]
        change = ViewUpdate(
            mentions=[*mentions, MentionRow(other.id, ODD_NAMES[0], ((ODD_NAMES[0], 1),))],
            facts=facts,
            questions=[Question(name, segment.id) for name in ODD_NAMES],
            names={name: name for name in ODD_NAMES},
            entities=[EntityRow(name, name, name) for name in ODD_NAMES],
        )
        await apply(store, "n", change)
        assert [row.surface for row in await store.names("n")] == sorted(ODD_NAMES)
        found = {entity.key: entity for entity in await store.entities("n", ODD_NAMES)}
        assert list(found) == list(ODD_NAMES)
        assert all((e.name, e.type, e.questions) == (k, k, (k,)) for k, e in found.items())
        assert {(f.head, f.tail, f.question) for f in await facts_of(store, "n", ODD_NAMES)} == {
            (row.head, row.tail, row.question) for row in facts
        }
        assert (await entities_in(store, "n", [segment.id]))[segment.id] == tuple(sorted(ODD_NAMES))
        assert {q.text for q in await store.questions("n")} == set(ODD_NAMES)
        await apply(store, "n", ViewUpdate(names={ODD_NAMES[-1]: ODD_NAMES[0]}))
        assert list(await store.entities("n", [ODD_NAMES[-1]])) == []
        await apply(store, "n", ViewUpdate(clear=[segment.id]))
        assert [row.key for row in await store.names("n")] == [ODD_NAMES[0]]

    async def test_writing_and_deleting_in_one_namespace_does_not_change_the_other(
        self, store: GraphStore
    ) -> None:
        for ns in ("n", "m"):
            await self._fill(store, ns)
        before = await contents(store, "m")
        assert await contents(store, "n") == before
        await store.put_documents("n", [text("d", "Ann met Bob ")])
        await store.override_merge("n", MergeDecision("a", "b", False))
        await store.record("n", (), summaries={"d": "other"})
        await store.put_trail("n", replace(TRAIL, answer="other"))
        await store.put_cache_entry("n", "reply", "k", {"x": 2})
        await apply(store, "n", ViewUpdate(clear=[s.id for s in text("d", "Ann met Bob ")[1]]))
        await store.set_embedder("n", "other", 1)
        await store.set_single("n", ["LIVES_IN"])
        assert await contents(store, "m") == before
        assert await cached_value(store, "m", "reply", "k") == {"x": 1}
        await store.delete_documents("n", "d")
        assert await contents(store, "m") == before
        await store.delete_namespace("n")
        assert await contents(store, "m") == before
        assert list(await store.namespaces()) == ["m"]

    async def test_a_deleted_namespace_leaves_nothing_to_a_new_one_of_its_name(
        self, store: GraphStore
    ) -> None:
        await store.create_namespace("n", INFO)
        empty = await contents(store, "n", ["ann", "met"])
        await self._fill(store, "n")
        await store.delete_namespace("n")
        await store.create_namespace("n", INFO)
        assert await contents(store, "n", ["ann", "met"]) == empty
        assert await cached_value(store, "n", "reply", "k") is None

    async def test_ids_of_another_namespace_lead_nowhere(self, store: GraphStore) -> None:
        _, segments = given = text("d", "Ann met Bob ")
        await add(store, "n", given)
        await store.create_namespace("m", INFO)
        id_ = segments[0].id
        assert list(await store.segments("m", [id_])) == []
        assert list(await store.entities("m", ["Ann"])) == []
        assert list(await facts_of(store, "m", ["Ann"])) == []
        assert await entities_in(store, "m", [id_]) == {}
        assert (await store.around("m", ["Ann"])).places == {}
        assert list(await store.questions("m", [id_])) == []
        assert (await store.vocabulary("m", ["met"])).frequencies == {}
        assert list(await matching(store, "m", [["met"]], 9)) == []
        assert list(await store.entries("m", [id_])) == []
        assert (await store.mentions("m", [id_])).named == {}
        row = np.ones((1, 3), dtype=np.float32)
        await store.put_vectors("m", "segment", [id_], row)
        assert list(await store.owners("n", "segment")) == []
        assert list(await store.owners("m", "segment")) == []
        await apply(store, "m", ViewUpdate(clear=[id_]))
        with pytest.raises(ValueError, match="refers to an unknown"):
            await apply(store, "m", ViewUpdate(merged={id_: "digest"}))
        with pytest.raises(NotFound):
            await store.record("m", [(LedgerRow(id_, "ok"), None)])
        assert (await store.counts("n"))["entities"] == 2

    async def _fill(self, store: GraphStore, ns: str) -> None:
        _, segments = given = text("d", "Ann met Bob why? ", "Bob left Cy ")
        await add(store, ns, given)
        row = LedgerRow(segments[0].id, "ok")
        call = CallRecord("r", "extract", "construction", "p", "m")
        await store.record(ns, [(row, Contribution(row.segment_id, "extraction"))], [call])
        await store.override_merge(ns, MergeDecision("a", "b", True))
        await store.record(ns, (), summaries={"d": "T"})
        vectors = np.ones((2, 3), dtype=np.float32)
        await store.put_vectors(ns, "segment", [s.id for s in segments], vectors)
        await store.put_vectors(ns, "relation", ["r"], vectors[:1])
        await store.put_trail(ns, TRAIL)
        await store.put_cache_entry(ns, "reply", "k", {"x": 1}, segments=[segments[0].id])
