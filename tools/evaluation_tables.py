"""Writes the tables of `docs/evaluation.md` out of the result files in `docs/results`.

    python -m tools.evaluation_tables           # write them
    python -m tools.evaluation_tables --check   # 1 if the page says something else

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
"""What `tools.real_model_presets` writes; not a run of one task."""
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"

SETS = {
    "hotpotqa": ("HotpotQA", "f1"),
    "2wikimultihopqa": ("2WikiMultihopQA", "f1"),
    "musique": ("MuSiQue", "f1"),
    "leval-quality": ("QuALITY (L-Eval)", "accuracy"),
    "mtbenchplus": ("MTBench+", "recall@5"),
}
"""Task to what the tables call it, and what systems are compared by."""

METRICS = ("recall@2", "recall@5", "recall@10", "all@5")

PUBLISHED = {
    "BM25": {"hotpotqa": (55.4, 72.2), "2wikimultihopqa": (51.8, 61.9), "musique": (32.3, 41.2)},
    "Contriever": {
        "hotpotqa": (57.2, 75.5),
        "2wikimultihopqa": (46.6, 57.5),
        "musique": (34.8, 46.6),
    },
    "HippoRAG, ColBERTv2": {
        "hotpotqa": (60.5, 77.7),
        "2wikimultihopqa": (70.7, 89.1),
        "musique": (40.9, 51.9),
    },
    "NV-Embed-v2, 7B": {
        "hotpotqa": (84.1, 94.5),
        "2wikimultihopqa": (67.1, 76.5),
        "musique": (52.7, 69.7),
    },
    "HippoRAG 2, 70B and NV-Embed-v2": {
        "hotpotqa": (83.5, 96.3),
        "2wikimultihopqa": (76.2, 90.4),
        "musique": (56.1, 74.7),
    },
}
"""Recall at 2 and at 5, as HippoRAG's papers, and those that quote them, have it."""

EMBEDDERS = {"none": "", "local": "MiniLM"}

Run = Mapping[str, Any]


def tables(runs: Mapping[str, Run]) -> str:
    """Return everything that the page says of the runs."""
    pieces = []
    for task, (called, metric) in SETS.items():
        own = [run for run in runs.values() if run["config"]["task"] == task]
        if not own:
            continue
        pieces.append(f"### {called}\n")
        answered = [run for run in own if run["config"]["answers"] != "none"]
        if answered:
            pieces.append(_answers(answered, metric))
        ranked = [run for run in own if "recall@5" in run["metrics"]]
        if ranked:
            pieces.append(_retrieval(task, ranked))
    pieces.append(_conditions(runs))
    return "\n".join(pieces)


def _answers(runs: Sequence[Run], metric: str) -> str:
    """Return the answers of all systems, the best first."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run in runs:
        embedder = EMBEDDERS[run["config"]["settings"]["embedder"]]
        for system, result in run["systems"].items():
            found.setdefault((system, _used(embedder, system)), result)
    against = runs[0]["against"]
    order = sorted(found, key=lambda key: -found[key]["means"][metric]["value"])
    rows = []
    for system, embedder in order:
        result = found[system, embedder]
        gap = result["differences"].get(metric)
        em = [_mean(result["means"].get("em"))] if metric == "f1" else []
        rows.append(
            [
                f"**{system}**" if system == against else system,
                embedder,
                _mean(result["means"].get(metric)),
                *em,
                _interval(gap) if gap else "",
                f"{gap['p']:.4f}" if gap else "",
            ]
        )
    em = ["EM"] if metric == "f1" else []
    head = ["system", "embedder", metric, *em, f"over {against}, paired", "p"]
    return f"Answers, no model; {_asked(runs[0])}.\n\n{_table(head, rows)}"


def _asked(run: Run) -> str:
    items = run["config"]["items"]
    return f"{items['n']} questions, {DRAWN[run['config']['corpus']]}"


DRAWN = {
    "own": "each over its own text",
    "union": "over the passages of all questions together",
    "file": "over a corpus",
}


def _retrieval(task: str, runs: Sequence[Run]) -> str:
    """Return how much of the gold each ranking finds; a ranking stands once, whatever is read."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run in runs:
        embedder = EMBEDDERS[run["config"]["settings"]["embedder"]]
        for system, result in run["systems"].items():
            if "recall@5" in result["means"]:
                name = _ranking(system)
                found.setdefault((name, _used(embedder, name)), result)
    order = sorted(found, key=lambda key: -found[key]["means"]["recall@5"]["value"])
    rows = [
        [*key, *(_mean(found[key]["means"].get(metric)) for metric in METRICS)] for key in order
    ]
    note = ""
    if any(task in numbers for numbers in PUBLISHED.values()):
        rows += [
            [f"{name}, as published", "", f"{two:.1f}", f"{five:.1f}", "", ""]
            for name, numbers in PUBLISHED.items()
            for two, five in (numbers[task],)
        ]
        note = "\nThe published ones are over other questions and larger corpora (below).\n"
    head = ["ranking", "embedder", *METRICS]
    return f"Gold passages found, no chat model; {_asked(runs[0])}.\n\n{_table(head, rows)}{note}"


def _used(embedder: str, system: str) -> str:
    """Return the embedder of a system: BM25 is the same in every run."""
    return "" if "bm25" in system else embedder


def _ranking(system: str) -> str:
    """Return what ranks: `bm25:k=1` and `bm25:k=3` rank alike, and so do `dense` and DOS-RAG."""
    name, *given = system.split(":")
    if name == "dos-rag":
        return "dense"
    return ":".join([name, *(pair for pair in given if not pair.startswith("k="))])


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


def _presets(made: Run) -> str:
    """Return what every preset did against a small chat model."""
    rows = []
    for name, found in made["presets"].items():
        failed = sum(found["failed"].values())
        rows.append(
            [
                name,
                *(str(found[key]) for key in ("parts", "items", "systems", "results")),
                str(failed),
                f"{found['calls']:,}",
                f"{found['tokens']:,}",
                "" if found["parsed"] is None else f"{100 * found['parsed']:.0f} %",
                "; ".join(_why(found)),
                found["git"],
            ]
        )
    head = ["preset", "parts", "items", "systems", "results", "failed", "calls", "tokens"]
    told = (
        f"Model {made['model']} (`{made['weights']['name']}`), window {made['window']}, texts cut "
        f"to {made['words']} words, embedder {made['embedder']}, seed {made['seed']}; "
        f"[all figures](results/{PRESETS.name}).\n\n"
    )
    return (
        "### Every preset against a real, small chat model\n\n"
        + told
        + _table([*head, "parsed", "why not all", "commit"], rows)
    )


def _why(found: Run) -> list[str]:
    """Return why items failed, and which systems were left out."""
    failed = [f"{count}x {why}" for why, count in found["failed"].items()]
    left = [why.partition(":")[0] for why in found["left out"]]
    unread = found["unread segments"]
    return [
        *failed,
        *([f"without {', '.join(left)}"] if left else []),
        *([f"{unread} segments not wholly read"] if unread else []),
    ]


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


def read_presets() -> Run | None:
    """Return what the presets did against a small model, if that is kept."""
    return json.loads(PRESETS.read_text(encoding="utf-8")) if PRESETS.exists() else None


def page(text: str, runs: Mapping[str, Run], presets: Run | None) -> str:
    """Return the page with its tables made anew.

    Raises:
        ValueError: the page has no place for them.
    """
    before, found, rest = text.partition(BEGIN)
    _, ended, behind = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{PAGE} has no place for the results")
    made = tables(runs) + (f"\n{_presets(presets)}" if presets else "")
    return f"{before}{BEGIN}\n{made}\n{END}{behind}"


def main(words: Sequence[str] | None = None) -> int:
    """Write the page, or say whether it is what the files say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args(words)
    text = PAGE.read_text(encoding="utf-8")
    made = page(text, read_runs(), read_presets())
    if arguments.check:
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
