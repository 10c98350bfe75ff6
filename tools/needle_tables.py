"""M-NIAH and BABILong without a chat model: build, run, write the page and its heat maps.

    QRMEM_DATA=… python -m tools.needle_tables [--kept FOLDER] [--lengths 8k,16k] [--page-only]

A case counts if the reader was shown every sentence that the answer needs, whole, in a window of
4,096 tokens. All runs can be stopped: the same command goes on. A full run takes hours of one
core; `--lengths` runs the cases of some lengths, and the page says which were run. `--page-only`
writes the page of the runs that are there: the folders `KEPT/runs/niah…` and
`KEPT/runs/babilong…`. The embedder is run where the extra `local` is installed.
"""

import argparse
import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks import multihop
from qrmem.agents.state import silent
from qrmem.config import Settings
from qrmem.eval import RunOptions, RunSpec, run_task
from qrmem.eval.datasets.needles import needle_score, shown_spans
from qrmem.eval.records import Corpus, Item, Row
from qrmem.eval.registry import DATASETS, build
from qrmem.graphstore.codec import loads

PAGE = Path(__file__).parent.parent / "docs" / "results" / "needles.md"
LENGTHS = {
    "niah": ("100k", "300k", "500k"),
    "babilong": ("0k", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k"),
}
ALL = (
    "inner-loop",
    "inner-loop:navigation=false",
    "inner-loop:surprise=false",
    "raptor",
    "raptor-layered",
    "passages",
    "reflection",
    "graph-expansion",
    "entity-trial",
    "search:k=0",
    "bm25:k=0",
    "fragment",
    "keep-ends",
    "full-text",
)
SYSTEMS = {"niah": ALL, "babilong": tuple(ALL[n] for n in (0, 1, 3, 9, 10))}
DENSE = "dense:k=0"
NAMES = {
    "inner-loop:navigation=false": "inner-loop, one round",
    "inner-loop:surprise=false": "inner-loop, no surprises",
    "full-text": "long context: 128,000 tokens, the middle cut out beyond",
    "keep-ends": "both ends of the text, 4,096 tokens",
    DENSE: "embedder (MiniLM)",
}
SHORT = ("inner-loop", "inner-loop:navigation=false", "bm25:k=0", DENSE, "search:k=0", "raptor")

Found = Mapping[str, Mapping[tuple[str, str], Sequence[list[bool]]]]
"""Which sentences were shown, by system, then by task or depth and length."""


# --- running -------------------------------------------------------------------------------------


async def run(kept: Path, lengths: Sequence[str]) -> None:
    """Build what is not there, and run it, one length after the other."""
    data = multihop.folder()
    sources = {"niah": data / "niah" / "PaulGrahamEssays", "babilong": data / "babi" / "en"}
    chosen = {"niah": (), "babilong": (f"background={data / 'gutenberg'}", "cases=10")}
    for task, all_lengths in LENGTHS.items():
        whole = kept / task / f"{task}.jsonl"
        if not whole.exists():
            options = (f"length={','.join(all_lengths)}", *chosen[task])
            build(task, sources[task], whole.parent, options)
        for length in all_lengths:
            if lengths and length not in lengths:
                continue
            file = kept / f"{task}-{length}" / whole.name
            file.parent.mkdir(exist_ok=True)
            lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
            own = [line for line in lines if json.loads(line)["length"] == length]
            file.write_text("".join(own), encoding="utf-8")
            await _run(task, file, SYSTEMS[task], kept / "runs" / f"{task}-{length}", "none")
            if find_spec("sentence_transformers"):
                out = kept / "runs" / f"{task}-{length}-embedder"
                await _run(task, file, (DENSE,), out, "local")


async def _run(task: str, file: Path, systems: tuple[str, ...], out: Path, embedder: str) -> None:
    settings = Settings(embedder=embedder, window=4096)
    spec = RunSpec(task=task, data=file, systems=systems)
    await run_task(spec, out, settings, RunOptions(listener=silent))


def cells(
    task: str, data: Path, runs: Iterable[Path]
) -> dict[str, dict[tuple[str, str], list[list[bool]]]]:
    """Return what was shown in some runs over one file of cases."""
    items = {item.id: item for item in DATASETS[task].read(data, Corpus()).items}
    found: dict[str, dict[tuple[str, str], list[list[bool]]]] = defaultdict(dict)
    for folder in runs:
        for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines():
            row = loads(line, Row)
            item = items[row.item]
            if (shown := shown_spans(item, row)) is not None:
                found[row.system].setdefault(_cell(item), []).append(shown)
    return found


def _cell(item: Item) -> tuple[str, str]:
    return item.labels.get("depth", item.labels["task"]), item.labels["length"]


# --- tables --------------------------------------------------------------------------------------


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, in percent."""
    z = 1.96
    share, spread = right / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return 100 * (middle - half), 100 * (middle + half)


def by_length(found: Found) -> list[str]:
    """Return a table: a row for each system, a column for each length over all tasks or depths."""
    lengths = _lengths(found)
    lines = [
        _line(["system", *lengths, "all, % (95 %)", "score"]),
        _line(["---"] * (len(lengths) + 3)),
    ]
    for system, own in found.items():
        counts = [_count(some for (_, n), some in own.items() if n == length) for length in lengths]
        every = [shown for some in own.values() for shown in some]
        score = sum(needle_score(sum(shown), len(shown)) for shown in every) / len(every)
        lines.append(_line([_name(system), *counts, _share(every), f"{score:.1f}"]))
    return lines


def by_task(found: Found, systems: Sequence[str]) -> list[str]:
    """Return a table: a row for each task and length, a column for each system."""
    known = [system for system in systems if system in found]
    tasks = sorted({task for own in found.values() for task, _ in own})
    lines = [_line(["task", "length", *map(_name, known)]), _line(["---"] * (len(known) + 2))]
    for task in tasks:
        for length in _lengths(found):
            own = [_count([found[one].get((task, length), ())]) for one in known]
            lines.append(_line([task, length, *own]))
        every = [
            [s for (t, _), some in found[one].items() if t == task for s in some] for one in known
        ]
        lines.append(_line([f"**{task}**", "all run", *map(_share, every)]))
    return lines


def _lengths(found: Found) -> list[str]:
    lengths = {length for own in found.values() for _, length in own}
    return sorted(lengths, key=lambda length: float(length.removesuffix("k")))


def _count(some: Iterable[Sequence[list[bool]]]) -> str:
    shown = [one for cell in some for one in cell]
    return f"{sum(map(all, shown))}/{len(shown)}" if shown else ""


def _share(every: Sequence[list[bool]]) -> str:
    if not every:
        return ""
    right = sum(map(all, every))
    low, high = wilson(right, len(every))
    return f"{100 * right / len(every):.0f} ({low:.0f}-{high:.0f}), n={len(every)}"


def _name(system: str) -> str:
    return NAMES.get(system, system.removesuffix(":k=0"))


def _line(words: Iterable[str]) -> str:
    return "| " + " | ".join(words) + " |"


# --- heat maps -----------------------------------------------------------------------------------


def draw(found: Found, path: Path, systems: Sequence[str]) -> None:
    """Draw a heat map of each system: length across, task or depth down."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    known = [system for system in systems if system in found]
    rows = sorted({row for own in found.values() for row, _ in own}, key=_order)
    lengths = _lengths(found)
    wide = min(4, len(known))
    high = math.ceil(len(known) / wide)
    figure, axes = pyplot.subplots(high, wide, squeeze=False, figsize=(3 * wide, 2.6 * high))
    for axis in axes.flat[len(known) :]:
        axis.axis("off")
    for axis, system in zip(axes.flat, known, strict=False):
        own = found[system]
        grid = [[_mean(own.get((row, length), ())) for length in lengths] for row in rows]
        axis.imshow(grid, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
        axis.set_title(_name(system)[:36], fontsize=8)
        axis.set_xticks(range(len(lengths)), lengths, fontsize=7)
        axis.set_yticks(range(len(rows)), rows, fontsize=7)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def _order(row: str) -> tuple[float, str]:
    return (float(row), "") if row.isdigit() else (-1.0, row)


def _mean(some: Sequence[list[bool]]) -> float:
    return sum(map(all, some)) / len(some) if some else math.nan


# --- the page ------------------------------------------------------------------------------------


def page(kept: Path, out: Path) -> str:
    """Return the page of all runs that are there, and draw its maps beside it."""
    found: dict[str, Found] = {}
    for task in LENGTHS:
        runs = sorted(
            (kept / "runs").glob(f"{task}*"), key=lambda run: ("embedder" in run.name, run.name)
        )
        found[task] = cells(task, kept / task / f"{task}.jsonl", runs) if runs else {}
        if found[task]:
            shown = SHORT if task == "babilong" else ALL
            draw(found[task], out.parent.parent / "images" / f"{task}.png", shown)
    lines = [
        "# M-NIAH and BABILong without a chat model\n",
        "Made by `QRMEM_DATA=… python -m tools.needle_tables`. A case counts if the reader was "
        "shown every sentence that the answer needs, whole, in a window of 4,096 tokens; intervals "
        "are Wilson's, 95 %. No chat model; no embedder but where it is named. A cell says how "
        "many of how many cases; an empty one was not run.\n",
    ]
    if found["niah"]:
        lines += ["## M-NIAH\n", NIAH, *by_length(found["niah"]), "", "![](../images/niah.png)\n"]
    if found["babilong"]:
        table = by_task(found["babilong"], SHORT)
        lines += ["## BABILong\n", BABILONG, *table, "", "![](../images/babilong.png)\n", PUBLISHED]
    return "\n".join(lines)


NIAH = (
    "Three needles at mean depths of 0 to 100 % in 49 essays, one case for each depth and length. "
    "Score: 1, 3, 7, 10 for none to three needles, the mean. The needles share most of their words "
    "with the question, so that one search finds them.\n"
)
BABILONG = (
    "Facts of bAbI's test part in two novels, 10 cases a cell. Rows with a bold name are over "
    "all lengths that were run. In qa2 and qa3 a second and third fact share no word with the "
    "question.\n"
)
PUBLISHED = (
    "Published beside it: the BABILong paper (Kuratov et al., 2024, abstract) reports that "
    "retrieval-augmented models answer about 60 % of questions on a single fact (qa1), at any "
    "length; ILM-TR prints heat maps only. Those are answers of chat models: here it "
    "is counted whether a reader was shown what it needs, which bounds them from above.\n"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is wanted and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/needles"))
    parser.add_argument("--lengths", default="", help="with commas; default: all")
    parser.add_argument("--page-only", action="store_true")
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    if not chosen.page_only:
        chosen.kept.mkdir(parents=True, exist_ok=True)
        asyncio.run(run(chosen.kept, [word for word in chosen.lengths.split(",") if word]))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(page(chosen.kept, chosen.out), encoding="utf-8")
    print(chosen.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
