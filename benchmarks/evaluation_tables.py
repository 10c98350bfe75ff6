"""Writes the tables of `docs/evaluation.md` out of the result files in `docs/results`.

    python -m benchmarks.evaluation_tables           # write them
    python -m benchmarks.evaluation_tables --check   # 1 if the page says something else

A result file is the `report/summary.json` of a run, kept under a name of its own:

    qrmem eval run … --out runs/X && cp runs/X/report/summary.json docs/results/X.json
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
PAGE, RESULTS = DOCS / "evaluation.md", DOCS / "results"
PRESETS = RESULTS / "real-model-presets.json"
"""What `benchmarks.real_model_presets` writes; not a run of one task."""
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"

ANSWERS = {
    "answers-hotpotqa": ("HotpotQA", "f1"),
    "answers-2wikimultihopqa": ("2WikiMultihopQA", "f1"),
    "answers-musique": ("MuSiQue", "f1"),
    "answers-leval-quality": ("QuALITY (L-Eval)", "accuracy"),
}
"""File to what the table calls it, and what systems are compared by."""

METRICS = ("recall@2", "recall@5", "recall@10", "all@5")

PUBLISHED = {"hotpotqa": 96.3, "2wikimultihopqa": 90.4, "musique": 74.7}
"""HippoRAG 2's recall@5: a 70B model that reads every passage, a 7B embedder, its own samples."""

Run = Mapping[str, Any]


def tables(runs: Mapping[str, Run]) -> str:
    """Return everything that the page says of the runs."""
    pieces = []
    answered = {name: runs[name] for name in ANSWERS if name in runs}
    if answered:
        pieces.append(_answers(answered))
    ranked = [run for run in runs.values() if "recall@5" in run["metrics"]]
    if ranked:
        pieces.append(_retrieval(ranked))
    pieces.append(_conditions(runs))
    return "\n".join(pieces)


def _answers(runs: Mapping[str, Run]) -> str:
    rows = []
    for name, run in runs.items():
        called, metric = ANSWERS[name]
        for system, found in run["systems"].items():
            gap = found["differences"].get(metric)
            rows.append(
                [
                    f"{called} ({metric})",
                    system,
                    _mean(found["means"].get(metric)),
                    _mean(found["means"].get("em")),
                    _interval(gap) if gap else "",
                    f"{gap['p']:.4f}" if gap else "",
                ]
            )
    against = sorted({run["against"] for run in runs.values()})
    head = ["set", "system", "score", "EM", f"over {', '.join(against)}, paired", "p"]
    return f"### Answers with no model\n\n{_table(head, rows)}"


def _retrieval(runs: Sequence[Run]) -> str:
    rows = []
    for task, published in PUBLISHED.items():
        for run in (run for run in runs if run["config"]["task"] == task):
            config = run["config"]
            called = f"{task}, {config['items']['n']}, embedder {config['settings']['embedder']}"
            for system, found in run["systems"].items():
                cells = (_mean(found["means"].get(metric)) for metric in METRICS)
                rows.append([called, system.partition(":")[0], *cells])
        if any(run["config"]["task"] == task for run in runs):
            rows.append([task, "HippoRAG 2, as published", "", f"{published:.1f}", "", ""])
    note = (
        "\nHippoRAG 2's figures are of a 70B model that read every passage and a 7B embedder, over "
        "samples of its own: they stand beside, not against.\n"
    )
    head = ["set, questions", "system", *METRICS]
    return f"### Gold passages found, no chat model\n\n{_table(head, rows)}{note}"


def _conditions(runs: Mapping[str, Run]) -> str:
    rows = []
    for name, run in sorted(runs.items()):
        config = run["config"]
        files = ", ".join(f"{f['name']} `{f['sha256'][:12]}`" for f in config["files"])
        items, settings = config["items"], config["settings"]
        skipped = f", the first {config['skip']} left out" if config.get("skip") else ""
        rows.append(
            [
                f"[{name}](results/{name}.json)",
                f"{items['n']} of {items['of']}{skipped}, seed {config['seed']}",
                f"{config['corpus']}; {files}",
                f"{settings['model'] or 'local reasoner'}, {settings['embedder']}, "
                f"{settings['window']}",
                config["about"]["git"] or "unknown",
            ]
        )
    head = ["run", "items", "corpus and files", "reader, embedder, window", "commit"]
    return f"### What was run\n\n{_table(head, rows)}"


def _mean(found: Mapping[str, float] | None) -> str:
    return "" if found is None else _interval(found)


def _interval(found: Mapping[str, float]) -> str:
    value, low, high = (100 * found[name] for name in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def read_runs(folder: Path = RESULTS) -> dict[str, Run]:
    """Return the result files by name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
        if path.name != PRESETS.name
    }


def page(text: str, runs: Mapping[str, Run]) -> str:
    """Return the page with its tables made anew.

    Raises:
        ValueError: the page has no place for them.
    """
    before, found, rest = text.partition(BEGIN)
    _, ended, behind = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{PAGE} has no place for the results")
    return f"{before}{BEGIN}\n{tables(runs)}\n{END}{behind}"


def main(words: Sequence[str] | None = None) -> int:
    """Write the page, or say whether it is what the files say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args(words)
    text = PAGE.read_text(encoding="utf-8")
    made = page(text, read_runs())
    if arguments.check:
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
