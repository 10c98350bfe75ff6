"""A large change in parts does what it does as a whole."""

from dataclasses import replace

import pytest

from qrmem.config import Settings
from qrmem.graphstore import Change, EntityRow, FactRow, open_store
from qrmem.graphstore.neo4j.parts import parts
from qrmem.graphstore.testing.samples import INFO, change, contents, series

TEXTS = series("ann")
SEGMENTS = [segment for _, segments in TEXTS for segment in segments]


def _whole() -> Change:
    """Return a change of twelve texts, one of whose facts uses a name of the last segment."""
    made = replace(change(SEGMENTS), clear=())
    last = made.mentions[-1].name
    early = FactRow(SEGMENTS[0].id, 99, "Ann", last, "foretold")
    names = {**made.names, "Zed": "Ann"}
    entities = [*made.entities, EntityRow("Nobody", "Nobody", "")]
    return replace(made, facts=[early, *made.facts], names=names, entities=entities)


@pytest.mark.parametrize("rows", [1, 7, 30, 10_000])
async def test_parts_leave_what_the_whole_leaves(rows: int) -> None:
    found = []
    for changes in ([_whole()], [part.change for part in parts(_whole(), rows)]):
        store = await open_store("memory://", Settings())
        await store.create_namespace("n", INFO)
        for document, segments in TEXTS:
            await store.put_document("n", document, segments)
        for revision, part in enumerate(changes):
            assert await store.apply("n", revision, part) == revision + 1
        found.append(await contents(store, "n"))
    assert found[0] == found[1]


def test_a_part_holds_whole_segments_and_no_digest_comes_before_its_rows() -> None:
    digested: set[str] = set()
    made = parts(_whole(), 7)
    assert len(made) > 3
    for part in (part.change for part in made):
        rows = {mention.segment_id for mention in part.mentions}
        rows |= {fact.segment_id for fact in part.facts} | {row.segment_id for row in part.index}
        assert not rows & digested
        digested |= part.merged.keys()
    assert digested == {segment.id for segment in SEGMENTS}


def test_a_small_change_and_one_that_clears_stay_whole() -> None:
    small = change(SEGMENTS[:1])
    assert [part.change for part in parts(replace(small, clear=()), 100)] == [
        replace(small, clear=())
    ]
    clearing = change(SEGMENTS)
    assert [part.change for part in parts(clearing, 1)] == [clearing]
