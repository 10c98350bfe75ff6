"""QRMeM's reading: merging, ablations, reply forms, and a full window."""

import asyncio
import json
import re
import shutil
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from played import EXACT, asked, met, never, reply, rows, run, said_in, schema_of, write
from servers import answering
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.eval import preset_named, preset_names
from qrmem.eval.preset import folder_of
from qrmem.eval.report.preset_report import write_preset_report

Json = Any
ASKED = "Who founded the bell works of Corrin?"
PAPER = ("--prompts", "paper")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def always(reply: str, request: Mapping[str, Json]) -> str:
    return reply


def test_a_third_segment_is_merged_with_all_that_went_before(tmp_path: Path) -> None:
    """Section 2.1: S_n of a merged relation is every segment that was merged so far."""

    def told(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "relations":
            years = set(re.findall(r"18\d\d", said_in(request)))
            return reply(relations=[f"Ada Holm|paid in {year}|Bo Lind" for year in years])
        if schema_of(request) == "fold":
            return reply(questions=["How often?"], description="paid again")
        return answering.answer(request)

    filler = "Nothing else was said of it in that long and quiet time. " * 60
    years = (1831, 1832, 1833)
    text = " ".join(f"Ada Holm paid Bo Lind in {year}. {filler}" for year in years)
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": "Whom did Ada Holm pay?"}])
    with in_thread(OpenAIServer(answer=told)) as server:
        assert run(server, "plain", tmp_path, "--system", f"reflection{EXACT}", *PAPER) == 0
        first, second = asked(server, "fold")
    for prompt, before in ((first, {"1831"}), (second, {"1831", "1832"})):
        head, _, tail = prompt.partition("Relation #2")
        shown = head[head.index("Relation #1") :].partition("Relation:")[0]
        assert set(re.findall(r"18\d\d", shown)) == before
        assert set(re.findall(r"18\d\d", tail.partition("Relation:")[0])).isdisjoint(before)
    assert "paid again" in second


@pytest.mark.parametrize("word", [f"reflection{EXACT}", "reflection:memory=compact"])
def test_without_graph_update_no_question_is_asked_for(tmp_path: Path, word: str) -> None:
    """Table 2: what is left out is not paid for."""
    write(tmp_path, met()[:2], [{"question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    with in_thread(OpenAIServer()) as server:
        words = ("--system", f"{word}:graph_update=false")
        assert run(server, "plain", tmp_path, *words) == 0
        wanted = [p for p in map(said_in, server.stats.bodies) if "Questions wanted" in p]
        assert all("Questions wanted: 0" in prompt for prompt in wanted)
        for prompt in ("questions", "entities-asked", "relations-asked", "supplement"):
            assert not asked(server, prompt), prompt


def test_a_forced_answer_keeps_its_reasoning_and_a_bare_action_is_read_at_once(
    tmp_path: Path,
) -> None:
    """Section 3.2, and Appendix E: Reasoning and Action."""
    text = "Ada Holm founded the bell works of Corrin in the spring of 1832."
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": ASKED, "answers": ["Ada Holm"]}])
    words = ("--system", "bm25", "--prompts", "paper", "--out")
    forced = "Reasoning: only she is named.\nAnswer: Ada Holm"
    with in_thread(OpenAIServer(answer=partial(always, forced))) as server:
        assert run(server, "plain", tmp_path, *words, "r1") == 0
    (row,) = rows("r1")
    assert row["prediction"]["text"] == "Ada Holm"
    assert row["prediction"]["reason"] == "only she is named."
    for out, said in (("r2", "Action: -1"), ("r3", "**Action:** -1, the text is silent")):
        with in_thread(OpenAIServer(answer=partial(always, said))) as server:
            assert run(server, "plain", tmp_path, *words, out, "--abstain") == 0
            judged = [p for p in map(said_in, server.stats.bodies) if "Action: -1 or -2" in p]
        assert len(judged) == 1, "a reply that can be read is asked for once"
        assert "text" not in rows(out)[0]["prediction"]
    echo = "Use this form:\nAction: -1 or -2"
    with in_thread(OpenAIServer(answer=partial(always, echo))) as server:
        run(server, "plain", tmp_path, *words, "r4", "--abstain")
        judged = [p for p in map(said_in, server.stats.bodies) if "Action: -1 or -2" in p]
    assert len(judged) == 5, "the form alone is no verdict"


def test_graph_expansion_searches_with_the_options_too(tmp_path: Path) -> None:
    """Section 2.2: segments are chosen by [Q; Q'], and Q has its options."""
    texts = ("Ada Holm met Bo Lind. ", "Ada Holm sold Dag Rune the zither. ")
    corpus = [{"_id": f"d{n}", "text": text * 12} for n, text in enumerate(texts)]
    question: dict[str, Json] = {"question": "What did Ada Holm do?", "answers": ["the zither"]}
    question["options"] = ["the zither", "the cello"]

    def silent(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "elaborate":
            return reply(query="")
        if schema_of(request) == "relations":
            is_first = "met [[Bo" in said_in(request)
            line = "Ada Holm|met|Bo Lind" if is_first else "Ada Holm|sold the zither to|Dag Rune"
            return reply(relations=[line])
        return never(request)

    write(tmp_path, corpus, [question])
    with in_thread(OpenAIServer(answer=silent)) as server:
        words = ("--system", f"graph-expansion{EXACT}", "--prompts", "paper")
        assert run(server, "plain", tmp_path, *words) == 0
    (row,) = rows()
    assert row["prediction"]["ranked"][0] == "d1"


def test_paper_exact_of_one_system_takes_the_papers_prompts_and_window(tmp_path: Path) -> None:
    """What docs/fidelity.md says of `reflection:paper_exact=true`."""
    write(tmp_path, met()[:2], [{"question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    for out, words, window in (("r1", (), 4096), ("r2", ("--window", "2000"), 2000)):
        with in_thread(OpenAIServer()) as server:
            words = ("--system", f"bm25,reflection{EXACT}", "--out", out, *words)
            assert run(server, "plain", tmp_path, *words) == 0
            said = list(map(said_in, server.stats.bodies))
        assert any("Use this form:\nReasoning:" in prompt for prompt in said)
        config = json.loads((Path(out) / "run.json").read_text())
        assert config["settings"]["window"] == window
        own = config["parameters"]
        assert own[f"reflection{EXACT}"]["paper_exact"]
        assert own[f"reflection{EXACT}"]["max_trials"] == 5
        assert own["bm25"]["k"] == 3
        assert config["prompts"]["set"].startswith("paper ")
    write(tmp_path, met()[:2], [{"question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, "--system", "bm25", "--out", "r3") == 0
        assert run(server, "plain", tmp_path, "--system", "bm25:k=1", "--out", "r3") == 0
    config = json.loads(Path("r3/run.json").read_text())
    assert config["settings"]["window"] == 16384
    assert {word: own["k"] for word, own in config["parameters"].items()} == {
        "bm25": 3,
        "bm25:k=1": 1,
    }, "a system that is added later has its settings there, too"


def test_a_run_is_judged_by_its_own_set_of_prompts(tmp_path: Path) -> None:
    """FragRel, Prompt 4: the ratings of a run made with the papers' prompts are theirs, too."""
    own = tmp_path / "own"
    own.mkdir()
    text = "Rate it, as MINE.\n$question\n$reference\n$given\nRating: [[5]]\n"
    (own / "rate.md").write_text(f"---\nname: rate\nform: text\n---\n{text}")
    write(tmp_path, met()[:1], [{"question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    with in_thread(OpenAIServer()) as server:
        words = ("--system", "bm25", "--prompts", f"paper,{own}")
        assert run(server, "plain", tmp_path, *words) == 0
        using = ["--model", "gpt-4o-mini", "--base-url", server.url]
        main(["eval", "judge", "r", *using])
        assert any("as MINE" in prompt for prompt in map(said_in, server.stats.bodies))


def test_a_build_that_was_stopped_while_relations_were_merged_merges_them_when_it_continues(
    tmp_path: Path,
) -> None:
    """Section 2.1: what a stop left out was never merged, and the memory's cost was lost."""

    def told(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "relations":
            return reply(relations=["Ada Holm|paid|Bo Lind"])
        if schema_of(request) == "fold":
            return reply(questions=["How often?"], description="paid again and again")
        return answering.answer(request)

    filler = "Nothing else was said of it in that long and quiet time. " * 60
    text = " ".join(f"Ada Holm paid Bo Lind {often}. {filler}" for often in ("once", "twice"))
    text = text.replace("paid", "paid and thanked", 1)
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": "Whom did Ada Holm pay?"}])

    def told_apart(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "relations" and "thanked" in said_in(request):
            return reply(relations=["Ada Holm|thanked|Bo Lind"])
        return told(request)

    words = ("--system", f"reflection{EXACT}", "--concurrency", "1", "--out")
    with in_thread(OpenAIServer(answer=told_apart)) as server:
        assert run(server, "plain", tmp_path, *words, "whole") == 0
        before = [schema_of(body) for body in server.stats.bodies].index("fold")
        in_all = len(server.stats.bodies)
        assert run(server, "plain", tmp_path, *words, "r", "--max-calls", str(before)) != 0
        assert len(asked(server, "fold")) == 1
        assert run(server, "plain", tmp_path, *words, "r") == 0
        assert len(asked(server, "fold")) == 2
        assert len(server.stats.bodies) == 2 * in_all
        assert run(server, "plain", tmp_path, *words, "r") == 0
        assert len(server.stats.bodies) == 2 * in_all, "nothing is paid for twice"
    calls = []
    for out in ("whole", "r"):
        last = json.loads((Path(out) / "memories.jsonl").read_text().splitlines()[-1])
        calls.append(sum(stage["calls"] for stage in last["stages"].values()))
    assert calls[0] == calls[1]


def test_a_changed_copy_of_one_template_is_what_the_server_reads(tmp_path: Path) -> None:
    """Appendix E: `--prompts paper,FOLDER`; the other prompts stay those of the set `paper`."""
    own = tmp_path / "mine"
    own.mkdir()
    text = (files("qrmem.prompts") / "templates/paper/judge.md").read_text(encoding="utf-8")
    old = next(line for line in text.splitlines() if line.startswith("Use this form"))
    (own / "judge.md").write_text(text.replace(old, f"Weigh each passage as MINE.\n{old}"))
    write(tmp_path, met()[:2], [{"question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    said, sets = {}, {}
    for out, chosen in (("plain", "paper"), ("own", f"paper,{own}")):
        with in_thread(OpenAIServer()) as server:
            words = ("--system", f"reflection{EXACT}", "--prompts", chosen, "--out", out)
            assert run(server, "plain", tmp_path, *words) == 0
            said[out] = list(map(said_in, server.stats.bodies))
        sets[out] = json.loads((Path(out) / "run.json").read_text())["prompts"]["set"]
    judged = [one for one in said["own"] if "Action: -1 or -2" in one]
    assert judged
    assert all("Weigh each passage as MINE." in one for one in judged)
    assert not any("MINE" in one for one in said["plain"])
    assert {one.replace("Weigh each passage as MINE.\n", "") for one in said["own"]} == set(
        said["plain"]
    )
    assert sets["own"].split()[0] == "paper+mine"
    assert sets["own"].split()[-1] != sets["plain"].split()[-1]


def walking(name: str) -> list[str]:
    """Return the systems of a preset that walk the graph after a first reading."""
    words = preset_named(name).systems.values()
    return [w for w in words if w.startswith("reflection") and "navigation=false" not in w]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two systems and two questions, stopped and gone on with, whose window is full."""
    folder = tmp_path_factory.mktemp("filled")
    line = "Ada Holm kept the bell works of Corrin going through a hard and hungry winter. " * 8
    corpus = [{"_id": f"d{n}", "text": f"{line} It was {n}."} for n in range(1820, 1832)]
    corpus.append({"_id": "near", "text": "Ada Holm met Bo Lind. " * 12})
    corpus.append({"_id": "far", "text": "Bo Lind had a wife at sea. " * 12})
    asked = ("Whom did Ada Holm marry?", "Whom did Ada Holm pay?")
    write(folder, corpus, [{"_id": q, "question": q, "answers": ["x"]} for q in asked])
    systems = f"reflection{EXACT},reflection{EXACT}:updates=2"
    words = ["--system", systems, "--window", "1600", "--prompts", "paper"]
    words += ["--out", str(folder / "r"), "--concurrency", "1"]
    with in_thread(OpenAIServer(answer=never)) as server:
        assert run(server, "plain", folder, *words) == 0
        kept = folder / "r" / "rows.jsonl"
        lines = kept.read_text().splitlines(keepends=True)
        assert len(lines) == 4
        kept.write_text("".join(lines[:3]))
        assert run(server, "plain", folder, *words) == 0
        assert len(kept.read_text().splitlines()) == 4
    return folder / "r"


@pytest.mark.parametrize("name", [name for name in preset_names() if walking(name)])
def test_each_preset_that_navigates_says_how_many_questions_never_did(
    name: str, filled: Path
) -> None:
    """Each of its walking systems has its own line, in a run that was stopped, too."""
    preset = preset_named(name)
    names = walking(name)[:2]
    was = [f"reflection{EXACT}", f"reflection{EXACT}:updates=2"]
    into = Path("p") / folder_of(preset.parts[0])
    shutil.copytree(filled, into)
    shutil.rmtree(into / "report", ignore_errors=True)
    config = json.loads((into / "run.json").read_text())
    found = [json.loads(line) for line in (into / "rows.jsonl").read_text().splitlines()]
    renamed = dict(zip(was, names, strict=False))
    kept = [{**row, "system": renamed[row["system"]]} for row in found if row["system"] in renamed]
    (into / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in kept))
    (into / "run.json").write_text(json.dumps({**config, "systems": names}))
    told = asyncio.run(write_preset_report(preset, Path("p"))).read_text()
    for system in names:
        assert f"- {system}: 2 of 2 questions that the first reading did not answer never" in told
