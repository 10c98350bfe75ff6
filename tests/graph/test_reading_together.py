"""Several short segments in one chat call: each has its own notes, row and retry."""

import asyncio
import json
import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from contract.reference import ReferenceStore
from fakes import ScriptedModel, build_of
from graph.test_building import dump

from qrmem.agents import BuildOutcome, build_documents
from qrmem.answering.with_model import PromptedReasoner
from qrmem.config import Settings
from qrmem.errors import ModelOutputError, ModelUnavailable, WindowTooSmall
from qrmem.graph.segmenting import cut
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import (
    CallRecord,
    ChatReply,
    ChatRequest,
    Contribution,
    Document,
    Job,
    Mention,
    Reading,
    Segment,
    Statement,
)

TOKENIZER = BuiltinTokenizer()
PEOPLE = ["Ann", "Bob", "Cid", "Dot", "Eve", "Fay", "Gus", "Hal"]


def job(n: int, text: str, **again: Any) -> Job:
    segment = Segment(f"s{n}", f"d{n}", 0, 0, len(text), text, TOKENIZER.count(text))
    return Job(segment, Reading(f"Title {n}"), **again)


def reasoner(model: Any, **chosen: Any) -> PromptedReasoner:
    chosen = {"questions": 5, **chosen}
    return PromptedReasoner(model, TOKENIZER, mode="compact", settings=Settings(**chosen))


def entry(n: int, name: str, **more: list[str]) -> dict[str, Any]:
    return {"n": n, "entities": [f"{name}|PERSON"], "relations": [], "questions": [], **more}


def replied(*entries: dict[str, Any]) -> str:
    return json.dumps({"passages": entries})


ANN, BOB = job(1, "Ann left Rome."), job(2, "Bob stayed in Ostia.")


async def test_each_passage_has_its_own_notes() -> None:
    first = entry(1, "Ann", relations=["Ann|left|Rome"], questions=["Why did Ann leave?"])
    model = ScriptedModel(replied(entry(2, "Bob"), first))
    ann, bob = await reasoner(model).extract_together([ANN, BOB])
    assert ann == Contribution(
        "s1",
        "extraction",
        (Mention("Ann", "PERSON", ("Ann",)), Mention("Rome", "", ("Rome",))),
        (Statement("Ann", "Rome", "left"),),
        ("Why did Ann leave?",),
        by_model=True,
    )
    assert bob is not None
    assert [mention.name for mention in bob.mentions] == ["Bob"]
    (request,) = model.requests
    assert request.prompt == "read-together.v3"
    assert (request.segment_id, request.shared_with) == ("s1", ("s2",))
    assert "<text 2>\nTitle: Title 2\nBob stayed in Ostia.\n</text>" in request.messages[1].content


async def test_a_name_of_another_passage_is_none_of_this_one() -> None:
    mixed = entry(1, "Ann", entities=["Ann|PERSON", "Bob|PERSON"], relations=["Ann|met|Bob"])
    model = ScriptedModel(replied(mixed, entry(2, "Bob")))
    ann, _ = await reasoner(model).extract_together([ANN, BOB])
    assert ann is not None
    assert [mention.name for mention in ann.mentions] == ["Ann"]
    assert ann.statements == ()


@pytest.mark.parametrize(
    "entries",
    [
        [entry(1, "Ann")],
        [entry(1, "Ann"), entry(2, "Bob"), entry(2, "Ostia")],
        [entry(1, "Ann"), entry(2, "Carol")],
        [entry(1, "Ann"), entry(3, "Bob")],
    ],
    ids=["missing", "twice", "of no name in it", "of another number"],
)
async def test_a_passage_that_a_shared_call_cannot_judge_gets_its_own_call(
    entries: list[dict[str, Any]],
) -> None:
    ann, bob = await reasoner(ScriptedModel(replied(*entries))).extract_together([ANN, BOB])
    assert ann is not None
    assert bob is None


async def test_a_passage_in_which_the_model_finds_nothing_is_not_paid_again() -> None:
    nothing = entry(2, "Bob", entities=[])
    ann, bob = await reasoner(ScriptedModel(replied(entry(1, "Ann"), nothing))).extract_together(
        [ANN, BOB]
    )
    assert ann is not None
    assert bob is not None
    assert bob.mentions == ()


async def test_a_reply_that_lost_something_counts_for_no_passage() -> None:
    broken = replied(entry(1, "Ann"), entry(2, "Bob"))[:-30]
    with pytest.raises(ModelOutputError):
        await reasoner(ScriptedModel(broken, broken)).extract_together([ANN, BOB])


async def test_a_passage_without_a_number_is_read_alone_and_the_others_are_kept() -> None:
    model = ScriptedModel(replied(entry(1, "Ann"), {"n": "two", "entities": ["Bob|PERSON"]}))
    ann, bob = await reasoner(model).extract_together([ANN, BOB])
    assert ann is not None
    assert [mention.name for mention in ann.mentions] == ["Ann"]
    assert bob is None


async def test_second_readings_share_a_call_too() -> None:
    known = Contribution("s1", "extraction", (Mention("Ann", "PERSON", ("Ann",)),))
    more = {"n": 1, "entities": ["2|Rome|PLACE"], "relations": ["1|Ann|left|Rome"]}
    model = ScriptedModel(json.dumps({"passages": [more, {"n": 2}]}))
    jobs = [
        job(1, "Ann left Rome.", known=known, questions=("Who left?", "Left what?")),
        job(2, "Bob stayed.", known=Contribution("s2", "extraction"), questions=("Who stayed?",)),
    ]
    ann, bob = await reasoner(model).supplement_together(jobs)
    assert ann is not None
    assert [(m.name, m.question) for m in ann.mentions] == [("Rome", "Left what?")]
    assert ann.statements == (Statement("Ann", "Rome", "left", "Who left?"),)
    assert ann.asked == ("Who left?", "Left what?")
    assert bob == Contribution("s2", "supplement", asked=("Who stayed?",), by_model=True)
    assert "1. Who left?\n2. Left what?" in model.requests[0].messages[1].content


async def test_passages_that_do_not_fit_the_window_together_are_refused() -> None:
    with pytest.raises(WindowTooSmall):
        await reasoner(ScriptedModel(), window=400).extract_together([ANN, BOB])


def test_the_more_room_a_window_has_the_more_is_shared() -> None:
    assert reasoner(ScriptedModel(), window=16_384).shared_tokens == 16_384 // 6
    assert reasoner(ScriptedModel(), window=32_000).shared_tokens == 3_000
    assert reasoner(ScriptedModel()).shared_tokens == 600
    assert reasoner(ScriptedModel(), window=600).shared_tokens == 100
    assert reasoner(ScriptedModel(), shared_tokens=0).shared_tokens == 0
    paper = PromptedReasoner(ScriptedModel(), TOKENIZER, mode="paper", settings=Settings())
    assert paper.shared_tokens == 0


# --- builds --------------------------------------------------------------------------------------


class Notes:
    """Notes capitalised words passage by passage, the same alone or together; remembers.

    Attributes:
        requests: all of them.
    """

    name = "notes"

    def __init__(
        self,
        spoil: Callable[[ChatRequest], str | Exception | None] = lambda request: None,
        seed: int | None = None,
    ) -> None:
        self.requests: list[ChatRequest] = []
        self._spoil = spoil
        self._dice = random.Random(seed) if seed is not None else None

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if self._dice:
            await asyncio.sleep(self._dice.random() / 100)
        spoilt = self._spoil(request)
        if isinstance(spoilt, Exception):
            raise spoilt
        return ChatReply(self._reply(request) if spoilt is None else spoilt)

    def _reply(self, request: ChatRequest) -> str:
        parts = re.split(r"<text \d+>\nTitle: .*", request.messages[1].content)
        assert request.schema is not None
        if "passages" not in request.schema["properties"]:
            return json.dumps(self._noted(request.messages[1].content, request.stage))
        noted = [self._noted(part, request.stage) for part in parts[1:]]
        return json.dumps({"passages": [{"n": n, **made} for n, made in enumerate(noted, 1)]})

    @staticmethod
    def _noted(text: str, stage: str) -> dict[str, list[str]]:
        names = [n for n in PEOPLE if re.search(rf"\b{n}\b", text)]
        if stage == "supplement":
            return {"entities": [], "relations": [f"1|{names[0]}|is asked about with|{names[-1]}"]}
        return {
            "entities": [f"{name}|PERSON" for name in names],
            "relations": [f"{a}|saw|{b}" for a, b in pairwise(names)],
            "questions": [f"Whom did {a} see when {b} came?" for a, b in pairwise(names)],
        }


async def store_of(count: int) -> ReferenceStore:
    store = ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", TOKENIZER.name, 600))
    for n in range(count):
        a, b, c = (PEOPLE[(n * k + k) % len(PEOPLE)] for k in (1, 2, 3))
        document = Document(f"{a} saw {b} near bridge {n}. Later {c} came.", f"T{n}", f"d{n:02}")
        await store.put_documents("ns", [(document, cut(f"d{n:02}", document, TOKENIZER, 600))])
    return store


async def built(
    store: ReferenceStore, model: Any, ids: Sequence[str] = (), **chosen: Any
) -> BuildOutcome:
    settings = Settings(shared_tokens=chosen.pop("shared_tokens", 60), questions=5)
    made = PromptedReasoner(model, TOKENIZER, mode="compact", settings=settings)
    source = [info.id for info in await store.documents("ns")]
    return await build_documents(build_of(store, made, **chosen), ids or source, source=source)


async def graph(store: ReferenceStore) -> dict[str, Any]:
    found = await dump(store)
    return {part: found[part] for part in ("entities", "facts", "questions", "contributions")}


async def undisturbed(count: int) -> tuple[dict[str, Any], int]:
    store, model = await store_of(count), Notes()
    assert (await built(store, model)).states == {"ok": count}
    return await graph(store), len(model.requests)


async def test_sharing_calls_changes_their_number_and_not_the_graph() -> None:
    shared, fewer = await undisturbed(12)
    store, model = await store_of(12), Notes()
    await built(store, model, shared_tokens=0)
    assert await graph(store) == shared
    assert len(model.requests) == 23
    assert fewer == 6


@pytest.mark.parametrize("concurrency", [1, 7])
async def test_order_of_replies_and_concurrency_do_not_matter(concurrency: int) -> None:
    expected, _ = await undisturbed(12)
    for seed in range(3):
        store = await store_of(12)
        await built(store, Notes(seed=seed), concurrency=concurrency)
        assert await graph(store) == expected


async def test_a_segment_that_a_shared_call_left_out_gets_its_own_call() -> None:
    def without_the_second(request: ChatRequest) -> str | None:
        if not request.shared_with:
            return None
        found = json.loads(Notes()._reply(request))
        return json.dumps({"passages": [e for e in found["passages"] if e["n"] != 2]})

    store, model = await store_of(6), Notes(without_the_second)
    assert (await built(store, model)).states == {"ok": 6}
    assert await graph(store) == (await undisturbed(6))[0]
    together = [r for r in model.requests if r.shared_with]
    alone = [r.segment_id for r in model.requests if not r.shared_with]
    assert sorted(alone) == sorted(request.shared_with[0] for request in together)


async def test_segments_fail_one_by_one_though_they_share_a_call() -> None:
    bad = "d01"

    def gibberish(request: ChatRequest) -> str | None:
        return "hm" if "bridge 1." in request.messages[1].content else None

    store = await store_of(6)
    outcome = await built(store, Notes(gibberish))
    assert outcome.states == {"ok": 5, "failed": 1}
    assert [problem[:2] for problem in outcome.problems] == [(bad, 0)]
    # What failed is tried again, and no other segment is.
    model = Notes()
    assert (await built(store, model)).states == {"ok": 6}
    assert await graph(store) == (await undisturbed(6))[0]
    assert len(model.requests) <= 4


async def test_a_model_that_cannot_read_several_is_soon_not_asked_to() -> None:
    store, model = await store_of(24), Notes(lambda request: "hm" if request.shared_with else None)
    assert (await built(store, model, concurrency=1)).states == {"ok": 24}
    assert sum(bool(request.shared_with) for request in model.requests) == 2 * 3
    assert await graph(store) == (await undisturbed(24))[0]


@pytest.mark.parametrize("at", range(6))
async def test_a_build_that_is_stopped_anywhere_ends_where_an_undisturbed_one_does(at: int) -> None:
    expected, count = await undisturbed(12)
    store = await store_of(12)

    def dies(request: ChatRequest) -> Exception | None:
        return ModelUnavailable("gone") if len(stopped.requests) > at else None

    stopped, resumed = Notes(dies), Notes()
    with pytest.raises(ModelUnavailable):
        await built(store, stopped, concurrency=2)
    unread = [i.id for i in await store.documents("ns") if dict(i.states) != {"ok": 1}]
    await built(store, resumed, unread, concurrency=2)
    assert await graph(store) == expected
    assert at + len(resumed.requests) == count


async def test_calls_that_segments_share_are_committed_with_them() -> None:
    store = await store_of(3)
    ids = [info.id for info in await store.documents("ns")]
    segments = await store.segments("ns", documents=ids)
    run = build_of(store, reasoner(Notes(), shared_tokens=60), shared_tokens=60)
    about = [CallRecord("r", "extract", "construction", "p", "m", one.id) for one in segments]
    run.parts.calls.extend(about)
    await build_documents(run, ids)
    assert run.parts.calls == []
    assert sorted(await store.calls("ns"), key=lambda call: call.segment_id) == sorted(
        about, key=lambda call: call.segment_id
    )
