"""Conversations: stored turns, and the turns that a prompt needs (FragRel, B.3; F19)."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

import qrmem
import qrmem.sync
from qrmem.errors import UsageError
from qrmem.graphstore.sqlite import SqliteStore
from qrmem.memory.chat import stored_turns
from qrmem.types import DocumentInfo, Event, Segment


def opened() -> "qrmem.memory.Opening":
    return qrmem.open("memory://", embedder="none")


async def test_a_short_history_goes_to_the_model_as_it_is() -> None:
    async with opened() as memory:
        await memory.add_turn("user", "My boat is called Nell.", at="2026-01-01T10:00")
        await memory.add_turn("assistant", "A fine name.", at="2026-01-01T10:01")
        found = await memory.recall("What is my boat called?")
        assert [turn.text for turn in found.recent] == ["My boat is called Nell.", "A fine name."]
        assert found.related == ()
        assert found.messages == [
            {"role": "user", "content": "[2026-01-01T10:00:00] My boat is called Nell."},
            {"role": "assistant", "content": "A fine name."},
        ]


async def test_messages_of_several_people_have_their_names_and_times() -> None:
    async with opened() as memory:
        said = {"role": "user", "content": "The boat is called Nell.", "name": "Ann"}
        said["at"] = "2026-01-01T10:00"
        await memory.add_messages([said, {**said, "role": "assistant", "name": "Bo"}])
        await memory.add_messages([{**said, "role": "pilot"}])
        found = await memory.recall("What is the boat called?")
        assert found.messages == [
            {"role": role, "content": f"[2026-01-01T10:00:00] {who}: The boat is called Nell."}
            for role, who in [("user", "Ann"), ("assistant", "Bo"), ("user", "Ann, pilot")]
        ]


async def test_rounds_outside_the_recent_history_are_recalled_by_relation_in_order_of_time() -> (
    None
):
    async with opened() as memory:
        await memory.add_turn("user", "My boat is called Nell.", at="2026-01-01T10:00")
        await memory.add_turn("assistant", "A fine name for a cutter.", at="2026-01-01T10:01")
        filler = [("user", f"Tell me about recipe {n} with salt.") for n in range(30)]
        filler.append(("assistant", "Well."))
        await memory.add_messages(filler, at="2026-01-02T10:00")
        found = await memory.recall("Which boat is it that I have?")
        assert sum(turn.role == "user" for turn in found.recent) == stored_turns.RECENT_ROUNDS
        texts = [turn.text for turn in found.related]
        # The reply shares no word with the prompt: it is there for the turn before it.
        assert texts[:2] == ["My boat is called Nell.", "A fine name for a cutter."]
        paper = await memory.recall("Which boat is it that I have?", how="fragrel")
        numbers = [turn.number for turn in paper.related]
        assert numbers[:2] == [1, 2]
        assert numbers == sorted(numbers)
        assert len(numbers) == 8
        assert "[2026-01-01T10:00:00] user: My boat is called Nell." in found.text


async def test_everything_recalled_is_within_the_cap() -> None:
    async with opened() as memory:
        await memory.add_messages([("user", f"harbour {n} " * 60) for n in range(40)])
        for cap in (50, 500, 2000):
            assert (await memory.recall("harbour", tokens=cap)).tokens <= cap
        with pytest.raises(UsageError, match="at least 1, not -5"):
            await memory.recall("harbour", tokens=-5)


async def test_a_large_cap_is_filled_by_short_turns_that_match() -> None:
    async with opened() as memory:
        said = [("user", f"Heron number {n} stood by the lake.") for n in range(400)]
        await memory.add_messages(said, session="old")
        found = await memory.recall("Which herons did I mention?", tokens=20_000, session="new")
        assert len(found.related) == 400


@pytest.mark.parametrize("how", ["turns", "fragrel"])
async def test_what_is_printed_of_it_is_within_the_cap(how: Any) -> None:
    said = [
        {
            "role": "tool" if n % 3 else "user",
            "content": f"Yesterday boat {n} left from gate {n + 7}.",
            "name": "Ann of Skarrow",
            "at": f"2026-04-01T09:{n:02}+02:00",
        }
        for n in range(60)
    ]
    async with opened() as memory:
        await memory.add_messages(said)
        await memory.add_messages([("user", "Actually, boat 3 left from gate 99.")])
        models = await memory._session.models()
        count = models.counter.count
        for cap in (20, 60, 250, 1200):
            found = await memory.recall("Which gate did boat 3 leave from?", tokens=cap, how=how)
            printed = count(found.text) + sum(count(one["content"]) for one in found.messages)
            assert printed == found.tokens <= cap
    assert "(Yesterday: 2026-03-31)" in found.text


async def test_the_newest_turn_about_a_thing_stands_after_the_older_one_with_its_day() -> None:
    async with opened() as memory:
        await memory.add_turn("user", "The flight to Oslo leaves on 3 May.", at="2026-04-01T09:00")
        await memory.add_turn("assistant", "Noted.", at="2026-04-01T09:01")
        await memory.add_turn(
            "user", "Actually the flight to Oslo moved to 5 May.", at="2026-04-02T09:00"
        )
        await memory.add_messages([("user", f"Soup number {n}?") for n in range(30)])
        text = (await memory.recall("When does the flight to Oslo leave?")).text
        older, newer = text.index("leaves on 3 May"), text.index("[2026-04-02T09:00:00] user: Act")
        assert older < newer
        assert "corrected" not in text


async def test_what_is_recalled_is_taken_by_langchain_whatever_the_roles_were() -> None:
    async with opened() as memory:
        await memory.add_messages(
            [
                SystemMessage("Be kind."),
                AIMessage("", tool_calls=[{"name": "price", "args": {}, "id": "1"}]),
                ToolMessage("42 euros", tool_call_id="1"),
                ("narrator", "It rained."),
                AIMessage("It costs 42 euros."),
            ],
            at="2026-01-01",
        )
        found = await memory.recall("What does it cost?")
        assert [(m.type, m.content) for m in convert_to_messages(found.messages)] == [
            ("system", "Be kind."),
            ("human", "[2026-01-01T00:00:00] tool: 42 euros"),
            ("human", "[2026-01-01T00:00:00] narrator: It rained."),
            ("ai", "It costs 42 euros."),
        ]


async def test_speakers_times_and_sessions_are_kept() -> None:
    async with opened() as memory:
        when = datetime(2026, 1, 1, 12, tzinfo=UTC)
        await memory.add_turn("user", "Hello.", at=when, session="a", speaker="Ann")
        await memory.add_turn("user", "Good day.", session="b")
        (turn,) = await memory.turns("a")
        assert (turn.speaker, turn.at, turn.number) == ("Ann", "2026-01-01T12:00:00+00:00", 1)
        assert [t.session for t in await memory.turns()] == ["a", "b"]
        assert (await memory.document(turn.id)).title == "Ann, 2026-01-01T12:00:00+00:00"
        assert (await memory.recall("Farewell", session="b")).related == ()
        recalled = await memory.recall("What did Ann say?", session="b")
        assert [t.text for t in recalled.recent] == ["Good day."]
        assert [t.text for t in recalled.related] == ["Hello."]


async def test_messages_of_langchain_and_langgraph_are_taken() -> None:
    async with opened() as memory:
        added = await memory.add_messages(
            [
                SystemMessage("Be kind."),
                HumanMessage("Where is Nell?", name="Ann"),
                AIMessage([{"type": "text", "text": "In the"}, {"type": "text", "text": "port."}]),
                AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
                ToolMessage("found", tool_call_id="1"),
                {"role": "assistant", "content": "Done."},
                ("user", "Thanks."),
            ]
        )
        turns = await memory.turns()
        assert added == [turn.id for turn in turns]
        assert [(t.role, t.text) for t in turns] == [
            ("system", "Be kind."),
            ("user", "Where is Nell?"),
            ("assistant", "In the\nport."),
            ("tool", "found"),
            ("assistant", "Done."),
            ("user", "Thanks."),
        ]
        assert turns[1].speaker == "Ann"


@pytest.mark.parametrize("wrong", ["one text", [1], [("user", 3)], [("", "x")], [("user", " ")]])
async def test_another_object_than_a_message_is_refused(wrong: object) -> None:
    async with opened() as memory:
        with pytest.raises(UsageError):
            await memory.add_messages(wrong)  # type: ignore[arg-type]


async def test_a_turn_whose_text_is_no_text_says_so() -> None:
    async with opened() as memory:
        with pytest.raises(UsageError, match="what was said must be text, not int"):
            await memory.add_turn("user", 3)  # type: ignore[arg-type]


async def test_an_invalid_time_is_refused() -> None:
    async with opened() as memory:
        with pytest.raises(UsageError, match="not a time"):
            await memory.add_turn("user", "Hello.", at="yesterday")


async def test_an_empty_conversation_recalls_nothing() -> None:
    async with opened() as memory:
        found = await memory.recall("Hello?")
        assert (found.recent, found.related, found.text, found.tokens) == ((), (), "", 0)


async def test_turns_are_asked_like_any_memory_and_cost_no_call() -> None:
    settings = qrmem.Settings(
        memory="memory://", embedder="none", model="m", base_url="http://127.0.0.1:9", retries=0
    )
    async with qrmem.open(settings=settings) as memory:
        await memory.add_turn("user", "My boat Nell lies in Oslo.", speaker="Ann")
        hits = await memory.search("Where does Nell lie?")
        assert hits[0].title.startswith("Ann, ")
        assert (await memory.status()).usage.calls == 0
    async with opened() as memory:
        await memory.add_turn("user", "My boat Nell lies in Oslo.", speaker="Ann")
        answer = await memory.ask("Where does the boat Nell lie?", strategy="fragment")
        assert answer.citations[0].document_id == "turn-00000001"
        assert "structure 0.8" in answer.trail.steps[0].reason


def test_the_synchronous_memory_converses_too() -> None:
    with qrmem.sync.open("memory://", embedder="none") as memory:
        memory.add_turn("user", "My boat is Nell.")
        memory.add_messages([("assistant", "Good.")])
        assert len(memory.recall("boat").recent) == len(memory.turns()) == 2


WORDS = ["flight", "ferry", "hotel", "lunch", "paper", "piano", "garden", "winter", "doctor"]


def chatter(count: int) -> list[tuple[str, str]]:
    """A conversation about a few things, with numbers that differ."""
    random = Random(6)
    said = []
    for n in range(count):
        words = random.sample(WORDS, random.randint(2, 5))
        mark = random.choice(["", "", "", "Actually, "])
        said.append((random.choice(["user", "assistant"]), f"{mark}{' '.join(words)} at {n}."))
    return said


async def test_a_long_conversation_is_recalled_without_reading_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    whole = SqliteStore.segments

    async def counted(
        self: SqliteStore, ns: str, ids: Sequence[str] = (), *, documents: Sequence[str] = ()
    ) -> Sequence[Segment]:
        read.extend(documents)
        return await whole(self, ns, ids, documents=documents)

    async with qrmem.open("memory://", embedder="none") as memory:
        filler = [("user", f"Of {n}a there is {n}b and {n}c.") for n in range(900)]
        await memory.add_messages([("user", "The flight leaves from gate seven."), *filler])
        monkeypatch.setattr(SqliteStore, "segments", counted)
        found = await memory.recall("Which gate does the flight leave from?")
    assert "turn-00000001" in {turn.id for turn in found.related}
    assert len(found.recent) == stored_turns.RECENT_ROUNDS
    assert len(read) < 400


async def test_only_neighbours_of_the_best_matching_turns_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []
    whole = SqliteStore.documents

    async def counted(self: SqliteStore, *args: Any, **options: Any) -> Sequence[DocumentInfo]:
        found = await whole(self, *args, **options)
        looked_at.append(len(found))
        return found

    async with opened() as memory:
        said = [f"The boat {n} is in." if n % 5 == 0 else f"Well, {n}." for n in range(1600)]
        begin = datetime(2025, 1, 1, tzinfo=UTC)
        messages = [
            {"role": "user", "content": text, "at": begin + n * timedelta(0.2)}
            for n, text in enumerate(said)
        ]
        await memory.add_messages(messages, user="ann")
        monkeypatch.setattr(SqliteStore, "documents", counted)
        for prompt, user in (
            ("Is boat 5 or boat 10 in?", None),
            ("Was the boat in in May?", "ann"),
        ):
            found = await memory.recall(prompt, user=user)
            assert sum("boat" in turn.text for turn in found.related) > 20
            assert sum(looked_at) < len(said)
            looked_at.clear()
        await memory.search("the boat", where={"user": "ann"})
        assert sum(looked_at) == 0
        assert await memory.add_messages(messages[-3:], user="ann", only_new=True) == []
        assert sum(looked_at) == 5  # and whether the last one is a turn, and whole


async def test_turns_that_are_kept_at_once_each_get_a_number_of_their_own() -> None:
    async with opened() as memory:
        said = [f"Note {n} about the harbour." for n in range(12)]
        await asyncio.gather(*(memory.add_turn("user", text) for text in said))
        assert sorted(turn.text for turn in await memory.turns()) == sorted(said)


async def test_what_was_said_at_the_time_that_the_prompt_names_comes_first() -> None:
    async with opened() as memory:
        for month in range(1, 10):
            said = [("user", f"We went to the market and the lake, number {month}.")] * 3
            await memory.add_messages(said, at=f"2026-0{month}-10T10:00", session=f"s{month}")
        found = await memory.recall("What did we do at the lake in May?", session="new", tokens=40)
    assert {turn.at[:7] for turn in found.related} == {"2026-05"}


@pytest.mark.parametrize("user", [None, "ann"])
async def test_turns_of_a_named_month_are_found_among_thousands(user: str | None) -> None:
    begin = datetime(2025, 1, 1, tzinfo=UTC)
    said = [
        {"role": "user", "content": f"I ate figs with guest{n}.", "at": begin + n * timedelta(0.2)}
        for n in range(1200)
    ]
    async with opened() as memory:
        await memory.add_messages(said, session="s", user=user or "")
        await memory.add_turn("user", "We met.", at=begin + timedelta(250), user="ben")
        for prompt in ("What happened in May?", "With whom did I eat figs in May?"):
            found = await memory.recall(prompt, session="other", tokens=400, user=user)
            assert {turn.at[:7] for turn in found.related} == {"2025-05"}


async def test_turns_are_in_the_order_in_which_they_were_said() -> None:
    async with opened() as memory:
        await memory.add_turn("user", "The boat got a new sail.", at="2026-05-02T10:00")
        await memory.add_turn("user", "The boat got a new mast.", at="2026-05-02T10:00")
        await memory.add_turn("user", "I bought the boat.", at="2025-03-01T10:00")
        found = await memory.recall("What about the boat?", session="new")
    assert [turn.number for turn in found.related] == [3, 1, 2]
    assert found.text.index("bought") < found.text.index("sail") < found.text.index("mast")


async def test_a_plan_is_shown_with_the_day_that_lies_ahead() -> None:
    async with opened() as memory:
        await memory.add_turn("user", "The flight leaves on 3 May.", at="2026-04-01T09:00")
        found = await memory.recall("When do we leave?", session="new")
    assert "(3 May: 2026-05-03)" in found.text


async def test_time_words_are_shown_with_their_days() -> None:
    async with opened() as memory:
        await memory.add_turn("user", "I went sailing yesterday.", at="2026-05-08T10:00")
        await memory.add_turn("user", "I also sailed in June 2020.", at="2026-05-08T10:01")
        found = await memory.recall("When did I go sailing?", session="new")
    assert found.times == {"turn-00000001": (("yesterday", "2026-05-07", "2026-05-07"),)}
    assert "I went sailing yesterday. (yesterday: 2026-05-07)" in found.text


async def test_the_last_turns_leave_most_of_the_budget_to_the_best_ones() -> None:
    async with opened() as memory:
        await memory.add_turn("user", "The flight to Oslo leaves from gate seven.")
        await memory.add_messages([("assistant", "Soup is served. " * 20) for _ in range(40)])
        found = await memory.recall("Which gate does the flight leave from?", tokens=400)
    assert sum(len(turn.text.split()) for turn in found.recent) <= 100
    assert "turn-00000001" in {turn.id for turn in found.related}


def broken(event: Event) -> None:
    """End a run after a text is stored and before anything is merged, as a kill does."""
    if event.kind == "document":
        raise KeyError


async def test_a_turn_whose_keeping_was_interrupted_is_finished_with_the_next_one() -> None:
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add_turn("user", "Nina keeps a kayak in Oslo.")
        with pytest.raises(KeyError):
            await memory.listening(broken).add_turn("user", "Mario sold the piano.")
        assert len((await memory.status()).problems) == 1
        await memory.add_turn("user", "Thank you.")
        assert (await memory.status()).problems == ()
        assert [hit.text for hit in await memory.search("Who sold the piano?", k=1)] == [
            "Mario sold the piano."
        ]


async def test_the_same_log_again_finishes_what_was_interrupted() -> None:
    log = [("user", "Nina keeps a kayak in Oslo."), ("user", "Mario sold the piano.")]
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        with pytest.raises(KeyError):
            await memory.listening(broken).add_messages(log, only_new=True)
        await memory.add_messages(log, only_new=True)
        assert await memory.add_messages(log, only_new=True) == []
        assert len(await memory.turns()) == 2
        assert (await memory.status()).problems == ()
