"""The contract on facts: documents, segments, contributions, ledger, decisions."""

import hashlib
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from contract.reference.fitting import fits
from contract.suite.base import Contract
from contract.suite.samples import INFO, Text, add, apply, change, contents, text

from qrmem.errors import NotFound, StoreConflict, UsageError
from qrmem.graphstore.protocol import GraphStore, UserEdit, ViewUpdate
from qrmem.graphstore.reads import cached_value, facts_of, merged_segments
from qrmem.types import (
    CallRecord,
    Contribution,
    Document,
    LedgerRow,
    Mention,
    MergeDecision,
    MetaValue,
    Part,
    Scalar,
    Segment,
    Statement,
)
from qrmem.types.documents import RANGES

CALL = CallRecord(
    run="r", stage="extract", phase="construction", prompt="p.v1", model="m", cost=0.5
)


NAMES = ("year", 'a "b".[0]', "tag")
TEXTS = ("", "a", "b", "ab", "1851", "1851.0", "True", "é", "\uffee", "\U0001f600", "-x", "9x")
NUMBERS = (0, -1, 7, 1851, 1851.0, 1851.5, -0.25, 2**53, 2**53 + 1, 1e300, 2**63 - 1)
LISTS: tuple[list[str], ...] = ([], ["a"], ["a", "b", "a"], ["1851"], ["é", "\U0001f600"])
VALUES: tuple[MetaValue, ...] = (*TEXTS, *NUMBERS, True, False, *LISTS, *LISTS)


def _random_where(chance: Random) -> dict[str, Any]:
    return {
        name: _random_condition(chance) for name in chance.sample(NAMES, chance.choice([1, 1, 2]))
    }


def _random_condition(chance: Random) -> Any:
    scalars: tuple[Scalar, ...] = (*TEXTS, *NUMBERS, True, False)
    kind = chance.choice(["=", "in", "has", "range", "range", "both"])
    if kind == "=":
        return chance.choice(scalars)
    if kind == "in":
        return {"in": chance.sample(scalars, chance.randint(1, 4))}
    if kind == "has":
        return {"has": chance.choice(TEXTS)}
    letters = [one for one in TEXTS if one.isascii() or one == "é"]
    bounds: Any = chance.choice([letters, NUMBERS])
    made = {name: chance.choice(bounds) for name in chance.sample(RANGES, chance.randint(1, 2))}
    return made if kind == "range" else {**made, "in": chance.sample(scalars, 8)}


class FactsContract(Contract):
    """A store returns facts unchanged, and deletes them with their document."""

    async def test_a_namespace_is_made_once(self, store: GraphStore) -> None:
        assert await store.namespace("n") is None
        first = await store.create_namespace("n", INFO)
        second = await store.create_namespace("n", replace(INFO, tokenizer="other"))
        assert first == second == await store.namespace("n") == replace(INFO, name="n", revision=0)
        await store.create_namespace("a", INFO)
        assert list(await store.namespaces()) == ["a", "n"]

    async def test_types_of_which_an_entity_has_one_at_a_time_are_kept(
        self, store: GraphStore
    ) -> None:
        with pytest.raises(NotFound):
            await store.set_single("n", ["LIVES_IN"])
        made = await store.create_namespace("n", replace(INFO, single=("B", "LIVES_IN")))
        assert made.single == ("B", "LIVES_IN")
        await store.set_single("n", ["WORKS_FOR", "LIVES_IN"])
        kept = await store.namespace("n")
        assert kept == replace(made, single=("LIVES_IN", "WORKS_FOR"))
        await store.set_single("n", [])
        assert await store.namespace("n") == replace(made, single=())

    async def test_a_namespace_is_deleted_only_as_what_it_was_taken_for(
        self, store: GraphStore
    ) -> None:
        await store.create_namespace("n", replace(INFO, importing="mine"))
        for other in ("theirs", ""):
            with pytest.raises(StoreConflict):
                await store.delete_namespace("n", importing=other)
        await store.delete_namespace("n", importing="mine")
        await store.delete_namespace("n", importing="mine")
        await store.create_namespace("n", INFO)
        with pytest.raises(StoreConflict):
            await store.delete_namespace("n", importing="mine")
        await store.put_documents("n", [text("d", "One. ")])
        with pytest.raises(StoreConflict):
            await store.delete_namespace("n", importing="")
        await store.delete_documents("n", "d")
        await store.delete_namespace("n", importing="")
        assert list(await store.namespaces()) == []

    async def test_a_namespace_that_is_not_there_reads_as_empty_and_takes_no_write(
        self, store: GraphStore
    ) -> None:
        document, segments = text("d", "One. ")
        empty = await contents(store, "n")
        assert not any(empty["counts"].values())
        with pytest.raises(NotFound):
            await store.put_documents("n", [(document, segments)])
        with pytest.raises(NotFound):
            await store.override_merge("n", MergeDecision("a", "b", True))
        with pytest.raises(NotFound):
            await store.record("n", (), [CALL])
        await store.delete_documents("n", "d")
        await store.delete_namespace("n")
        assert list(await store.namespaces()) == []

    async def test_documents_deleted_or_replaced_together_leave_what_was_never_there(
        self, store: GraphStore
    ) -> None:
        pieces = {"a": "Ann met Bob ", "b": "Bob saw Cy ", "c": "Cy ran ", "d": "Dot left Ann "}
        await add(store, "n", *(text(id_, said) for id_, said in pieces.items()))
        before = await store.namespace("n")
        await store.delete_documents("n", "a", "nobody", "c", "a")
        after = await store.namespace("n")
        assert before is not None
        assert after is not None
        assert after.revision == before.revision + 1
        new = [text("b", "Eve saw Fay "), text("d", "Gus left Eve ")]
        await store.put_documents("n", new)
        await add(store, "m", *new)
        assert [info.id for info in await store.documents("n")] == ["b", "d"]
        for ns in ("n", "m"):
            await add(store, ns, text("e", "Hal rose "))
        for part in ("documents", "segments"):
            assert (await contents(store, "n"))[part] == (await contents(store, "m"))[part]
        assert {row.key for row in await store.names("n")} == {"Hal"}

    async def test_a_document_comes_back_as_it_was_put(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        document, segments = text(
            "d", "Ein Wort. ", "日本語。", "🦉\n", title="T", metadata={"a": 1, "b": 0.5, "c": True}
        )
        document = replace(document, parts=(Part(0, "i"), Part(10, "ii")))
        await store.put_documents("n", [(document, segments)])
        assert await store.document("n", "d") == document
        assert list(await store.segments("n", documents=["d"])) == segments
        assert await store.document("n", "e") is None
        assert list(await store.segments("n", documents=["e"])) == []
        (info,) = await store.documents("n")
        assert info.digest == hashlib.sha256(document.text.encode()).hexdigest()

    async def test_a_new_document_replaces_nothing(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [text("d", "One. ")], only_new=True)
        with pytest.raises(StoreConflict, match="'d'"):
            await store.put_documents("n", [text("e", "Two. "), text("d", "Two. ")], only_new=True)
        kept = await store.document("n", "d")
        assert kept is not None
        assert kept.text == "One. "
        assert await store.document("n", "e") is None

    async def test_ids_are_found_by_metadata_between_two_values_and_by_how_they_begin(
        self, store: GraphStore
    ) -> None:
        days = {
            "t-1": "2023-04-30T9",
            "t-2": "2023-05-01",
            "t-3": "2023-05-31T23",
            "x": "2023-05-02",
        }
        await store.create_namespace("n", INFO)
        await store.create_namespace("m", INFO)
        for number, (id_, day) in enumerate(days.items()):
            metadata: dict[str, MetaValue] = {"at": day, "user": f"u{number % 2}", "size": number}
            await store.put_documents("n", [text(id_, "Ann ran ", metadata=metadata)])
        await store.put_documents("n", [text("undated", "Ann ran ", metadata={"to": "2023-05-09"})])
        await store.put_documents("m", [text("t-9", "Ann ran ", metadata={"at": "2023-05-03"})])

        async def found(**wanted: Any) -> list[str]:
            return list(await store.document_ids("n", **wanted))

        may = ("at", "2023-05-01", "2023-06-01")
        assert await found() == ["t-1", "t-2", "t-3", "undated", "x"]
        assert await found(prefix="t-") == ["t-1", "t-2", "t-3"]
        assert await found(between=may) == ["t-2", "t-3", "x"]
        assert await found(between=may, prefix="t-", where={"user": "u1"}) == ["t-2"]
        assert await found(between=("at", "2023-04", "2023-05-01")) == ["t-1"]
        assert await found(between=("size", "1", "3")) == ["t-2", "t-3"]
        assert await found(where={"user": "nobody"}) == []
        assert await store.document_ids("missing") == []

    async def test_documents_are_found_by_metadata_and_by_how_their_ids_begin(
        self, store: GraphStore
    ) -> None:
        kinds: dict[str, dict[str, MetaValue]] = {
            "a-1": {"kind": "game", "year": 1990},
            "a-2": {"kind": "game", "is open": True},
            "b-1": {"kind": "bird"},
        }
        await store.create_namespace("n", INFO)
        for id_, metadata in kinds.items():
            await store.put_documents("n", [text(id_, "Ann ran ", metadata=metadata)])

        async def found(**wanted: Any) -> list[str]:
            return list(await store.document_ids("n", **wanted))

        assert await found(where={"kind": "game"}) == ["a-1", "a-2"]
        assert await found(where={"kind": "game", "year": "1990"}) == ["a-1"]
        assert await found(where={"is open": True}) == ["a-2"]
        assert await found(where={"missing": "game"}) == []
        assert await found(prefix="a-", last=1) == ["a-2"]
        assert await found(prefix="a-", last=9) == ["a-1", "a-2"]
        assert await found(last=2) == ["a-2", "b-1"]
        assert await found(last=0) == []
        some = await store.documents("n", ["b-1", "unknown", "a-1"])
        assert [info.id for info in some] == ["a-1", "b-1"]
        await store.put_documents("n", [text("a-2", "Ann ran ", metadata={"kind": "bird"})])
        await store.delete_documents("n", "b-1")
        assert await found(where={"kind": "bird"}) == ["a-2"]
        assert await found(where={"kind": "game"}) == ["a-1"]

    async def test_conditions_on_metadata_let_through_what_plain_python_does(
        self, store: GraphStore
    ) -> None:
        chance = Random(7)
        documents = {
            f"d{n:02}": {name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.7}
            for n in range(80)
        }
        await store.create_namespace("n", INFO)
        for id_, metadata in documents.items():
            await store.put_documents("n", [text(id_, "Ann ran ", metadata=metadata)])
        assert {i.id: i.metadata for i in await store.documents("n")} == documents
        found = 0
        for _ in range(200):
            where = _random_where(chance)
            expected = [id_ for id_, own in documents.items() if fits(own, where)]
            assert list(await store.document_ids("n", where=where)) == expected, where
            found += bool(expected)
        assert 60 < found < 190

    async def test_segments_need_not_cover_the_text(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        document = Document("one two three", id="d")
        await store.put_documents("n", [(document, [Segment("s", "d", 0, 4, 7, "two", 1)])])
        assert await store.document("n", "d") == document
        await store.put_documents("n", [(document, [])])
        assert await store.document("n", "d") == document

    async def test_segments_come_in_the_order_asked_for(self, store: GraphStore) -> None:
        document, segments = text("d", "A. ", "B. ", "C. ")
        await add(store, "n", (document, segments))
        ids = [segments[2].id, "unknown", segments[0].id]
        assert list(await store.segments("n", ids)) == [segments[2], segments[0]]

    async def test_a_document_or_segment_id_that_is_unusable_is_refused(
        self, store: GraphStore
    ) -> None:
        document, segments = text("d", "A. ")
        await add(store, "n", (document, segments))
        before = await contents(store, "n")
        with pytest.raises(UsageError):
            await store.put_documents("n", [(Document("x"), [])])
        with pytest.raises(UsageError):
            await store.put_documents("n", [(replace(document, id="e"), segments)])
        with pytest.raises(UsageError):
            await store.put_documents("n", [(document, [*segments, *segments])])
        assert await contents(store, "n") == before

    async def test_half_a_surrogate_pair_is_refused(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        with pytest.raises(UsageError):
            await store.put_documents("n", [(Document("a\ud800b", id="d"), [])])
        assert list(await store.documents("n")) == []

    async def test_documents_put_together_are_as_those_put_one_by_one(
        self, store: GraphStore
    ) -> None:
        given = [text("b", "Ann ran. ", "Bob ran. "), text("a", "Cy ran. "), text("c", "")]
        for ns in ("n", "m"):
            await store.create_namespace(ns, INFO)
            await store.put_documents(ns, [text("a", "Cy sat. ", "Cy ran. ")])
        await store.put_documents("n", given)
        for document, segments in given:
            await store.put_documents("m", [(document, segments)])
        assert await contents(store, "n") == await contents(store, "m")

    async def test_documents_put_together_are_all_stored_or_none(self, store: GraphStore) -> None:
        document, segments = good = text("a", "Cy ran. ")
        await add(store, "n", text("d", "A. "))
        before = await contents(store, "n")
        taken = await store.segments("n", documents=["d"])
        for bad in ((Document("x", id=None), ()), (Document("x", id="e"), taken), good):
            with pytest.raises(UsageError):
                await store.put_documents("n", [good, bad])
        with pytest.raises(UsageError):
            await store.put_documents(
                "n", [(document, segments), (Document("x", id="f"), segments)]
            )
        assert await contents(store, "n") == before

    async def test_several_documents_are_read_in_the_order_asked_for(
        self, store: GraphStore
    ) -> None:
        given = {id_: text(id_, f"{id_}1 ", f"{id_}2 ") for id_ in ("a", "b", "c")}
        await store.create_namespace("n", INFO)
        await store.put_documents("n", list(given.values()))
        made = {
            segment.id: Contribution(segment.id, "extraction", questions=(segment.text,))
            for _, segments in given.values()
            for segment in segments
        }
        ids = [segment.id for id_ in ("c", "a") for segment in given[id_][1]]
        await store.record("n", [(LedgerRow(id_, "ok"), made[id_]) for id_ in sorted(made)])
        await store.apply("n", 0, ViewUpdate(merged={id_: f"of {id_}" for id_ in made}))
        asked = ("c", "missing", "a")
        assert [s.id for s in await store.segments("n", documents=asked)] == ids
        assert [row.segment_id for row in await store.ledger("n", *asked)] == ids
        assert list(await store.contributions("n", *asked)) == [made[id_] for id_ in ids]
        assert [row.merged for row in await store.ledger("n", *asked)] == [f"of {i}" for i in ids]
        assert not await store.segments("n", documents=[])
        assert not await store.contributions("n")
        everything = [s.id for id_ in "abc" for s in given[id_][1]]
        assert [row.segment_id for row in await store.ledger("n")] == everything

    async def test_segments_are_pending_until_recorded(self, store: GraphStore) -> None:
        document, segments = text("d", "A. ", "B. ")
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [(document, segments)])
        row = LedgerRow(segments[1].id, "failed", "no reply", "local")
        await store.record("n", [(row, None)])
        pending = LedgerRow(segments[0].id, "pending")
        assert list(await store.ledger("n", "d")) == [pending, row]
        assert list(await store.ledger("n", "other")) == []
        (info,) = await store.documents("n")
        assert (info.characters, info.segments) == (len(document.text), 2)
        assert dict(info.states) == {"pending": 1, "failed": 1}

    async def test_a_summary_stays_when_the_text_is_replaced(self, store: GraphStore) -> None:
        await add(store, "n", text("d", "A. "))
        await store.record("n", (), summaries={"d": "About A.", "unknown": "x"})
        await add(store, "n", text("d", "B. "), text("unknown", "C. "))
        assert [info.summary for info in await store.documents("n")] == ["About A.", ""]

    async def test_a_contribution_replaces_that_of_the_same_pass(self, store: GraphStore) -> None:
        document, (first, second) = text("d", "A. ", "B. ")
        await store.create_namespace("n", INFO)
        await store.put_documents("n", [(document, [first, second])])
        old = Contribution(
            second.id,
            "extraction",
            mentions=(Mention("B", "PERSON", ("B", "b"), 3, "q?"),),
            statements=(Statement("B", "A", "B met A", "q?"),),
            questions=("Who?",),
            tagger="rules",
        )
        new = replace(old, questions=("What?",))
        later = Contribution(first.id, "supplement", asked=("b?",))
        earlier = Contribution(first.id, "supplement", asked=("a?", "z?"))
        own = Contribution(first.id, "oriented", asked=("mine?",))
        for contribution in (old, later, own, new, earlier):
            row = LedgerRow(contribution.segment_id, "extracted")
            await store.record("n", [(row, contribution)], [CALL])
        assert list(await store.contributions("n", "d")) == [earlier, later, new]
        assert list(await store.contributions("n", "d", kinds=["oriented"])) == [own]
        assert list(await store.contributions("n", "other")) == []
        assert list(await store.calls("n")) == [CALL] * 5

    async def test_what_a_merge_reads_has_edits_and_dates(self, store: GraphStore) -> None:
        await store.create_namespace("n", INFO)
        await store.put_documents(
            "n",
            [
                text("said", "Ann ran ", metadata={"at": "2026-05-03T09:00:00", "date": "1999"}),
                text("dated", "Bob ran ", metadata={"date": 1851}),
                text("bare", "Cy ran ", metadata={"date": "one day"}),
            ],
        )
        (segment,) = await store.segments("n", documents=["said"])
        edit = Contribution(segment.id, "edit", asked=("ann", "bob", "ran"))
        await store.record("n", [(LedgerRow(segment.id, "extracted"), edit)])
        found = await store.unmerged("n", "said", "dated", "bare")
        assert list(found.contributions) == [edit]
        assert found.said_at == {"said": "2026-05-03T09:00:00", "dated": "1851"}
        assert not (await store.unmerged("n")).said_at

    async def test_a_batch_is_recorded_as_one_by_one(self, store: GraphStore) -> None:
        document, segments = text("d", "A. ", "B. ")
        for ns in ("n", "m"):
            await store.create_namespace(ns, INFO)
            await store.put_documents(ns, [(document, segments)])
        rows = [(LedgerRow(s.id, "ok"), Contribution(s.id, "extraction")) for s in segments]
        last = LedgerRow(segments[0].id, "partial", "why")
        await store.record("n", [*rows, (last, None)], [CALL, CALL])
        for row, contribution in rows:
            await store.record("m", [(row, contribution)], [CALL])
        await store.record("m", [(last, None)])
        assert await contents(store, "n") == await contents(store, "m")

    async def test_nothing_is_recorded_of_a_segment_that_is_gone(self, store: GraphStore) -> None:
        document, segments = text("d", "A. ")
        await add(store, "n", (document, segments))
        before = await contents(store, "n")
        with pytest.raises(NotFound):
            await store.record("n", [(LedgerRow("gone", "ok"), None)], [CALL])
        rows = [(LedgerRow(segments[0].id, "ok"), None), (LedgerRow("gone", "ok"), None)]
        with pytest.raises(NotFound):
            await store.record("n", rows, [CALL])
        assert await contents(store, "n") == before

    async def test_decisions_on_a_pair_replace_each_other_in_any_order(
        self, store: GraphStore
    ) -> None:
        await store.create_namespace("n", INFO)
        await store.override_merge("n", MergeDecision("b", "a", True))
        await store.override_merge("n", MergeDecision("x", "y", False))
        await store.override_merge("n", MergeDecision("a", "b", False))
        expected = [MergeDecision("a", "b", False), MergeDecision("x", "y", False)]
        assert list((await store.unmerged("n")).decisions) == expected

    async def test_a_users_edits_and_decisions_are_stored_with_the_rows_or_not_at_all(
        self, store: GraphStore
    ) -> None:
        first = text("d", "Ann met Bob ", metadata={"user": "ann"})
        other = text("c", "Cy saw Bob ")
        await add(store, "n", first, other)
        ids = [segments[0].id for _, segments in (other, first)]
        edits = [Contribution(id, "edit", asked=("Ann", "Bob", "met")) for id in ids]
        decision = MergeDecision("Ann", "Cy", same=True)
        before = await store.unmerged("n")
        made = ViewUpdate(edits=edits, decisions=[decision])
        with pytest.raises(StoreConflict):
            await store.apply("n", before.revision + 1, made)
        assert await store.unmerged("n") == before
        await store.apply("n", before.revision, made)
        found = await store.unmerged("n", "d")
        assert list(found.edits) == [UserEdit("", edits[0]), UserEdit("ann", edits[1])]
        assert list(found.edits) == list(await store.edits("n"))
        assert list(found.contributions) == [edits[1]]
        assert list(found.decisions) == [decision]
        assert found.users == {"d": "ann"}
        assert list(await store.edits("m")) == []
        document, segments = text("d", "Ann met Bob again ")
        kept = replace(edits[1], segment_id=segments[0].id)
        await store.put_documents("n", [(document, segments)], edits=[kept])
        assert [edit.made for edit in await store.edits("n")] == [edits[0], kept]
        await store.delete_documents("n", "d")
        assert [edit.made for edit in await store.edits("n")] == [edits[0]]

    async def test_the_highest_number_of_a_deleted_turn_is_kept(self, store: GraphStore) -> None:
        def turn(n: int) -> Text:
            told: dict[str, MetaValue] = {"chat": "", "turn": n, "role": "user"}
            return text(f"turn-{n:08}", "Hello ", metadata=told)

        await store.create_namespace("n", replace(INFO, turns=1))
        await store.put_documents("n", [turn(2), turn(7), text("turn-00000009", "No turn ")])
        for id_, turns in (("turn-00000009", 1), ("turn-00000007", 7), ("turn-00000002", 7)):
            await store.delete_documents("n", id_)
            info = await store.namespace("n")
            assert info is not None
            assert info.turns == turns

    async def test_putting_the_same_text_again_changes_nothing(self, store: GraphStore) -> None:
        given = text("d", "Ann met Bob. ", "Bob left. ")
        await add(store, "n", given)
        await store.record(
            "n", [(LedgerRow(given[1][0].id, "ok"), Contribution(given[1][0].id, "extraction"))]
        )
        before = await contents(store, "n")
        await store.put_documents("n", [given])
        assert await contents(store, "n") == before

    async def test_a_replaced_text_keeps_what_is_known_of_the_segments_that_stay(
        self, store: GraphStore
    ) -> None:
        _, old = given = text("d", "Ann met Bob ", "Bob left ", "Cy slept ")
        await add(store, "n", given)
        for segment in old:
            kept = Contribution(segment.id, "extraction")
            await store.record("n", [(LedgerRow(segment.id, "ok"), kept)])
        document, new = text("d", "Dee came ", "Cy slept ", "Ann met Bob ")
        await store.put_documents("n", [(document, new)])
        assert await store.document("n", "d") == document
        assert [row.state for row in await store.ledger("n")] == ["pending", "ok", "ok"]
        assert [c.segment_id for c in await store.contributions("n", "d")] == [old[2].id, old[0].id]
        assert await merged_segments(store, "n", "d") == [old[2].id, old[0].id]
        assert [row.key for row in await store.names("n")] == ["Ann", "Bob", "Cy"]
        (bob,) = await store.entities("n", ["Bob"])
        assert (bob.forms, bob.segments) == ((("Bob", 1),), (old[0].id,))

    async def test_a_document_put_again_leaves_no_trace_of_its_earlier_text(
        self, store: GraphStore
    ) -> None:
        kept, given = text("k", "Ann met Bob. "), text("d", "Bob met Cy. ", "Ann ran. ")
        for ns in ("n", "m"):
            await add(store, ns, kept, given)
            row = LedgerRow(given[1][0].id, "ok")
            await store.record(ns, [(row, Contribution(row.segment_id, "extraction"))])
            await store.put_cache_entry(
                ns, "reply", "reply", {"text": "x"}, segments=[row.segment_id]
            )
            await store.record(ns, (), summaries={"d": "Bob met Cy."})
        await store.put_documents("n", [given], rebuild=True)
        await store.delete_documents("m", "d")
        await store.put_documents("m", [given])
        assert await contents(store, "n", ["cy."]) == await contents(store, "m", ["cy."])
        assert await cached_value(store, "n", "reply", "reply") is None
        assert [row.state for row in await store.ledger("n", "d")] == ["pending", "pending"]

    async def test_a_document_that_is_refused_leaves_the_one_that_it_was_to_replace(
        self, store: GraphStore
    ) -> None:
        kept, given = text("k", "Ann met Bob. "), text("d", "Bob met Cy. ")
        await add(store, "n", kept, given)
        before = await contents(store, "n")
        for wrong in (kept[1], (*given[1], *given[1])):
            with pytest.raises(UsageError):
                await store.put_documents("n", [(given[0], wrong)], rebuild=True)
        assert await contents(store, "n") == before

    async def test_a_segment_that_moved_counts_at_its_new_place(self, store: GraphStore) -> None:
        _, (first, second) = given = text("d", "Ann met Bob ", "Ann saw Cy ")
        await add(store, "n", given)
        document, (moved_second, moved_first) = text("d", "Ann saw Cy ", "Ann met Bob ")
        await store.put_documents("n", [(document, [moved_second, moved_first])])
        assert (await store.around("n", ["Ann"])).places["Ann"] == (second.id, first.id)
        assert [f.segment_id for f in await facts_of(store, "n", ["Ann"])] == [second.id, first.id]
        assert list(await store.segments("n", [first.id])) == [moved_first]
        found = await store.entries("n", [first.id, second.id])
        assert {entry.id: entry.index for entry in found} == {first.id: 1, second.id: 0}

    async def test_a_deleted_document_leaves_what_a_store_without_it_holds(
        self, store: GraphStore
    ) -> None:
        kept, gone = (
            text("k", "Ann met Bob. ", "Ann left? "),
            text("d", "Bob met Cy. ", "Ann ran. "),
        )
        await add(store, "n", kept, gone)
        await add(store, "m", kept)
        row = LedgerRow(gone[1][0].id, "ok")
        await store.record("n", [(row, Contribution(row.segment_id, "extraction"))])
        await store.put_cache_entry("n", "reply", "reply", {"text": "x"}, segments=[row.segment_id])
        await store.put_cache_entry("n", "reply", "answer", {"text": "whatever was read"})
        await store.put_cache_entry("n", "reply", "other", {"text": "y"}, segments=[kept[1][0].id])
        await store.delete_documents("n", "d")
        assert await contents(store, "n", ["cy."]) == await contents(store, "m", ["cy."])
        assert await cached_value(store, "n", "reply", "reply") is None
        assert await cached_value(store, "n", "reply", "answer") is None
        assert await cached_value(store, "n", "reply", "other") == {"text": "y"}
        await store.delete_documents("n", "d")
        assert await contents(store, "n") == await contents(store, "m")

    async def test_replacing_and_deleting_a_document_raise_the_revision(
        self, store: GraphStore
    ) -> None:
        await store.create_namespace("n", INFO)
        document, segments = text("d", "Ann ran. ")
        await store.put_documents("n", [(document, segments)])
        assert await apply(store, "n", change(segments)) == 1
        await store.put_documents("n", [(replace(document, title="new"), segments)])
        await store.delete_documents("n", "d")
        await store.delete_documents("n", "d")
        info = await store.namespace("n")
        assert info is not None
        assert info.revision == 3
