"""Ada-LEval end to end: built, loaded, asked of a scripted model, of our systems and of rules."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers.openai_server import Behaviour, OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.eval import Arrangement, Corpus, arranged, load, preset_named, read_results
from qrmem.eval.datasets.adaleval import right_order
from qrmem.eval.datasets.multihop import Place
from qrmem.eval.preset import folder_of
from qrmem.eval.registry import build
from qrmem.eval.report.plots import Panel, panels
from qrmem.eval.report.results import Results
from qrmem.eval.systems.adaleval_prompting import without_middle
from qrmem.llm.tokenizers import open_tokenizer
from tools import adaleval_small_model

pytestmark = pytest.mark.usefixtures("own_folder")


def story() -> str:
    """Return a story in which each paragraph begins with the last words of the one before."""

    def thing(n: int) -> str:
        return "lo" + "".join("bcdfgklmnp"[int(digit)] + "a" for digit in f"{n:03d}") + "n"

    return "\n\n".join(
        f"In the evening he came back to the {thing(n)} that was left there, looked at it for a "
        f"while, and then went up to another room, where he found the {thing(n + 1)}."
        for n in range(240)
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ada")
    (folder / "book.txt").write_text(story())
    build("tsort", folder / "book.txt", folder / "tsort", ("length=1k", "stride=24", "count=6"))
    threads = [
        {
            "id": n,
            "title": f"How to read topic{n}?",
            "body": f"My topic{n} parser fails on gadget{n}.",
            "tags": ["python"],
            "views": n,
            "accepted_answer_id": n * 10 + 1,
            "answers": [
                {"id": n * 10, "body": "I have the same problem, any news?", "date": "2020-01-01"},
                {
                    "id": n * 10 + 1,
                    "body": f"Open topic{n} with gadget{n}, then call parser.read(). " * 3,
                    "date": "2020-01-02",
                },
            ],
        }
        for n in range(40)
    ]
    (folder / "threads.jsonl").write_text("\n".join(map(json.dumps, threads)))
    build("bestanswer", folder / "threads.jsonl", folder / "best", ("length=1k", "count=6"))
    return folder


def run(task: str, file: Path, *words: str) -> Results:
    command = ["eval", "run", task, "--data", str(file), "--embedder", "none", "--quiet"]
    assert main([*command, "--out", "r", *words]) == 0
    return read_results(Path("r"))


def value(results: Results, system: str, metric: str) -> float | None:
    found = results.systems[system].mean(metric)
    return None if found is None else round(found.value, 4)


# --- what is sent, and how replies are scored ----------------------------------------------------


def replies(*said: str) -> OpenAIServer:
    """Return a server that says these one after the other."""
    left = list(said)
    return OpenAIServer(answer=lambda request: left.pop(0))


def test_the_prompt_has_the_released_slots_in_their_order(data: Path) -> None:
    with in_thread(replies(*["Answer: [4, 1, 3, 2]"] * 6)) as server:
        results = run("tsort", data / "tsort" / "tsort_1k.jsonl", *model(server))
    sent = [body["messages"][-1]["content"] for body in server.stats.bodies]
    assert all(body.get("temperature") == 0 for body in server.stats.bodies)
    case = json.loads((data / "tsort" / "tsort_1k.jsonl").read_text().splitlines()[0])
    places = [sent[0].index(text) for text in (case["before"], *case["segments"], case["after"])]
    assert places == sorted(places)
    assert re.findall(r"^(Before|Part \d|After):$", sent[0], re.M) == [
        "Before",
        "Part 1",
        "Part 2",
        "Part 3",
        "Part 4",
        "After",
    ]
    tokens = open_tokenizer("builtin").count(server.stats.bodies[0]["messages"][0]["content"])
    assert tokens + open_tokenizer("builtin").count(sent[0]) <= case["tokens"]
    assert value(results, "ada-leval", "copies") == 1.0
    assert value(results, "ada-leval", "chance") == round(1 / 24, 4)


def model(server: OpenAIServer) -> tuple[str, ...]:
    return ("--system", "ada-leval", "--model", "m", "--base-url", server.url, "--concurrency", "1")


def test_the_model_s_own_sampling_sends_no_temperature(data: Path) -> None:
    systems = "ada-leval,ada-leval:sampling=model"
    with in_thread(replies(*["Answer: [4, 1, 3, 2]"] * 12)) as server:
        run("tsort", data / "tsort" / "tsort_1k.jsonl", *model(server), "--system", systems)
        sent = [body.get("temperature") for body in server.stats.bodies]
    assert sent
    assert sorted(map(str, sent)) == ["0.0"] * (len(sent) // 2) + ["None"] * (len(sent) // 2)


def test_rates_have_both_denominators(data: Path) -> None:
    rights = [
        json.loads(line)["answer"]
        for line in (data / "tsort" / "tsort_1k.jsonl").read_text().splitlines()
    ]
    wrong = [[*right[1:], right[0]] for right in rights]
    said = [str(rights[0]), str(wrong[1]), "Answer: [4, 1, 3, 2]", "[]", "no idea", str(rights[5])]
    with in_thread(replies(*said)) as server:
        results = run("tsort", data / "tsort" / "tsort_1k.jsonl", *model(server))
    is_sample = sum(right == [4, 1, 3, 2] for right in (rights[2],))
    copied = 1 + sum(one == [4, 1, 3, 2] for one in (rights[0], wrong[1], rights[5]))
    assert value(results, "ada-leval", "strict") == round((2 + is_sample) / 6, 4)
    assert value(results, "ada-leval", "official") == round((3 + is_sample) / 6, 4)
    assert value(results, "ada-leval", "strict_valid") == round((2 + is_sample) / 4, 4)
    assert value(results, "ada-leval", "follows") == round(4 / 6, 4)
    assert value(results, "ada-leval", "copies") == round(copied / 6, 4)
    assert value(results, "ada-leval", "copies_valid") == round(copied / 4, 4)


def test_a_case_that_a_model_cannot_take_is_wrong_and_not_unscored(data: Path) -> None:
    small = OpenAIServer(answer=lambda request: "A1", behaviour=Behaviour(context=100))
    with in_thread(small) as server:
        results = run("bestanswer", data / "best" / "bestanswer_1k.jsonl", *model(server))
    assert not results.systems["ada-leval"].errors
    assert value(results, "ada-leval", "strict") == 0.0
    assert value(results, "ada-leval", "follows") == 0.0
    rows = results.systems["ada-leval"].rows.values()
    assert all("context" in row.prediction.reason for row in rows)


def test_bestanswer_s_prompt_names_every_answer(data: Path) -> None:
    case = json.loads((data / "best" / "bestanswer_1k.jsonl").read_text().splitlines()[0])

    def named(request: Mapping[str, Any]) -> str:
        text = request["messages"][-1]["content"]
        label = next(
            name
            for name, said in re.findall(r"^(A\d+):\n(.*)$", text, re.M)
            if said.startswith("Open topic") and f"My {said.split()[1]} parser" in text
        )
        return f"Answer: {label}"

    with in_thread(OpenAIServer(answer=named)) as server:
        results = run("bestanswer", data / "best" / "bestanswer_1k.jsonl", *model(server))
    sent = server.stats.bodies[0]["messages"][-1]["content"]
    assert all(f"A{k}:\n{text}" in sent for k, text in enumerate(case["all_answers"], 1))
    assert case["question"] in sent
    assert value(results, "ada-leval", "strict") == 1.0
    assert value(results, "ada-leval", "accuracy") == 1.0


def test_perplexity_takes_the_likeliest_order_of_all(data: Path) -> None:
    whole = " ".join(story().split())
    scored = Behaviour(surprise=lambda text: 1.0 if " ".join(text.split()) in whole else 2.0)
    with in_thread(OpenAIServer(behaviour=scored)) as server:
        words = ("--system", "ada-perplexity", "--model", "m", "--base-url", server.url)
        results = run("tsort", data / "tsort" / "tsort_1k.jsonl", "--sample", "2", *words)
    assert value(results, "ada-perplexity", "strict") == 1.0
    assert results.systems["ada-perplexity"].online.calls == 24


def test_log_probabilities_that_fit_no_prose_are_refused_and_a_begin_token_is_sent(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(data / "tsort" / "tsort_1k.jsonl")
    command = ["eval", "run", "tsort", "--data", file, "--embedder", "none", "--quiet"]
    shifted = Behaviour(surprise=lambda text: 2.0 if text.startswith("<s>") else 12.0)
    with in_thread(OpenAIServer(behaviour=shifted)) as server:
        words = ["--sample", "1", "--model", "m", "--base-url", server.url]
        assert main([*command, *words, "--system", "ada-perplexity", "--out", "a"]) != 0
        told = capsys.readouterr()
        assert "perplexity 162,755" in told.out + told.err
        assert "ada-perplexity:begin=<s>" in told.out + told.err
        system = "ada-perplexity:begin=<s>"
        assert main([*command, *words, "--system", system, "--out", "b"]) == 0
    assert read_results(Path("b")).systems[system].mean("follows").value == 1.0  # type: ignore[union-attr]


def test_a_plan_of_perplexity_sends_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_thread(OpenAIServer()) as server:
        words = ["--system", "ada-perplexity", "--model", "m", "--base-url", server.url]
        command = ["eval", "plan", "tsort", "--data", str(data / "tsort" / "tsort_1k.jsonl")]
        assert main([*command, *words]) == 0
        assert server.stats.connections == 0
    assert re.search(r"ada-perplexity +\d+-\d+ calls", capsys.readouterr().out)


def test_perplexity_keeps_caps_and_needs_log_probabilities(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(data / "tsort" / "tsort_1k.jsonl")
    command = ["eval", "run", "tsort", "--data", file, "--embedder", "none", "--quiet"]
    with in_thread(OpenAIServer()) as server:
        words = ["--system", "ada-perplexity", "--model", "m", "--base-url", server.url]
        capped = ["--max-calls", "30", "--concurrency", "1", "--out", "a"]
        assert main([*command, *words, *capped]) == 1
        assert "cap" in capsys.readouterr().err
        assert len(read_results(Path("a")).systems["ada-perplexity"].rows) == 1
        words = ["--system", "ada-perplexity", "--model", "m", "--base-url", f"{server.url}/x"]
        assert main([*command, *words, "--out", "b"]) in (3, 4)


def test_a_run_continues_where_it_stopped_and_is_replayed_with_no_server(data: Path) -> None:
    file = str(data / "tsort" / "tsort_1k.jsonl")
    command = ["eval", "run", "tsort", "--data", file, "--embedder", "none", "--quiet"]
    said = [f"Answer: {order}" for order in ([4, 1, 3, 2], [1, 2, 3, 4], [2, 1], [1, 3, 2, 4])]
    with in_thread(replies(*said, "none", "[3, 1, 2, 4]")) as server:
        capped = ["--record", "tape.jsonl", "--max-calls", "2", "--out", "live"]
        assert main([*command, *model(server), *capped]) == 1
        assert len(read_results(Path("live")).systems["ada-leval"].rows) == 2
        assert main([*command, *model(server), "--record", "tape.jsonl", "--out", "live"]) == 0
        assert server.stats.requests == 6
        assert main([*command, *model(server), "--replay", "tape.jsonl", "--out", "again"]) == 0
        assert server.stats.requests == 6
    live, again = (read_results(Path(name)).systems["ada-leval"] for name in ("live", "again"))
    assert live.scores == again.scores
    texts = [{id: row.prediction.text for id, row in one.rows.items()} for one in (live, again)]
    assert texts[0] == texts[1]
    assert set(texts[0].values()) == {*said, "none", "[3, 1, 2, 4]"}
    assert live.mean("follows").n == 6  # type: ignore[union-attr]


# --- figures of the presets ----------------------------------------------------------------------


def preset_run(preset: str, folder: Path, *words: str) -> None:
    with in_thread(OpenAIServer(answer=lambda request: "Answer: [1, 3, 2, 4] A1")) as server:
        command = ["eval", "run", preset, "--data", str(folder), "--embedder", "none", "--quiet"]
        using = ["--model", "m", "--base-url", server.url, "--out", "r"]
        # Only some of its parts have data here, which the command tells by 1.
        assert main([*command, *using, *words]) == 1
    assert "items failed" not in Path("r/report/report.md").read_text(encoding="utf-8")


def figure(preset: str, metric: str = "") -> list[Panel]:
    """Return the panels of a figure of the run in `r`."""
    found = preset_named(preset)
    parts = [
        (part, read_results(Path("r") / folder_of(part)))
        for part in found.parts
        if (Path("r") / folder_of(part)).exists()
    ]
    plot = {**found.plot, "metric": metric or found.plot["metric"]}
    return panels(replace(found, plot=plot), parts)[0]


def test_a_preset_without_usable_data_is_refused_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    other = written(tmp_path / "b.jsonl", {"question": "q", "all_answers": ["a"], "answer": "A1"})
    for source, told in (
        ("empty", "holds none of tsort_2k.jsonl"),
        (str(other), "line 1 has no field 'prompt'"),
    ):
        for action, *words in (("run", "--out", "r"), ("plan", "--model", "m")):
            command = ["eval", action, "ada-leval-tsort", "--data", source, "--system", "FragRel"]
            assert main([*command, *words]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert told in line
            assert "(and 3 more parts)" in line
    assert not Path("r").exists()


def test_rates_of_following_and_copying_have_figures_beside_the_paper_s(data: Path) -> None:
    shutil.copy(data / "tsort" / "tsort_1k.jsonl", "tsort_2k.jsonl")
    preset_run("ada-leval-tsort", Path.cwd(), "--system", "Prompt,BM25 (Max)")
    names = ("", "-figure-2-instruction-following", "-table-4-copied-examples")
    report = Path("r/report/report.md").read_text(encoding="utf-8")
    for name in names:
        assert Path(f"r/report/ada-leval-tsort{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"(ada-leval-tsort{name}.png)" in report
    (follows, *none) = figure("ada-leval-tsort", "follows")
    assert not any(panel.curves for panel in none), "the paper prints no numbers of Figure 2"
    points = {curve.name: curve.points for curve in follows.curves}
    assert [(p.x, p.value) for p in points["Prompt"]] == [(2000.0, 1.0)]
    _, paper = figure("ada-leval-tsort", "copies_valid")
    curves = {curve.name: curve.points for curve in paper.curves}
    assert [(p.x, p.value) for p in curves["Claude-2"]][:2] == [(2e3, 0.995), (4e3, 0.95)]


def test_position_bias_has_a_curve_for_each_place(data: Path) -> None:
    shutil.copy(data / "best" / "bestanswer_1k.jsonl", "bestanswer_1k.jsonl")
    preset_run("ada-leval-positions", Path.cwd(), "--system", "Prompt")
    here, gpt, *others = figure("ada-leval-positions")
    # The scripted model always says A1: right where the accepted answer is at the front.
    values = {curve.name: curve.points[0].value for curve in here.curves}
    assert values == {"Prompt, front": 1.0, "Prompt, mid": 0.0, "Prompt, rear": 0.0}
    assert gpt.title == "paper: GPT-4-Turbo-1106"
    assert [point.value for point in gpt.curves[0].points] == [0.765, 0.825, 0.865, 0.9, 0.82]
    assert len(others) == 7


def test_a_cut_text_has_a_curve_over_the_tokens_that_are_kept(data: Path) -> None:
    shutil.copy(data / "best" / "bestanswer_1k.jsonl", "bestanswer_16k.jsonl")
    preset_run("ada-leval-truncation", Path.cwd())
    assert Path("r/report/ada-leval-truncation.png").read_bytes().startswith(b"\x89PNG")
    (here, paper, *_) = figure("ada-leval-truncation")
    kept = [2000.0, 4000.0, 8000.0, 128_000.0]
    assert [point.x for curve in here.curves for point in curve.points] == kept
    assert [(p.x, p.value) for c in paper.curves for p in c.points] == list(
        zip(kept, [0.11, 0.2, 0.315, 0.44], strict=True)
    )
    assert [panel.curves[0].name for panel in figure("ada-leval-truncation")[1::2]] == [
        "BestAnswer",
        "NarrativeQA",
        "GovReport",
    ]


def test_a_report_is_made_from_end_to_end(tmp_path: Path) -> None:
    folder = os.environ.get("QRMEM_DATA")
    if not folder:
        pytest.skip("QRMEM_DATA names no folder")
    page = tmp_path / "page.md"
    with in_thread(OpenAIServer(answer=lambda request: "Answer: [4, 1, 3, 2] A1")) as server:
        adaleval_small_model.main(Path(folder), server.url, "m", tmp_path / "kept", 2, page)
    text = page.read_text(encoding="utf-8")
    assert text.count("| Prompt | here |") == 10
    assert (
        len(re.findall(r"\| Prompt \| here \| .* \| 100\.0 \[100\.0, 100\.0\] n=2 \|", text)) >= 2
    )
    assert "paper, GPT-4-Turbo-1106" in text
    assert "Random guess | paper, all" in text


# --- our systems as models -----------------------------------------------------------------------


def test_our_strategies_and_baselines_answer_both(data: Path) -> None:
    with in_thread(OpenAIServer()) as server:
        words = ("--model", "m", "--base-url", server.url)
        systems = ("--system", "reflection,bm25,keep-ends")
        for task, file in (
            ("tsort", "tsort/tsort_1k.jsonl"),
            ("bestanswer", "best/bestanswer_1k.jsonl"),
        ):
            command = ["eval", "run", task, "--data", str(data / file), "--embedder", "none"]
            out = ["--quiet", "--sample", "2", "--out", task]
            assert main([*command, *out, *systems, *words]) == 0
            results = read_results(Path(task))
            assert set(results.systems) == {"reflection", "bm25", "keep-ends"}
            assert all(found.mean("follows") is not None for found in results.systems.values())


def test_a_middle_that_is_cut_leaves_both_ends() -> None:
    count = open_tokenizer("builtin").count
    text = " ".join(f"w{n}" for n in range(400))
    kept = without_middle(text, 100, count)
    assert count(kept) <= 101
    assert kept.startswith("w0 w1 ")
    assert kept.endswith(" w398 w399")
    assert without_middle("a b c", 100, count) == "a b c"


@pytest.mark.parametrize(("place", "at"), [("front", 0), ("mid", 2), ("rear", 4)])
def test_the_right_answer_is_moved_and_the_others_keep_their_order(
    tmp_path: Path, place: Place, at: int
) -> None:
    record = {"question": "q", "all_answers": [*"abcde"], "answer": "A2"}
    data = load("bestanswer", written(tmp_path / "b.jsonl", record), Corpus())
    moved = arranged(data, Arrangement(place))
    (item,) = moved.items
    texts = [document.text for document in moved.contexts[item.context].documents]
    assert texts[at] == "b"
    assert [text for text in texts if text != "b"] == [*"acde"]
    assert (item.choice, item.answers, item.gold) == (at, (f"A{at + 1}",), (f"A{at + 1}",))
    titles = [document.title for document in moved.contexts[item.context].documents]
    assert titles == ["A1", "A2", "A3", "A4", "A5"]


def test_the_first_cases_are_the_files_first(data: Path) -> None:
    file = data / "best" / "bestanswer_1k.jsonl"
    results = run("bestanswer", file, "--system", "bm25", "--first", "2")
    assert set(results.items) == {"bestanswer-0", "bestanswer-1"}


# --- files ---------------------------------------------------------------------------------------


def written(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_a_released_tsort_item_is_split_into_its_parts(tmp_path: Path) -> None:
    prompt = (
        "Sort them. Sample:\nBefore: x\nPart 1: y\nPart 2: z\nAfter: w\nAnswer: [2, 1]\n\n"
        "Before:\nIt began.\n\nPart 1:\nThen more.\n\nPart 2:\nAt first.\n\nAfter:\nThe end.\n\n"
        "Please give the order."
    )
    file = written(tmp_path / "t.jsonl", {"book_id": 1, "prompt": prompt, "answer": [2, 1]})
    data = load("tsort", file, Corpus())
    texts = [document.text for document in data.contexts["tsort-0"].documents]
    assert texts == ["It began.", "Then more.", "At first.", "The end."]
    assert right_order(data.items[0]) == [2, 1]


def test_released_items_of_bestanswer_load() -> None:
    folder = os.environ.get("QRMEM_DATA")
    if not folder:
        pytest.skip("QRMEM_DATA names no folder")
    data = load("bestanswer", Path(folder) / "adaleval" / "bestanswer_1k_first500.json", Corpus())
    assert len(data.items) == 500
    chance = sum(1 / len(item.choices) for item in data.items) / 500
    assert round(100 * chance, 1) == 26.3
    assert {item.labels.get("subset", "") for item in data.items} == {"first 200", ""}


@pytest.mark.parametrize(
    ("task", "record", "told"),
    [
        ("tsort", {"prompt": "Sort!", "answer": [2, 1]}, "lacks Before:"),
        ("tsort", {"before": "a", "segments": ["b"], "after": "c", "answer": [1, 2]}, "1 parts"),
        ("tsort", {"before": "a", "segments": ["b"], "after": "c", "answer": [2]}, "not an order"),
        (
            "bestanswer",
            {"question": "q", "all_answers": ["a", "b"], "answer": "A3"},
            "not one of A1",
        ),
        ("bestanswer", {"question": "q", "all_answers": ["a"], "answer": "A1"}, "only one"),
        ("bestanswer", {"question": "q", "answer": "A1"}, "no field"),
    ],
)
def test_an_invalid_item_is_named(tmp_path: Path, task: str, record: Any, told: str) -> None:
    from qrmem.errors import UsageError

    with pytest.raises(UsageError, match=f"line 1.*{told}"):
        load(task, written(tmp_path / "x.jsonl", record, record), Corpus())


def test_other_questions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    data = Path(__file__).parent / "data" / "hotpot.json"
    command = ["eval", "run", "hotpotqa", "--data", str(data), "--embedder", "none"]
    with in_thread(OpenAIServer()) as server:
        assert main([*command, "--quiet", *model(server), "--out", "x"]) == 1
    assert "answers TSort and BestAnswer only" in capsys.readouterr().out
