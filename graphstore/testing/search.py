"""The contract on what search reads: catalog, postings, vectors."""

import numpy as np
import pytest

from qrmem.errors import EmbedderMismatch
from qrmem.graphstore.protocol import Change, GraphStore, IndexRow
from qrmem.graphstore.testing.base import Contract
from qrmem.graphstore.testing.samples import INFO, add, apply, change, contents, text


class SearchContract(Contract):
    """Columns say what was indexed last, and vectors come back bit by bit."""

    async def test_catalog_and_postings_say_what_was_indexed(self, store: GraphStore) -> None:
        _, (first, second) = given = text("d", "one two two ", "two three ")
        await add(store, "n", given)
        catalog = await store.catalog("n")
        info = await store.namespace("n")
        assert info is not None
        assert catalog.revision == info.revision
        assert list(catalog.segment_ids) == [first.id, second.id]
        assert list(catalog.document_ids) == ["d", "d"]
        assert (catalog.indexes.tolist(), catalog.lengths.tolist()) == ([0, 1], [3, 2])
        found = await store.postings("n", ["two", "nowhere", "three", "two"])
        assert list(found) == ["two", "three"]
        assert found["two"].numbers.tolist() == catalog.numbers.tolist()
        assert found["two"].counts.tolist() == [2, 1]
        assert found["three"].numbers.tolist() == catalog.numbers[1:].tolist()

    async def test_a_segment_without_words_is_in_the_catalog(self, store: GraphStore) -> None:
        _, (segment,) = given = text("d", "")
        await add(store, "n", given)
        assert list((await store.catalog("n")).segment_ids) == [segment.id]
        await apply(store, "n", Change(clear=[segment.id]))
        assert list((await store.catalog("n")).segment_ids) == []

    async def test_large_counts_are_kept(self, store: GraphStore) -> None:
        document, segments = text("d", "a ", "b ", "c ")
        await store.create_namespace("n", INFO)
        await store.put_document("n", document, segments)
        counts = (255, 256, 1 << 30)
        rows = [IndexRow(s.id, 1 << 30, {"x": n}) for s, n in zip(segments, counts, strict=True)]
        await apply(store, "n", Change(index=rows))
        assert (await store.postings("n", ["x"]))["x"].counts.tolist() == list(counts)
        assert (await store.catalog("n")).lengths.tolist() == [1 << 30] * 3

    async def test_a_segment_indexed_again_is_found_by_its_new_words_alone(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = given = text("d", "one two ", "two ")
        await add(store, "n", given)
        await apply(store, "n", Change(index=[IndexRow(first.id, 1, {"new": 1})]))
        catalog = await store.catalog("n")
        assert sorted(catalog.segment_ids) == sorted([first.id, second.id])
        found = await store.postings("n", ["one", "two", "new"])
        at = {term: postings.numbers.tolist() for term, postings in found.items()}
        id_of = dict(zip(catalog.numbers.tolist(), catalog.segment_ids, strict=True))
        assert {term: [id_of[n] for n in numbers] for term, numbers in at.items()} == {
            "two": [second.id],
            "new": [first.id],
        }

    async def test_many_small_changes_read_as_one(self, store: GraphStore) -> None:
        pieces = [f"all w{n} w{n % 7} " for n in range(60)]
        pieces[4] += "all " * 300
        document, segments = text("d", *pieces)
        for ns in ("n", "m"):
            await store.create_namespace(ns, INFO)
            await store.put_document(ns, document, segments)
        for segment in segments:
            await apply(store, "n", change([segment]))
        await apply(store, "m", change(segments))
        assert await contents(store, "n") == await contents(store, "m")
        for ns in ("n", "m"):
            await store.put_document(ns, *text("d", *pieces[::2]))
        assert await contents(store, "n") == await contents(store, "m")
        assert len((await store.postings("n", ["all"]))["all"].numbers) == 30

    async def test_an_empty_namespace_has_empty_columns(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        catalog = await store.catalog("n")
        assert (catalog.numbers.shape, list(catalog.segment_ids)) == ((0,), [])
        assert await store.postings("n", ["x"]) == {}
        found = await store.vectors("n", "segment")
        assert (list(found.owners), found.matrix.shape) == ([], (0, 3))

    async def test_vectors_come_back_bit_by_bit_in_order(self, store: GraphStore) -> None:
        _, (a0, a1) = first = text("a", "one ", "two ")
        _, (b0,) = second = text("b", "three ")
        await add(store, "n", second, first)
        matrix = np.array(
            [[1e-30, -0.1, 3], [7, 8, 9], [0.1, 0.2, 0.3], [4, 5, 6]], dtype=np.float32
        )
        await store.put_vectors("n", "segment", [b0.id, a1.id, "unknown", a1.id], matrix)
        await store.put_vectors("n", "segment", [a0.id], matrix[:1])
        found = await store.vectors("n", "segment")
        assert list(found.owners) == [a0.id, a1.id, a1.id, b0.id]
        assert found.matrix.dtype == np.float32
        assert found.matrix.tobytes() == matrix[[0, 1, 3, 0]].tobytes()
        some = await store.vectors("n", "segment", [b0.id, "unknown", a1.id])
        assert list(some.owners) == [a1.id, a1.id, b0.id]
        assert some.matrix.tobytes() == matrix[[1, 3, 0]].tobytes()
        assert (await store.vectors("n", "segment", [])).matrix.shape == (0, 3)

    async def test_new_vectors_take_the_place_of_all_that_the_owner_had(
        self, store: GraphStore
    ) -> None:
        _, (one, two) = given = text("a", "one ", "two ")
        await add(store, "n", given)
        rows = np.arange(12, dtype=np.float32).reshape(4, 3)
        await store.put_vectors("n", "segment", [one.id, one.id, two.id], rows[:3])
        await store.put_vectors("n", "segment", [one.id], rows[3:])
        found = await store.vectors("n", "segment")
        assert list(found.owners) == [one.id, two.id]
        assert found.matrix.tolist() == rows[[3, 2]].tolist()

    async def test_vectors_of_many_segments_stay_with_their_owners(self, store: GraphStore) -> None:
        pieces = [f"w{n} " for n in range(700)]
        document, segments = text("d", *pieces)
        await store.create_namespace("n", INFO)
        await store.put_document("n", document, segments)
        ids = [s.id for s in segments for _ in range(2)]
        rows = np.arange(1400 * 3, dtype=np.float32).reshape(1400, 3)
        for start in [*range(0, 40, 2), 40]:
            end = start + 2 if start < 40 else 1400
            await store.put_vectors("n", "segment", ids[start:end], rows[start:end])
        found = await store.vectors("n", "segment")
        assert (list(found.owners), found.matrix.tolist()) == (ids, rows.tolist())
        some = await store.vectors("n", "segment", ids[2:1400:100])
        assert some.matrix[:2].tolist() == rows[2:4].tolist()
        await store.put_document("n", *text("d", *pieces[::2]))
        found = await store.vectors("n", "segment")
        kept = [row for n, row in enumerate(rows.tolist()) if n // 2 % 2 == 0]
        assert found.matrix.tolist() == kept
        assert list(await store.owners("n", "segment")) == [s.id for s in segments[::2]]

    async def test_vectors_by_number_are_those_by_owner(self, store: GraphStore) -> None:
        _, (a0, a1) = first = text("a", "one ", "two ")
        _, (b0,) = second = text("b", "three ")
        await add(store, "n", second, first)
        assert (await store.numbered_vectors("n")).matrix.shape == (0, 3)
        rows = np.arange(12, dtype=np.float32).reshape(4, 3)
        await store.put_vectors("n", "segment", [a0.id, a1.id, a1.id, b0.id], rows)
        await apply(store, "n", Change(clear=[a0.id]))  # no longer indexed
        found, catalog = await store.numbered_vectors("n"), await store.catalog("n")
        id_of = dict(zip(catalog.numbers.tolist(), catalog.segment_ids, strict=True))
        by_owner: dict[str, list[list[float]]] = {}
        for number, row in zip(found.numbers.tolist(), found.matrix.tolist(), strict=True):
            by_owner.setdefault(id_of[number], []).append(row)
        assert by_owner == {a1.id: rows[1:3].tolist(), b0.id: rows[3:].tolist()}
        assert (found.numbers[1:] != found.numbers[:-1]).sum() == 1
        assert (await store.numbered_vectors("nowhere")).numbers.size == 0

    async def test_vectors_of_relations_go_when_a_segment_goes(self, store: GraphStore) -> None:
        await add(store, "n", text("a", "one "), text("b", "two "))
        rows = np.eye(3, dtype=np.float32)
        await store.put_vectors("n", "relation", ["z", "a", "'; --"], rows)
        await store.put_vectors("n", "relation", ["z"], rows[1:2])
        found = await store.vectors("n", "relation")
        assert (
            list(found.owners) == ["'; --", "a", "z"] == list(await store.owners("n", "relation"))
        )
        assert found.matrix.tolist() == rows[[2, 1, 1]].tolist()
        assert list((await store.vectors("n", "relation", ["z"])).owners) == ["z"]
        assert list(await store.owners("n", "segment")) == []
        await store.delete_document("n", "b")
        assert list(await store.owners("n", "relation")) == []
        await store.put_vectors("n", "relation", ["z"], rows[:1])
        assert list(await store.owners("n", "relation")) == ["z"]

    async def test_another_embedder_starts_without_vectors(self, store: GraphStore) -> None:
        _, (segment,) = given = text("a", "one ")
        await add(store, "n", given)
        row = np.ones((1, 3), dtype=np.float32)
        await store.put_vectors("n", "segment", [segment.id], row)
        await store.put_vectors("n", "relation", ["r"], row)
        await store.set_embedder("n", "other", 2)
        info = await store.namespace("n")
        assert info is not None
        assert (info.embedder, info.dimension) == ("other", 2)
        assert list(await store.owners("n", "segment")) == []
        assert (await store.vectors("n", "relation")).matrix.shape == (0, 2)
        with pytest.raises(EmbedderMismatch):
            await store.put_vectors("n", "segment", [segment.id], row)
        assert list(await store.owners("n", "segment")) == []
        await store.put_vectors("n", "segment", [], np.empty((0, 2), dtype=np.float32))
        await store.put_vectors("n", "segment", [segment.id], row[:, :2])
        assert list(await store.owners("n", "segment")) == [segment.id]

    async def test_an_index_is_of_its_revision_and_goes_with_a_segment_or_is_never_kept(
        self, store: GraphStore
    ) -> None:
        await store.put_index("nowhere", 0, {"a": b"x"})
        await add(store, "n", text("d", "one "))
        await add(store, "m", text("d", "one "))
        info = await store.namespace("n")
        assert info is not None
        await store.put_index("n", info.revision, {"a": b"\x00first", "b": b""})
        kept = await store.index("n", info.revision, "a")
        assert kept == (b"\x00first" if store.keeps_index else None)
        await store.put_index("n", info.revision + 1, {"a": b"of nothing yet"})
        assert await store.index("n", info.revision, "a") == kept
        assert await store.index("n", info.revision + 1, "a") is None
        assert await store.index("n", info.revision, "c") is None
        assert await store.index("m", info.revision, "a") is None
        await store.delete_document("n", "d")
        assert await store.index("n", info.revision, "a") is None
        assert await store.index("nowhere", 0, "a") is None
