"""The command with a chat model behind real HTTP: our own server, which counts and breaks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import SAMPLE, Shell
from servers.faults import Faults
from servers.openai_server import Behaviour, OpenAIServer, in_thread


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


def using(server: OpenAIServer) -> list[str]:
    return ["--model", "test", "--base-url", server.url]


def book(shell: Shell, chapters: int = 4) -> Path:
    """Write the first chapters of the sample."""
    text = (SAMPLE / "harbour.md").read_text()
    return shell.write("book.md", "## ".join(text.split("## ")[: chapters + 1]))


def graph(shell: Shell, *words: str) -> Any:
    """Return all that a build made, in an order of its own."""
    shell("export", "graph.xml", "--graphml", "--force", *words)
    return (shell.folder / "graph.xml").read_text()


def test_building_takes_at_most_three_calls_a_segment_and_one_for_the_summary(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem)
    ran = qrmem("add", "book.md", "--json", *using(server))
    assert ran.code == 0, ran.err
    report = ran.json
    segments = report["states"]["ok"]
    assert segments > 4
    assert server.stats.answered <= 3 * segments + 1
    calls = sum(stage["calls"] for stage in report["usage"]["construction"].values())
    assert calls == server.stats.answered
    tokens = sum(stage["tokens_in"] for stage in report["usage"]["construction"].values())
    assert tokens == server.stats.tokens_in


def test_a_document_of_one_segment_costs_no_summary(qrmem: Shell, server: OpenAIServer) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    ran = qrmem("add", "a.txt", "--json", *using(server))
    assert ran.code == 0, ran.err
    assert not [name for name in ran.json["usage"]["construction"] if "summ" in name]


@pytest.mark.parametrize("strategy", ["reflection", "graph-expansion", "entity-trial"])
def test_every_strategy_asks_the_model_and_counts_it_as_online(
    qrmem: Shell, server: OpenAIServer, strategy: str
) -> None:
    book(qrmem, 2)
    assert qrmem("add", "book.md", *using(server)).code == 0
    before = server.stats.answered
    ran = qrmem("ask", "Who keeps the light?", "--strategy", strategy, "--json", *using(server))
    assert ran.code == 0, ran.err
    answer = ran.json
    assert not answer["usage"]["construction"]
    calls = sum(stage["calls"] for stage in answer["usage"]["online"].values())
    assert calls == server.stats.answered - before > 0
    text = (qrmem.folder / "book.md").read_text()
    for citation in answer["citations"]:
        assert citation["quote"] == text[citation["start"] : citation["end"]]


def test_concurrency_does_not_change_the_graph(qrmem: Shell) -> None:
    book(qrmem)
    graphs = []
    for concurrency in (1, 16):
        behaviour = Behaviour(latency=0.005, spread=8.0)
        with in_thread(OpenAIServer(behaviour=behaviour)) as server:
            memory = ["--memory", f"{concurrency}.db"]
            words = ["--concurrency", str(concurrency), *memory, *using(server)]
            assert qrmem("add", "book.md", *words).code == 0
            graphs.append(graph(qrmem, *memory))
    assert graphs[0] == graphs[1]
    assert "<edge" in graphs[0]


def test_both_modes_keep_questions_with_what_they_added(qrmem: Shell, server: OpenAIServer) -> None:
    book(qrmem, 2)
    qrmem.environment |= {"QRMEM_QUESTIONS": "5"}
    for mode in ("compact", "paper"):
        words = ["--mode", mode, "--memory", f"{mode}.db"]
        ran = qrmem("add", "book.md", *words, *using(server))
        assert ran.code == 0, ran.err
        counts = qrmem("status", "--json", "--memory", f"{mode}.db").json["counts"]
        assert counts["questions"] > 0
        assert counts["entities"] > 0
        assert counts["facts"] > 0


def test_a_segment_whose_replies_are_of_no_use_fails_and_is_tried_again(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    with in_thread(OpenAIServer(faults=Faults(always="nonsense"))) as broken:
        ran = qrmem("add", "a.txt", *using(broken))
        assert ran.code == 1, ran.out + ran.err
        assert "problem" in ran.out
        assert qrmem("status").code == 1
    with in_thread(OpenAIServer()) as healthy:
        assert qrmem("add", "a.txt", *using(healthy)).code == 0
    assert qrmem("status").code == 0


def test_an_unreadable_verdict_is_reported(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    assert qrmem("add", "a.txt").code == 0
    with in_thread(OpenAIServer(faults=Faults(always="nonsense"))) as broken:
        ran = qrmem("ask", "Who met Ada?", "--json", *using(broken))
    assert ran.code == 1
    assert "it is not known whether the text answers" in ran.err


def test_an_item_that_cannot_be_used_is_left_out_with_its_reason_and_not_paid_for_again(
    qrmem: Shell,
) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    with in_thread(OpenAIServer(faults=Faults(always="bad-item"))) as sloppy:
        ran = qrmem("add", "a.txt", "--json", *using(sloppy))
        assert ran.code == 0, ran.out + ran.err
        assert ran.json["states"] == {"ok": 1}
        assert "Input should be a valid string" in ran.json["dropped"][0][2]
        assert sloppy.stats.requests == 1
    with in_thread(OpenAIServer()) as healthy:
        assert qrmem("add", "a.txt", *using(healthy)).code == 0
        assert healthy.stats.requests == 0
    assert qrmem("status").code == 0


def test_a_segment_whose_reply_breaks_off_is_partial_and_the_command_says_so(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    with in_thread(OpenAIServer(faults=Faults(always="cut"))) as sloppy:
        ran = qrmem("add", "a.txt", "--json", *using(sloppy))
        assert ran.code == 1, ran.out + ran.err
        assert ran.json["problems"][0][2]
    assert qrmem("status").code == 1
    with in_thread(OpenAIServer()) as healthy:
        assert qrmem("add", "a.txt", *using(healthy)).code == 0
        assert healthy.stats.requests > 0
    assert qrmem("status").code == 0


def test_a_server_that_goes_away_leaves_what_was_read(qrmem: Shell) -> None:
    book(qrmem)
    faults = Faults(script={n: "500" for n in range(6, 10_000)})
    with in_thread(OpenAIServer(faults=faults)) as dying:
        words = ["--concurrency", "1", *using(dying)]
        ran = qrmem("add", "book.md", *words)
        assert ran.code == 4, ran.err
        read = dying.stats.answered
    states = qrmem("status", "--json").json["states"]
    assert states.get("pending", 0) > 0
    with in_thread(OpenAIServer()) as healthy:
        assert qrmem("add", "book.md", *using(healthy)).code == 0
        resumed = healthy.stats.answered
    with in_thread(OpenAIServer()) as other:
        assert qrmem("add", "book.md", "--memory", "calm.db", *using(other)).code == 0
        assert read + resumed == other.stats.answered
    assert graph(qrmem) == graph(qrmem, "--memory", "calm.db")


def test_refusals_stop_at_once_with_one_line(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    with in_thread(OpenAIServer(behaviour=Behaviour(key="right"))) as server:
        wrong = qrmem("add", "a.txt", "--quiet", *using(server), OPENAI_API_KEY="sk-wrong-key")
        assert wrong.code == 3
        assert len(wrong.err.splitlines()) == 1
        assert "sk-wrong-key" not in wrong.err + wrong.out
        assert server.stats.refused == {"401": 1}
    with in_thread(OpenAIServer(behaviour=Behaviour(models=["other"]))) as server:
        unknown = qrmem("add", "a.txt", "--quiet", *using(server))
        assert (unknown.code, "test" in unknown.err) == (3, True)
        assert server.stats.refused == {"404-model": 1}


def test_a_key_is_in_no_file_that_is_left(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London.")
    with in_thread(OpenAIServer(behaviour=Behaviour(key="sk-secret-42"))) as server:
        words = using(server)
        assert qrmem("add", "a.txt", *words, OPENAI_API_KEY="sk-secret-42").code == 0
        assert qrmem("ask", "Whom did Ada meet?", *words, OPENAI_API_KEY="sk-secret-42").code == 0
    for path in qrmem.folder.iterdir():
        assert b"sk-secret-42" not in path.read_bytes(), path


def test_orientation_reads_near_segments_again_once(qrmem: Shell, server: OpenAIServer) -> None:
    book(qrmem, 2)
    assert qrmem("add", "book.md", *using(server)).code == 0
    ask = ["ask", "Who keeps the light?", "--orientation", "local", "--json", *using(server)]
    first = json.loads(qrmem(*ask).out)["usage"]["online"]
    second = json.loads(qrmem(*ask).out)["usage"]["online"]
    oriented = set(first) - set(second)
    assert oriented, "the first run reads segments again, the second does not"


def test_the_status_says_who_read_a_memory_whose_model_was_set_later(
    qrmem: Shell, server: OpenAIServer
) -> None:
    book(qrmem, 1)
    assert qrmem("add", "book.md").code == 0
    again = qrmem("add", "book.md", *using(server))
    told = "already read (by built-in rules); `--rebuild` reads it again"
    assert told in again.out
    assert "read by:   built-in rules, not by test, mode compact" in again.out
    assert "`qrmem plan add … --rebuild`" in again.out
    assert told in qrmem("plan", "add", "book.md", *using(server)).out
    priced = qrmem("plan", "add", "book.md", "--rebuild", "--json", *using(server))
    assert priced.json["stages"]
    asked = qrmem("ask", "Who keeps the light?", *using(server))
    assert asked.err.count("memory was read by built-in rules: `qrmem add … --rebuild`") == 1
    assert qrmem("add", "book.md", "--rebuild", *using(server)).code == 0
    assert "not by" not in qrmem("add", "book.md", *using(server)).out
    assert "built-in rules" not in qrmem("ask", "Who keeps the light?", *using(server)).err
