"""Turns of several users in one memory: kept apart, recalled apart, forgotten apart."""

import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import qrmem
from qrmem.errors import UsageError
from qrmem.types import Strategy

ANN = [
    {"role": "user", "content": "My boat is called Nell."},
    {"role": "assistant", "content": "A fine name."},
]
BEN = [{"role": "user", "content": "My boat is called Brig."}]


async def test_a_list_of_messages_is_kept_as_turns_of_a_user_and_a_session() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        report = await memory.add(ANN, user="ann", session="a")
        await memory.add(BEN, user="ben")
        assert report.is_complete
        turns = await memory.turns(user="ann")
        assert [(t.text, t.user, t.session) for t in turns] == [
            ("My boat is called Nell.", "ann", "a"),
            ("A fine name.", "ann", "a"),
        ]
        assert [t.text for t in await memory.turns()] == [m["content"] for m in (*ANN, *BEN)]


@pytest.mark.parametrize("how", ["turns", "fragrel"])
async def test_recall_search_and_ask_are_narrowed_to_a_user(how: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(ANN, user="ann")
        await memory.add(BEN, user="ben")
        found = await memory.recall("What is my boat called?", user="ann", session="new", how=how)  # type: ignore[arg-type]
        assert {turn.user for turn in (*found.recent, *found.related)} == {"ann"}
        answer = await memory.ask("What is my boat called?", where={"user": "ben"})
        assert answer.text == "My boat is called Brig."


ANNS = "Miller works at Acme. Miller met Ada in Oslo."
BENS = "Robert Miller, called Miller, works at Acme. Robert Miller met Ada. Ada (Ada Byron) left."


GRAPHIC: tuple[Strategy, ...] = ("reflection", "graph-expansion", "entity-trial", "overview")


@pytest.mark.parametrize("strategy", ["passages", "fragment", *GRAPHIC])
async def test_a_user_reads_no_name_that_others_alone_have(strategy: Strategy) -> None:
    """An entity has one name, and its longest may come from somebody else's texts."""
    async with qrmem.open("memory://", embedder="none") as memory:
        for n in range(3):
            await memory.add({"id": f"b{n}", "text": BENS, "metadata": {"user": "ben"}})
        await memory.add({"id": "a", "text": ANNS, "metadata": {"user": "ann"}})
        assert {"Robert Miller", "Ada Byron"} & {one.name for one in await memory.entities()}
        own = {"user": "ann"}
        asked = "Where do Miller and Ada work?"
        answer = await memory.ask(asked, where=own, strategy=strategy)
        hits = await memory.search(asked, where=own)
    told = [repr(asdict(answer)), *(repr(asdict(hit)) for hit in hits)]
    assert not [name for name in ("Robert", "Byron") if any(name in one for one in told)]


async def test_a_forgotten_user_leaves_nothing() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(ANN, user="ann")
        await memory.add(BEN, user="ben")
        assert await memory.forget_user("ann") == 2
        assert [turn.user for turn in await memory.turns()] == ["ben"]
        assert [hit.text for hit in await memory.search("boat Nell name")] == [BEN[0]["content"]]
        assert await memory.forget_user("ann") == 0
        with pytest.raises(UsageError, match="the user is empty"):
            await memory.forget_user("")


async def test_a_user_is_for_messages_only() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match="metadata"):
            await memory.add(qrmem.Document("A text."), user="ann")


async def test_no_trail_keeps_a_question_of_a_forgotten_user(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add(ANN, user="ann")
        await memory.add(BEN, user="ben")
        for user in ("ann", "ben"):
            await memory.ask(f"Is {user}'s boat called Nell?", where={"user": user})
        assert await memory.forget_user("ann") == 2
        questions = {trail.question for trail in await memory.trails()}
        assert questions == {"Is ben's boat called Nell?", "[removed]"}
        assert not any("ann" in str(asdict(trail)) for trail in await memory.trails())
    assert b"Is ann's" not in (tmp_path / "m.db").read_bytes()


async def test_no_trail_without_a_user_keeps_a_question_of_a_forgotten_user() -> None:
    """The first trails did not say whose documents were asked."""
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(ANN, user="ann")
        await memory.add(BEN, user="ben")
        for user in ("ann", "ben"):
            await memory.ask(f"Is {user}'s boat called Nell?", where={"user": user})
        store = memory._session.store
        for trail in await store.trails("default", 9):
            await store.put_trail("default", replace(trail, user=""))
        await memory.ask("Whose boat is it?")
        await memory.forget_user("ann")
        questions = {trail.question for trail in await memory.trails()}
        assert questions == {"Is ben's boat called Nell?", "[removed]", "Whose boat is it?"}


async def test_forgetting_a_user_does_not_hold_all_runs_at_once() -> None:
    runs, size = 1500, 20_000
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(ANN, user="ann")
        await memory.ask("Is the boat called Nell?", where={"user": "ann"})
        (trail,) = await memory.trails()
        store = memory._session.store
        for n in range(runs):
            step = replace(trail.steps[0], reason=f"{n} ".ljust(size, "x"))
            user = "ann" if n % 2 else "ben"
            await store.put_trail("default", replace(trail, id=str(n), user=user, steps=(step,)))
        tracemalloc.start()
        await memory.forget_user("ann")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < runs * size / 2
        assert {trail.user for trail in await memory.trails(2 * runs)} == {"", "ben"}


async def test_a_where_of_a_thousand_names_is_refused() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(ANN, user="ann")
        few = {"user": "ann"} | {f"n{n}": "x" for n in range(99)}
        assert await memory.documents(where=few) == []
        with pytest.raises(UsageError, match="at most 100"):
            await memory.search("boat", where={f"n{n}": "x" for n in range(1000)})


async def test_who_speaks_a_turn_is_an_entity_of_it_and_i_means_them() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_messages(
            [("user", "I live in Berlin."), ("assistant", "Fine.")], user="ann"
        )
        await memory.add_messages([("user", "I live in Oslo with Ben.")], user="u-17")
        said = [
            {"role": "user", "content": "Mel came along.", "name": "Caroline"},
            {"role": "user", "content": "I loved it!", "name": "Melanie"},
        ]
        await memory.add_messages(said)
        answer = await memory.ask("Where does Ann live?", where={"user": "ann"})
        assert answer.text == "I live in Berlin."
        answer = await memory.ask("Where does Ann live?", where={"user": "u-17"})
        assert answer.status == "unanswerable"
        assert (await memory.entity("ann")).neighbours == {"berlin|": "Berlin"}
        assert (await memory.entity("Mel")).entity.name == "Melanie"
        names = {entity.name for entity in await memory.entities()}
        assert "Caroline" in names
        assert not [name for name in names if "17" in name or name in {"I", "User"}]
