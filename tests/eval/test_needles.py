"""M-NIAH and BABILong: built, loaded, run, scored."""

import json
from pathlib import Path
from typing import Any

import pytest

from qrmem.cli import main
from qrmem.eval.datasets.needles import babi_lenient, babi_official, needle_score
from qrmem.eval.registry import DATASETS, build
from qrmem.text.normalise import normalise
from tools import needle_tables

HAY = " ".join(
    f"On day {n} the keeper of tower {n * 3} wrote {n + 5} lines about the weather."
    for n in range(90)
)
STORY = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Where is John? \thallway\t2
1 Sandra journeyed to the garden.
2 Where is Sandra? \tgarden\t1
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "qa1_single-supporting-fact_test.txt").write_text(STORY)
    (tmp_path / "hay").mkdir()
    (tmp_path / "hay" / "a.txt").write_text(HAY)
    return tmp_path


def cases(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_needles_stand_at_their_mean_depth_and_texts_at_their_length(data: Path) -> None:
    build("niah", data / "hay", data / "out", ("length=2k,6k", "depths=0,30,50,100", "cases=2"))
    made = cases(data / "out" / "niah.jsonl")
    assert len(made) == 2 * 4 * 2
    for case in made:
        text = case["text"]
        assert normalise(text) == text
        found = [text[start:end] for start, end in case["spans"]]
        assert [word in needle.lower() for word, needle in zip(case["answers"], found, strict=True)]
        assert all(needle.endswith("perfect pizza.") for needle in found)
        mean = sum(start for start, _ in case["spans"]) / 3 / len(text) * 100
        assert mean == pytest.approx(float(case["depth"]), abs=6)


def test_facts_stand_in_order_and_those_that_support_are_known(data: Path) -> None:
    build("babilong", data, data / "out", ("tasks=1", "length=0k,2k", f"background={data / 'hay'}"))
    made = cases(data / "out" / "babilong.jsonl")
    assert {case["length"] for case in made} == {"0k", "2k"}
    for case in made:
        ((start, end),) = case["spans"]
        name = case["question"].removeprefix("Where is ").removesuffix("?")
        assert case["text"][start:end].startswith(name)
        assert case["answers"][0] in case["text"][start:end]
    long = [case["text"] for case in made if case["length"] == "2k"]
    assert all(len(text) > 5000 for text in long)
    of_john = next(case["text"] for case in made if "John" in case["question"])
    assert of_john.index("Mary moved") < of_john.index("John went") < of_john.index("Daniel went")


def test_a_missing_task_and_a_wrong_depth_are_reported(data: Path) -> None:
    from qrmem.errors import UsageError

    with pytest.raises(UsageError, match=r"no file of task '7'.*; take tasks=\d"):
        build("babilong", data, data / "o1", ("tasks=7", "length=0k"))
    with pytest.raises(UsageError, match="background=PATH"):
        build("babilong", data, data / "o2", ("tasks=1", "length=1k"))
    with pytest.raises(UsageError, match="numbers from 0 to 100"):
        build("niah", data / "hay", data / "o3", ("depths=120",))


def test_answers_to_babi_are_scored_as_officially_and_by_the_last_place_named() -> None:
    places = frozenset({"kitchen", "office", "garden"})
    asked = "Where was the apple before the office?"
    assert babi_official("The kitchen.", asked, "kitchen", places)
    assert not babi_official("The kitchen or the garden", asked, "kitchen", places)
    assert not babi_official("It was at the office. Then the kitchen.", asked, "kitchen", places)
    assert babi_lenient("It was at the office. Then the kitchen.", asked, "kitchen", places)
    assert not babi_lenient("Kitchen, then garden.", asked, "kitchen", places)


def test_three_keywords_score_one_three_seven_ten() -> None:
    assert [needle_score(n, 3) for n in range(4)] == [1, 3, 7, 10]


def test_a_run_says_what_the_reader_was_shown(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build("niah", data / "hay", data / "built", ("length=6k", "depths=50"))
    assert DATASETS["niah"].read(data / "built" / "niah.jsonl", None).items  # type: ignore[arg-type]
    run = ["eval", "run", "niah", "--data", str(data / "built"), "--embedder", "none"]
    out = str(data / "run")
    systems = "inner-loop,inner-loop:navigation=false,raptor,bm25,bm25-sentences"
    assert main([*run, "--system", systems, "--window", "1024", "--out", out, "--quiet"]) == 0
    rows = cases(data / "run" / "rows.jsonl")
    shown = {row["system"]: row["prediction"].get("shown", []) for row in rows}
    ((spans),) = [case["spans"] for case in cases(data / "built" / "niah.jsonl")]
    for system in ("inner-loop", "bm25-sentences"):
        assert all([start, end] in [s[1:] for s in shown[system]] for start, end in spans)
    assert main(["eval", "report", out]) == 0
    assert "shown_all" in capsys.readouterr().out


def test_the_page_of_runs_counts_cases_in_which_everything_was_shown(
    data: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    build("niah", data / "hay", kept / "niah", ("length=2k,6k", "depths=0,50"))
    background = f"background={data / 'hay'}"
    build("babilong", data, kept / "babilong", ("tasks=1", "length=0k,2k", background, "cases=1"))
    for task in ("niah", "babilong"):
        run = ["eval", "run", task, "--data", str(kept / task), "--embedder", "none", "--quiet"]
        run += ["--system", "inner-loop,bm25:k=0,keep-ends", "--window", "1024"]
        assert main([*run, "--out", str(kept / "runs" / task)]) == 0
    out = tmp_path / "docs" / "results" / "needles.md"
    needle_tables.main(["--page-only", "--kept", str(kept), "--out", str(out)])
    lines = out.read_text().splitlines()
    assert "| system | 2k | 6k | all, % (95 %) | score |" in lines
    assert "| inner-loop | 2/2 | 2/2 | 100 (51-100), n=4 | 10.0 |" in lines
    (ends,) = [line for line in lines if line.startswith("| both ends")]
    assert "| 2/2 | 2/2 |" not in ends
    assert [line for line in lines if line.startswith("| qa1 | 2k | 1/1 |")]
    for task in ("niah", "babilong"):
        drawn = tmp_path / "docs" / "images" / f"{task}.png"
        assert drawn.read_bytes().startswith(b"\x89PNG")


def test_a_run_of_the_tool_continues_and_compares_in_each_cell(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("niah/PaulGrahamEssays", "babi/en", "gutenberg"):
        (tmp_path / "all" / name).mkdir(parents=True)
    (tmp_path / "all/niah/PaulGrahamEssays/a.txt").write_text(HAY)
    (tmp_path / "all/gutenberg/a.txt").write_text(HAY)
    for number in range(1, 6):
        (tmp_path / f"all/babi/en/qa{number}_x_test.txt").write_text(STORY)
    monkeypatch.setenv("QRMEM_DATA", str(tmp_path / "all"))
    monkeypatch.setattr(needle_tables, "LENGTHS", {"niah": ("1k", "2k"), "babilong": ("0k", "2k")})
    monkeypatch.setattr(needle_tables, "find_spec", lambda name: None)
    out = tmp_path / "docs" / "results" / "needles.md"
    given = ["--kept", str(tmp_path / "kept"), "--out", str(out)]
    needle_tables.main([*given, "--tasks", "niah", "--lengths", "1k"])
    assert "| system | 1k | all, % (95 %) | score |" in out.read_text()
    assert "niah-1k: 75 done, 0 were there" in capsys.readouterr().out
    needle_tables.main(given)
    said, page = capsys.readouterr().out, out.read_text()
    assert "niah-1k: 0 done, 75 were there" in said
    assert "| inner-loop | 5/5 | 5/5 | 100 (72-100), n=10 | 10.0 |" in page
    cells = [line for line in page.splitlines() if line.startswith("| qa")]
    assert len(cells) == 10
    assert all(line.endswith(("equal |", ") |")) for line in cells)
    assert "inner-loop against bm25, of 10 cells: above in" in page
    with pytest.raises(SystemExit, match="other options"):
        needle_tables.main([*given, "--cases", "2"])


SETS = """
[[set]]
kind = "several hops"
question = "In which town is the ring of Tobias Marrow today?"
needles = ["Tobias Marrow left the ring to Quill.", "Walnut chests stand at Saskel."]
keywords = ["quill", "saskel"]
"""


def test_the_page_names_the_needles_that_were_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    essays = tmp_path / "all/niah/PaulGrahamEssays"
    essays.mkdir(parents=True)
    (essays / "a.txt").write_text(HAY)
    (tmp_path / "sets.toml").write_text(SETS)
    monkeypatch.setenv("QRMEM_DATA", str(tmp_path / "all"))
    monkeypatch.setattr(needle_tables, "SETS", tmp_path / "sets.toml")
    monkeypatch.setattr(needle_tables, "SET_LENGTH", "20k")
    monkeypatch.setattr(needle_tables, "SET_SYSTEMS", ("bm25-sentences",))
    out = tmp_path / "docs" / "results" / "needles.md"
    kept = str(tmp_path / "kept")
    needle_tables.main(["--tasks", "", "--sets", "--kept", kept, "--out", str(out)])
    page = out.read_text()
    assert "| BM25 over sentences | 3/6 | 3/6 | 0/3 |" in page
    never = page.partition("**Never shown, by any system at any depth:**")[2]
    assert "- several hops: Walnut chests stand at Saskel." in never
    assert "Tobias Marrow left" not in never


def test_an_interval_is_wilsons() -> None:
    low, high = needle_tables.wilson(8, 10)
    assert (round(low, 1), round(high, 1)) == (49.0, 94.3)


def test_a_background_is_read_in_its_own_encoding(data: Path) -> None:
    cafe = "The café in Ŷr closed early. " * 400
    (data / "wide.txt").write_bytes(cafe.encode("utf-16"))
    build("niah", data / "wide.txt", data / "out", ("length=1k", "depths=0"))
    (case,) = cases(data / "out" / "niah.jsonl")
    assert "The café in Ŷr closed early. The café" in case["text"]


def test_a_task_named_twice_is_built_once(data: Path) -> None:
    build("niah", data / "hay", data / "n", ("length=1k", "depths=50,50.0,0"))
    build("babilong", data, data / "b", ("tasks=1,qa1", "length=0k"))
    for file in (data / "n" / "niah.jsonl", data / "b" / "babilong.jsonl"):
        ids = [case["id"] for case in cases(file)]
        assert len(ids) == len(set(ids)), "a run refuses two cases of one id"


def test_a_set_without_cases_is_refused(data: Path) -> None:
    from qrmem.errors import UsageError

    short = data / "qa1_single-supporting-fact_test.txt"
    for options in (("tasks=1", "length=0k", "cases=0"), ("tasks=1", "length=0k")):
        with pytest.raises(UsageError, match="no case can be made"):
            build("babilong", data, data / "o1", options)
        short.write_bytes(b"")
    with pytest.raises(UsageError, match="no case can be made"):
        build("niah", data / "hay", data / "o1", ("length=1k", "cases=0"))
    with pytest.raises(UsageError, match=r"have \d+ tokens, which leaves 20 no text"):
        build("niah", data / "hay", data / "o1", ("length=20",))
    short.write_bytes(b"\xff\xfe1 \x00")
    with pytest.raises(UsageError, match=r"fact_test\.txt is not UTF-8 text"):
        build("babilong", data, data / "o1", ("tasks=1", "length=0k"))
    with pytest.raises(UsageError, match="no such file or folder: nowhere"):
        build("babilong", data, data / "o1", ("tasks=1", "length=0K,1k", "background=nowhere"))
    assert not (data / "o1").exists()
