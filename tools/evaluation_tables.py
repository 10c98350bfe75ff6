"""Writes the tables in `docs/results` from summaries of runs, one small file per data set.

A summary is the `report/summary.json` of a run of `qrmem eval run`. Summaries are kept outside the
repository, by `python -m tools.evaluation_results`, which calls this when it is done.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs" / "results"

SETS = {
    "hotpotqa": "HotpotQA",
    "2wikimultihopqa": "2WikiMultihopQA",
    "musique": "MuSiQue",
    "leval-quality": "QuALITY (L-Eval)",
    "mtbenchplus": "MTBench+",
}
"""Names of tasks in the tables."""

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
"""Recall at 2 and at 5 in HippoRAG's papers, and in papers that quote them."""

SEEN = {
    "2wikimultihopqa": "Misses of the measured pool were read while rules for names were written: "
    "our rows may be a little too good.",
    "musique": "The measured questions were run four times while the method was made: "
    "our rows may be a little too good.",
}
"""By task, notes on measured questions that were seen before the measurement."""

EMBEDDERS = {"none": "", "local": "MiniLM"}
CORPORA = {
    "own": "each over its own text",
    "union": "over the passages of all questions together",
    "file": "over a corpus",
}

Run = Mapping[str, Any]


def write_tables(summaries: Path) -> None:
    """Write the file of every data set with a summary in a folder."""
    runs = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(summaries.glob("*.json"))
    ]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for task in SETS:
        own = [run for run in runs if run.get("config", {}).get("task") == task]
        if own:
            (RESULTS / f"{task}.md").write_text(page(task, own), encoding="utf-8")


def page(task: str, runs: Sequence[Run]) -> str:
    """Return the tables of one data set, and the conditions of their runs."""
    pieces = [f"# {SETS[task]}\n"]
    ranked = [run for run in runs if "recall@5" in run["metrics"]]
    chosen = [run for run in runs if "accuracy" in run["metrics"]]
    if ranked:
        pieces.append(_retrieval(task, ranked))
    if chosen:
        pieces.append(_choices(chosen))
    pieces.append(_conditions(runs))
    return "\n".join(pieces)


def _retrieval(task: str, runs: Sequence[Run]) -> str:
    """Return the recall of each ranking; each ranking is listed once, whatever is read."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run in runs:
        for system, result in run["systems"].items():
            if "recall@5" in result["means"]:
                name = _ranking(system)
                found.setdefault((name, _embedder(run, name)), result["means"])
    rows = [
        [*key, *(_interval(means.get(metric)) for metric in METRICS)]
        for key, means in sorted(found.items(), key=lambda pair: -pair[1]["recall@5"]["value"])
    ]
    told = f"Gold passages found (%), no chat model; {_asked(runs[0])}.\n\n"
    pieces = [told + table(["ranking", "embedder", *METRICS], rows)]
    if task in SEEN:
        pieces.append(f"{SEEN[task]}\n")
    published = [
        [name, *(f"{value:.1f}" for value in numbers[task])]
        for name, numbers in PUBLISHED.items()
        if task in numbers
    ]
    if published:
        told = (
            "Published figures, over other questions and larger corpora: for orientation, not for "
            "comparison.\n\n"
        )
        pieces.append(told + table(["ranking", "recall@2", "recall@5"], published))
    return "\n".join(pieces)


def _choices(runs: Sequence[Run]) -> str:
    """Return the share of right options by system, the best first."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run in runs:
        for system, result in run["systems"].items():
            found.setdefault((system, _embedder(run, system)), result)
    rows = []
    for key in sorted(found, key=lambda key: -found[key]["means"]["accuracy"]["value"]):
        gap = found[key]["differences"].get("accuracy")
        p = f"{gap['p']:.4f}" if gap else ""
        rows.append([*key, _interval(found[key]["means"]["accuracy"]), _interval(gap), p])
    head = ["system", "embedder", "accuracy", f"over {runs[0]['against']}, paired", "p"]
    told = f"Options chosen by rules (%), no chat model; {_asked(runs[0])}.\n\n"
    return told + table(head, rows)


def _conditions(runs: Sequence[Run]) -> str:
    rows = []
    for run in runs:
        config = run["config"]
        files = ", ".join(f"{f['name']} `{f['sha256'][:12]}`" for f in config["files"])
        items, settings = config["items"], config["settings"]
        skipped = f", the first {config['skip']} left out" if config.get("skip") else ""
        rows.append(
            [
                ", ".join(run["systems"]),
                f"{items['n']} of {items['of']}{skipped}, seed {config['seed']}",
                f"{config['corpus']}; {files}",
                f"{settings['embedder']}, {settings['window']}",
                config["about"]["git"] or "unknown",
            ]
        )
    head = ["systems", "items", "corpus and files", "embedder, window", "commit"]
    return f"What was run:\n\n{table(head, rows)}"


def _asked(run: Run) -> str:
    return f"{run['config']['items']['n']} questions, {CORPORA[run['config']['corpus']]}"


def _embedder(run: Run, system: str) -> str:
    """Return the embedder of a system: BM25 is the same in every run."""
    return "" if "bm25" in system else EMBEDDERS[run["config"]["settings"]["embedder"]]


def _ranking(system: str) -> str:
    """Return what ranks: `bm25:k=1` and `bm25:k=3` rank alike, and so do `dense` and DOS-RAG."""
    name, *given = system.split(":")
    if name == "dos-rag":
        return "dense"
    return ":".join([name, *(pair for pair in given if not pair.startswith("k="))])


def _interval(found: Mapping[str, float] | None) -> str:
    if found is None:
        return ""
    value, low, high = (100 * found[name] for name in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


# --- presets against a small model ---------------------------------------------------------------


def write_presets(made: Run) -> None:
    """Write the results of presets with a small chat model; rows of other presets do not change."""
    head = ["preset", "parts", "items", "systems", "results", "failed", "calls", "tokens"]
    page = RESULTS / "presets.md"
    rows = {row[0]: row for row in _rows_of(page.read_text("utf-8"))} if page.exists() else {}
    rows |= {name: _preset_row(name, found) for name, found in made["presets"].items()}
    told = (
        "# Every preset against a real, small chat model\n\n"
        f"Model {made['model']} (`{made['weights']['name']}`), window {made['window']}, texts cut "
        f"to {made['words']} words, embedder {made['embedder']}, seed {made['seed']}. It shows "
        "that each comes to its end, and says nothing of quality.\n\n"
    )
    text = told + table(
        [*head, "parsed", "why not all", "commit"], [rows[name] for name in sorted(rows)]
    )
    page.write_text(text, encoding="utf-8")


def _rows_of(page: str) -> list[list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _preset_row(name: str, found: Run) -> list[str]:
    return [
        name,
        *(str(found[key]) for key in ("parts", "items", "systems", "results")),
        str(sum(found["failed"].values())),
        f"{found['calls']:,}",
        f"{found['tokens']:,}",
        "" if found["parsed"] is None else f"{100 * found['parsed']:.0f} %",
        "; ".join(_why(found)),
        found["git"],
    ]


def _why(found: Run) -> list[str]:
    """Return the reasons of failed items, and the left out systems."""
    failed = [f"{count}x {why}" for why, count in found["failed"].items()]
    left = [why.partition(":")[0] for why in found["left out"]]
    unread = found["unread segments"]
    return [
        *failed,
        *([f"without {', '.join(left)}"] if left else []),
        *([f"{unread} segments not wholly read"] if unread else []),
    ]
