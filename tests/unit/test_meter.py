"""Counting calls, caps, the cache and the limiter, without a server."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import fakes
import pytest
from fakes import ScriptedModel, WordTokenizer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from qrmem.errors import (
    CapReached,
    ModelUnavailable,
    ModelUnusable,
    StoreUnavailable,
    UsageError,
)
from qrmem.llm.breaker import PROVEN, UNKNOWN
from qrmem.llm.budget import Amount, Budget, Caps, Price
from qrmem.llm.meter import Meter
from qrmem.llm.replies import strict_schema
from qrmem.llm.reply_cache import ReplyCache, cache_key
from qrmem.llm.retry import AdaptiveConcurrency
from qrmem.llm.servers import Transient
from qrmem.llm.structured import ask
from qrmem.llm.totals import usage
from qrmem.types import CallRecord, ChatReply, ChatRequest, Event, Message


class Noted(BaseModel):
    names: list[str]
    notes: list[str] = []


TYPED: dict[str, Any] = {"schema": strict_schema(Noted), "reply_model": Noted}


class Server:
    """A chat model that honours `max_tokens` and remembers what it was asked."""

    name = "server"

    def __init__(self, tokens_out: int = 10, fails: int = 0) -> None:
        self.tokens_out = tokens_out
        self.fails = fails
        self.calls = 0
        self.tokens = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.calls += 1
        await asyncio.sleep(0)
        if self.calls <= self.fails:
            raise ModelUnavailable("down")
        tokens_in = sum(len(m.content.split()) for m in request.messages)
        tokens_out = min(self.tokens_out, request.max_tokens)
        self.tokens += tokens_in + tokens_out
        return ChatReply("fine", tokens_in=tokens_in, tokens_out=tokens_out, model="server")


def request(text: str = "one two three", **changes: Any) -> ChatRequest:
    return ChatRequest(messages=(Message("user", text),), **{"max_tokens": 20} | changes)


def metered(chat: Any, **changes: Any) -> Meter:
    return fakes.metered(chat, **{"tokenizer": WordTokenizer()} | changes)


def outcomes(told: Sequence[Event]) -> list[str]:
    """Return how calls ended, in the order in which they did."""
    return [event.data["outcome"] for event in told if event.kind == "call"]


# --- records -------------------------------------------------------------------------------------


async def test_a_call_is_recorded_with_all_that_it_was_about() -> None:
    sent: list[CallRecord] = []
    events: list[Event] = []
    meter = metered(
        Server(),
        sink=sent.append,
        listener=lambda event: events.append(event),
        price_of=lambda model: Price(input=1.0, output=2.0),
    )
    await meter.complete(request(stage="read", prompt="read.v1", segment_id="s1"))
    (record,) = sent
    assert (record.run, record.phase, record.stage) == ("r1", "construction", "read")
    assert (record.prompt, record.model, record.segment_id) == ("read.v1", "server", "s1")
    assert (record.tokens_in, record.tokens_out, record.attempts) == (3, 10, 1)
    assert record.outcome == "ok"
    assert record.cost == pytest.approx(23e-6)
    assert events[0].kind == "call"
    assert events[0].data["tokens_in"] == 3


async def test_tokens_are_counted_here_where_the_server_does_not() -> None:
    meter = metered(ScriptedModel("four words came back"))
    await meter.complete(request())
    assert (meter.budget.usage().tokens_in, meter.budget.usage().tokens_out) == (3, 4)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('{"names": ["Ahab"]}', "ok"),
        ('```\n{"names": ["Ahab"]}\n```', "repaired"),
        ("no", "unparsable"),
    ],
)
async def test_the_outcome_tells_how_the_reply_could_be_read(text: str, outcome: str) -> None:
    told: list[Event] = []
    meter = metered(ScriptedModel(text), listener=told.append)
    await meter.complete(request(**TYPED))
    assert outcomes(told)[0] == outcome


async def test_a_reply_that_is_used_without_its_last_field_does_not_count_as_unparsable() -> None:
    cut = ChatReply('{"names": ["Ahab", "Starb', finish_reason="length")
    told: list[Event] = []
    meter = metered(ScriptedModel(cut), listener=told.append)
    used = await ask(meter, request(), Noted)
    assert used.value.names[0] == "Ahab"
    assert outcomes(told) == ["repaired"]


async def test_a_reply_that_is_cut_after_its_json_has_ended_has_lost_nothing() -> None:
    whole = '{"names": ["Ahab"]}'
    for text, is_lost in ((f"{whole}\n{whole[:9]}", False), (whole[:-1], True)):
        model = ScriptedModel(ChatReply(text, finish_reason="length"))
        assert bool((await ask(model, request(), Noted)).problems) is is_lost


async def test_a_failed_call_is_recorded_under_its_error() -> None:
    told: list[Event] = []
    meter = metered(Server(fails=1), listener=told.append)
    with pytest.raises(ModelUnavailable):
        await meter.complete(request())
    assert outcomes(told)[0] == "ModelUnavailable"


def test_sums_are_made_by_stage_and_phase() -> None:
    def call(stage: str, phase: Any, outcome: str = "ok") -> CallRecord:
        return CallRecord("r", stage, phase, "p", "m", tokens_in=5, tokens_out=2, outcome=outcome)

    records = [
        call("read", "construction"),
        call("read", "construction"),
        call("judge", "online"),
        call("judge", "online", "cached"),
    ]
    paid = usage(records)
    assert paid.construction["read"].calls == 2
    assert paid.construction["read"].tokens_in == 10
    assert paid.online["judge"].calls == 1
    assert paid.calls == 3
    assert usage(records, with_cached=True).online["judge"].calls == 2


# --- caps ----------------------------------------------------------------------------------------


@given(
    cap=st.integers(1, 400),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    reply=st.integers(0, 60),
    in_flight=st.integers(1, 6),
)
def test_a_cap_on_tokens_is_never_exceeded(
    cap: int, sizes: list[int], reply: int, in_flight: int
) -> None:
    async def run() -> None:
        server = Server(tokens_out=reply)
        meter = metered(server, caps=Caps(tokens=cap))
        places = asyncio.Semaphore(in_flight)

        async def one(size: int) -> None:
            async with places:
                await meter.complete(request(" ".join(["w"] * size)))

        results = await asyncio.gather(*map(one, sizes), return_exceptions=True)
        assert server.tokens <= cap
        assert all(r is None or isinstance(r, CapReached) for r in results)

    asyncio.run(run())


async def test_a_cap_on_calls_is_reached_exactly_and_then_holds() -> None:
    server = Server()
    meter = metered(server, caps=Caps(calls=3))
    results = await asyncio.gather(
        *(meter.complete(request()) for _ in range(8)), return_exceptions=True
    )
    assert server.calls == 3
    assert sum(isinstance(r, CapReached) for r in results) == 5
    with pytest.raises(CapReached, match="cap of 3 calls"):
        await meter.complete(request())


async def test_a_call_that_a_cap_refuses_costs_nothing() -> None:
    told: list[Event] = []
    meter = metered(Server(), caps=Caps(calls=1), listener=told.append)
    await meter.complete(request())
    with pytest.raises(CapReached):
        await meter.complete(request())
    assert outcomes(told) == ["ok"]


async def test_a_reservation_that_is_given_back_lets_a_waiting_call_go() -> None:
    server = Server(tokens_out=1)
    meter = metered(server, caps=Caps(tokens=60))  # one reservation at a time
    await asyncio.gather(*(meter.complete(request()) for _ in range(5)))
    assert server.calls == 5


async def test_a_cap_on_money_needs_a_price_and_holds() -> None:
    with pytest.raises(UsageError, match="price"):
        metered(Server(), caps=Caps(cost=1.0))
    server = Server(tokens_out=20)
    price = Price(input=0.0, output=1_000_000.0)
    meter = metered(server, caps=Caps(cost=50.0), price_of=lambda model: price)
    for _ in range(2):
        await meter.complete(request())
    with pytest.raises(CapReached, match="money"):
        await meter.complete(request())
    assert meter.budget.used.cost == 40.0


async def test_a_cap_on_time_ends_a_call_that_hangs() -> None:
    class Hanging(Server):
        async def complete(self, request: ChatRequest) -> ChatReply:
            await asyncio.sleep(3600)
            raise AssertionError

    told: list[Event] = []
    # Long enough for the call to begin.
    meter = metered(Hanging(), caps=Caps(seconds=0.3), listener=told.append)
    with pytest.raises(CapReached, match="seconds"):
        await meter.complete(request())
    assert outcomes(told)[0] == "CapReached"


async def test_a_request_of_unknown_fate_counts_in_full() -> None:
    class Lost(Server):
        async def complete(self, request: ChatRequest) -> ChatReply:
            raise Transient("no answer", cause="timeout")

    meter = metered(Lost())
    with pytest.raises(ModelUnavailable):
        await meter.complete(request())
    assert meter.budget.used.tokens >= 23
    meter = metered(Server(fails=1))
    with pytest.raises(ModelUnavailable):
        await meter.complete(request())
    assert meter.budget.used == Amount(calls=1)


async def test_an_excess_that_the_server_causes_is_reported() -> None:
    events: list[Event] = []
    reply = ChatReply("much", tokens_in=5000, tokens_out=5000)
    meter = metered(ScriptedModel(reply), listener=lambda event: events.append(event))
    await meter.complete(request())
    assert events[0].data["what"] == "excess"


def test_cached_prompt_tokens_have_a_price_of_their_own() -> None:
    assert Price(10.0, 0.0, cached=1.0).of(1_000_000, 0, 400_000) == pytest.approx(6.4)
    assert Price(10.0, 0.0).of(1_000_000, 0, 400_000) == pytest.approx(10.0)


async def test_time_left_falls() -> None:
    now = [0.0]
    budget = Budget(caps=Caps(seconds=10), clock=lambda: now[0])
    now[0] = 4.0
    assert budget.seconds_left() == 6.0
    now[0] = 11.0
    with pytest.raises(CapReached, match="10 seconds"):
        budget.check(Amount(1))


# --- the cache -----------------------------------------------------------------------------------


class Kept:
    """A store of replies."""

    def __init__(self, seconds: float = 0.0) -> None:
        """Take so long to write a reply."""
        self._seconds = seconds
        self.values: dict[str, Mapping[str, Any]] = {}
        self.segments: list[str] = []
        self.calls: list[CallRecord] = []
        self.is_open = True

    async def get(self, key: str) -> Mapping[str, Any] | None:
        return self.values.get(key)

    async def put(
        self,
        key: str,
        value: Mapping[str, Any],
        segments: Sequence[str],
        calls: Sequence[CallRecord],
    ) -> None:
        await asyncio.sleep(self._seconds)
        if not self.is_open:
            raise StoreUnavailable("locked")
        self.values[key] = value
        self.segments += segments
        self.calls += calls


async def test_a_reply_is_paid_for_once_and_counted_as_cached_after() -> None:
    kept, server = Kept(), Server()
    told: list[Event] = []
    meter = metered(
        server,
        cache=ReplyCache(kept.get, kept.put),
        price_of=lambda model: Price(1.0, 1.0),
        listener=told.append,
    )
    first = await meter.complete(request(segment_id="s1"))
    second = await meter.complete(request(segment_id="s1"))
    assert server.calls == 1
    assert not first.from_cache
    assert second.from_cache
    assert second.text == first.text
    assert outcomes(told) == ["ok", "cached"]
    assert [event.data["attempts"] for event in told] == [1, 0]
    assert told[1].data["cost"] == 0.0
    assert meter.budget.usage().calls == 1
    assert kept.segments == ["s1"]


async def test_a_reply_is_kept_together_with_its_record_and_no_record_is_written_twice() -> None:
    kept, sunk = Kept(), list[CallRecord]()
    chat = ScriptedModel("fine", "", "good")
    told: list[Event] = []
    meter = metered(
        chat, cache=ReplyCache(kept.get, kept.put), sink=sunk.append, listener=told.append
    )
    for text in ("one", "two"):
        await meter.complete(request(text))
    assert [record.outcome for record in kept.calls] == ["ok"]
    assert [record.outcome for record in sunk] == ["unparsable"]
    kept.is_open = False
    with pytest.raises(StoreUnavailable):
        await meter.complete(request("three"))
    assert [record.outcome for record in sunk] == ["unparsable", "ok"]
    assert outcomes(told) == [record.outcome for record in (*kept.calls, *sunk)]


async def test_a_reply_that_came_is_kept_and_counted_where_the_run_is_given_up() -> None:
    # The time ends while the reply, which comes at once, is written.
    kept, sunk = Kept(seconds=0.6), list[CallRecord]()
    meter = metered(
        ScriptedModel("fine"),
        cache=ReplyCache(kept.get, kept.put),
        sink=sunk.append,
        caps=Caps(seconds=0.3),
    )
    with pytest.raises(CapReached):
        await meter.complete(request())
    assert len(kept.values) == len(kept.calls) == 1
    assert [record.outcome for record in (*kept.calls, *sunk)] == ["ok"]


async def test_a_reply_is_kept_however_often_its_run_is_given_up() -> None:
    kept = Kept(seconds=0.05)
    meter = metered(ScriptedModel("fine"), cache=ReplyCache(kept.get, kept.put))
    run = asyncio.create_task(meter.complete(request()))
    for _ in range(3):
        await asyncio.sleep(0.01)
        run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(kept.values) == len(kept.calls) == 1


# --- once and no more ----------------------------------------------------------------------------


async def test_a_reply_is_read_once_however_many_layers_look_at_it() -> None:
    read: list[str] = []

    class Names(BaseModel):
        names: list[str]

        @field_validator("names")
        @classmethod
        def noted(cls, names: list[str]) -> list[str]:
            read.append(", ".join(names))
            return names

    kept = Kept()
    meter = metered(ScriptedModel('{"names": ["Ahab"]'), cache=ReplyCache(kept.get, kept.put))
    for _ in range(2):  # the second one out of the cache
        await ask(meter, request(), Names)
    assert read == ["Ahab"] * 2


async def test_a_prompt_that_was_counted_is_not_counted_again() -> None:
    class Counting(WordTokenizer):
        texts = 0

        def count(self, text: str) -> int:
            self.texts += 1
            return super().count(text)

    tokenizer = Counting()
    reply = ChatReply("fine", tokens_in=3, tokens_out=1)
    meter = metered(ScriptedModel(reply, reply), tokenizer=tokenizer)
    await meter.complete(request(prompt_tokens=11))
    assert tokenizer.texts == 0
    await meter.complete(request())
    assert tokenizer.texts == 1


# --- replies that cannot be read -----------------------------------------------------------------


async def answered(meter: Meter, times: int, **changes: Any) -> int:
    """Ask until the meter stops it, and return how many replies came."""
    for n in range(times):
        try:
            await meter.complete(request(**TYPED, attempt=n, **changes))
        except ModelUnusable:
            return n
    return times


async def test_a_model_that_gives_nothing_to_read_is_not_asked_on_for_ever() -> None:
    told: list[Event] = []
    meter = metered(ScriptedModel(*["I would rather not."] * 100), listener=told.append)
    assert await answered(meter, 100) == UNKNOWN
    with pytest.raises(ModelUnusable, match=r"20 in a row.*I would rather not.*doctor --model"):
        await meter.complete(request())
    assert len(outcomes(told)) == UNKNOWN


async def test_one_good_reply_buys_patience_and_starts_the_count_again() -> None:
    replies = [*["no"] * 19, '{"names": []}', *["no"] * 59, '{"names": []}', *["no"] * 100]
    meter = metered(ScriptedModel(*replies))
    assert await answered(meter, 200) == 80 + PROVEN


async def test_a_model_that_was_of_use_in_an_earlier_run_is_given_more_patience() -> None:
    meter = metered(ScriptedModel(*["no"] * 100))
    meter.breaker.prove()
    assert await answered(meter, 100) == PROVEN


async def test_refusals_of_a_text_and_questions_are_not_held_against_a_model() -> None:
    refusal = ChatReply("I can't help with that.", finish_reason="refusal")
    assert await answered(metered(ScriptedModel(*[refusal] * 50)), 50) == 50
    assert await answered(metered(ScriptedModel(*["no"] * 50), phase="online"), 50) == 50


async def test_a_reply_that_cannot_be_read_is_not_kept() -> None:
    kept = Kept()
    chat = metered(ScriptedModel("", "no", "fine"), cache=ReplyCache(kept.get, kept.put))
    await chat.complete(request())
    await chat.complete(request(**TYPED))
    assert kept.values == {}
    await chat.complete(request())
    assert len(kept.values) == 1


CHANGES: list[dict[str, Any]] = [
    {"messages": (Message("user", "other"),)},
    {"messages": (Message("system", "one two three"),)},
    {"schema": TYPED["schema"]},
    {"schema_name": "n"},
    {"temperature": 0.7},
    {"top_p": 0.9},
    {"max_tokens": 21},
    {"attempt": 1},
    {"log_probs": True},
]


def test_everything_that_shapes_a_reply_is_in_its_key_and_nothing_else() -> None:
    def key(changed: ChatRequest, **where: str) -> str:
        return cache_key(changed, **{"model": "m", "address": "http://a/v1"} | where)

    def changed(change: dict[str, Any]) -> ChatRequest:
        base: dict[str, Any] = {"messages": (Message("user", "one two three"),), "max_tokens": 20}
        return ChatRequest(**base | change)

    keys = [key(request())]
    keys += [key(changed(change)) for change in CHANGES]
    keys += [key(request(), model="n"), key(request(), address="b")]
    assert len(set(keys)) == len(keys)
    assert key(request(stage="judge", prompt="p", segment_id="s")) == keys[0]


# --- adaptive concurrency ------------------------------------------------------------------------


class Line:
    """Counts the running calls, and fails on request."""

    def __init__(self, places: AdaptiveConcurrency) -> None:
        self.places = places
        self.inside = 0
        self.most = 0
        self.fails = False

    async def pass_through(self) -> None:
        async with self.places:
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0)
            self.inside -= 1
            if self.fails:
                raise Transient("busy", cause="busy")

    async def many(self, count: int) -> None:
        await asyncio.gather(*(self.pass_through() for _ in range(count)), return_exceptions=True)


async def test_fewer_calls_are_in_flight_after_an_overload_and_more_again_later() -> None:
    now = [0.0]
    places = AdaptiveConcurrency(8, clock=lambda: now[0])
    line = Line(places)
    await line.many(20)
    assert line.most == 8
    line.fails = True
    await line.many(8)
    assert places.limit == 4  # one overload, however many calls it met
    now[0] = 5.0
    await line.many(4)
    assert places.limit == 2
    line.fails, line.most = False, 0
    await line.many(2)
    assert line.most == 2
    await line.many(60)
    assert places.limit == 8


async def test_a_cancelled_wait_gives_its_place_away() -> None:
    gate = asyncio.Event()
    places = AdaptiveConcurrency(1)

    async def held() -> str:
        async with places:
            await gate.wait()
            return "through"

    tasks = [asyncio.create_task(held()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [result == "through" for result in results] == [True, False, True]
    assert await held() == "through"
