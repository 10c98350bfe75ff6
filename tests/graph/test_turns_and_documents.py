"""Turns are recognised by their metadata: a document beside them may have any id."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from servers.neo4j_server import Server

import qrmem
from qrmem.errors import UsageError

STORES = ["memory://", "chat.db", pytest.param("neo4j", marks=pytest.mark.neo4j)]
LIKE_TURNS = [
    "turn-99999999",
    "turn-00000001",
    "turn-based.md",
    "turn-",
    "turn-100000000",
    "turn-٣",
    "fact-00000001-1",
    "fact-99999999-1",
    "fact-x",
]
SOME = [
    {},
    {"turn": 5},
    {"chat": "a"},
    {"chat": "a", "turn": 5},
    {"chat": "a", "turn": "5", "role": "user"},
    {"chat": "a", "turn": True, "role": "user"},
    {"chat": "a", "turn": -1, "role": "user", "noted_of": "turn-00000001"},
    {"noted_of": "turn-00000001"},
]


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name != "neo4j":
        return name if "://" in name else str(tmp_path / name)
    server: Server = request.getfixturevalue("neo4j")
    server.clear()
    monkeypatch.setenv("NEO4J_USERNAME", server.user)
    monkeypatch.setenv("NEO4J_PASSWORD", server.password)
    return server.uri


async def soon(awaited: Any) -> Any:
    return await asyncio.wait_for(awaited, 30)


@pytest.mark.parametrize("metadata", SOME, ids=str)
async def test_a_conversation_continues_beside_documents_named_like_turns(
    place: str, metadata: dict[str, Any]
) -> None:
    async with qrmem.open(place, embedder="none") as memory:
        for n, id in enumerate(LIKE_TURNS):
            document = {"id": id, "text": f"Nell sailed {n} miles.", "metadata": metadata}
            await memory.add(document)
        kept = [
            await soon(memory.add_turn("user", "My boat is called Nell.", user="ann")),
            *await soon(memory.add_messages([("assistant", "A fine name."), ("user", "Yes.")])),
        ]
        assert kept == ["turn-00000002", "turn-00000003", "turn-00000004"]
        assert [turn.id for turn in await memory.turns()] == kept
        for how in ("turns", "fragrel"):
            found = await soon(memory.recall("Is the boat Nell?", session="b", how=how))
            assert {turn.id for turn in (*found.related, *found.recent)} <= set(kept)
            assert "My boat is called Nell." in found.text
        assert await memory.search("How many miles did Nell sail?")
        assert (await memory.ask("How many miles did Nell sail?")).citations
        await memory.delete("turn-00000001", kept[0])
        assert len(await memory.documents()) == len(LIKE_TURNS) + 1


async def test_many_documents_called_like_turns_do_not_hide_the_last_one(place: str) -> None:
    async with qrmem.open(place, embedder="none") as memory:
        assert await memory.add_turn("user", "My boat is called Nell.", session="a") == (
            "turn-00000001"
        )
        ids = [f"turn-{n:08}" for n in (*range(2, 70), *range(99_999_900, 100_000_000))]
        await memory.add([{"id": id, "text": f"Text of {id}."} for id in ids])
        assert await soon(memory.add_turn("user", "Or Brig.", session="a")) == "turn-00000070"
        assert [turn.number for turn in await memory.turns("a")] == [1, 70]
        log = [("user", "My boat is called Nell."), ("user", "Or Brig."), ("user", "Yes.")]
        added = await soon(memory.add_messages(log, session="a", only_new=True))
        assert added == ["turn-00000071"]


async def test_only_a_conversation_creates_turns(place: str) -> None:
    forged: dict[str, Any] = {"chat": "", "turn": 99_999_999, "role": "user", "user": "ann"}
    async with qrmem.open(place, embedder="none") as memory:
        named, text = "turn-99999999", "I owe Ben a boat."
        document = qrmem.Document(text, id=named, metadata=forged)
        with pytest.raises(UsageError, match=r"'turn-99999999'.*give it another id"):
            await memory.add(document)
        await memory.add(qrmem.Document(text, id=named))
        with pytest.raises(UsageError, match="is not a turn"):
            await memory.add(document, update=True)
        fact = {**forged, "turn": 1, "noted_of": "turn-00000001"}
        with pytest.raises(UsageError, match="give it another id"):
            await memory.add({"id": "fact-00000001-1", "text": "A lie.", "metadata": fact})
        assert await soon(memory.add_turn("user", "My boat is called Nell.")) == "turn-00000001"
        turn = await memory.document("turn-00000001")
        report = await memory.add(
            {"id": turn.id, "text": "My boat is called Brig.", "metadata": turn.metadata},
            update=True,
        )
        assert report.updated == ("turn-00000001",)
        assert [turn.text for turn in await memory.turns()] == ["My boat is called Brig."]


async def test_an_archive_keeps_which_documents_are_turns(tmp_path: Path) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "turn-00000001", "text": "Nell is a boat."})
        await memory.add_turn("user", "My boat is called Nell.", session="a", user="ann")
        await memory.export(tmp_path / "a.qrmem")
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.load(tmp_path / "a.qrmem")
        assert [(t.id, t.user) for t in await memory.turns("a")] == [("turn-00000002", "ann")]
        assert await soon(memory.add_turn("user", "Yes.", session="a")) == "turn-00000003"


async def test_a_message_says_when_numbers_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmem.memory.chat.stored_turns.MOST_TURNS", 2)
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_messages([("user", "One."), ("user", "Two.")])
        with pytest.raises(UsageError, match="another namespace"):
            await soon(memory.add_turn("user", "Three."))


async def test_a_user_has_one_name_in_two_forms_on_every_store(place: str) -> None:
    one, other = "Zo\N{LATIN SMALL LETTER E WITH DIAERESIS}", "Zoe\N{COMBINING DIAERESIS}"
    async with qrmem.open(place, embedder="none") as memory:
        await memory.add_turn("user", "My boat is called Nell.", user=other, session=other)
        await memory.add_turn("user", "My boat is called Brig.", user="Zoe")
        for name in (one, other):
            assert [turn.user for turn in await memory.turns(name, user=name)] == [one]
            found = await memory.recall("Which boat?", user=name)
            assert "Nell" in found.text
            assert "Brig" not in found.text
            assert len(await memory.documents(where={"user": name})) == 1
        with pytest.raises(UsageError):
            await memory.add_turn("user", "No.", user="Zoe\n")
        assert await memory.forget_user(other) == 1
        assert [turn.user for turn in await memory.turns()] == ["Zoe"]


async def test_facts_of_a_user_have_no_name_that_others_alone_have(place: str) -> None:
    async with qrmem.open(place, embedder="none") as memory:
        of_ben = "Robert Miller, called Miller, works at Acme. Robert Miller met Ada."
        await memory.add({"id": "b", "text": of_ben, "metadata": {"user": "ben"}})
        of_ann = "Miller works at Acme. Miller met Ada in Oslo."
        await memory.add({"id": "a", "text": of_ann, "metadata": {"user": "ann"}})
        hers, his = await memory.facts(user="ann"), await memory.facts(user="ben")
        walked = await memory.ask(
            "Where does Miller work?", strategy="graph-expansion", where={"user": "ann"}
        )
    ends = {end for fact in hers for end in (fact.head, fact.tail)}
    assert ends == {"Miller", "Acme", "Ada", "Oslo"}
    assert "Robert Miller" in {fact.head for fact in his}
    assert "Miller" in str(walked.trail.steps)
    assert "Robert" not in str(walked.trail.steps)


async def test_documents_facts_and_relations_come_in_pages(place: str) -> None:
    async with qrmem.open(place, embedder="none") as memory:
        text = "Ada met Ben in Oslo. Ben met Cleo in Rome. Ada met Cleo at Acme."
        await memory.add([{"id": "b", "text": text}, {"id": "turn-00000009", "text": "No turn."}])
        for said in ("Ada met Dora.", "Ada met Emil in Oslo."):
            await memory.add_turn("user", said, user="ann", session="s")
        others = await memory.documents(turns=False)
        turns = await memory.documents(turns=True)
        assert [info.id for info in others] == ["b", "turn-00000009"]
        assert [info.metadata["user"] for info in turns] == ["ann", "ann"]
        assert sorted([*others, *turns], key=lambda info: info.id) == await memory.documents()
        second = await memory.documents(turns=False, offset=1, limit=1)
        assert (second, second.total) == (others[1:], 2)
        assert (await memory.documents({"user": "ann"}, turns=False)).total == 0
        for user in ("", "ann"):
            facts = await memory.facts(user=user)
            parts = [await memory.facts(user=user, offset=n, limit=1) for n in range(len(facts))]
            assert [fact for part in parts for fact in part] == facts
            assert {part.total for part in parts} == {len(facts)}
        whole = (await memory.entity("Ada")).relations
        views = [await memory.entity("Ada", offset=n, limit=1) for n in range(len(whole))]
        assert tuple(relation for view in views for relation in view.relations) == whole
        assert {view.relation_count for view in views} == {len(whole)}
        assert len(whole) > 3


async def test_turns_stay_in_order_after_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        for year in (2035, 2001):
            with monkeypatch.context() as patched:
                clock = type(
                    "Clock",
                    (datetime,),
                    {"now": lambda _, year=year: datetime(year, 1, 1, tzinfo=UTC)},
                )
                patched.setattr("qrmem.memory.chat.message_log.datetime", clock)
                await memory.add_turn("user", f"It is {year}.", session="s")
        assert [turn.at[:4] for turn in await memory.turns("s")] == ["2035", "2001"]
        recent = (await memory.recall("Which year?", session="s")).recent
        assert [turn.text for turn in recent] == ["It is 2035.", "It is 2001."]


async def test_a_speaker_is_no_character_of_a_novel() -> None:
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add_text("Caroline Bingley wrote to Jane. Jane told Caroline to come.", id="a")
        await memory.add_turn("user", "I adopted a dog in Boston.", speaker="Caroline")
        counts = {one.key: (one.name, one.segments) for one in await memory.entities()}
    assert counts["caroline|PERSON"] == ("Caroline", 1)
    assert counts["caroline bingley|"] == ("Caroline Bingley", 1)


async def test_a_speaker_and_somebody_of_a_longer_name_can_be_kept_apart() -> None:
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add_turn("user", "I saw Caroline Bingley in Boston.", speaker="Caroline")
        assert (await memory.entity("Caroline")).entity.name == "Caroline Bingley"
        await memory.separate("Caroline", "Caroline Bingley")
        await memory.add_turn("user", "My dog is called Pip.", speaker="Caroline")
        speaker, character = [
            (await memory.entity(name)).entity for name in ("Caroline", "Caroline Bingley")
        ]
    assert (speaker.name, len(speaker.segments)) == ("Caroline", 2)
    assert (character.name, len(character.segments)) == ("Caroline Bingley", 1)


async def test_people_of_two_turns_are_one_person() -> None:
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add_turn("user", "I met Kevin Finn at the harbour.", user="ann")
        await memory.add_turn("user", "Yesterday Finn called again.", user="ann")
        assert (await memory.entity("Finn")).entity.name == "Kevin Finn"
