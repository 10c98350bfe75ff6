"""The contract on the input of a search: words, titles, names, vectors."""

from dataclasses import replace

import numpy as np
import pytest
from contract.suite.base import Contract
from contract.suite.samples import (
    INFO,
    add,
    all_vectors,
    apply,
    change,
    contents,
    indexed,
    matching,
    text,
)

from qrmem.errors import EmbedderMismatch
from qrmem.graphstore.protocol import (
    FIRST_TITLED,
    MOST_TITLED,
    EntityRow,
    FactRow,
    GraphStore,
    MentionRow,
    ViewUpdate,
)


class SearchContract(Contract):
    """What was indexed last is found, within the namespace; vectors come back bit by bit."""

    async def test_words_of_text_and_title_are_found(self, store: GraphStore) -> None:
        _, (first, second) = given = text("d", "one two two ", "two three ", title="Three")
        await add(store, "n", given)
        known = await store.vocabulary("n", ["two", "nowhere", "three", "two"])
        assert (known.segments, known.terms) == (2, 7)
        assert known.frequencies == {"two": 2, "three": 2}
        found = await store.entries("n", [second.id, "unknown", first.id])
        assert [(e.id, e.document_id, e.index, e.title) for e in found] == [
            (second.id, "d", 1, "Three"),
            (first.id, "d", 0, "Three"),
        ]
        assert sorted(found[0].terms) == ["three", "three", "two"]
        assert await indexed(store, "n") == [first.id, second.id]

    async def test_matching_takes_a_term_of_every_group_best_first(self, store: GraphStore) -> None:
        _, (a, b, c) = given = text("d", "whale whale sea ", "whale boat tree ", "boat ")
        _, (other,) = more = text("e", "whale ")
        await add(store, "n", given, more)
        assert list(await matching(store, "n", [["whale"]], 9))[-1] == b.id
        assert set(await matching(store, "n", [["whale"]], 9)) == {a.id, b.id, other.id}
        assert list(await matching(store, "n", [["whale", "sea"], ["boat", "x"]], 9)) == [b.id]
        assert set(await matching(store, "n", [["sea", "boat"]], 9)) == {a.id, b.id, c.id}
        assert len(await matching(store, "n", [["whale"]], 2)) == 2
        assert list(await matching(store, "n", [["whale"]], 9, ["e"])) == [other.id]
        each = [[["boat"], ["x"]], [["whale"]], [], [["whale"]], [["sea"]]]
        one_by_one = [list(await matching(store, "n", groups, 2)) for groups in each]
        assert [list(ids) for ids in await store.matching_each("n", each, 2)] == one_by_one
        assert [len(ids) for ids in one_by_one] == [0, 2, 0, 2, 1]
        inside = await store.matching_each("n", each, 9, ["e"])
        assert [list(ids) for ids in inside] == [[], [other.id], [], [other.id], []]
        assert list(await store.matching_each("n", [], 9)) == []
        nothings: list[list[list[str]]] = [[], [[]], [["whale"], []], [["nowhere"]]]
        for nothing in nothings:
            assert list(await matching(store, "n", nothing, 9)) == []

    async def test_segments_are_found_by_the_types_of_what_they_speak_of(
        self, store: GraphStore
    ) -> None:
        _, (a, b, c) = given = text("d", "whale sea ", "whale boat ", "whale tree ")
        await add(store, "n", given)
        rows = ViewUpdate(
            names={"ann": "ann", "acme": "acme", "bob": "bob"},
            entities=[
                EntityRow("ann", "Ann", "PERSON"),
                EntityRow("acme", "Acme", "COMPANY"),
                EntityRow("bob", "Bob", ""),
            ],
            mentions=[
                MentionRow(a.id, "ann", (("Ann", 1),)),
                MentionRow(a.id, "bob", (("Bob", 1),)),
                MentionRow(b.id, "ann", (("Ann", 1),)),
                MentionRow(b.id, "acme", (("Acme", 1),)),
                MentionRow(c.id, "bob", (("Bob", 1),)),
            ],
            facts=[
                FactRow(b.id, 0, "ann", "acme", "works for", type="WORKS_FOR"),
                FactRow(a.id, 0, "ann", "bob", "knows", type="KNOWS"),
                FactRow(a.id, 1, "bob", "ann", "met"),
            ],
        )
        await apply(store, "n", rows)

        async def found(*types: str) -> set[str]:
            return set(await store.segments_of_types("n", types))

        assert list(await store.types("n")) == ["COMPANY", "KNOWS", "PERSON", "WORKS_FOR"]
        assert await found("PERSON") == {a.id, b.id}
        assert await found("COMPANY") == await found("WORKS_FOR") == {b.id}
        assert await found("KNOWS", "COMPANY") == {a.id, b.id}
        assert await found("NOTHING") == await found() == set()
        assert await store.types("missing") == []
        assert set(await matching(store, "n", [["whale"]], 9, among=[b.id, c.id])) == {b.id, c.id}
        assert list(await matching(store, "n", [["whale"]], 9, ["other"], among=[b.id])) == []
        assert list(await matching(store, "n", [["whale"]], 9, among=[])) == []
        await apply(store, "n", ViewUpdate(clear=[b.id]))
        assert list(await store.types("n")) == ["KNOWS", "PERSON"]
        assert await found("COMPANY", "WORKS_FOR") == set()

    async def test_a_segment_without_words_is_indexed(self, store: GraphStore) -> None:
        _, (segment,) = given = text("d", "")
        await add(store, "n", given)
        assert await indexed(store, "n") == [segment.id]
        assert (await store.vocabulary("n", [])).segments == 1
        await apply(store, "n", ViewUpdate(clear=[segment.id]))
        assert await indexed(store, "n") == []

    async def test_a_segment_indexed_again_is_found_by_its_new_words_alone(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = given = text("d", "one two ", "two ")
        await add(store, "n", given)
        await apply(store, "n", ViewUpdate(index={first.id: {"new": 1}}))
        found = {t: list(await matching(store, "n", [[t]], 9)) for t in ("one", "two", "new")}
        assert found == {"one": [], "two": [second.id], "new": [first.id]}
        assert (await store.vocabulary("n", ["one"])).terms == 2

    async def test_many_small_changes_read_as_one(self, store: GraphStore) -> None:
        pieces = [f"all w{n} w{n % 7} " for n in range(60)]
        pieces[4] += "all " * 300
        document, segments = text("d", *pieces)
        for ns in ("n", "m"):
            await store.create_namespace(ns, INFO)
            await store.put_documents(ns, [(document, segments)])
        for segment in segments:
            await apply(store, "n", change([segment]))
        await apply(store, "m", change(segments))
        assert await contents(store, "n") == await contents(store, "m")
        for ns in ("n", "m"):
            await store.put_documents(ns, [text("d", *pieces[::2])])
        assert await contents(store, "n") == await contents(store, "m")
        assert (await store.vocabulary("n", ["all"])).frequencies == {"all": 30}

    async def test_an_empty_namespace_finds_nothing(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        for ns in ("n", "nowhere"):
            known = await store.vocabulary(ns, ["x"])
            assert (known.segments, known.terms, known.mean_length) == (0, 0, 1)
            assert list(await matching(store, ns, [["x"]], 9)) == []
            assert list(await store.entries(ns, ["x"])) == []
            assert await indexed(store, ns) == []
            assert await store.titled(ns, ["x"]) == {}
            assert (await store.mentions(ns, ["x"])).named == {}
            assert await store.nearest(ns, np.ones(3, dtype=np.float32), 9) == {}
        found = await all_vectors(store, "n", "segment")
        assert (list(found.owners), found.matrix.shape) == ([], (0, 3))

    async def test_a_title_names_its_document_until_it_changes(self, store: GraphStore) -> None:
        pieces = [f"{n} " for n in ("one", "two", "three", "four")]
        document, segments = given = text("d", *pieces, title="Moby Dick (novel)")
        await add(store, "n", given, text("e", "three ", title="Moby Dick"))
        found = await store.titled("n", ["moby dick", "moby", "moby dick novel"])
        assert [(one.document_id, one.sure) for one in found["moby dick"]] == [
            ("e", 1.0),
            ("d", 0.8),
        ]
        firsts = [segment.id for segment in segments[:FIRST_TITLED]]
        assert list(found["moby dick"][1].segments) == firsts
        assert set(found) == {"moby dick", "moby dick novel"}
        await store.put_documents("n", [(replace(document, title="The Whale"), segments)])
        assert [
            one.document_id for one in (await store.titled("n", ["moby dick"]))["moby dick"]
        ] == ["e"]
        assert list((await store.titled("n", ["whale"]))["whale"][0].segments) == firsts
        assert set(await matching(store, "n", [["whale"]], 9)) == {s.id for s in segments}
        assert list(await matching(store, "n", [["novel"]], 9)) == []
        await store.delete_documents("n", "e")
        assert await store.titled("n", ["moby dick"]) == {}

    async def test_long_titles_are_found_among_names_that_begin_alike(
        self, store: GraphStore
    ) -> None:
        titles = ["The Old Man and the Sea", "The Old Man and the Wolf", "The Old Mandolin Player"]
        given = [text(f"d{n}", f"w{n} ", title=title) for n, title in enumerate(titles)]
        await add(store, "n", *given)
        names = ["the old man and the sea", "the old man and the", "the old man", "sea\nsea", ""]
        found = await store.titled("n", [*names, "the old mandolin player", "of the old man and"])
        assert {name: [one.document_id for one in some] for name, some in found.items()} == {
            "the old man and the sea": ["d0"],
            "the old mandolin player": ["d2"],
        }
        assert await store.titled("n", ["the old man and the", "sea", "the old man"]) == {}

    async def test_a_title_of_too_many_documents_names_none(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        given = [text(f"d{n:02}", f"w{n} ", title="Notes") for n in range(MOST_TITLED + 1)]
        await store.put_documents("n", given[:-1])
        await apply(store, "n", change([s for _, own in given[:-1] for s in own]))
        assert len((await store.titled("n", ["notes"]))["notes"]) == MOST_TITLED
        await add(store, "n", given[-1])
        assert await store.titled("n", ["notes"]) == {}

    async def test_names_in_segments_and_where_they_stand(self, store: GraphStore) -> None:
        _, (a, b, c) = given = text("d", "Ann met Bob ", "Ann left ", "Ann saw Bob ")
        await add(store, "n", given)
        named = (await store.mentions("n", [a.id, b.id])).named
        assert {id_: sorted(pairs) for id_, pairs in named.items()} == {
            a.id: [("Ann", "Ann"), ("Bob", "Bob")],
            b.id: [("Ann", "Ann")],
        }
        assert (await store.mentions("n", [a.id, b.id], 2)).places == {"Bob": (a.id, c.id)}
        shared = await store.shared_entities("n", [a.id, b.id, c.id], 3)
        assert {key: (sorted(ids), n) for key, (ids, n) in shared.items()} == {
            "Ann": (sorted([a.id, b.id, c.id]), 3),
            "Bob": (sorted([a.id, c.id]), 2),
        }
        assert set(await store.shared_entities("n", [a.id, b.id, c.id], 2)) == {"Bob"}
        assert await store.shared_entities("n", [b.id], 9) == {}

    async def test_the_nearest_vectors(self, store: GraphStore) -> None:
        _, (a, b) = first = text("d", "one ", "two ")
        _, (c,) = second = text("e", "three ")
        await add(store, "n", first, second)
        await add(store, "m", first)
        rows = np.array([[1, 0, 0], [0, 1, 0], [0, 0.6, 0.8], [0.6, 0.8, 0]], dtype=np.float32)
        await store.put_vectors("n", "segment", [a.id, b.id, b.id, c.id], rows)
        await store.put_vectors("m", "segment", [a.id], rows[1:2])
        query = np.array([0, 1, 0], dtype=np.float32)
        found = await store.nearest("n", query, 2)
        assert list(found) == [b.id, c.id]
        assert list(found.values()) == pytest.approx([1, 0.8], abs=1e-5)
        assert list(await store.nearest("n", query, 9, documents=["e"])) == [c.id]
        assert list(await store.nearest("n", query, 9, among=[c.id, a.id, "x"])) == [c.id, a.id]
        await store.put_vectors("n", "segment", [a.id], rows[1:2])
        assert next(iter(await store.nearest("n", query, 9))) in {a.id, b.id}
        await store.delete_documents("n", "d")
        assert list(await store.nearest("n", query, 9)) == [c.id]
        assert list(await store.nearest("m", query, 9)) == [a.id]

    async def test_vectors_come_back_bit_by_bit_in_order(self, store: GraphStore) -> None:
        _, (a0, a1) = first = text("a", "one ", "two ")
        _, (b0,) = second = text("b", "three ")
        await add(store, "n", second, first)
        matrix = np.array(
            [[1e-30, -0.1, 3], [7, 8, 9], [0.1, 0.2, 0.3], [4, 5, 6]], dtype=np.float32
        )
        await store.put_vectors("n", "segment", [b0.id, a1.id, "unknown", a1.id], matrix)
        await store.put_vectors("n", "segment", [a0.id], matrix[:1])
        found = await all_vectors(store, "n", "segment")
        assert list(found.owners) == [a0.id, a1.id, a1.id, b0.id]
        assert found.matrix.dtype == np.float32
        assert found.matrix.tobytes() == matrix[[0, 1, 3, 0]].tobytes()
        some = await store.vectors("n", "segment", [b0.id, "unknown", a1.id])
        assert list(some.owners) == [a1.id, a1.id, b0.id]
        assert some.matrix.tobytes() == matrix[[1, 3, 0]].tobytes()
        assert (await store.vectors("n", "segment", [])).matrix.shape == (0, 3)
        assert list(await store.owners("n", "segment")) == [a0.id, a1.id, b0.id]
        assert list(await store.owners("n", "segment", [b0.id, "unknown", a1.id])) == [a1.id, b0.id]
        assert list(await store.owners("n", "segment", [])) == []

    async def test_new_vectors_replace_all_vectors_of_their_owner(self, store: GraphStore) -> None:
        _, (one, two) = given = text("a", "one ", "two ")
        await add(store, "n", given)
        rows = np.arange(12, dtype=np.float32).reshape(4, 3)
        await store.put_vectors("n", "segment", [one.id, one.id, two.id], rows[:3])
        await store.put_vectors("n", "segment", [one.id], rows[3:])
        found = await all_vectors(store, "n", "segment")
        assert list(found.owners) == [one.id, two.id]
        assert found.matrix.tolist() == rows[[3, 2]].tolist()

    async def test_vectors_of_many_segments_stay_with_their_owners(self, store: GraphStore) -> None:
        pieces = [f"w{n} " for n in range(700)]
        document, segments = text("d", *pieces)
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [(document, segments)])
        ids = [s.id for s in segments for _ in range(2)]
        rows = np.arange(1400 * 3, dtype=np.float32).reshape(1400, 3)
        for start in [*range(0, 40, 2), 40]:
            end = start + 2 if start < 40 else 1400
            await store.put_vectors("n", "segment", ids[start:end], rows[start:end])
        found = await all_vectors(store, "n", "segment")
        assert (list(found.owners), found.matrix.tolist()) == (ids, rows.tolist())
        some = await store.vectors("n", "segment", ids[2:1400:100])
        assert some.matrix[:2].tolist() == rows[2:4].tolist()
        await store.put_documents("n", [text("d", *pieces[::2])])
        found = await all_vectors(store, "n", "segment")
        kept = [row for n, row in enumerate(rows.tolist()) if n // 2 % 2 == 0]
        assert found.matrix.tolist() == kept
        assert list(await store.owners("n", "segment")) == [s.id for s in segments[::2]]

    async def test_vectors_of_relations_go_when_a_segment_goes(self, store: GraphStore) -> None:
        await add(store, "n", text("a", "one "), text("b", "two "))
        rows = np.eye(3, dtype=np.float32)
        await store.put_vectors("n", "relation", ["z", "a", "'; --"], rows)
        await store.put_vectors("n", "relation", ["z"], rows[1:2])
        found = await all_vectors(store, "n", "relation")
        assert (
            list(found.owners) == ["'; --", "a", "z"] == list(await store.owners("n", "relation"))
        )
        assert found.matrix.tolist() == rows[[2, 1, 1]].tolist()
        assert list((await store.vectors("n", "relation", ["z"])).owners) == ["z"]
        assert list(await store.owners("n", "relation", ["z", "x", "a"])) == ["a", "z"]
        assert list(await store.owners("n", "segment")) == []
        await store.delete_documents("n", "b")
        assert list(await store.owners("n", "relation")) == []
        await store.put_vectors("n", "relation", ["z", "z"], rows[:2])
        assert list(await store.owners("n", "relation")) == ["z"]
        assert (await store.vectors("n", "relation", ["z"])).matrix.tolist() == rows[:2].tolist()
        await store.put_vectors("n", "relation", ["z"], rows[2:])
        assert (await store.vectors("n", "relation", ["z"])).matrix.tolist() == rows[2:].tolist()

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
        assert (await all_vectors(store, "n", "relation")).matrix.shape == (0, 2)
        with pytest.raises(EmbedderMismatch):
            await store.put_vectors("n", "segment", [segment.id], row)
        assert list(await store.owners("n", "segment")) == []
        await store.put_vectors("n", "segment", [], np.empty((0, 2), dtype=np.float32))
        await store.put_vectors("n", "segment", [segment.id], row[:, :2])
        assert list(await store.owners("n", "segment")) == [segment.id]
