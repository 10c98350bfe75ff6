"""FragRel and TempMem as strategies, on small memories made by hand."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from contract.reference import ReferenceStore
from fakes import HashEmbedder, ScriptedReasoner
from graph.worlds import Part, answers_with, ask, memory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.agents.strategies.one_reading import middle_left_out
from qrmem.errors import UsageError
from qrmem.retrieval.fragments import (
    Fragments,
    FragmentScorer,
    FragmentSettings,
    Links,
    WeightMatrix,
)
from qrmem.retrieval.searcher import Searcher
from qrmem.types.options import Relate

unhurried = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])


STORY = (
    Part("It rained all day in the port."),
    Part("The captain sold the anchor."),
    Part("He got nine florins."),
    Part("The cook burns soup."),
    Part("The captain slept."),
)


async def test_a_neighbour_of_what_fits_is_read_though_it_shares_no_word() -> None:
    reasoner = ScriptedReasoner(answers_with("nine florins", "nine florins"), room=45)
    outcome = await ask(
        await memory(*STORY), reasoner, "What did the captain's anchor bring?", "fragment"
    )
    assert (outcome.status, outcome.text) == ("answered", "nine florins")
    assert [step.action for step in outcome.steps] == ["start", "read"]
    said = "by relation structure 0.3, alpha 0.5; 2 of them by their surroundings"
    assert outcome.steps[0].reason == f"4 of 5 fragments {said}"
    assert [found.segment_id for found in outcome.steps[1].read] == ["s0", "s1", "s2", "s4"]
    (citation,) = outcome.citations
    assert citation.segment_id == "s2"


@pytest.mark.parametrize(
    ("order", "first"), [("position", "s0"), ("score", "s1"), ("reverse", "s4")]
)
async def test_fragments_are_read_in_the_order_that_was_chosen(order: str, first: str) -> None:
    chosen = FragmentSettings(order=order, top=5)  # type: ignore[arg-type]
    outcome = await ask(
        await memory(*STORY),
        ScriptedReasoner(room=1000),
        "Who sold the anchor?",
        "fragment",
        fragments=chosen,
    )
    read = [segment.segment_id for segment in outcome.steps[1].read]
    assert sorted(read) == ["s0", "s1", "s2", "s3", "s4"]
    if order != "reverse":
        assert read[0] == first
    scores = [segment.score for segment in outcome.steps[1].read]
    assert {"position": read == sorted(read)}.get(order, True)
    assert order != "score" or scores == sorted(scores, reverse=True)
    assert order != "reverse" or scores == sorted(scores)


async def test_top_and_words_bound_what_is_read() -> None:
    for chosen in (FragmentSettings(top=2), FragmentSettings(words=12)):
        reasoner = ScriptedReasoner(room=1000)
        await ask(
            await memory(*STORY), reasoner, "Who sold the anchor?", "fragment", fragments=chosen
        )
        assert len(reasoner.judged[0]) == 2


async def test_a_citation_relation_of_one_s_own_brings_what_is_cited() -> None:
    papers = (
        Part("Attention is enough [3].", document="p1"),
        Part("Birds sing at dawn.", document="p2"),
        Part("Recurrence was used before.", document="p3"),
    )

    def cites(fragments: Fragments) -> WeightMatrix:
        place = {segment.document_id: n for n, segment in enumerate(fragments.segments)}
        pairs = [
            (place[segment.document_id], place[f"p{mark}"], 1.0)
            for segment in fragments.segments
            for mark in "123"
            if f"[{mark}]" in segment.text
        ]
        return Links.both_ways(fragments.size, pairs)

    reasoner = ScriptedReasoner(room=1000)
    await ask(
        await memory(*papers),
        reasoner,
        "Is attention enough?",
        "fragment",
        fragments=FragmentSettings(relation=cites, top=2),
    )
    assert reasoner.judged == [[papers[0].text, papers[2].text]]


async def test_a_relation_of_another_package_is_taken_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere_relation.py").write_text(
        "from qrmem.retrieval.fragments import Links\n\n"
        "def first_and_last(fragments):\n"
        "    return Links.both_ways(fragments.size, [(0, fragments.size - 1, 1.0)])\n"
    )
    installed = tmp_path / "elsewhere-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[qrmem.relations]\nends = elsewhere_relation:first_and_last\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    parts = (
        Part("Attention is enough.", document="p1"),
        Part("Birds sing at dawn.", document="p2"),
        Part("Recurrence was used before.", document="p3"),
    )
    reasoner = ScriptedReasoner(room=1000)
    chosen = FragmentSettings(relation="ends", top=2)
    store = await memory(*parts)
    await ask(store, reasoner, "Is attention enough?", "fragment", fragments=chosen)
    assert reasoner.judged == [[parts[0].text, parts[2].text]]


class Neighbours:
    """A relation with a choice of its own, as an object."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, fragments: Fragments) -> WeightMatrix:
        return Links.both_ways(fragments.size, [(1, 2, self.weight)])


@pytest.mark.parametrize(
    ("relate", "name"),
    [(Neighbours(1.0), "Neighbours"), (partial(Neighbours.__call__, Neighbours(1.0)), "partial")],
)
async def test_a_relation_may_be_any_object_that_is_called(relate: Relate, name: str) -> None:
    chosen = FragmentSettings(relation=relate, top=2)
    reasoner = ScriptedReasoner(room=1000)
    outcome = await ask(
        await memory(*STORY), reasoner, "Who sold the anchor?", "fragment", fragments=chosen
    )
    assert f"by relation {name}, " in outcome.steps[0].reason
    assert reasoner.judged == [[STORY[1].text, STORY[2].text]]


@pytest.mark.parametrize(
    ("relate", "says"),
    [
        (lambda _: None, "returned NoneType"),
        (lambda found: np.eye(found.size), "returned ndarray"),
        (lambda found: Links.both_ways(found.size, [(0, 9, 1.0)]), "fragments 0 to 9"),
        (lambda found: Links.both_ways(found.size, [(-1, 2, 1.0)]), "fragments -1 to 2"),
        (lambda found: Links.both_ways(found.size, [(0, 1, -0.5)]), "negative"),
        (lambda found: Links.both_ways(found.size, [(0, 1, math.nan)]), "not a number"),
        (lambda found: Links.both_ways(found.size + 1, []), "over 6 fragments, not 5"),
    ],
)
async def test_an_invalid_relation_is_refused_in_clear_words(relate: Relate, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        await ask(
            await memory(*STORY),
            ScriptedReasoner(room=1000),
            "Who sold the anchor?",
            "fragment",
            fragments=FragmentSettings(relation=relate),
        )


async def embedded(*parts: Part) -> tuple[ReferenceStore, HashEmbedder]:
    store, embedder = await memory(*parts), HashEmbedder(256)
    await store.set_embedder("ns", embedder.name, embedder.dimension)
    matrix = await embedder.embed([part.text for part in parts])
    await store.put_vectors("ns", "segment", [f"s{n}" for n in range(len(parts))], matrix)
    return store, embedder


async def test_the_semantic_relation_relates_what_is_alike() -> None:
    store, embedder = await embedded(
        Part("anchor florins paid"),
        Part("soup"),
        Part("florins paid nine"),
    )
    scorer = FragmentScorer(Searcher(store, "ns", embedder))
    found = await scorer.assess("anchor", settings=FragmentSettings(relation="semantic"))
    assert found is not None
    assert found.around[2] > found.around[1]
    assert found.settings.score == "auto"


@pytest.mark.parametrize("settings", [{"relation": "semantic"}, {"score": "cosine"}])
async def test_an_error_about_missing_vectors_says_so(settings: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="needs an embedder"):
        await ask(
            await memory(*STORY),
            ScriptedReasoner(),
            "Who?",
            "fragment",
            fragments=FragmentSettings(**settings),  # type: ignore[arg-type]
        )


async def test_an_unknown_relation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'magic'.*structure, semantic, code"):
        await ask(
            await memory(*STORY),
            ScriptedReasoner(),
            "Who?",
            "fragment",
            fragments=FragmentSettings(relation="magic"),
        )


@pytest.mark.parametrize("score", ["jaccard", "search", "bm25"])
async def test_every_independent_score_finds_the_words(score: str) -> None:
    scorer = FragmentScorer(Searcher(await memory(*STORY), "ns"))
    chosen = FragmentSettings(score=score, alpha=0)  # type: ignore[arg-type]
    found = await scorer.assess("The captain sold the anchor.", settings=chosen)
    assert found is not None
    assert list(found.best(1)) == ["s1"]


async def test_only_the_documents_named_are_assessed() -> None:
    store = await memory(*STORY, Part("The anchor is gone.", document="other"))
    found = await FragmentScorer(Searcher(store, "ns")).assess("anchor", documents=["other"])
    assert found is not None
    assert list(found.fragments.ids) == ["s5"]


async def test_relations_are_made_once_and_again_when_the_memory_changes() -> None:
    made: list[int] = []

    def alone(fragments: Fragments) -> WeightMatrix:
        made.append(fragments.size)
        return Links(fragments.size, *(np.zeros(0, dtype=np.int64),) * 2, np.zeros(0), own=1.0)

    store = await memory(*STORY, Part("More.", document="other"))
    scorer = FragmentScorer(Searcher(store, "ns"))
    for question in ("one", "two"):
        await scorer.assess(question, settings=FragmentSettings(relation=alone))
    await store.delete_documents("ns", "other")
    await scorer.assess("three", settings=FragmentSettings(relation=alone))
    assert made == [6, 5]


# --- TempMem -------------------------------------------------------------------------------------


@unhurried
@given(st.lists(st.integers(1, 50), max_size=30), st.integers(0, 300))
def test_the_middle_is_left_out_and_the_room_is_kept(sizes: list[int], room: int) -> None:
    kept = middle_left_out(sizes, room)
    assert sum(sizes[at] for at in kept) <= room
    left = sorted(set(range(len(sizes))) - set(kept))
    assert left == list(range(left[0], left[-1] + 1)) if left else True
    assert kept == sorted(kept)
    if sum(sizes) <= room:
        assert kept == list(range(len(sizes)))


async def test_temp_mem_reads_both_ends_of_the_text() -> None:
    reasoner = ScriptedReasoner(room=40)
    outcome = await ask(await memory(*STORY), reasoner, "Who?", "temp-mem")
    assert reasoner.judged == [[STORY[0].text, STORY[1].text, STORY[3].text, STORY[4].text]]
    assert outcome.status == "unanswerable"
