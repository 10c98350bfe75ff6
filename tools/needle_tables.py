"""M-NIAH and BABILong without a chat model: build, run, write the page and its heat maps.

    QRMEM_DATA=… python -m tools.needle_tables [--kept FOLDER] [--tasks niah,babilong]
        [--lengths 8k,16k] [--cases 1] [--workers 1] [--page-only]

A case counts if the reader was shown every sentence that the answer needs, whole, in a window of
4,096 tokens. M-NIAH has a cell for each of five depths and five lengths, `--cases` times. All
systems of a case share one memory. The embedder is run where the extra `local` is installed, over
memories of its own.

All runs can be stopped: the same command goes on where they were. 100,000 tokens take some three
seconds of one core, of which most are the reading and the tree; the embedder takes much longer.
`--tasks` and `--lengths` run a part, and the page says which were run. `--page-only` writes the
page of the runs that are there: the folders `KEPT/runs/niah…` and `KEPT/runs/babilong…`.
"""

import argparse
import asyncio
import json
import math
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import multihop
from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.eval import RunOptions, RunSpec, run_task
from qrmem.eval.datasets.needles import needle_score, shown_spans
from qrmem.eval.items import Corpus, Item
from qrmem.eval.registry import DATASETS, build
from qrmem.eval.run_folder import RunFolder

SENTENCES = "bm25-sentences"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "needles.md"
SETS = Path(__file__).parent / "needle_sets.toml"
SET_LENGTH = "100k"
SET_SYSTEMS = (
    "inner-loop",
    "inner-loop:navigation=false",
    "inner-loop:surprise=false",
    SENTENCES,
    "raptor",
    "search:k=0",
    "bm25:k=0",
)
LENGTHS = {
    "niah": ("100k", "200k", "300k", "400k", "500k"),
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
    SENTENCES,
    "fragment",
    "keep-ends",
    "full-text",
)
SYSTEMS = {"niah": ALL, "babilong": tuple(ALL[n] for n in (0, 1, 3, 9, 10, 11))}
DENSE = "dense:k=0"
NAMES = {
    SENTENCES: "BM25 over sentences",
    "inner-loop:navigation=false": "inner-loop, one round",
    "inner-loop:surprise=false": "inner-loop, no surprises",
    "full-text": "long context: 128,000 tokens, the middle cut out beyond",
    "keep-ends": "both ends of the text, 4,096 tokens",
    DENSE: "embedder (MiniLM)",
}
SHORT = (
    "inner-loop",
    "inner-loop:navigation=false",
    SENTENCES,
    "bm25:k=0",
    DENSE,
    "search:k=0",
    "raptor",
)
RIVALS = (SENTENCES, "bm25:k=0", DENSE)

Found = Mapping[str, Mapping[tuple[str, str], Sequence[list[bool]]]]
"""Which sentences were shown, by system, then by task or depth and length."""


# --- running -------------------------------------------------------------------------------------


async def run(
    kept: Path, tasks: Sequence[str], lengths: Sequence[str], cases: int, workers: int
) -> None:
    """Build what is not there, and run it, one length after the other."""
    data = multihop.folder()
    sources = {"niah": data / "niah" / "PaulGrahamEssays", "babilong": data / "babi" / "en"}
    chosen = {
        "niah": (f"cases={cases}",),
        "babilong": (f"background={data / 'gutenberg'}", "cases=10"),
    }
    for task in tasks:
        whole = kept / task / f"{task}.jsonl"
        options = (f"length={','.join(LENGTHS[task])}", *chosen[task])
        built = whole.with_suffix(".options")
        if not whole.exists():
            build(task, sources[task], whole.parent, options)
            built.write_text(" ".join(options), encoding="utf-8")
        elif not built.exists() or built.read_text(encoding="utf-8") != " ".join(options):
            raise SystemExit(f"{whole} was built with other options: choose another --kept")
        lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
        by_length = {length: list[str]() for length in LENGTHS[task]}
        for line in lines:
            by_length[json.loads(line)["length"]].append(line)
        for length, own in by_length.items():
            if lengths and length not in lengths:
                continue
            file = kept / f"{task}-{length}" / whole.name
            file.parent.mkdir(exist_ok=True)
            file.write_text("".join(own), encoding="utf-8")
            runs = kept / "runs"
            await _run(task, file, SYSTEMS[task], runs / f"{task}-{length}", "none", workers)
            if find_spec("sentence_transformers"):
                out = runs / f"{task}-{length}-embedder"
                await _run(task, file, (DENSE,), out, "local", workers)


async def run_sets(kept: Path, workers: int) -> None:
    """Hide each set of needles in the essays, at three depths, and run all of them."""
    essays = multihop.folder() / "niah" / "PaulGrahamEssays"
    lines = []
    for n, one in enumerate(tomllib.loads(SETS.read_text(encoding="utf-8"))["set"]):
        told = [f"{key}={'|'.join(one[key])}" for key in ("needles", "keywords")]
        place = (
            f"length={SET_LENGTH}",
            "depths=10,50,90",
            f"question={one['question']}",
            f"seed={n}",
        )
        with TemporaryDirectory() as folder:
            build("niah", essays, Path(folder) / "set", (*place, *told))
            made = (Path(folder) / "set" / "niah.jsonl").read_text(encoding="utf-8")
        for record in map(json.loads, made.splitlines()):
            lines.append(json.dumps({**record, "id": f"{n}-{record['id']}", "kind": one["kind"]}))
    file = kept / "sets" / "niah.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines), encoding="utf-8")
    await _run("niah", file, SET_SYSTEMS, kept / "runs" / "sets", "none", workers)


def by_kind(kept: Path) -> list[str]:
    """Return a table: a row for each system, a column for each kind of needles; then the misses."""
    file = kept / "sets" / "niah.jsonl"
    items = {item.id: item for item in DATASETS["niah"].read(file, Corpus()).items}
    kinds = list(dict.fromkeys(item.labels["kind"] for item in items.values()))
    texts = {one["id"]: one["text"] for one in map(json.loads, file.read_text().splitlines())}
    found: dict[str, dict[str, list[list[bool]]]] = defaultdict(lambda: defaultdict(list))
    to: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in RunFolder(kept / "runs" / "sets").rows().values():
        item = items[row.item]
        if (shown := shown_spans(item, row)) is not None:
            found[row.system][item.labels["kind"]].append(shown)
            for (_, start, end), one in zip(item.spans, shown, strict=True):
                needle = texts[item.id][start:end]
                to[item.labels["kind"], needle][row.system].append(one)
    head = ["system", *(f"{kind}: needles" for kind in kinds), "all needles", "all of a case"]
    lines = [_line(head), _line(["---"] * len(head))]
    for system in (one for one in SET_SYSTEMS if one in found):
        own = found[system]
        every = [shown for kind in kinds for shown in own[kind]]
        shares = [_needles(own[kind]) for kind in kinds]
        lines.append(_line([_name(system), *shares, _needles(every), _count([every])]))
    return [*lines, "", *_misses(to)]


def _misses(to: Mapping[tuple[str, str], Mapping[str, Sequence[bool]]]) -> list[str]:
    """Say which needles BM25 over sentences missed, and who was shown them; then who saw none."""
    rescued, never = [], []
    for (kind, needle), shown in to.items():
        seen = [_name(system) for system in SET_SYSTEMS if any(shown.get(system, ()))]
        if not seen:
            never.append(f"- {kind}: {needle}")
        elif not any(shown.get(SENTENCES, ())):
            rescued.append(f"- {kind}: {needle} Shown by {', '.join(seen)}.")
    return [
        "Never shown by BM25 over sentences, but by others:\n",
        *rescued,
        "",
        "**Never shown, by any system at any depth:**\n",
        *never,
        "",
    ]


def _needles(some: Sequence[list[bool]]) -> str:
    flat = [one for shown in some for one in shown]
    return f"{sum(flat)}/{len(flat)}"


async def _run(
    task: str, file: Path, systems: tuple[str, ...], out: Path, embedder: str, workers: int
) -> None:
    settings = Settings(embedder=embedder, window=4096)
    spec = RunSpec(task=task, data=file, systems=systems, full_window=0)
    began = time.monotonic()
    stats = await run_task(spec, out, settings, RunOptions(listener=silent, workers=workers))
    seconds = time.monotonic() - began
    print(f"{out.name}: {stats.done} done, {stats.reused} were there, {seconds:.0f} s", flush=True)


def cells(
    task: str, data: Path, runs: Iterable[Path]
) -> dict[str, dict[tuple[str, str], list[list[bool]]]]:
    """Return what was shown in some runs over one file of cases."""
    items = {item.id: item for item in DATASETS[task].read(data, Corpus()).items}
    found: dict[str, dict[tuple[str, str], list[list[bool]]]] = defaultdict(dict)
    for folder in runs:
        for row in RunFolder(folder).rows().values():
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
    return max(0.0, 100 * (middle - half)), 100 * (middle + half)


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
    rivals = [system for system in RIVALS if system in known]
    compared = [f"inner-loop against {_name(system)}" for system in rivals]
    lines = [_line(["task", "length", *map(_name, known), *compared])]
    lines.append(_line(["---"] * (len(known) + len(rivals) + 2)))
    for task in tasks:
        for length in _lengths(found):
            cell = (task, length)
            own = [_count([found[one].get(cell, ())]) for one in known]
            against = [_against(found, cell, system) for system in rivals]
            lines.append(_line([task, length, *own, *against]))
        every = [
            [s for (t, _), some in found[one].items() if t == task for s in some] for one in known
        ]
        lines.append(_line([f"**{task}**", "all run", *map(_share, every), *[""] * len(rivals)]))
    return [*lines, "", *(_sum_of(found, system) for system in rivals)]


def _against(found: Found, cell: tuple[str, str], rival: str) -> str:
    """Say whether the inner loop had more whole cases in a cell than another system."""
    own, other = found["inner-loop"].get(cell), found[rival].get(cell)
    if not own or not other or len(own) != len(other):
        return ""
    more = sum(map(all, own)) - sum(map(all, other))
    return f"above (+{more})" if more > 0 else "equal" if not more else f"below ({more})"


def _sum_of(found: Found, rival: str) -> str:
    cells = sorted({cell for own in found.values() for cell in own})
    words = [word.split()[0] for cell in cells if (word := _against(found, cell, rival))]
    count = {word: words.count(word) for word in ("above", "equal", "below")}
    said = ", ".join(f"{word} in {n}" for word, n in count.items())
    return f"inner-loop against {_name(rival)}, of {len(words)} cells: {said}.\n"


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
        axis.set_title(
            _name(system).partition(", ")[0] if len(_name(system)) > 36 else _name(system),
            fontsize=8,
        )
        axis.set_xlabel("tokens", fontsize=7)
        axis.set_ylabel("mean depth, %" if rows[0].isdigit() else "task", fontsize=7)
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
        "shown every sentence that the answer needs, whole, in a window of 4,096 tokens: of the "
        "inner loop these are the sentences of its last round, of most others segments. A cell "
        "says in how many of how many cases; an empty one was not run. Shares are in %, with "
        "Wilson's interval of 95 %. There is no chat model, and no embedder but in the row or "
        "column that names it.\n",
    ]
    if found["niah"]:
        lines += ["## M-NIAH\n", NIAH, *by_length(found["niah"]), "", "![](../images/niah.png)\n"]
    if (kept / "runs" / "sets").exists():
        lines += ["## Ten sets of needles\n", TEN, *by_kind(kept), FOUND]
    if found["babilong"]:
        table = by_task(found["babilong"], SHORT)
        lines += ["## BABILong\n", BABILONG, *table, "", "![](../images/babilong.png)\n", PUBLISHED]
    return "\n".join(lines)


NIAH = (
    "Three needles at mean depths of 0, 25, 50, 75 and 100 % in 49 essays, which are repeated in "
    "texts of more than 157,000 tokens. Score: 1, 3, 7 or 10 for no, one, two or three needles "
    "that were shown; the mean. The needles share most of their words with the question, so that "
    "one search finds them.\n"
)
TEN = (
    "M-NIAH's needles share most of their words with the question: what finds those words finds "
    "all. These ten sets (`tools/needle_sets.toml`) were written before the first run over them, "
    "three needles each, in 100,000 tokens of the essays at mean depths of 10, 50 and 90 %: some "
    "share words with the question; in those of several hops the later ones share words with each "
    "other alone; others are paraphrases, or need order in time. A cell counts single needles that "
    "were shown whole; the last column cases of which all three were.\n"
)
FOUND = (
    "So without a chat model and an embedder a needle is found if it shares words with the "
    "question. The loop and `search` also find some that share words with a sentence that was "
    "found: the second of a chain, never the third. Paraphrases are never found, nor what only an "
    "order in time leads to. BM25 over sentences finds all but those second sentences. Surprises "
    "change nothing.\n"
)
BABILONG = (
    "Facts of bAbI's test part in two novels, 10 cases a cell. Rows with a bold name are over "
    "all lengths that were run. In qa2 one fact of two, and in qa3 one of three, shares no word "
    "with the question. The inner loop was made with such facts in view, whose sentences are all "
    "alike: other texts will not be as kind to it.\n"
)
PUBLISHED = (
    "Published beside it: the BABILong paper (Kuratov et al., 2024, abstract) reports that "
    "retrieval-augmented models answer about 60 % of questions on a single fact (qa1), at any "
    "length; ILM-TR prints heat maps only. Those count right answers of chat models; this page "
    "counts whether a reader was shown what it needs. The two are not the same measure.\n"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is wanted and write the page."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/needles"))
    parser.add_argument("--tasks", default=",".join(LENGTHS), help="with a comma")
    parser.add_argument("--lengths", default="", help="with commas; default: all")
    parser.add_argument("--cases", type=int, default=1, help="of M-NIAH, for a depth and length")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--sets", action="store_true", help="also the ten sets of needles")
    parser.add_argument("--page-only", action="store_true")
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    if not chosen.page_only:
        chosen.kept.mkdir(parents=True, exist_ok=True)
        tasks, lengths = (
            [word for word in words.split(",") if word] for words in (chosen.tasks, chosen.lengths)
        )
        asyncio.run(run(chosen.kept, tasks, lengths, chosen.cases, chosen.workers))
        if chosen.sets:
            asyncio.run(run_sets(chosen.kept, chosen.workers))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(page(chosen.kept, chosen.out), encoding="utf-8")
    print(chosen.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
