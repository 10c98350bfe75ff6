"""The contract on the view: names, entities, facts, questions."""

from dataclasses import replace
from itertools import permutations

import pytest
from contract.suite.base import Contract
from contract.suite.samples import INFO, Text, add, apply, change, contents, text

from qrmem.errors import StoreConflict
from qrmem.graphstore.protocol import (
    EntityCount,
    EntityRow,
    FactRow,
    GraphStore,
    MentionRow,
    NameRow,
    ViewUpdate,
)
from qrmem.graphstore.reads import entities_in, facts_of, merged_relations, merged_segments
from qrmem.graphstore.relations import chains
from qrmem.types import Entity, Fact, Property, Question


class ViewContract(Contract):
    """What is derived follows from the rows that are there, and from nothing else."""

    async def test_a_change_needs_the_present_revision(self, store: GraphStore) -> None:
        document, segments = text("d", "Ann met Bob ")
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [(document, segments)])
        assert await store.apply("n", 0, change(segments)) == 1
        before = await contents(store, "n")
        for stale in (0, 2):
            with pytest.raises(StoreConflict):
                await store.apply("n", stale, ViewUpdate(clear=[segments[0].id]))
        assert await contents(store, "n") == before
        assert await store.apply("n", 1, ViewUpdate()) == 2

    async def test_surface_is_the_most_frequent_form_then_the_longest_then_the_smallest(
        self, store: GraphStore
    ) -> None:
        _, segments = await self._two_segments(store)
        forms = {
            "more": (("aa", 1), ("b", 2)),
            "longer": (("b", 2), ("bb", 2), ("a", 2)),
            "smaller": (("bb", 2), ("ba", 2), ("ab", 1)),
            "none": (),
            "sum": (("x", 1), ("y", 2)),
        }
        mentions = [MentionRow(segments[0].id, name, given) for name, given in forms.items()]
        mentions.append(MentionRow(segments[1].id, "sum", (("x", 2),)))
        await apply(store, "n", _named(mentions))
        assert [(n.key, n.surface, n.count, n.entity) for n in await store.names("n")] == [
            ("longer", "bb", 6, "longer"),
            ("more", "b", 3, "more"),
            ("none", "", 0, "none"),
            ("smaller", "ba", 5, "smaller"),
            ("sum", "x", 5, "sum"),
        ]
        (entity,) = await store.entities("n", ["longer"])
        assert entity.forms == (("bb", 2), ("a", 2), ("b", 2))

    async def test_types_and_properties_come_back_as_they_were_written(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = await self._two_segments(store)
        said = (("born", 1851), ("sure", True), ("weight", 1.5), ("words", "a `b`: ć"))
        rows = [
            MentionRow(second.id, "ann", (("Ann", 1),), properties=(("born", 1852),)),
            MentionRow(first.id, "ann", (("Ann", 1),), properties=said),
            MentionRow(first.id, "bob", (("Bob", 1),)),
        ]
        facts = [
            FactRow(first.id, 0, "ann", "bob", "met", type="MET", properties=said),
            FactRow(first.id, 1, "ann", "bob", "saw"),
            FactRow(first.id, 2, "bob", "ann", "odd", type="A`) DETACH DELETE n //"),
            FactRow(first.id, 3, "bob", "ann", "own", type="MENTIONS"),
        ]
        await apply(store, "n", replace(_named(rows), facts=facts))
        (entity,) = await store.entities("n", ["ann"])
        assert entity.properties == (
            *(Property(name, value, first.id) for name, value in said),
            Property("born", 1852, second.id),
        )
        assert [(f.type, f.properties) for f in await facts_of(store, "n", ["ann"])] == [
            (row.type, row.properties) for row in facts
        ]
        assert (await store.counts("n"))["facts"] == 4
        again = FactRow(first.id, 0, "ann", "bob", "met again", type="KNEW")
        await apply(store, "n", ViewUpdate(facts=[again]))
        assert [f.type for f in await facts_of(store, "n", ["bob"])][:2] == ["KNEW", ""]
        await apply(store, "n", ViewUpdate(clear=[first.id]))
        (entity,) = await store.entities("n", ["ann"])
        assert entity.properties == (Property("born", 1852, second.id),)
        assert (await store.counts("n"))["facts"] == 0

    async def test_an_entity_gathers_its_names(self, store: GraphStore) -> None:
        _, (first, second) = await self._two_segments(store)
        rows = [
            MentionRow(second.id, "ahab", (("Ahab", 2),), "Who limps?"),
            MentionRow(second.id, "captain", (("the captain", 1),), "Who leads?"),
            MentionRow(first.id, "captain", (("Captain", 1), ("Ahab", 1)), "Who leads?"),
        ]
        names = {"ahab": "e", "captain": "e"}
        await apply(
            store, "n", ViewUpdate(mentions=rows, names=names, entities=[_entity("e", "Ahab")])
        )
        assert list(await store.entities("n", ["x", "e"])) == [
            Entity(
                "e",
                "Ahab",
                "PERSON",
                (("Ahab", 3), ("the captain", 1), ("Captain", 1)),
                (first.id, second.id),
                ("Who leads?", "Who limps?"),
            )
        ]
        assert list(await store.list_entities("n")) == [EntityCount("e", "Ahab", "PERSON", 2)]

    async def test_a_name_that_moves_takes_its_mentions_and_facts_along(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = given = text("d", "Ann met Bob ", "Bob met Anna ")
        await add(store, "n", given)
        await apply(store, "n", ViewUpdate(names={"Anna": "Ann"}))
        assert [row.entity for row in await store.names("n")] == ["Ann", "Ann", "Bob"]
        assert [(f.head, f.tail) for f in await facts_of(store, "n", ["Ann"])] == [
            ("Ann", "Bob"),
            ("Bob", "Ann"),
        ]
        assert (await store.around("n", ["Ann", "Anna"])).places == {"Ann": (first.id, second.id)}
        assert list(await store.entities("n", ["Anna"])) == []
        await apply(store, "n", ViewUpdate(names={"Anna": "Q"}, entities=[_entity("Q", "Anna")]))
        assert [f.tail for f in await facts_of(store, "n", ["Q"])] == ["Q"]

    async def test_an_entity_can_be_renamed(self, store: GraphStore) -> None:
        await add(store, "n", text("d", "Ann ran "))
        await apply(store, "n", ViewUpdate(entities=[_entity("Ann", "Dr Ann")]))
        (entity,) = await store.entities("n", ["Ann"])
        assert (entity.name, entity.type) == ("Dr Ann", "PERSON")

    async def test_facts_are_found_from_either_end_once_and_in_order(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = await self._two_segments(store)
        names = ("a", "b", "c")
        mentions = [MentionRow(first.id, name, ((name, 1),)) for name in names]
        facts = [
            FactRow(second.id, 0, "b", "a", "b after a", "q?"),
            FactRow(first.id, 10, "a", "b", "tenth", "", "2026-05-03T09:00:00", "2025", "2026-05"),
            FactRow(first.id, 2, "a", "a", "itself"),
            FactRow(first.id, 1, "c", "c", "elsewhere"),
        ]
        await apply(store, "n", _named(mentions, facts=facts))
        expected = [
            Fact("a", "a", "itself", first.id),
            Fact("a", "b", "tenth", first.id, "", "2026-05-03T09:00:00", "2025", "2026-05"),
            Fact("b", "a", "b after a", second.id, "q?"),
        ]
        found = list(await facts_of(store, "n", ["a"]))
        assert found == expected
        assert [fact.n for fact in found] == [2, 10, 0]
        assert list(await facts_of(store, "n", ["b", "a", "unknown"])) == expected
        assert list(await facts_of(store, "n", ["b"])) == expected[1:]
        assert list(await facts_of(store, "n", [])) == []

    async def test_the_surroundings_of_entities_are_found_at_once(self, store: GraphStore) -> None:
        _, (first, second) = await self._two_segments(store)
        mentions = [MentionRow(first.id, name, ((name, 1),)) for name in ("a", "b", "c", "d")]
        mentions.append(MentionRow(second.id, "a", (("a", 1),)))
        facts = [
            FactRow(second.id, 0, "b", "a", "b after a", "q?"),
            FactRow(first.id, 3, "a", "a", "itself"),
            FactRow(first.id, 1, "a", "c", "to c"),
            FactRow(first.id, 2, "b", "d", "elsewhere"),
        ]
        await apply(store, "n", _named(mentions, facts=facts))
        await apply(store, "n", ViewUpdate(entities=[_entity("c", "Dr C")]))
        for keys in (["a"], ["c", "unknown", "a"], ["a", "b", "c"], []):
            found = await store.around("n", keys)
            assert list(found.facts) == list(await facts_of(store, "n", keys))
            assert found.places == (await store.around("n", keys)).places
            assert found.segments == () or not list(found.segments)
            ends = {end for fact in found.facts for end in (fact.head, fact.tail)}
            known = {*ends, *keys} - {"unknown"}
            assert found.names == {key: "Dr C" if key == "c" else key for key in known}
        found = await store.around("n", ["c", "a"], texts=True)
        assert list(found.segments) == [first, second]
        assert list((await store.around("n", ["c"], texts=True)).segments) == [first]

    async def test_entities_are_listed_by_how_many_segments_name_them(
        self, store: GraphStore
    ) -> None:
        await add(store, "n", text("d", "Bob Bob Bob ", "Ann Cy ", "Cy Dee "))
        listed = [(row.key, row.segments) for row in await store.list_entities("n")]
        assert listed == [("Cy", 2), ("Ann", 1), ("Bob", 1), ("Dee", 1)]
        assert [row.key for row in await store.list_entities("n", 2)] == ["Cy", "Ann"]
        assert list(await store.list_entities("n", 0)) == []

    async def test_entities_in_segments_are_sorted_and_empty_segments_are_listed(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = given = text("d", "Cy Ann ", "nobody ")
        await add(store, "n", given)
        found = await entities_in(store, "n", [second.id, "unknown", first.id])
        assert found == {second.id: (), first.id: ("Ann", "Cy")}

    async def test_questions_come_in_order_and_once(self, store: GraphStore) -> None:
        _, (first, second) = await self._two_segments(store)
        given = [
            Question("z?", second.id),
            Question("b?", first.id),
            Question("a?", first.id, "user"),
            Question("b?", first.id),
        ]
        await apply(store, "n", ViewUpdate(questions=given))
        expected = [given[1], given[2], given[0]]
        assert list(await store.questions("n")) == expected
        assert list(await store.questions("n", [second.id, "unknown"])) == [given[0]]
        assert list(await store.questions("n", [second.id, first.id])) == expected
        assert list(await store.questions("n", [])) == []

    async def test_a_cleared_segment_is_gone_and_can_be_written_again(
        self, store: GraphStore
    ) -> None:
        _, segments = given = text("d", "Ann met Bob why? ", "Ann ran ")
        await add(store, "n", given)
        before = await contents(store, "n")
        await apply(store, "n", ViewUpdate(clear=[segments[0].id, "unknown"]))
        counts = await store.counts("n")
        assert (counts["entities"], counts["facts"], counts["questions"]) == (1, 0, 0)
        assert await merged_segments(store, "n", "d") == [segments[1].id]
        assert [row.count for row in await store.names("n")] == [1]
        await apply(store, "n", change(segments, ["Ann"]))
        assert await contents(store, "n") == before
        await apply(store, "n", change(segments, ["Ann", "Bob"]))
        assert await contents(store, "n") == before

    async def test_a_row_replaces_that_of_the_same_name_in_the_same_segment(
        self, store: GraphStore
    ) -> None:
        _, (segment, _) = await self._two_segments(store)
        await apply(store, "n", _named([MentionRow(segment.id, "a", (("A", 5),))]))
        twice = [MentionRow(segment.id, "a", (("x", 9),)), MentionRow(segment.id, "a", (("B", 1),))]
        await apply(store, "n", ViewUpdate(mentions=twice))
        row = NameRow("a", "a", (("B", 1),), "a", "PERSON")
        assert list(await store.names("n")) == [row]

    async def test_names_without_mention_vanish_with_their_facts_and_entities(
        self, store: GraphStore
    ) -> None:
        _, (first, second) = await self._two_segments(store)
        mentions = [MentionRow(first.id, "a", ()), MentionRow(second.id, "b", ())]
        facts = [FactRow(second.id, 0, "b", "a", "b knows a")]
        await apply(store, "n", _named(mentions, facts=facts))
        assert (await store.counts("n"))["facts"] == 1
        await apply(store, "n", ViewUpdate(clear=[first.id]))
        counts = await store.counts("n")
        assert (counts["entities"], counts["facts"]) == (1, 0)
        assert [row.key for row in await store.names("n")] == ["b"]

    async def test_names_and_entities_that_nothing_uses_do_not_stay(
        self, store: GraphStore
    ) -> None:
        await self._two_segments(store)
        await apply(store, "n", ViewUpdate(names={"a": "e"}, entities=[_entity("e", "A")]))
        await apply(store, "n", ViewUpdate(entities=[_entity("f", "F")]))
        assert list(await store.names("n")) == []
        assert list(await store.entities("n", ["e", "f"])) == []

    async def test_a_change_that_speaks_of_the_unknown_is_refused_whole(
        self, store: GraphStore
    ) -> None:
        _, segments = given = text("d", "Ann ran ")
        await add(store, "n", given)
        before, id_ = await contents(store, "n"), segments[0].id
        for wrong in (
            ViewUpdate(clear=[id_], mentions=[MentionRow(id_, "nobody", ())]),
            ViewUpdate(clear=[id_], mentions=[MentionRow("nowhere", "Ann", ())]),
            ViewUpdate(clear=[id_], facts=[FactRow(id_, 0, "Ann", "nobody", "x")]),
            ViewUpdate(clear=[id_], names={"Ann": "no entity"}),
            ViewUpdate(clear=[id_], index={"nowhere": {"x": 1}}),
            ViewUpdate(clear=[id_], questions=[Question("q?", "nowhere")]),
            ViewUpdate(clear=[id_], merged={"nowhere": "digest"}),
        ):
            with pytest.raises(ValueError, match="refers to an unknown"):
                await apply(store, "n", wrong)
        assert await contents(store, "n") == before

    async def test_the_order_of_arrival_does_not_show(self, store: GraphStore) -> None:
        texts = [
            text("b", "Bob met Ann. why? ", "Ann left Bob. "),
            text("a", "Ann met Cy. ", "Cy Ann Ann. "),
            text("c", "Dee. ", "Bob met Dee. "),
        ]
        seen = []
        for number, order in enumerate(permutations(texts)):
            await add(store, f"n{number}", *order)
            seen.append(await contents(store, f"n{number}"))
        assert all(found == seen[0] for found in seen)

    async def test_relations_are_merged_by_direction_and_follow_every_change(
        self, store: GraphStore
    ) -> None:
        """Deleting leaves what a memory says that never held the document."""
        kept, other = text("a", "Ann Bob ", "Ann Bob Ann "), text("b", "Ann Bob ")
        await add(store, "n", kept)
        before = await store.relations("n", ["Ann"])
        assert [(r.key, len(r.facts)) for r in before] == [("Ann|Bob", 2), ("Bob|Ann", 1)]
        assert before == await store.relations("n", ["Bob"])
        await add(store, "n", other)
        assert [len(r.facts) for r in await store.relations("n", ["Bob"])] == [3, 1]
        assert await store.relations("n", ["Ann", "Bob"]) == await merged_relations(
            store, "n", ["Ann", "Bob"]
        )
        await store.delete_documents("n", "b")
        assert await store.relations("n", ["Ann"]) == before

    async def test_a_relation_says_what_a_model_merged_it_into(self, store: GraphStore) -> None:
        document, segments = text("a", "Ann Bob ", "Ann Bob now ")
        await add(store, "n", (document, segments))
        edit = FactRow(segments[1].id, 0, "Ann", "Bob", "Ann leaves Bob", type="LEAVES")
        again = replace(edit, description="finally saw him", type="")
        await apply(store, "n", ViewUpdate(facts=[again]))
        facts = await facts_of(store, "n", ["Ann"])
        (chain,) = chains(facts, {segment.id: "a" for segment in segments})
        value = {"description": "met, then saw", "questions": ["When?"]}
        await store.put_cache_entry("n", "fold", chain.key, value, segments=[segments[1].id])
        (relation,) = await store.relations("n", ["Ann"])
        assert (relation.description, relation.questions) == ("met, then saw", ("When?",))
        assert relation.facts == tuple(facts)
        await store.drop_cache_entries("n", "fold", [chain.key])
        (relation,) = await store.relations("n", ["Ann"])
        assert (relation.description, relation.questions) == ("Ann meets Bob; finally saw him", ())
        await store.put_cache_entry("n", "fold", chain.key, value, segments=[segments[1].id])
        await apply(store, "n", ViewUpdate(facts=[edit]))
        assert [(r.type, r.description) for r in await store.relations("n", ["Ann"])] == [
            ("", "Ann meets Bob"),
            ("LEAVES", "Ann leaves Bob"),
        ]

    async def test_relations_move_with_their_names(self, store: GraphStore) -> None:
        await add(store, "n", text("a", "Ann Bob ", "Cy Bob ", "Ann Cy "))
        await apply(store, "n", ViewUpdate(names={"Cy": "Ann"}))
        (relation,) = await store.relations("n", ["Bob"])
        assert (relation.key, len(relation.facts)) == ("Ann|Bob", 2)
        assert await store.relations("n", ["Ann"]) == [relation], "Ann Cy is of one entity now"
        await apply(
            store, "n", ViewUpdate(names={"Cy": "Cy"}, entities=[EntityRow("Cy", "Cy", "")])
        )
        keys = [one.key for one in await store.relations("n", ["Ann", "Cy"])]
        assert keys == ["Ann|Bob", "Ann|Cy", "Cy|Bob"]

    async def _two_segments(self, store: GraphStore) -> Text:
        document, segments = text("d", "one ", "two ")
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [(document, segments)])
        return document, segments


def _entity(key: str, name: str) -> EntityRow:
    return EntityRow(key, name, "PERSON")


def _named(mentions: list[MentionRow], facts: list[FactRow] | None = None) -> ViewUpdate:
    names = {row.name: row.name for row in mentions}
    entities = [_entity(name, name) for name in names]
    return ViewUpdate(mentions=mentions, facts=facts or [], names=names, entities=entities)
