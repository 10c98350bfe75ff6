import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from contract.reference import ReferenceStore
from fakes import HashEmbedder, ScriptedReasoner, build_of

import qrmem
from qrmem.agents import build_documents
from qrmem.cli.lines import report_lines
from qrmem.errors import (
    AccessRefused,
    CapReached,
    ModelOutputError,
    ModelUnavailable,
    WindowTooSmall,
)
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.graphstore.reads import cached_value, facts_of
from qrmem.types import Contribution, Document, Event, Loss, Mention, Reading, Segment
from qrmem.types.options import AddOptions

PEOPLE = ["Ann", "Bob", "Cid", "Dot", "Eve", "Fay", "Gus", "Hal"]


def text(n: int) -> str:
    a, b, c = (PEOPLE[(n * k + k) % len(PEOPLE)] for k in (1, 2, 3))
    return f"{a} saw {b} near the {'abcdefghij'[n % 10]}bridge. Later {c} came, and it rained. "


async def store_with(*sizes: int, embedder: HashEmbedder | None = None) -> ReferenceStore:
    """A store with one document per size, of so many segments, none of them read."""
    store = ReferenceStore()
    dimension = embedder.dimension if embedder else 0
    name = embedder.name if embedder else "none"
    await store.create_namespace("ns", NamespaceInfo("ns", "t", 600, name, dimension))
    for d, size in enumerate(sizes):
        parts = [text(n + 7 * d) for n in range(size)]
        document = Document("".join(parts), f"Title {d}", f"d{d}")
        segments, at = [], 0
        for n, part in enumerate(parts):
            segments.append(Segment(f"d{d}s{n}", f"d{d}", n, at, at + len(part), part, 20))
            at += len(part)
        await store.put_documents("ns", [(document, segments)])
    return store


async def dump(store: ReferenceStore) -> dict[str, Any]:
    """Everything that a memory is made of, but for vectors and revisions."""
    ids = [info.id for info in await store.documents("ns")]
    keys = [entity.key for entity in await store.list_entities("ns", 10_000)]
    return {
        "documents": [
            (info.id, info.summary, dict(info.states)) for info in await store.documents("ns")
        ],
        "contributions": [c for id in ids for c in await store.contributions("ns", id)],
        "ledger": await store.ledger("ns"),
        "entities": await store.entities("ns", sorted(keys)),
        "facts": await facts_of(store, "ns", keys),
        "questions": await store.questions("ns"),
    }


async def built(*sizes: int, **chosen: Any) -> dict[str, Any]:
    store = await store_with(*sizes)
    await build_documents(
        build_of(store, ScriptedReasoner(), **chosen), [f"d{d}" for d in range(len(sizes))]
    )
    return await dump(store)


async def test_every_segment_ends_ok_and_brings_entities_relations_and_questions() -> None:
    store = await store_with(5)
    reasoner = ScriptedReasoner()
    outcome = await build_documents(build_of(store, reasoner), ["d0"])
    assert (outcome.read, outcome.states, outcome.problems) == (5, {"ok": 5}, ())
    graph = await dump(store)
    assert {entity.name for entity in graph["entities"]} >= {"Ann", "Bob"}
    assert graph["facts"]
    accepted = graph["questions"]
    assert accepted
    # What a question added is tied to it.
    added = {fact.question for fact in graph["facts"]} - {""}
    assert added == {question.text for question in accepted}


async def test_a_document_of_one_segment_costs_no_summary() -> None:
    store = await store_with(1, 3)
    reasoner = ScriptedReasoner()
    await build_documents(build_of(store, reasoner), ["d0", "d1"])
    assert [what for stage, what in reasoner.calls if stage == "summarise"] == ["d1"]
    assert [info.summary != "" for info in await store.documents("ns")] == [False, True]


async def test_at_most_three_calls_a_segment_and_one_a_document() -> None:
    store = await store_with(6)
    reasoner = ScriptedReasoner()
    await build_documents(build_of(store, reasoner), ["d0"])
    assert len(reasoner.calls) <= 6 * 2 + 1


async def test_building_again_asks_nothing_and_changes_nothing() -> None:
    store = await store_with(5, 2)
    await build_documents(build_of(store, ScriptedReasoner()), ["d0", "d1"])
    before = await dump(store)
    reasoner = ScriptedReasoner()
    outcome = await build_documents(build_of(store, reasoner), ["d0", "d1"])
    assert (outcome.read, reasoner.calls) == (0, [])
    assert await dump(store) == before


@pytest.mark.parametrize("concurrency", [2, 16])
async def test_order_of_arrival_does_not_change_the_graph(concurrency: int) -> None:
    dice = random.Random(concurrency)
    reasoner = ScriptedReasoner(delay=lambda stage, what: dice.random() / 200)
    store = await store_with(12, 3)
    await build_documents(build_of(store, reasoner, concurrency=concurrency), ["d0", "d1"])
    assert reasoner.most_in_flight == min(concurrency, 15)
    assert await dump(store) == await built(12, 3, concurrency=1)


class Stopped(ScriptedReasoner):
    """Stops the run at its n-th call: by an error, or as Ctrl-C does, by cancelling it."""

    def __init__(self, at: int, error: Exception | None) -> None:
        super().__init__(fail=self._stop)
        self._at = at
        self._error = error
        self.run: asyncio.Task[Any] | None = None

    def _stop(self, stage: str, what: str) -> Exception | None:
        self._at -= 1
        if self._at == 0 and self._error is None and self.run is not None:
            self.run.cancel()
        return self._error if self._at == 0 else None


@pytest.mark.parametrize("at", [1, 2, 4, 9, 11, 14])
@pytest.mark.parametrize("error", [AccessRefused("no"), CapReached("cap"), None])
async def test_a_run_that_was_stopped_anywhere_is_resumed_for_what_is_missing(
    at: int, error: Exception | None
) -> None:
    undisturbed = ScriptedReasoner()
    store = await store_with(8)
    await build_documents(build_of(store, undisturbed), ["d0"])
    expected = await dump(store)

    store = await store_with(8)
    first = Stopped(at, error)
    run = asyncio.create_task(build_documents(build_of(store, first, concurrency=2), ["d0"]))
    first.run = run
    with pytest.raises(type(error) if error else asyncio.CancelledError):
        await run
    second = ScriptedReasoner()
    await build_documents(build_of(store, second, concurrency=2), ["d0"])
    assert await dump(store) == expected
    # Paid twice is at most what was in flight.
    assert len(first.calls) + len(second.calls) <= len(undisturbed.calls) + 2


async def test_a_segment_that_fails_is_recorded_with_its_reason_and_the_others_go_on() -> None:
    def fail(stage: str, what: str) -> Exception | None:
        if (stage, what) == ("extract", "d0s2"):
            return ModelOutputError("no JSON", raw="gibberish")
        if (stage, what) == ("supplement", "d0s4"):
            return ModelOutputError("cut off", raw="{")
        return None

    store = await store_with(6)
    outcome = await build_documents(build_of(store, ScriptedReasoner(fail=fail)), ["d0"])
    assert outcome.states == {"ok": 4, "failed": 1, "partial": 1}
    assert outcome.problems == (("d0", 2, "no JSON"), ("d0", 4, "cut off"))
    assert await cached_value(store, "ns", "raw", "raw:d0s2:failed") == {"raw": "gibberish"}

    # The next run tries what failed again, and ends where an undisturbed one does.
    reasoner = ScriptedReasoner()
    outcome = await build_documents(build_of(store, reasoner), ["d0"])
    assert outcome.states == {"ok": 6}
    assert ("extract", "d0s2") in reasoner.calls
    assert ("extract", "d0s0") not in reasoner.calls
    expected, found = await built(6), await dump(store)
    for part in ("entities", "facts", "questions"):
        assert found[part] == expected[part]


class Lossy(ScriptedReasoner):
    """Loses a part of the replies about some segments, as long as they are tried the first time."""

    def __init__(self, *lossy: tuple[str, str]) -> None:
        super().__init__()
        self._lossy = lossy
        self.attempts: list[int] = []

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        made = await super().extract(segment, reading)
        return self._less(made, "extract", reading)

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        made = await super().supplement(segment, reading, known, questions)
        return self._less(made, "supplement", reading)

    def _less(self, made: Contribution, stage: str, reading: Reading) -> Contribution:
        self.attempts.append(reading.attempt)
        if (stage, made.segment_id) not in self._lossy or reading.attempt >= 6:
            return made
        loss = Loss("relations[0]: a text is needed", "{", reading.attempt + 5)
        return replace(made, statements=made.statements[1:], losses=(loss,))


@pytest.mark.parametrize("stage", ["extract", "supplement"])
async def test_a_segment_that_lost_a_part_of_a_reply_is_partial_until_it_is_read_whole(
    stage: str,
) -> None:
    store = await store_with(4)
    outcome = await build_documents(build_of(store, Lossy((stage, "d0s2"))), ["d0"])
    assert outcome.states == {"ok": 3, "partial": 1}
    assert outcome.problems == (("d0", 2, "relations[0]: a text is needed"),)
    lost = [made for made in await store.contributions("ns", "d0") if made.losses]
    assert [(made.segment_id, made.losses[0].raw) for made in lost] == [("d0s2", "{")]

    # The next run asks again, by tries that were not made yet, and no other segment.
    again = Lossy((stage, "d0s2"))
    outcome = await build_documents(build_of(store, again), ["d0"])
    assert outcome.states == {"ok": 4}
    assert again.calls[0] == (stage, "d0s2")
    assert {what for _, what in again.calls} == {"d0s2"}
    assert again.attempts[0] == 6
    expected, found = await built(4), await dump(store)
    for part in ("entities", "facts", "questions", "ledger"):
        assert found[part] == expected[part]


async def test_a_partial_reading_stays_if_no_better_one_comes() -> None:
    store = await store_with(3)
    await build_documents(build_of(store, Lossy(("extract", "d0s1"))), ["d0"])
    before = await dump(store)
    worse = ScriptedReasoner(fail=lambda stage, what: ModelOutputError("no JSON", raw="?"))
    outcome = await build_documents(build_of(store, worse), ["d0"])
    assert outcome.states == {"ok": 2, "partial": 1}
    after = await dump(store)
    assert after["entities"] == before["entities"]
    assert after["facts"] == before["facts"]


async def test_a_refused_key_stops_everything_at_once() -> None:
    store = await store_with(50)
    reasoner = ScriptedReasoner(
        fail=lambda stage, what: AccessRefused("401") if stage == "extract" else None
    )
    with pytest.raises(AccessRefused):
        await build_documents(build_of(store, reasoner, concurrency=4), ["d0"])
    assert len(reasoner.calls) <= 1 + 4
    assert {row.state for row in await store.ledger("ns")} == {"pending"}


async def test_a_dead_server_ends_the_run_and_leaves_the_rest_pending() -> None:
    store = await store_with(20)
    reached: list[str] = []

    def fail(stage: str, what: str) -> Exception | None:
        if stage == "extract":
            reached.append(what)
            return ModelUnavailable("no route") if len(reached) > 6 else None
        return None

    with pytest.raises(ModelUnavailable):
        await build_documents(build_of(store, ScriptedReasoner(fail=fail), concurrency=2), ["d0"])
    states = [row.state for row in await store.ledger("ns")]
    assert states.count("extracted") == 6
    assert states.count("pending") == 14
    # What was read can be asked already.
    assert await store.list_entities("ns")
    await build_documents(build_of(store, ScriptedReasoner()), ["d0"])
    assert await dump(store) == await built(20)


async def test_one_bad_spell_of_a_server_does_not_end_the_run() -> None:
    store = await store_with(20)
    reached: list[str] = []

    def fail(stage: str, what: str) -> Exception | None:
        reached.append(what)
        return ModelUnavailable("busy") if len(reached) in (8, 15, 30) else None

    outcome = await build_documents(
        build_of(store, ScriptedReasoner(fail=fail), concurrency=2), ["d0"]
    )
    assert outcome.states == {"ok": 20}
    assert await dump(store) == await built(20)


async def test_a_window_too_small_for_a_segment_stops_the_run() -> None:
    store = await store_with(3)
    reasoner = ScriptedReasoner(
        fail=lambda stage, what: WindowTooSmall("small") if stage == "extract" else None
    )
    with pytest.raises(WindowTooSmall):
        await build_documents(build_of(store, reasoner), ["d0"])


class Tagger:
    name = "fixed"

    def __init__(self, *found: Mention, error: Exception | None = None) -> None:
        self._found = found
        self._error = error

    async def tag(self, text: str) -> list[Mention]:
        if self._error:
            raise self._error
        return [m for m in self._found if m.name in text]

    async def close(self) -> None: ...


async def test_the_tagger_s_entities_are_united_with_the_reasoner_s() -> None:
    tagger = Tagger(Mention("Later", "DATE", ("Later",)), Mention("Bob", "PLACE", ("Bob",)))
    store = await store_with(1)
    await build_documents(build_of(store, ScriptedReasoner(), tagger=tagger), ["d0"])
    (made, *_) = await store.contributions("ns", "d0")
    types = {mention.name: mention.type for mention in made.mentions}
    assert made.tagger == "fixed"
    # The reasoner's type stands where both found a name.
    assert types["Later"] == "PERSON"
    assert len(types) == len(made.mentions)


async def test_segments_that_a_tagger_fails_on_are_tagged_by_rules_and_marked_for_another_try() -> (
    None
):
    bob = Mention("Bob", "PERSON", ("Bob",))
    store = await store_with(2)
    heard: list[Event] = []
    broken = Tagger(error=RuntimeError("server\ngone"))
    outcome = await build_documents(
        build_of(store, ScriptedReasoner(), tagger=broken, listener=heard.append), ["d0"]
    )
    why = "tagger fixed: server gone; tagged by the rules"
    assert outcome.states == {"partial": 2}
    assert outcome.problems == (("d0", 0, why), ("d0", 1, why))
    assert [e.data["message"] for e in heard if e.kind == "warning"] == [why]
    extractions = await store.contributions("ns", "d0", kinds=["extraction"])
    assert {made.tagger for made in extractions} == {"!fixed"}

    again = Lossy()
    outcome = await build_documents(build_of(store, again, tagger=Tagger(bob)), ["d0"])
    assert outcome.states == {"ok": 2}
    # No reply was lost: the first try is asked for again, which the cache knows.
    assert set(again.attempts) == {0}
    undisturbed = await store_with(2)
    await build_documents(build_of(undisturbed, ScriptedReasoner(), tagger=Tagger(bob)), ["d0"])
    assert await dump(store) == await dump(undisturbed)


class Unasking(ScriptedReasoner):
    """Proposes no questions, as where the settings want none."""

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        return replace(await super().extract(segment, reading), questions=())


async def test_the_rules_find_the_entities_of_a_segment_that_the_tagger_fails_in() -> None:
    store = await store_with(1)
    failing = Tagger(error=RuntimeError("gone"))
    chosen: dict[str, Any] = {"options": AddOptions(open_entity=False)}
    await build_documents(build_of(store, Unasking(), tagger=failing, **chosen), ["d0"])
    ruled = await store_with(1)
    await build_documents(build_of(ruled, Unasking(), tagger=RulesTagger(), **chosen), ["d0"])
    found = (await dump(store))["entities"]
    assert found
    assert found == (await dump(ruled))["entities"]


async def test_without_the_open_entities_only_the_tagger_s_are_left() -> None:
    store = await store_with(3)
    tagger = Tagger(Mention("Bob", "PERSON", ("Bob",)))
    await build_documents(
        build_of(store, Unasking(), tagger=tagger, options=AddOptions(open_entity=False)),
        ["d0"],
    )
    assert {entity.name for entity in (await dump(store))["entities"]} == {"Bob"}


async def test_the_user_s_question_is_in_every_reading_and_in_the_pool() -> None:
    store = await store_with(2)
    asked = "Bob, Cid?"
    await build_documents(
        build_of(store, ScriptedReasoner(), options=AddOptions(question=asked)), ["d0"]
    )
    graph = await dump(store)
    assert all(
        asked in statement.description
        for made in graph["contributions"]
        if made.kind == "extraction"
        for statement in made.statements
    )
    assert asked not in {question.text for question in graph["questions"]}


async def test_the_user_s_question_is_in_every_reading_without_a_model_too() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        report = await memory.add(
            {"id": "a", "text": "The Heron Key opened the iron cupboard in the Tide House."},
            question="What was in the iron cupboard of the Tide House?",
        )
        assert report.states == {"ok": 1}
        names = {entity.name for entity in await memory.entities()}
    assert {"Heron Key", "Tide House"} <= names


async def test_segments_are_embedded_in_batches_that_a_second_run_skips() -> None:
    embedder = HashEmbedder()
    store = await store_with(4, embedder=embedder)
    await build_documents(build_of(store, ScriptedReasoner(), embedder=embedder), ["d0"])
    assert set(await store.owners("ns", "segment")) == {f"d0s{n}" for n in range(4)}
    embedder.embedded.clear()
    await build_documents(build_of(store, ScriptedReasoner(), embedder=embedder), ["d0"])
    assert embedder.embedded == []


async def test_progress_counts_each_segment_once() -> None:
    store = await store_with(5)
    heard: list[Event] = []
    await build_documents(build_of(store, ScriptedReasoner(), listener=heard.append), ["d0"])
    assert sum(e.data["count"] for e in heard if e.kind == "segment") == 5
    phases = [e.data["phase"] for e in heard if e.kind == "phase"]
    assert phases == ["summarising", "reading", "questioning", "merging"]


async def test_what_is_read_without_a_model_is_read_in_portions_and_merged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = (1, 3, 1, 2) * 8
    whole, portioned = await store_with(*sizes), await store_with(*sizes)
    ids = [f"d{n}" for n in range(len(sizes))]
    reasoner = ScriptedReasoner()
    reasoner.is_local = True
    await build_documents(build_of(whole, reasoner), ids)
    monkeypatch.setattr("qrmem.agents.building.PORTION", 3)
    events: list[Event] = []
    outcome = await build_documents(build_of(portioned, reasoner, listener=events.append), ids)
    assert outcome.states == {"ok": sum(sizes)}
    assert await dump(portioned) == await dump(whole)
    phases = [event.data["phase"] for event in events if event.kind == "phase"]
    assert phases.count("reading") > len(sizes) // 3
    assert phases.count("merging") == 1


async def test_parallel_relations_are_folded_by_the_reasoner_once() -> None:
    store = await store_with(10)
    reasoner = ScriptedReasoner()
    wanted = build_of(store, reasoner, mode="paper")
    await build_documents(wanted, ["d0"])
    folds = [what for stage, what in reasoner.calls if stage == "fold"]
    assert folds
    await build_documents(wanted, ["d0"])
    assert [what for stage, what in reasoner.calls if stage == "fold"] == folds


async def test_names_that_the_embedder_finds_alike_are_one_entity() -> None:
    parts = ["Bob saw the Gray Harbour. ", "Ann left the Grey Harbour. "]

    class Spelling(HashEmbedder):
        def _vector(self, text: str) -> Any:
            return super()._vector(text.replace("Grey", "Gray"))

    for threshold, expected in ((0.9, 1), (0.0, 2)):
        embedder = Spelling()
        store = await store_with(0, embedder=embedder)
        found = [Segment(f"s{n}", "d0", n, 26 * n, 26 * n + 26, t, 9) for n, t in enumerate(parts)]
        await store.put_documents("ns", [(Document("".join(parts), id="d0"), found)])
        names = [Mention(f"{c} Harbour", "PLACE", (f"{c} Harbour",)) for c in ("Gray", "Grey")]
        tagger, reasoner = Tagger(*names), Unasking()
        chosen: dict[str, Any] = {
            "embedder": embedder,
            "similar_names": threshold,
            "options": AddOptions(open_entity=False),
        }
        await build_documents(build_of(store, reasoner, tagger=tagger, **chosen), ["d0"])
        assert len(await store.list_entities("ns")) == expected


async def test_add_counts_segments_that_are_only_headings_or_contents() -> None:
    rows = "\n".join(f"Chapter {n}. The Ship ..... {4 * n}" for n in range(1, 6))
    texts = {"head": "CHAPTER 12. The Whale", "list": f"Contents\n\n{rows}"}
    texts["said"] = "CHAPTER 1\n\nAhab hunts the whale with Starbuck."
    async with qrmem.open("memory://", embedder="none") as memory:
        report = await memory.add(Document(text, id=id) for id, text in texts.items())
        assert report.boilerplate == 2
        assert any(line.startswith("no names:  2 segments are") for line in report_lines(report))
        again = await memory.add(Document(text, id=id) for id, text in texts.items())
        assert again.boilerplate == 0
