"""Runs with a chat model behind real HTTP: every system, costs, caps, resuming, comparing."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from servers import answering
from servers.faults import Faults
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.eval import SYSTEMS, needs, parse, read_results

pytestmark = pytest.mark.usefixtures("own_folder")

DATA = Path(__file__).parent / "data"
HOTPOT = str(DATA / "hotpot.json")
ALL = [name for name, _ in SYSTEMS.items()]
LOCAL = {name for name in ALL if needs(parse(name)) - {"model"}}
"""Systems that need what is not installed for tests."""
CODE = {"complete", "repocoder"}
CHAT = {"fragment-chat", "memochat", "latest-chat"}
RECALL = {name for name in ALL if name.startswith("recall")}
"""Systems for conversations alone."""
ADA = {"ada-leval", "ada-perplexity"}


def test_a_system_for_code_says_so_of_other_questions(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, "--system", "repocoder,bm25") == 1
    told = capsys.readouterr().out
    assert "not scored: repocoder, 3 items: UsageError: it continues code" in told
    assert not read_results(Path("r")).systems["bm25"].errors


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


def run(server: OpenAIServer, *words: str, model: str = "gpt-4o-mini", out: str = "r") -> int:
    base = ["eval", "run", "hotpotqa", "--data", HOTPOT, "--embedder", "none", "--quiet"]
    return main([*base, "--model", model, "--base-url", server.url, "--out", out, *words])


def test_every_system_answers_every_item(server: OpenAIServer) -> None:
    systems = [name for name in ALL if name not in LOCAL | CODE | CHAT | RECALL | ADA]
    assert run(server, "--system", ",".join(systems)) == 0
    results = read_results(Path("r"))
    assert {name: len(found.rows) for name, found in results.systems.items()} == dict.fromkeys(
        systems, 3
    )
    assert not any(found.errors for found in results.systems.values())
    assert results.systems["closed-book"].alone.calls == 0
    assert results.systems["closed-book"].alone.money == 0, "nothing was built, which is free"
    for name in ("memwalker", "read-agent-p", "reflection"):
        assert results.systems[name].alone.calls > 0, "what was built before is counted apart"


def test_counts_are_those_of_the_requests_to_the_server(server: OpenAIServer) -> None:
    assert run(server, "--system", "bm25") == 0
    (found,) = read_results(Path("r")).systems.values()
    assert round(found.online.calls * 3) == server.stats.requests
    assert round(found.online.tokens * 3) == server.stats.tokens_in + server.stats.tokens_out
    assert found.online.money is not None
    assert found.online.money > 0


def test_the_memory_is_built_once_for_all_that_share_it(server: OpenAIServer) -> None:
    assert run(server, "--system", "reflection,graph-expansion") == 0
    first, second = read_results(Path("r")).systems.values()
    assert first.alone == second.alone
    assert first.share.calls == first.alone.calls / 2


def test_a_cap_stops_the_run_and_a_higher_one_continues_with_what_is_missing(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, "--system", "keep-left", "--concurrency", "1", "--max-calls", "2") == 1
    assert "cap of 2 calls" in capsys.readouterr().err
    asked = server.stats.requests
    assert asked == 2
    assert run(server, "--system", "keep-left", out="whole") == 0
    whole = server.stats.requests - asked
    assert run(server, "--system", "keep-left") == 0
    assert server.stats.requests == 2 * whole, "nothing was paid twice"
    assert read_results(Path("r")).systems["keep-left"].scores == (
        read_results(Path("whole")).systems["keep-left"].scores
    )


def test_a_server_that_goes_away_stops_the_run_and_keeps_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRMEM_RETRIES", "0")
    with in_thread(OpenAIServer(faults=Faults(script={3: "401"}))) as server:
        assert run(server, "--system", "closed-book", "--concurrency", "1") == 3
    assert len(Path("r/rows.jsonl").read_text().splitlines()) == 2


def test_unread_parts_of_a_memory_are_reported_and_read_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    moods = ["bad"]

    def moody(request: Mapping[str, Any]) -> str:
        text = json.dumps(request["messages"])
        is_reading = "entities" in text and "Grey Sow is an inn" in text
        return "I would rather not." if is_reading and moods else answering.answer(request)

    with in_thread(OpenAIServer(answer=moody)) as server:
        words = ("--system", "reflection", "--sample", "1")
        assert run(server, *words) == 1
        told = capsys.readouterr()
        assert "1 segment of the memories: not read, or only in part" in told.err
        report = Path("r/report/report.md").read_text()
        assert "- 1 of 3 segments of its memories were not read, or only in part" in report
        assert not read_results(Path("r")).systems["reflection"].errors
        moods.clear()
        assert run(server, *words, "--system", "reflection,entity-trial") == 0
    assert "not read" not in capsys.readouterr().err
    assert "not read" not in Path("r/report/report.md").read_text()


def test_runs_over_other_items_or_windows_are_not_compared(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, "--system", "closed-book", out="all") == 0
    assert run(server, "--system", "bm25", model="gpt-4o", out="alike") == 0
    assert run(server, "--system", "bm25", "--sample", "2", out="fewer") == 0
    assert run(server, "--system", "bm25", "--window", "2000", out="narrow") == 0
    assert main(["eval", "report", "all", "alike"]) == 0
    told = capsys.readouterr().out
    assert "| alike: bm25 | em |" in told
    assert "- all: reader: gpt-4o-mini; " in told
    assert "- alike: reader: gpt-4o; " in told, "each run says how it was made"
    summary = json.loads(Path("all/report/summary.json").read_text())
    assert list(summary["systems"]) == ["closed-book"], "it stays that of its own run"
    assert main(["eval", "report", "all", "fewer"]) == 2
    assert "different items" in capsys.readouterr().err
    assert main(["eval", "report", "all", "narrow"]) == 2
    assert "different budgets" in capsys.readouterr().err


def test_answers_that_may_be_refused_are_counted_both_ways(server: OpenAIServer) -> None:
    data = str(DATA / "musique_full.jsonl")
    base = ["eval", "run", "musique", "--data", data, "--embedder", "none", "--quiet"]
    words = ["--model", "test", "--base-url", server.url, "--system", "bm25", "--abstain"]
    assert main([*base, *words, "--out", "m"]) == 0
    (found,) = read_results(Path("m")).systems.values()
    assert {"false_abstention", "false_acceptance"} <= found.statuses.keys()
    assert len(found.scores["f1"]) == 1, "an item that has no answer is not scored for one"


def test_a_run_is_recorded_and_replayed_with_no_server(server: OpenAIServer) -> None:
    words = ("--system", "keep-left,decom,reflection")
    assert run(server, *words, "--record", "tape.jsonl", out="live") == 0
    asked = server.stats.requests
    assert run(server, *words, "--replay", "tape.jsonl", out="again") == 0
    assert server.stats.requests == asked
    live, again = (read_results(Path(name)).systems for name in ("live", "again"))
    for name in live:
        assert live[name].scores == again[name].scores
        assert live[name].online.calls == again[name].online.calls


def test_the_caps_of_the_settings_hold_for_the_whole_run(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRMEM_MAX_CALLS", "2")
    assert run(server, "--system", "keep-left", "--concurrency", "1") == 1
    assert server.stats.requests == 2


def test_other_models_for_some_stages_are_refused(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QRMEM_STAGE_MODELS", "answering=other")
    assert run(server, "--system", "keep-left") == 2
    assert "one model for all stages" in capsys.readouterr().err


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, float]]:
    base = ["eval", "plan", "hotpotqa", "--data", HOTPOT, "--embedder", "none", "--json"]
    assert main([*base, "--model", "gpt-4o-mini", *words]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    return {
        found["system"]: {f"{end} {name}": found[end][name] for end in ENDS for name in COSTS}
        for found in run["systems"]
    }


ENDS, COSTS = ("least", "most"), ("calls", "tokens", "money")


def test_a_plan_holds_what_the_run_then_uses(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = "reflection,bm25,memwalker,read-agent-p,summary"
    plan = planned(capsys, "--system", systems)
    assert run(server, "--system", systems) == 0
    for name, found in read_results(Path("r")).systems.items():
        calls = 3 * found.online.calls + found.alone.calls
        assert 0.7 * plan[name]["least calls"] <= calls <= 1.3 * plan[name]["most calls"], name
        assert plan[name]["most money"] > 0


def test_a_plan_of_more_items_costs_more_and_sends_nothing(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = ("--base-url", server.url)
    few = planned(capsys, "--system", "reflection,bm25", "--sample", "1", *url)
    many = planned(capsys, "--system", "reflection,bm25", *url)
    assert server.stats.requests == 0
    for name in few:
        assert many[name]["most tokens"] > 2 * few[name]["most tokens"]
    assert many["reflection"]["least calls"] < many["reflection"]["most calls"]


def test_a_plan_of_a_preset_tells_of_each_part(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    shutil.copy(DATA / "quality.jsonl", tmp_path / "data" / "QuALITY.v1.0.1.htmlstripped.dev")
    words = ["eval", "plan", "table-2", "--data", str(tmp_path / "data"), "--sample", "2"]
    assert main([*words, "--embedder", "none", "--model", "gpt-4o-mini"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("quality: 2 items, gpt-4o-mini, window 4096")
    assert " calls, " in told
    assert main([*words, "--embedder", "none"]) == 2


def test_a_plan_sends_a_server_no_texts_to_embed(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--system", "dense,reflection", "--base-url", server.url)
    plan = planned(capsys, *words, "--embedder", "openai:text-embedding-3-small")
    assert plan["dense"]["least calls"] > 0
    assert server.stats.connections == 0


def test_embeddings_by_a_server_count_in_the_caps_and_in_no_system_s_costs(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    remote = ("--embedder", "openai:text-embedding-3-small", "--concurrency", "1")
    assert run(server, "--system", "dense", "--retrieve", "--max-calls", "3", *remote) == 1
    assert "cap of 3 calls" in capsys.readouterr().err
    assert server.stats.requests == 3
    assert run(server, "--system", "dense,reflection", *remote, out="whole") == 0
    dense, reflection = read_results(Path("whole")).systems.values()
    assert dense.alone.calls == 0
    stages = {name for row in reflection.rows.values() for name in row.prediction.usage.online}
    assert "embed" in stages
    assert reflection.online.calls == sum(
        used.calls
        for row in reflection.rows.values()
        for name, used in row.prediction.usage.online.items()
        if name != "embed"
    ) / len(reflection.rows)
