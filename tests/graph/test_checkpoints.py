"""`ask` with a checkpointer: an interrupted run continues, and deleted texts are dropped."""

import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract.reference import ReferenceStore
from fakes import ScriptedReasoner
from graph.worlds import WITHOUT_TREE, Part, answers_with, memory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from servers.faults import Faults
from servers.openai_server import serving

import qrmem
from qrmem.agents import STRATEGIES, Outcome, Search, run_strategy
from qrmem.errors import ModelUnavailable, StoreUnavailable
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.llm.run import Run
from qrmem.retrieval.searcher import Searcher
from qrmem.types import Strategy
from qrmem.types.options import AskOptions

CHAIN = (
    Part("Ahab hunts the whale.", (("Ahab", "hunts", "whale"),)),
    Part("The whale sank the Essex.", (("whale", "sank", "Essex"),)),
    Part("The Essex came from Nantucket.", (("Essex", "came from", "Nantucket"),)),
    Part("Nantucket is an island.", (("Nantucket", "is", "island"),)),
)
ASKING = AskOptions(
    window=4096,
    question="What does Ahab hunt?",
    strategy="reflection",
    hits=1,
    orientation="local",
    nearest=1,
)


async def followed(
    store: ReferenceStore, reasoner: ScriptedReasoner, options: AskOptions, saver: Any
) -> Outcome:
    """Follow a strategy as a process that has just begun does it."""
    run = Search(
        parts=Run(reasoner),
        searcher=Searcher(store, "ns"),
        writer=BestEffortWriter(store),
        options=replace(options, checkpointer=saver),
        thread="thread",
    )
    items = [item async for item in await run_strategy(run)]
    assert isinstance(items[-1], Outcome)
    return items[-1]


def told(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [
        (s.n, s.action, s.entities, s.edges, s.read, s.dropped, s.verdict, s.reason)
        for s in outcome.steps
    ]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("failing", [1, 2, 3, 4])
async def test_an_interrupted_run_continues_and_asks_nothing_twice(
    kind: str, failing: int, tmp_path: Path
) -> None:
    whole = ScriptedReasoner(answers_with("an island", "an island"), room=50)
    expected = await followed(await memory(*CHAIN), whole, ASKING, InMemorySaver())
    assert [stage for stage, _ in whole.calls] == ["extract", "judge", "judge", "judge"]

    calls = 0

    def fail(stage: str, what: str) -> Exception | None:
        nonlocal calls
        calls += 1
        return ModelUnavailable("gone") if calls == failing else None

    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.db")) as on_disk:
        saver: Any = InMemorySaver() if kind == "memory" else on_disk
        store = await memory(*CHAIN)
        first = ScriptedReasoner(answers_with("an island", "an island"), room=50, fail=fail)
        with pytest.raises(ModelUnavailable):
            await followed(store, first, ASKING, saver)
        second = ScriptedReasoner(answers_with("an island", "an island"), room=50)
        outcome = await followed(store, second, ASKING, saver)
    assert [*first.calls[: failing - 1], *second.calls] == whole.calls
    assert told(outcome) == told(expected)
    assert (outcome.text, outcome.status, outcome.citations, outcome.reason) == (
        expected.text,
        expected.status,
        expected.citations,
        expected.reason,
    )


@pytest.mark.parametrize("strategy", WITHOUT_TREE)
async def test_a_checkpointer_changes_nothing_about_a_run(strategy: str) -> None:
    options = AskOptions(question="What sank the Essex?", strategy=strategy, window=4096)
    outcomes = [
        await followed(
            await memory(*CHAIN),
            ScriptedReasoner(answers_with("sank the Essex", "the whale")),
            options,
            saver,
        )
        for saver in (None, InMemorySaver())
    ]
    assert told(outcomes[0]) == told(outcomes[1])
    assert outcomes[0].citations == outcomes[1].citations


async def test_a_state_holds_no_text_of_a_segment() -> None:
    saver = InMemorySaver()
    reasoner = ScriptedReasoner(answers_with("an island", "an island"), room=50)
    await followed(await memory(*CHAIN), reasoner, ASKING, saver)
    kept = [str(found.checkpoint["channel_values"]) for found in saver.list(None)]
    assert kept
    assert not any(part.text in state for part in CHAIN for state in kept)


# --- through the face ----------------------------------------------------------------------------

TEXTS = [f"Captain Hale{n} met Doctor Reed{n} in Port Anvil{n}." for n in range(4)]


@asynccontextmanager
async def opened(path: Path, **chosen: Any) -> AsyncIterator[qrmem.Memory]:
    async with qrmem.open(str(path), embedder="none", retries=0, cache=False, **chosen) as memory:
        yield memory


async def test_the_same_call_continues_after_the_model_was_away(tmp_path: Path) -> None:
    path, saver = tmp_path / "m.db", InMemorySaver()
    asked: dict[str, Any] = {"strategy": "graph-expansion", "start": "entities"}
    question = "Whom did Captain Hale1 meet?"
    async with opened(path, model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
    async with serving() as server, opened(path, model="test", base_url=server.url) as memory:
        whole = await memory.ask(question, **asked)
        needed = whole.usage.calls
    assert needed == 3
    async with serving(faults=Faults(script={3: "500"})) as server:
        async with opened(path, model="test", base_url=server.url) as memory:
            with pytest.raises(ModelUnavailable):
                await memory.ask(question, checkpointer=saver, **asked)
        async with opened(path, model="test", base_url=server.url) as memory:
            answer = await memory.ask(question, checkpointer=saver, **asked)
            another = await memory.ask(question, checkpointer=saver, **asked)
    assert answer.text == whole.text
    assert answer.usage.calls == needed
    assert len(answer.trail.steps) == len(whole.trail.steps)
    assert another.trail.id != answer.trail.id
    threads = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
    assert threads == {answer.trail.id, another.trail.id}


async def test_delete_drops_the_threads_that_read_the_document(tmp_path: Path) -> None:
    saver = InMemorySaver()
    async with opened(tmp_path / "m.db", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        gone = await memory.ask("Whom did Captain Hale1 meet?", documents=["1"], checkpointer=saver)
        kept = await memory.ask("Whom did Captain Hale2 meet?", documents=["2"], checkpointer=saver)
        await memory.delete("1")
        threads = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
        assert gone.trail.id not in threads
        assert threads == {kept.trail.id}
        await memory.delete_all()
        assert not list(saver.list(None))


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_delete_drops_what_any_strategy_kept_of_the_document(
    tmp_path: Path, strategy: Strategy
) -> None:
    saver = InMemorySaver()
    async with opened(tmp_path / "m.db", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        await memory.build_tree(kind=STRATEGIES[strategy].tree or "ilm")
    async with (
        serving() as server,
        opened(tmp_path / "m.db", model="test", base_url=server.url) as memory,
    ):
        question = "Whom did Captain Hale1 meet?"
        answer = await memory.ask(question, strategy=strategy, checkpointer=saver)
        assert answer.status == "answered"
        await memory.delete("1")
    assert not list(saver.list(None))


async def test_delete_drops_what_was_weighed_and_not_read(tmp_path: Path) -> None:
    saver = InMemorySaver()
    people = ["Ada Stone", "Ben Hale", "Cleo Marsh", "Dan Pike", "Eve Thorn", "Finn Lark"]
    drawn = random.Random(2)
    texts = [
        f"{drawn.choice(people)} met {drawn.choice(people)} near Zq{n}x Bridge." for n in range(60)
    ]
    asked: dict[str, Any] = {"strategy": "graph-expansion", "start": "entities", "window": 1000}
    async with opened(tmp_path / "m.db", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(texts)])
    async with (
        serving() as server,
        opened(tmp_path / "m.db", model="test", base_url=server.url) as memory,
    ):
        question = "What did Ada Stone cook?"
        answer = await memory.ask(question, checkpointer=saver, **asked)
        steps = answer.trail.steps
        read = {one.segment_id for step in steps for one in (*step.read, *step.dropped)}
        weighed = str([step.edges for step in steps])
        unread = [
            n
            for n in range(len(texts))
            if (await memory.segments(document=str(n)))[0].id not in read
            and texts[n].split()[-2] in weighed
        ]
        await memory.delete(str(unread[0]))
    words = texts[unread[0]].split()[-2]
    assert words not in str([kept.checkpoint for kept in saver.list(None)])


async def test_a_delete_is_refused_while_a_checkpointer_that_was_used_is_closed(
    tmp_path: Path,
) -> None:
    runs = str(tmp_path / "runs.db")
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        await memory.add([{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}])
        async with AsyncSqliteSaver.from_conn_string(runs) as checkpointer:
            await memory.ask("Whom did Captain Hale1 meet?", checkpointer=checkpointer)
        with pytest.raises(StoreUnavailable, match="no active connection"):
            await memory.delete("a")
        assert [info.id for info in await memory.documents()] == ["a", "b"]
        warned: list[str] = []
        watched = memory.listening(lambda event: warned.append(event.kind))
        await watched.add_text("Other words.", id="b", update=True)
        assert "warning" in warned
        async with AsyncSqliteSaver.from_conn_string(runs) as checkpointer:
            await memory.delete("a", checkpointer=checkpointer)
            assert [kept async for kept in checkpointer.alist(None)] == []
        assert [info.id for info in await memory.documents()] == ["b"]


async def test_an_update_drops_the_threads_that_read_what_it_replaced(tmp_path: Path) -> None:
    saver = InMemorySaver()
    async with opened(tmp_path / "m.db", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        await memory.ask("Whom did Captain Hale1 meet?", documents=["1"], checkpointer=saver)
        kept = await memory.ask("Whom did Captain Hale2 meet?", documents=["2"], checkpointer=saver)
        texts = {"1": TEXTS[1].replace("met", "wrote to"), "2": TEXTS[2]}
        await memory.add([{"id": id, "text": t} for id, t in texts.items()], update=True)
        threads = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
    assert threads == {kept.trail.id}


async def test_the_last_trail_is_the_last_one_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [f"Whom did Captain Hale{n} meet?" for n in range(3)]
    gmtime, later = time.gmtime, time.time()
    async with opened(tmp_path / "m.db", model="") as memory:
        await memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        for n, question in enumerate(questions):
            moment = later - n * 400 * 86_400
            monkeypatch.setattr(time, "gmtime", lambda moment=moment: gmtime(moment))
            await memory.ask(question)
        assert (await memory.trail()).question == questions[-1]
        assert [trail.question for trail in await memory.trails()] == questions[::-1]
