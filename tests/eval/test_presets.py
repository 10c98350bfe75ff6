"""Presets: every file is sound; one runs on fixtures; a message names what cannot run."""

import json
import math
import sys
from pathlib import Path

import pytest
from preset_data import DATA, write_all, write_some
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.eval import (
    DATASETS,
    Arrangement,
    Corpus,
    arranged,
    load,
    needs,
    parse,
    preset_named,
    preset_names,
    read_results,
)
from qrmem.eval.preset import deviations, folder_of
from qrmem.eval.report.plots import limits, step_aside

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(write_some(tmp_path / "data"))


def run(preset: str, data: str, *words: str) -> int:
    return main(["eval", "run", preset, "--data", data, "--embedder", "none", "--quiet", *words])


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_names_known_tasks_systems_and_labels(name: str) -> None:
    preset = preset_named(name)
    assert preset.title
    assert preset.readings
    for word in preset.systems.values():
        parse(word)
    for part in preset.parts:
        DATASETS[part.task]
        assert set(part.systems) <= set(preset.systems)
    named = {part.name for part in preset.parts}
    for systems in preset.paper.values():
        assert set(systems) <= {*preset.systems, *preset.quoted}
        for parts in systems.values():
            assert all(any(p == n or p.startswith(f"{n} ") for n in named) for p in parts)


def test_table_2_splits_by_difficulty_with_the_papers_numbers_beside(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("table-2", data, "--sample", "3", "--out", "r") == 0
    told = capsys.readouterr().out
    assert "| system | run | QuALITY accuracy | QuALITY easy accuracy | QuALITY hard" in told
    assert "| QRMeM | paper, GPT-3.5-turbo | 72.07 | 70.00 | 74.50 |" in told
    assert "| w/o Navigation | here |" in told
    assert Path("r/report/table-2.csv").exists()


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_parts_without_data_and_systems_without_a_model_are_left_out_and_named(
    data: str, capsys: pytest.CaptureFixture[str], quiet: list[str]
) -> None:
    words = ["eval", "run", "table-1", "--data", data, "--embedder", "none", "--sample", "2"]
    assert main([*words, "--out", "r", *quiet]) == 1
    told = capsys.readouterr()
    report = Path("r/report/report.md").read_text(encoding="utf-8")
    for name, reason in (
        ("MemWalker", "the system 'MemWalker' needs a chat model"),
        ("MuSiQue", ""),
    ):
        assert f"not run: {name}: {reason}" in told.err
        assert f"- {name}: {reason}" in told.out
        assert f"- {name}: {reason}" in report
    assert "| BM25 (top 3) | here |" in told.out
    assert "| QRMeM (KN) | paper, LLaMA-70B-Chat | 65.31 |" in told.out
    assert main([*words, "--system", "BM25 (top 3)", "--out", "one"]) == 1
    assert "HotpotQA, 1 system\n" in capsys.readouterr().err


def test_a_preset_with_no_data_at_all_says_where_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert run("table-2", str(tmp_path / "empty")) == 2
    assert "nyu-mll/quality" in capsys.readouterr().err


def test_a_figure_is_drawn(data: str) -> None:
    assert run("figure-4", data, "--sample", "2", "--out", "r", "--system", FIRST_TRIALS) == 0
    assert Path("r/report/figure-4.png").read_bytes().startswith(b"\x89PNG")
    assert main(["eval", "report", "r"]) == 0


def test_an_axis_has_points_that_differ() -> None:
    """Where every value is 0, the axis ended at 0.05 %."""
    assert limits(-0.055, 0.055) == (0.0, 10.0)
    assert limits(24.0, 27.0) == (24.0, 34.0)
    assert limits(-5.0, 105.0) == (0.0, 105.0)


def test_curves_of_one_place_stand_nearer_than_the_next_place() -> None:
    """Nine systems at 6k reached those at 8k."""
    lengths = [1000, 2000, 4000, 6000, 8000, 12000, 16000]
    nearest = math.log(8 / 6) / math.log(16)
    assert 8 * step_aside(9, lengths, is_log=True) < nearest / 2
    assert step_aside(2, [0, 2, 4]) == step_aside(1, [0, 2, 4])
    assert step_aside(2, [7]) == 0.0


FIRST_TRIALS = "1 trial,2 trials"


def test_cases_show_what_was_read_and_where_the_retriever_ranks_it(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "test", "--base-url", server.url)
        words = ("--system", "QRMeM (KN),BM25 (top 3)", "--out", "r")
        assert run("table-5", data, *words, *model) == 0
    capsys.readouterr()
    answers = {"QRMeM (KN)": "Vantry", "BM25 (top 3)": "Corrin Head"}
    answered(Path("r/hotpotqa"), "table-5", answers)
    assert main(["eval", "report", "r"]) == 0
    told = capsys.readouterr().out
    assert "| segment | rank by BM25 | read by ours |" in told
    assert "Lemuel Strake was a shipwright" in told
    assert " | 1 | " in told
    assert " | yes |" in told
    assert "Gold answer: Vantry" in told
    assert "BM25 (top 3) answers: Corrin Head" in told
    answered(Path("r/hotpotqa"), "table-5", dict.fromkeys(answers, "Vantry"))
    assert main(["eval", "report", "r"]) == 0
    assert "was answered right by QRMeM (KN) and wrong by BM25 (top 3)" in capsys.readouterr().out


def answered(folder: Path, preset: str, answers: dict[str, str]) -> None:
    """Put other answers into a run's rows."""
    words = {word: label for label, word in preset_named(preset).systems.items()}
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        row["short"] = answers[words[row["system"]]]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_cases_say_where_one_of_the_two_was_not_run(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("table-5", data, "--system", "BM25 (top 3)", "--out", "r") == 0
    assert "No cases: they need results of QRMeM (KN)" in capsys.readouterr().out


def test_a_case_shows_the_compressed_answer(
    data: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "llmlingua.py").write_text(COMPRESSOR)
    monkeypatch.syspath_prepend(tmp_path)
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "test", "--base-url", server.url)
        words = ("--system", "QRMeM (KN),BM25 (top 3),LLMLingua-2", "--out", "r")
        assert run("table-5", data, *words, *model) == 0
    sys.modules.pop("llmlingua", None)
    capsys.readouterr()
    said = {"QRMeM (KN)": "Vantry", "BM25 (top 3)": "Corrin Head", "LLMLingua-2": "Dunmore"}
    answered(Path("r/hotpotqa"), "table-5", said)
    assert main(["eval", "report", "r"]) == 0
    told = capsys.readouterr().out
    assert "LLMLingua-2 (compressed text) answers: Dunmore" in told
    assert "| segment | rank by BM25 | read by ours |" in told


COMPRESSOR = """
class PromptCompressor:
    def __init__(self, model_name, use_llmlingua2, device_map, model_config):
        pass

    def compress_prompt_llmlingua2(self, context, target_token):
        return {"compressed_prompt": " ".join(" ".join(context).split()[:50])}
"""


def test_a_table_of_many_parts_has_a_row_for_each(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "run", "table-3", "--data", data, "--embedder", "none", "--quiet"]
    assert main([*words, "--out", "r"]) == 1, "two of the three sets are not there"
    told = capsys.readouterr().out
    assert "| data | system | run | cover_em | f1 |" in told
    assert "| HotpotQA middle | Full text | here | " in told
    assert "| HotpotQA middle | Full text | paper, Vicuna-7b-16k | 26.50 | 18.89 |" in told


def test_items_that_fail_are_in_the_presets_report(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(data) / "longbench" / "hotpotqa.jsonl"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "input": "Why " * 5000 + "?"}))
    words = ["eval", "run", "table-5", "--data", data, "--embedder", "none", "--quiet"]
    assert main([*words, "--system", "BM25 (top 3)", "--out", "r"]) == 1
    told = capsys.readouterr().out
    assert "- BM25 (top 3): 1 of 1 items failed and are unscored; the first: WindowTooSm" in told


ERRS = {
    "table-1": ("cover EM", "k/2086", "Algorithm 1 corrected", "1/200", "32k", "0.4600"),
    "table-2": ("fit exactly", "Algorithm 1 corrected"),
    "table-3": ("cover EM", "32k"),
    "table-4": ("cover EM", "top 2", "k/2086", "RKDN", "Algorithm 1 corrected"),
    "table-6": ("leave out building", "has none", "Algorithm 1 corrected"),
    "figure-4": ("cannot be read", "Algorithm 1 corrected"),
    "figure-5": ("cover EM", "no axis"),
    "fragrel-table-1": ("p50k", "two ways", "strength of the best path"),
    "fragrel-table-2": ("p50k", "two ways", "strength of the best path"),
    "fragrel-table-3": ("12 to 17",),
    "fragrel-table-4": ("1 - cosine", "its own surroundings", "temperature", "damaged"),
    "ada-leval-tsort": ("no multiples of one in 200",),
    "ada-leval-embeddings": ("lost their caption",),
    "ada-leval-truncation": ("does not say which side",),
    "fragrel-table-5-alpha": ("was 0.1", "its own surroundings", "another w_rel"),
    "fragrel-table-5-w-rel": ("alpha is 0.5", "its own surroundings"),
}
"""What each preset has to say of its paper (SPEC 1.3, 2.4)."""


@pytest.mark.parametrize("name", ERRS)
def test_a_preset_says_how_the_paper_was_read_where_it_errs(name: str) -> None:
    preset = preset_named(name)
    told = " ".join([*preset.readings, *deviations(preset, {"settings": {}})])
    assert [words for words in ERRS[name] if words not in told] == []


def test_a_folder_of_another_preset_is_refused(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("table-2", data, "--sample", "1", "--out", "r", "--system", "QRMeM") == 0
    assert run("table-6", data, "--sample", "1", "--out", "r", "--system", "QRMeM") == 2
    assert "holds table-2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ("head", ["Marigold (ship)", "Lemuel Strake", "Corrin Head", "Vantry"]),
        ("middle", ["Corrin Head", "Marigold (ship)", "Lemuel Strake", "Vantry"]),
        ("tail", ["Corrin Head", "Vantry", "Marigold (ship)", "Lemuel Strake"]),
    ],
)
def test_supporting_passages_stand_where_they_are_put(place: str, order: list[str]) -> None:
    dataset = load("hotpotqa", DATA / "hotpot.json", Corpus())
    made = arranged(dataset, Arrangement(place))  # type: ignore[arg-type]
    text = made.contexts["h1"].documents[0].text
    assert sorted(order, key=lambda title: text.index(f":\n{title}\n")) == order


def test_the_text_between_grows_with_the_distance() -> None:
    dataset = load("hotpotqa", DATA / "hotpot.json", Corpus())
    for distance in (0, 3):
        made = arranged(dataset, Arrangement("apart", distance=distance))
        assert [item.id for item in made.items] == ["h1", "h2"], "one passage cannot be apart"
        text = made.contexts["h1"].documents[0].text
        assert text.startswith("Passage 1:\nMarigold (ship)")
        assert f"Passage {distance + 2}:\nLemuel Strake" in text
        assert text.count("Passage ") == distance + 2


def test_a_part_with_a_broken_file_is_left_out_and_the_others_are_run(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(data) / "longbench" / "hotpotqa.jsonl").write_text('{"input": "Q?"')
    words = ["eval", "run", "table-4", "--data", data, "--embedder", "none", "--sample", "1"]
    assert main([*words, "--system", "BM25 (top 1)", "--out", "r"]) == 1
    told = capsys.readouterr()
    assert "not run: HotpotQA:" in told.err
    assert "line 1 is not JSON" in told.err
    assert "| BM25 (top 1) | here |" in told.out


def test_a_cap_holds_for_all_parts_together(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "test", "--base-url", server.url, "--concurrency", "1")
        words = ("--system", "Full text", "--sample", "1", "--max-calls", "2", "--out", "r")
        assert run("figure-5", data, *words, *model) == 1
        assert "the cap of 2 calls is reached" in capsys.readouterr().err
        assert server.stats.requests == 2


@pytest.fixture
def all_data(tmp_path: Path) -> str:
    return str(write_all(tmp_path / "data"))


NOT_HERE = {"llmlingua"}


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_runs_to_its_end_with_a_chat_model(
    name: str, all_data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = preset_named(name)
    pairs = preset.systems.items()
    here = {label: word for label, word in pairs if not NOT_HERE & needs(parse(word))}
    is_sweep = preset.plot.get("axis", "parts") != "parts"
    labels = list(here)[:: len(here) // 4] if is_sweep else list(here)
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "test", "--base-url", server.url, "--embedder", "openai:e")
        words = ("--sample", "1", "--system", ",".join(labels), "--out", "r")
        code = run(name, all_data, *words, *model)
        assert server.stats.requests > 0
    told = capsys.readouterr()
    assert code == 0, told.out[-3000:] + told.err
    for part in preset.parts:
        found = read_results(Path("r") / folder_of(part))
        wanted = {preset.systems[label] for label in labels if label in (part.systems or labels)}
        assert set(found.systems) == wanted
        assert not any(result.errors for result in found.systems.values())
    assert told.out.startswith(f"# {preset.title}")
    tables = list(Path("r/report").glob(f"{name}*.csv"))
    assert len(tables) == max(1, len(preset.tables))
    for table in tables:
        assert table.read_text(encoding="utf-8").startswith(("system,", "data,"))
    assert Path(f"r/report/{name}.png").exists() == bool(preset.plot)


def test_parts_are_compared_with_the_system_that_is_named(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = ("--system", "BM25 (top 3),Vanilla (keep left)")
    assert run("table-1", data, "--sample", "2", *systems, "--out", "r") == 1
    assert main(["eval", "report", "r", "--against", "Vanilla (keep left)"]) == 0
    told = Path("r/quality/report/report.md").read_text()
    assert "Differences from keep-left" in told
    capsys.readouterr()
    assert main(["eval", "report", "r", "--against", "Summary"]) == 2
    assert "no results of the system 'Summary'; it has BM25 (top 3), V" in capsys.readouterr().err


def test_a_part_that_has_no_result_yet_is_named_in_the_report_of_the_others(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = ("--system", "BM25 (top 3),Vanilla (keep left)", "--sample", "2")
    assert run("table-1", data, *systems, "--out", "r") == 1
    Path("r/hotpotqa/rows.jsonl").write_text("")
    capsys.readouterr()
    assert main(["eval", "report", "r"]) == 0
    told = capsys.readouterr().out
    assert "| BM25 (top 3) | here |" in told
    assert "- HotpotQA has no results yet: run the same preset again" in told
    Path("r/quality/rows.jsonl").write_text("")
    assert main(["eval", "report", "r"]) == 2
    assert "r has no results of table-1" in capsys.readouterr().err
