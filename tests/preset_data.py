"""What the presets of `qrmem eval` read, as small files of the same forms."""

import json
import shutil
from pathlib import Path

DATA = Path(__file__).parent / "eval" / "data"


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
    asked = {"question": "How?", "all_answers": ["No.", "So.", "Thus."], "answer": "A2"}
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
