"""The data sets of the presets of `qrmem eval`, as small files of the same forms."""

import json
import shutil
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import qrmem

DATA = Path(__file__).parent / "eval" / "data"
STORY = Path(qrmem.__file__).parent / "sample" / "harbour.md"


def write_some(folder: Path) -> Path:
    """Write the files of QuALITY and HotpotQA alone."""
    (folder / "longbench").mkdir(parents=True)
    shutil.copy(DATA / "quality.jsonl", folder / "QuALITY.v1.0.1.htmlstripped.dev")
    shutil.copy(DATA / "longbench_hotpotqa.jsonl", folder / "longbench" / "hotpotqa.jsonl")
    shutil.copy(DATA / "hotpot.json", folder / "hotpotqa.json")
    return folder


def write_all(folder: Path) -> Path:
    """Write a file for every part of every preset."""
    write_some(folder)
    for name in ("2wikimqa", "musique"):
        shutil.copy(DATA / "longbench_hotpotqa.jsonl", folder / "longbench" / f"{name}.jsonl")
    shutil.copy(
        DATA / "longbench_narrativeqa_keyed.json", folder / "longbench" / "narrativeqa.json"
    )
    shutil.copy(DATA / "mtbenchplus.json", folder / "mtbenchplus.json")
    for level in ("line", "api"):
        name = f"{level}_level_completion_2k_context_codex.test.jsonl"
        shutil.copy(DATA / "repoeval_line.jsonl", folder / name)
    shop = folder / "repositories" / "own_shop" / "shop"
    shop.mkdir(parents=True)
    (shop / "cart.py").write_text("def total(items):\n    count = 0\n", encoding="utf-8")
    shutil.copy(DATA / "two_wiki.json", folder / "2wikimultihopqa.json")
    # The largest distance of Figure 5 needs that many passages to stand between.
    fillers = {f"Year {n}": f"Nothing was built in {n}." for n in range(1700, 1745)}
    items = json.loads((DATA / "hotpot.json").read_text(encoding="utf-8"))
    for item in items:
        item["context"] += [[title, [text]] for title, text in fillers.items()]
    (folder / "hotpotqa.json").write_text(json.dumps(items), encoding="utf-8")
    lines = (DATA / "musique_full.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        record["paragraphs"] += [
            {"title": title, "paragraph_text": text, "is_supporting": False}
            for title, text in fillers.items()
        ]
    (folder / "musique.json").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    shutil.copy(DATA / "longbench_gov_report.jsonl", folder / "longbench" / "gov_report.jsonl")
    parts = {"before": "It was dawn.", "segments": ["She ate.", "She rose."], "after": "She left."}
    answers = [
        f"{name} wrote in the notes of the works that the valve of the third boiler has to be "
        f"opened by hand, {how}, before the fire is lit and {name} starts the pump in the yard."
        for name, how in (("Ada Holm", "slowly"), ("Bo Lind", "at once"), ("Cy Marr", "by two men"))
    ]
    asked = {"question": "How?", "all_answers": answers, "answer": "A2"}
    for length in (1, 2, 4, 6, 8, 12, 16, 32, 64, 128):
        cases = {"tsort": {**parts, "answer": [2, 1]}, "bestanswer": asked}
        for kind, case in cases.items():
            (folder / f"{kind}_{length}k.jsonl").write_text(json.dumps(case), encoding="utf-8")
    text = "It was dawn. Mary went to the garden. She rose.\n\nNobody spoke. The day was long."
    hidden = {"id": "1", "text": text, "spans": [[13, 37]], "answers": ["garden"]}
    hidden |= {"question": "Where is Mary?", "length": "0k", "depth": "50"}
    for name, task in (("niah", "niah"), ("babilong", "qa1")):
        case = json.dumps({**hidden, "task": task})
        (folder / f"{name}.jsonl").write_text(case, encoding="utf-8")
    return folder


def write_long(folder: Path) -> Path:
    """Write the same with texts of several windows: the sample's story, from different places."""
    write_all(folder)
    words = STORY.read_text(encoding="utf-8").split(" ")
    quality = folder / "QuALITY.v1.0.1.htmlstripped.dev"
    _change(quality, lambda record: {**record, "article": " ".join(words[:1800])})
    for path in sorted((folder / "longbench").glob("*.jsonl")):
        _change(path, lambda record: {**record, "context": " ".join(words[500:1700])})
    _lengthen(folder, words)
    said = (" ".join(words[at : at + 250]) for at in range(0, 8000, 250))
    (session,) = json.loads((folder / "mtbenchplus.json").read_text(encoding="utf-8"))
    asked = [turn for turn in session["conversations"] if turn["from"] == "human"]
    told = [{**asked[0], "value": next(said)} for _ in range(6)]
    session["conversations"] = [*told, *asked]
    (folder / "mtbenchplus.json").write_text(json.dumps([session]), encoding="utf-8")
    needle = "Mary went to the garden."
    text = f"{' '.join(words[:2500])} {needle} {' '.join(words[2500:6000])}"
    place = [text.index(needle), text.index(needle) + len(needle)]
    for name in ("niah", "babilong"):
        path = folder / f"{name}.jsonl"
        _change(path, lambda record: {**record, "text": text, "spans": [place], "length": "8k"})
    return folder


def _change(path: Path, of: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change each line of a file of records."""
    lines = path.read_text(encoding="utf-8").splitlines()
    made = (json.dumps(of(json.loads(line))) for line in lines)
    path.write_text("\n".join(made) + "\n", encoding="utf-8")


def _lengthen(folder: Path, words: Sequence[str]) -> None:
    """Give each passage that is arranged a few sentences more of the story."""
    more = (" ".join(words[at : at + 40]) for at in cycle(range(0, 8000, 40)))
    for name in ("hotpotqa", "2wikimultihopqa"):
        path = folder / f"{name}.json"
        items = json.loads(path.read_text(encoding="utf-8"))
        for item in items:
            item["context"] = [
                [title, [*said, f" {next(more)}"]] for title, said in item["context"]
            ]
        path.write_text(json.dumps(items), encoding="utf-8")

    def longer(record: dict[str, Any]) -> dict[str, Any]:
        for one in record["paragraphs"]:
            one["paragraph_text"] += f" {next(more)}"
        return record

    _change(folder / "musique.json", longer)
