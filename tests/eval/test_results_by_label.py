"""Results by what the items are labelled with: abilities, categories, lengths."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from qrmem.cli import main
from qrmem.eval import read_results

pytestmark = pytest.mark.usefixtures("own_folder")

DATA = Path(__file__).parent / "data"


def run(task: str, *words: str) -> int:
    always = ("--embedder", "none", "--quiet", "--out", "r", "--data", "data")
    return main(["eval", "run", task, *always, *words])


def test_a_run_shows_the_evidence_by_ability_system_and_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for chat in ("7", "8"):
        shutil.copytree(DATA / "beam" / "7", Path("data", chat))
    systems = "recall-bm25,recall-bm25:tokens=12,recall"
    words = ("--retrieve", "--system", systems)
    assert run("beam", *words) == 0
    short = capsys.readouterr().out
    begun = short.index("evidence by ability, in %:\n")
    head, *told = (line.split() for line in short[begun:].splitlines()[1:4])
    assert head == ["ability", "items", *systems.split(",")]
    # Unanswerable questions have no evidence; what has no score is in no row.
    assert [line[:2] for line in told] == [
        ["instruction_following", "2"],
        ["knowledge_update", "2"],
    ]
    assert told[1][2:4] == ["100.0", "50.0"], "12 tokens have room for one of two turns"
    assert main(["eval", "report", "r"]) == 0
    whole = capsys.readouterr().out
    assert f"## evidence by ability (%)\n\n| ability | n | {' | '.join(head[2:])} |" in whole
    assert "| knowledge_update | 2 | 100.0 [100.0, 100.0] |" in whole
    text = Path("r/report/evidence-by-ability.csv").read_text()
    kept = list(csv.DictReader(text.splitlines()))
    results = read_results(Path("r"))
    for row, told_row in zip(kept, told, strict=True):
        ids = [i for i, item in results.items.items() if item.labels["ability"] == row["ability"]]
        for system, shown in zip(systems.split(","), told_row[2:], strict=True):
            scores = [results.systems[system].scores["evidence"][id] for id in ids]
            assert row[system].split()[0] == shown == f"{100 * sum(scores) / len(scores):.1f}"
    (summary,) = json.loads(_json_of_report("r", capsys))
    by_ability = summary["systems"]["recall-bm25"]["by"]["ability"]
    assert by_ability["knowledge_update"]["evidence"]["value"] == 1.0
    assert "abstention" not in by_ability


def test_a_run_of_locomo_shows_the_evidence_by_category(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for chat in ("1", "2"):
        Path("data").mkdir(exist_ok=True)
        shutil.copy(DATA / "locomo.json", Path("data", f"{chat}.json"))
    assert run("locomo", "--retrieve", "--system", "recall") == 0
    short = capsys.readouterr().out
    assert re.search(r"^  category +items +recall\n  multi-hop +2 +100.0\n", short, re.MULTILINE)


def test_results_are_split_only_by_labels_that_several_items_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A label that names each item, or the same for all, splits nothing; numbers are in order."""
    lines = [
        {
            "id": f"q{n}",
            "question": "Who keeps the light?",
            "answers": ["Orla"],
            "labels": {"line": str(n), "one": "x", "length/words": f"{5 * (n % 3) + 5}k"},
        }
        for n in range(6)
    ]
    shutil.copytree(DATA / "plain", "data")
    Path("data/questions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert run("plain", "--system", "bm25") == 0
    short = capsys.readouterr().out
    assert re.findall(r"(\S+) by (.*), in %:", short) == [("em", "length/words")]
    assert re.findall(r"^  (\d+k) +2 ", short, re.MULTILINE) == ["5k", "10k", "15k"]
    assert sorted(path.name for path in Path("r/report").glob("*-by-*")) == [
        "cover_em-by-length-words.csv",
        "em-by-length-words.csv",
        "f1-by-length-words.csv",
    ]


def _json_of_report(folder: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["eval", "report", folder, "--json"]) == 0
    return capsys.readouterr().out
