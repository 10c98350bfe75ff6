"""The contract on names: their places, and which of them must be resolved again."""

from dataclasses import replace
from typing import Any

from contract.suite.base import Contract
from contract.suite.samples import INFO, apply, text

from qrmem.graphstore.protocol import (
    EntityRow,
    GraphStore,
    MentionRow,
    NameFilter,
    NameRow,
    ViewUpdate,
)
from qrmem.graphstore.reads import names_called
from qrmem.text.names.blocks import blocks_of, own_block
from qrmem.types import MergeDecision
from qrmem.types.turns import document_id_of, turn_id

AHAB, CAPTAIN, PLACE = "ahab|PERSON", "captain ahab|PERSON", "ahab|PLACE"


def _row(key: str, form: str, count: int = 1) -> NameRow:
    return NameRow(key, key, ((form, count),), f"The {form}", "T")


def _mentions(segment_id: str, **forms: str) -> ViewUpdate:
    """Return a change that mentions names, each an entity of its own."""
    keys = {"ahab": AHAB, "captain": CAPTAIN, "place": PLACE}
    rows = [MentionRow(segment_id, keys[name], ((form, 1),)) for name, form in forms.items()]
    entities = [EntityRow(keys[name], f"The {form}", "T") for name, form in forms.items()]
    return ViewUpdate(mentions=rows, names={r.key: r.key for r in entities}, entities=entities)


class NamingContract(Contract):
    """Names can be looked up without reading all of them."""

    async def test_names_are_found_by_form_by_block_and_by_entity(self, store: GraphStore) -> None:
        first, second = await self._segments(store)
        await apply(store, "n", _mentions(first, ahab="Ahab", captain="Captain Ahab"))
        await apply(store, "n", _mentions(second, place="Ahab"))
        ahab, captain, place = (
            _row(AHAB, "Ahab"),
            _row(CAPTAIN, "Captain Ahab"),
            _row(PLACE, "Ahab"),
        )

        async def named(ns: str = "n", **wanted: Any) -> list[NameRow]:
            return list(await store.names(ns, NameFilter(**wanted)))

        assert await named(norms=["ahab", "nobody"]) == [ahab, place]
        assert await named(norms=["aha", "ahab|", ""]) == []
        assert await named(entities=[CAPTAIN, "nobody|"]) == [captain]
        own, away = own_block(AHAB), own_block("nobody|")
        assert await named(blocks={own: 5, away: 5}) == [ahab, place, captain]
        assert len(await named(blocks={own: 2})) >= 2
        assert await named(norms=["ahab"], entities=[CAPTAIN]) == [ahab, place, captain]
        assert await named() == []
        assert await named("m", norms=["ahab"], entities=[CAPTAIN], blocks={own: 2}) == []

    async def test_a_name_is_said_while_a_chat_model_s_mention_of_it_is_there(
        self, store: GraphStore
    ) -> None:
        first, second = await self._segments(store)

        async def said() -> dict[str, bool]:
            return {row.key: row.said for row in await store.names("n")}

        by_rules = _mentions(first, ahab="Ahab", captain="Captain Ahab")
        await apply(store, "n", by_rules)
        assert await said() == {AHAB: False, CAPTAIN: False}
        change = _mentions(second, ahab="Ahab")
        by_model = replace(change, mentions=[replace(row, said=True) for row in change.mentions])
        await apply(store, "n", by_model)
        assert await said() == {AHAB: True, CAPTAIN: False}
        assert [row.said for row in await store.names("n", NameFilter(norms=["ahab"]))] == [True]
        await apply(store, "n", replace(change, clear=[second]))
        assert await said() == {AHAB: False, CAPTAIN: False}
        await apply(store, "n", replace(by_model, clear=[second]))
        await apply(store, "n", ViewUpdate(clear=[second]))
        assert await said() == {AHAB: False, CAPTAIN: False}

    async def test_a_name_is_found_by_another_form_that_a_chat_model_gives(
        self, store: GraphStore
    ) -> None:
        first, second = await self._segments(store)
        forms = (("Ahab", 3), ("Old Thunder", 1))
        row = MentionRow(first, AHAB, forms, said=True)
        change = replace(_mentions(first, ahab="Ahab"), mentions=[row])
        await apply(store, "n", change)

        async def called(*norms: str) -> list[str]:
            return [row.key for row in await names_called(store, "n", norms)]

        assert await called("old thunder") == await called("ahab") == [AHAB]
        assert await called("thunder", "nobody") == await called() == []
        await apply(store, "n", _mentions(second, captain="Captain Ahab"))
        assert await called("old thunder", "captain ahab") == [AHAB, CAPTAIN]
        by_rules = replace(change, mentions=[replace(row, said=False)], clear=[first])
        await apply(store, "n", ViewUpdate(clear=[first]))
        assert await called("old thunder") == []
        await apply(store, "n", replace(by_rules, clear=[]))
        assert await called("old thunder") == []

    async def test_the_places_of_a_name_are_documents_and_the_turns_of_each_user(
        self, store: GraphStore
    ) -> None:
        await store.create_namespace("n", INFO)
        ids = ["book", turn_id(1), turn_id(2), document_id_of("ann", turn_id(3))]
        for id_ in ids:
            document, segments = text(id_, "Ahab and Ahab. ", "Captain Ahab. ")
            await store.put_documents("n", [(document, segments)])
            await apply(store, "n", _mentions(segments[0].id, ahab="Ahab", captain="Captain Ahab"))
            twice = MentionRow(segments[1].id, AHAB, (("AHAB", 1), ("Ahab", 2)))
            await apply(store, "n", ViewUpdate(mentions=[twice]))
        found = await store.places("n", [AHAB, PLACE, "nobody|"])
        assert found == {AHAB: {"book": 4, "turn-": 8, "ann/turn-": 4}}
        assert await store.places("n", []) == await store.places("m", [AHAB]) == {}

    async def test_a_name_leaves_its_blocks_when_its_last_mention_goes(
        self, store: GraphStore
    ) -> None:
        first, second = await self._segments(store)
        await apply(store, "n", _mentions(first, captain="Captain Ahab", ahab="Ahab"))
        await apply(store, "n", _mentions(second, ahab="Ahab"))
        await apply(store, "n", ViewUpdate(clear=[first]))
        wanted = NameFilter(blocks=dict.fromkeys(blocks_of(CAPTAIN), 9))
        assert [row.key for row in await store.names("n", wanted)] == [AHAB]

    async def test_names_whose_mentions_change_are_stale_until_they_are_resolved(
        self, store: GraphStore
    ) -> None:
        first, second = await self._segments(store)
        await apply(store, "n", _mentions(first, ahab="Ahab", captain="Captain Ahab"))
        assert dict((await store.unmerged("n")).stale) == {AHAB: AHAB, CAPTAIN: CAPTAIN}
        await apply(store, "n", ViewUpdate(names={AHAB: CAPTAIN}, resolved=[AHAB, CAPTAIN]))
        assert dict((await store.unmerged("n")).stale) == {}
        await apply(store, "n", _mentions(second, place="Ahab"))
        await apply(store, "n", ViewUpdate(clear=[first]))
        assert dict((await store.unmerged("n")).stale) == {
            AHAB: CAPTAIN,
            CAPTAIN: CAPTAIN,
            PLACE: PLACE,
        }
        assert list(await store.names("n")) == [_row(PLACE, "Ahab")]

    async def test_deleting_a_document_makes_its_names_stale(self, store: GraphStore) -> None:
        first, _ = await self._segments(store)
        await apply(store, "n", _mentions(first, ahab="Ahab"))
        await apply(store, "n", ViewUpdate(resolved=[AHAB]))
        await store.delete_documents("n", "d")
        assert dict((await store.unmerged("n")).stale) == {AHAB: AHAB}

    async def test_a_decision_makes_its_names_stale_and_raises_the_revision(
        self, store: GraphStore
    ) -> None:
        first, _ = await self._segments(store)
        change = _mentions(first, ahab="Ahab", captain="Captain Ahab", place="Ahab")
        await apply(store, "n", change)
        revision = await apply(store, "n", ViewUpdate(resolved=[AHAB, CAPTAIN, PLACE]))
        await store.override_merge("n", MergeDecision("the Ahab", CAPTAIN, same=True))
        found = await store.namespace("n")
        assert found is not None
        assert found.revision == revision + 1
        assert set((await store.unmerged("n")).stale) == {AHAB, CAPTAIN, PLACE}

    async def _segments(self, store: GraphStore) -> tuple[str, str]:
        document, segments = text("d", "one ", "two ")
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [(document, segments)])
        first, second = (segment.id for segment in segments)
        return first, second


__all__ = ["NamingContract"]
