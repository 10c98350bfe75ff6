"""ILM-TR's and RAPTOR's presets do what the papers do: played against the scripted server."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from servers import answering
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.config import Settings
from qrmem.eval import read_results
from qrmem.eval.builders.writing import counter_of
from qrmem.eval.registry import build
from qrmem.graphstore import open_store

Json = Any
SYSTEMS = "inner-loop", "inner-loop:navigation=false", "raptor", "raptor:leaf=100:summary=100"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "hay").mkdir()
    lines = [f"On day {n} the keeper of tower {n % 7} wrote {n * 7} lines." for n in range(600)]
    (tmp_path / "hay" / "a.txt").write_text(" ".join(lines), encoding="utf-8")
    build("niah", tmp_path / "hay", tmp_path / "data", ("length=4k,8k", "depths=0,50"))
    return tmp_path / "data"


def said(body: Mapping[str, Json]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def stored(folder: Path) -> list[dict[str, Json]]:
    lines = (folder / "memories.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def run(server: OpenAIServer, data: Path, *words: str) -> int:
    base = ["eval", "run", "ilm-tr-figure-3", "--data", str(data), "--embedder", "none", "--quiet"]
    return main([*base, "--out", "r", "--model", "gpt-4o-mini", "--base-url", server.url, *words])


def test_ilm_tr_and_raptor_are_asked_as_their_papers_ask(data: Path) -> None:
    with in_thread(OpenAIServer()) as server:
        assert run(server, data) == 0
        bodies = list(server.stats.bodies)
    summaries = [body for body in bodies if "min_p" in body]
    answers = [body for body in bodies if body not in summaries]
    nodes = [body for body in summaries if "(Surprise)" in said(body)]
    plain = [body for body in summaries if body not in nodes]
    assert nodes
    assert all("matter most" in said(body) for body in plain), "RAPTOR's own summaries"
    sampled = {"temperature": 0.2, "top_p": 0.95, "top_k": 40, "min_p": 0.05}
    for body in summaries:
        assert {name: body[name] for name in sampled} == sampled
    assert {body["max_tokens"] for body in nodes} == {1055}
    in_our_words(nodes[0], "(Summary): your summary", "(Surprise): the surprising information")
    asked = [
        body for body in answers if "short-answer" not in said(body) and "ingredient" in said(body)
    ]
    loop = [body for body in asked if "(Memory):" in said(body)]
    once = [body for body in asked if "fullest answer" in said(body)]
    assert loop
    assert once, "without the loop the answer is asked for as RAPTOR asks"
    for body in (*loop, *once):
        assert (body["frequency_penalty"], body["max_tokens"]) == (1.2, 200)
    in_our_words(loop[0], "(Retrieved Info):\nb = 4", "(Memory):\na", "(Your Output):")
    assert not any("response_format" in body and "entities" in said(body) for body in bodies)


def in_our_words(body: Mapping[str, Json], *printed: str) -> None:
    """See that a request is made of the set `paper`, which has the printed prompt's parts."""
    places = [said(body).index(part) for part in printed]
    assert places == sorted(places)


@pytest.mark.parametrize(("label", "tokens"), [("RAPTOR", 300), ("RAPTOR (100/100)", 100)])
def test_raptor_s_segments_and_summaries_have_the_length_of_their_row(
    data: Path, label: str, tokens: int
) -> None:
    """ILM-TR, appendix A.3: 600 and 300 tokens; RAPTOR's released code: 100 and 100."""
    with in_thread(OpenAIServer()) as server:
        assert run(server, data, "--system", label, "--first", "1") == 0
        summaries = [body for body in server.stats.bodies if "min_p" in body]
    assert summaries
    assert {body["max_tokens"] for body in summaries} == {tokens}
    (file,) = Path("r/m-niah/memories").glob("*.db")
    sizes = asyncio.run(segment_tokens(file))
    most = 100 if tokens == 100 else 600
    assert 0.6 * most < max(sizes) <= most


async def segment_tokens(file: Path) -> list[int]:
    store = await open_store(f"sqlite://{file}?mode=ro", Settings())
    found = await store.segments("eval", documents=await store.document_ids("eval"))
    await store.close()
    return [segment.tokens for segment in found]


def test_costs_are_each_system_s_own(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_thread(OpenAIServer()) as server:
        assert run(server, data) == 0
        sent = [body for body in server.stats.bodies if "min_p" in body]
    results = read_results(Path("r/m-niah"))
    found = {word: results.systems[word] for word in SYSTEMS}
    for word, result in found.items():
        kinds = {build["build"]["tree"] for build in stored(Path("r/m-niah"))}
        assert kinds == {"ilm", "raptor"}
        stages = [row.prediction.usage.online for row in result.rows.values()]
        assert not any("tree" in stage or "extract" in stage for stage in stages), word
    ilm, short = (found[word].alone.calls for word in ("inner-loop", SYSTEMS[3]))
    assert ilm == found[SYSTEMS[1]].alone.calls > 0
    assert short != found["raptor"].alone.calls > 0
    assert len(sent) == ilm + short + found["raptor"].alone.calls
    assert found["raptor"].counted.calls == 1
    assert found["inner-loop"].malformed == 0
    told = capsys.readouterr().out
    assert "malformed nodes, %" in told
    assert "seconds of an item" in told
    for name in ("ilm-tr-figure-3", "ilm-tr-figure-3-m-niah-what-the-reader-was-shown"):
        assert Path(f"r/report/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_malformed_nodes_are_in_the_report(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shapeless(request: Mapping[str, Json]) -> str:
        reply = answering.answer(request)
        return reply.replace("(Surprise): None", "") if "(Surprise)" in said(request) else reply

    with in_thread(OpenAIServer(answer=shapeless)) as server:
        assert run(server, data, "--system", "ILM-TR", "--first", "1") == 0
    assert read_results(Path("r/m-niah")).systems["inner-loop"].malformed == 1
    head, _, here = (line for line in _table(capsys.readouterr().out) if "paper" not in line[1])
    (at,) = (n for n, title in enumerate(head) if "malformed nodes" in title)
    assert here[at].strip() == "100.0"


def _table(told: str) -> list[list[str]]:
    """Return the cells of the lines of a report's first table."""
    lines = told[told.index("| system") :].split("\n\n")[0].splitlines()
    return [line.split("|")[1:] for line in lines]


def test_the_plan_of_trees_holds_what_is_then_used(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "plan", "ilm-tr-figure-3", "--data", str(data), "--embedder", "none", "--json"]
    assert main([*words, "--model", "gpt-4o-mini"]) == 0
    (part,) = json.loads(capsys.readouterr().out)
    plan = {one["system"]: one for one in part["systems"]}
    with in_thread(OpenAIServer()) as server:
        assert run(server, data) == 0
    results = read_results(Path("r/m-niah"))
    for word, result in results.systems.items():
        calls = 4 * result.online.calls + result.alone.calls
        least, most = plan[word]["least"]["calls"], plan[word]["most"]["calls"]
        assert least <= calls <= most, word


def test_a_cap_within_a_tree_stops_the_run_and_the_next_one_continues(data: Path) -> None:
    only = ("--system", "RAPTOR", "--first", "1")
    with in_thread(OpenAIServer()) as server:
        assert run(server, data, *only, "--max-calls", "2") == 1
        assert run(server, data, *only) == 0
        trees = [body for body in server.stats.bodies if "min_p" in body]
    result = read_results(Path("r/m-niah")).systems["raptor"]
    assert len(trees) == result.alone.calls


def test_needles_stand_at_a_mean_depth_in_tokens_not_in_sentences(tmp_path: Path) -> None:
    """ILM-TR, section 4: the axis of its heat maps is the mean position of the needles."""
    short = " ".join(f"He sat {n}." for n in range(400))
    long = " ".join(f"On day {n} the keeper of tower {n * 3} wrote a line." for n in range(600))
    (tmp_path / "a.txt").write_text(f"{short} {long}")
    build("niah", tmp_path / "a.txt", tmp_path / "out", ("length=6k", "depths=25,50", "cases=3"))
    count = counter_of("auto").count
    for line in (tmp_path / "out" / "niah.jsonl").read_text().splitlines():
        case = json.loads(line)
        text = case["text"]
        mean = sum(count(text[:start]) for start, _ in case["spans"]) / 3 / count(text) * 100
        assert mean == pytest.approx(float(case["depth"]), abs=3)
