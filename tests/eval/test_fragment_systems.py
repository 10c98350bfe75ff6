"""FragRel's systems: fragments by words, turns of a conversation, what the surroundings change."""

import json
import shutil
from pathlib import Path

import pytest

from qrmem.cli import main
from qrmem.eval import parse, preset_named, read_results
from qrmem.eval.report.plots import Point, panels
from qrmem.eval.systems.retrieval_baselines import Fragmented

pytestmark = pytest.mark.usefixtures("own_folder")

DATA = Path(__file__).parent / "data"


def run(what: str, data: Path | str, *words: str) -> int:
    options = ("--embedder", "none", "--quiet", "--out", "r")
    return main(["eval", "run", what, "--data", str(data), *options, *words])


def found(system: str) -> dict[str, tuple[str, ...]]:
    rows = read_results(Path("r")).rows
    return {item: row.prediction.segments for (name, item), row in rows.items() if name == system}


def test_stories_are_read_in_fragments_of_so_many_words() -> None:
    story = DATA / "longbench_narrativeqa_keyed.json"
    few, many = "fragment:size=8:words=16", "fragment:size=500"
    assert run("longbench-narrativeqa", story, "--system", f"{few},{many}") == 0
    rows = read_results(Path("r")).rows
    read = {name: len(row.prediction.read) for (name, _), row in rows.items()}
    assert read[few] in (1, 2)
    (pieces,), (whole,) = found(few).values(), found(many).values()
    assert len(pieces) > len(whole) == 1


def test_without_alpha_the_ranking_is_that_of_the_scores_alone() -> None:
    story = DATA / "longbench_narrativeqa_keyed.json"
    alone, related = "fragment:size=8:alpha=0", "fragment:size=8:w_rel=0.9:alpha=2"
    plain = "fragment:size=8:w_rel=0"
    assert run("longbench-narrativeqa", story, "--system", f"{alone},{related},{plain}") == 0
    assert found(alone) == found(plain) != found(related)


def test_a_turn_is_found_for_the_turns_around_it() -> None:
    assert run("mtbenchplus", DATA / "mtbenchplus.json", "--system", "fragment-chat") == 0
    rows = read_results(Path("r")).rows
    ranked = {item: row.prediction.ranked for (_, item), row in rows.items()}
    sessions = json.loads((DATA / "mtbenchplus.json").read_text())
    assert set(ranked) == {session["id"] for session in sessions}
    assert all(name.startswith("turn-") for names in ranked.values() for name in names)


def test_dense_chat_memory_needs_an_embedder(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mtbenchplus", DATA / "mtbenchplus.json", "--system", "dense-chat") == 3
    assert "needs an embedder" in capsys.readouterr().err


def test_the_presets_follow_the_papers_grid() -> None:
    table = preset_named("fragrel-table-4")
    system = parse(table.systems["B C800 12K"])
    assert system == Fragmented(size=800, words=12_000, order="score")
    assert table.paper["ChatGLM3-6B-32k"]["B C500 28K"] == {"NarrativeQA": {"f1": 0.3041}}
    alpha = preset_named("fragrel-table-5-alpha")
    assert parse(alpha.systems["20K-C800 0.4"]) == Fragmented(
        size=800, words=20_000, w_rel=0.1, alpha=0.4, order="score"
    )


def test_a_sweep_is_drawn_with_a_curve_for_each_size(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "longbench"
    folder.mkdir(parents=True)
    shutil.copy(DATA / "longbench_narrativeqa_keyed.json", folder / "narrativeqa.json")
    words = ("--system", "7.5K-C500 No,7.5K-C500 0.3,7.5K-C500 0.9,12K-C800 0.3")
    assert run("fragrel-table-5-w-rel", tmp_path / "data", *words) == 0
    assert Path("r/report/fragrel-table-5-w-rel.png").read_bytes().startswith(b"\x89PNG")
    from qrmem.eval.report.results import read_results

    preset = preset_named("fragrel-table-5-w-rel")
    results = read_results(
        next(path for path in Path("r").iterdir() if (path / "rows.jsonl").exists())
    )
    (here, paper), _ = panels(preset, [(preset.parts[0], results)])
    assert {curve.name: [point.x for point in curve.points] for curve in here.curves} == {
        "7.5K-C500": [0.0, 0.3, 0.9],
        "12K-C800": [0.3],
    }
    assert here.title == "here: local reasoner, n = 1"
    assert paper.title == "paper: ChatGLM3-6B-32k"
    assert paper.curves[1].points[3] == Point(0.3, 0.2883)
    assert len(paper.curves) == 3
    assert len(paper.curves[0].points) == 10
