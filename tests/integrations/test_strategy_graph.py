"""Strategies as nodes of a user's own LangGraph graph, and the graph that langgraph.json names."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, TypedDict, get_args

import httpx
import pytest
import tenacity
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

import qrmem
from qrmem.agents import STRATEGIES
from qrmem.errors import UsageError
from qrmem.integrations.strategy_graph import strategy_graph
from qrmem.integrations.toolset import Toolset
from qrmem.types import Step, Strategy

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TEXT = "Ada Lovelace met Charles Babbage in London in 1833."
NOTE = {"id": "note", "text": TEXT}


class Parent(TypedDict, total=False):
    topic: str
    question: str
    answer: str
    citations: list[dict[str, Any]]
    report: str


def parent(node: Any, checkpointer: Any = None) -> Any:
    def plan(state: Parent) -> Parent:
        return {"question": f"Whom did {state['topic']} meet?"}

    def report(state: Parent) -> Parent:
        return {"report": f"{state['topic']}: {state['citations'][0]['quote']}"}

    graph = StateGraph(Parent)
    graph.add_node("plan", plan)
    graph.add_node("memory", node)
    graph.add_node("report", report)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "memory")
    graph.add_edge("memory", "report")
    graph.add_edge("report", END)
    return graph.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("strategy", ["reflection", "entity-trial", None])
async def test_a_strategy_is_a_node_of_a_users_graph(strategy: Strategy | None) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(NOTE)
        graph = parent(strategy_graph(memory, strategy=strategy, max_trials=2))
        steps, nodes, state = [], set(), {}
        async for place, mode, item in graph.astream(
            {"topic": "Ada Lovelace"}, stream_mode=["custom", "updates", "values"], subgraphs=True
        ):
            if mode == "custom":
                steps.append(item)
            elif mode == "updates":
                nodes |= {(len(place), name) for name in item}
            elif not place:
                state = item
        assert state["report"] == f"Ada Lovelace: {TEXT}"
        assert next(step.action for step in steps if isinstance(step, Step)) == "start"
        assert {(0, "memory"), (1, "ask")} <= nodes
        assert {name for depth, name in nodes if depth > 1} >= {"begin", "read"}
        kept = await memory.trail()
    assert kept.question == "Whom did Ada Lovelace meet?"
    assert strategy in (kept.strategy, None)


async def test_a_parent_with_a_checkpointer_keeps_what_the_node_found() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(NOTE)
        graph = parent(strategy_graph(memory, strategy="reflection"), InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "one"}}
        await graph.ainvoke({"topic": "Ada Lovelace"}, thread)
        kept = (await graph.aget_state(thread)).values
    assert kept["citations"][0]["quote"] == TEXT


async def test_a_memory_of_another_thread_answers_in_a_graph_too() -> None:
    with qrmem.sync.open("memory://", embedder="none") as memory:
        memory.add(NOTE)
        graph = parent(strategy_graph(memory))
        seen = [
            item
            async for item in graph.astream(
                {"topic": "Ada Lovelace"}, stream_mode=["custom", "values"], subgraphs=True
            )
        ]
    assert TEXT in seen[-1][-1]["report"]
    told = [item for _, mode, item in seen if mode == "custom"]
    assert [step.action for step in told if isinstance(step, Step)][:1] == ["start"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stratgy": "reflection"}, "no such option: 'stratgy'"),
        ({"strategy": "x"}, "no strategy is called 'x'"),
        ({"max_trials": "many"}, "max_trials must be a whole number"),
    ],
)
async def test_a_wrong_option_is_refused_when_the_graph_is_built(options: Any, said: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match=said):
            strategy_graph(memory, **options)


def test_another_object_than_a_memory_is_refused_by_graphs_and_toolsets() -> None:
    not_open: Any = "book.db"
    with pytest.raises(UsageError, match="not str"):
        strategy_graph(not_open)
    with pytest.raises(UsageError, match="not str"):
        Toolset(not_open)
    with qrmem.sync.open("memory://", embedder="none") as memory:
        of_sync: Any = memory
        with pytest.raises(UsageError, match=r"qrmem\.tools"):
            Toolset(of_sync)


async def test_a_question_is_needed() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(NOTE)
        with pytest.raises(UsageError, match="the question is empty"):
            await strategy_graph(memory).ainvoke({})


def test_a_node_adds_and_asks_whatever_the_checkpointer_of_its_graph(tmp_path: Path) -> None:
    with qrmem.sync.open("memory://", embedder="none") as memory:

        def look_up(state: Parent) -> Parent:
            memory.add(NOTE)
            return {"answer": memory.ask(state["question"]).text}

        graph = StateGraph(Parent).add_node("look_up", look_up).add_edge(START, "look_up")
        asked: Any = {"question": "Whom did Ada Lovelace meet?"}
        thread: Any = {"configurable": {"thread_id": "one"}}
        with SqliteSaver.from_conn_string(str(tmp_path / "runs.db")) as saver:
            state = graph.compile(checkpointer=saver).invoke(asked, thread)
    assert TEXT in state["answer"]


async def test_an_agent_with_a_checkpointer_asks_a_memory_of_another_thread(tmp_path: Path) -> None:
    thread: Any = {"configurable": {"thread_id": "one"}}
    with qrmem.sync.open("memory://", embedder="none") as memory:
        memory.add(NOTE)
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.db")) as saver:
            graph = parent(strategy_graph(memory), saver)
            state = await graph.ainvoke({"topic": "Ada Lovelace"}, thread)
    assert TEXT in state["report"]


def test_every_strategy_has_its_name_in_the_type() -> None:
    assert set(get_args(Strategy)) == set(STRATEGIES)


async def test_the_graph_of_langgraph_json_answers_from_the_memory_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRMEM_MEMORY", str(tmp_path / "m.db"))
    monkeypatch.setenv("QRMEM_EMBEDDER", "none")
    async with qrmem.open() as memory:
        await memory.add(NOTE)
    config = json.loads((EXAMPLES / "langgraph.json").read_text())
    path, name = config["graphs"]["memory"].split(":")
    assert all((EXAMPLES / folder).is_dir() for folder in config["dependencies"])
    spec = importlib.util.spec_from_file_location("memory_graph", EXAMPLES / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    async with getattr(module, name)() as graph:
        state = await graph.ainvoke({"question": "Whom did Ada Lovelace meet?"})
    assert state["citations"][0]["quote"] == TEXT


def test_langgraphs_own_check_takes_the_example() -> None:
    config = pytest.importorskip("langgraph_cli.config", reason="langgraph-cli is not installed")
    checked = config.validate_config_file(EXAMPLES / "langgraph.json")
    assert checked["graphs"] == {"memory": "./memory_graph.py:make_graph"}


def test_langgraphs_dev_server_answers_with_the_example(tmp_path: Path) -> None:
    pytest.importorskip("langgraph_api", reason="langgraph-api is not installed")
    for name in ("langgraph.json", "memory_graph.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    with qrmem.sync.open(str(tmp_path / "book.db"), embedder="none") as memory:
        memory.add(NOTE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    log = tmp_path / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "--port", port],
            cwd=tmp_path,
            env=os.environ | {"LANGSMITH_TRACING": "false", "HOME": str(tmp_path)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_delay(90), wait=tenacity.wait_fixed(0.5), reraise=True
        )
        retrying(lambda: httpx.get(f"{url}/ok", timeout=5).raise_for_status())
        asked = {"assistant_id": "memory", "input": {"question": "Whom did Ada Lovelace meet?"}}
        state = httpx.post(f"{url}/runs/wait", json=asked, timeout=90).json()
    finally:
        server.terminate()
        server.wait(30)
    assert "citations" in state, log.read_text()
    assert state["citations"][0]["quote"] == TEXT
