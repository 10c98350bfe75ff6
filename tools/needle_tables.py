"""Tables and heat maps of M-NIAH and BABILong: what each system's reader was shown.

    python -m tools.needle_tables niah data/niah.jsonl runs/niah --map niah.png

Cells are shares of cases in which the reader was shown every sentence that the answer needs, with
the number of cases; the last column is over all cases, with a 95 % interval (Wilson).
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from qrmem.eval.datasets.needles import needle_score, shown_spans
from qrmem.eval.records import Corpus, Item, Row
from qrmem.eval.registry import DATASETS
from qrmem.graphstore.codec import loads

Cells = Mapping[str, Mapping[tuple[str, str], Sequence[list[bool]]]]


def cells(task: str, data: Path, run: Path) -> dict[str, dict[tuple[str, str], list[list[bool]]]]:
    """Return which sentences were shown, by system, then by task or depth and length."""
    items = {item.id: item for item in DATASETS[task].read(data, Corpus()).items}
    found: dict[str, dict[tuple[str, str], list[list[bool]]]] = defaultdict(dict)
    for line in (run / "rows.jsonl").read_text(encoding="utf-8").splitlines():
        row = loads(line, Row)
        item = items[row.item]
        shown = shown_spans(item, row)
        if shown is not None:
            found[row.system].setdefault(_cell(item), []).append(shown)
    return found


def _cell(item: Item) -> tuple[str, str]:
    return item.labels.get("depth", item.labels["task"]), item.labels["length"]


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, in percent."""
    z = 1.96
    share, spread = right / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return 100 * (middle - half), 100 * (middle + half)


def table(found: Cells) -> list[str]:
    """Return a Markdown table: a row for each system, a column for each cell."""
    keys = sorted({key for one in found.values() for key in one}, key=_order)
    names = [f"{row} {length}" for row, length in keys]
    lines = ["| system | " + " | ".join(names) + " | all | score |"]
    lines.append("|---|" + "---|" * (len(names) + 2))
    for system, own in found.items():
        shares = [
            f"{sum(map(all, own[key]))}/{len(own[key])}" if key in own else "" for key in keys
        ]
        every = [shown for some in own.values() for shown in some]
        right = sum(map(all, every))
        low, high = wilson(right, len(every))
        total = f"{100 * right / len(every):.0f} ({low:.0f}-{high:.0f})"
        score = sum(needle_score(sum(shown), len(shown)) for shown in every) / len(every)
        lines.append(f"| {system} | " + " | ".join(shares) + f" | {total} | {score:.1f} |")
    return lines


def _order(key: tuple[str, str]) -> tuple[float, str, float]:
    row, length = key
    depth = float(row) if row.replace(".", "").isdigit() else -1.0
    return depth, row, float(length.removesuffix("k"))


def draw(found: Cells, path: Path) -> None:
    """Draw a heat map of each system: length across, task or depth down."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    keys = sorted({key for one in found.values() for key in one}, key=_order)
    rows = list(dict.fromkeys(row for row, _ in keys))
    lengths = sorted({length for _, length in keys}, key=lambda n: float(n.removesuffix("k")))
    figure, axes = pyplot.subplots(1, len(found), squeeze=False, figsize=(3 * len(found), 3))
    for axis, (system, own) in zip(axes[0], found.items(), strict=True):
        grid = [[_share(own.get((row, length), ())) for length in lengths] for row in rows]
        axis.imshow(grid, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
        axis.set_title(system, fontsize=8)
        axis.set_xticks(range(len(lengths)), lengths, fontsize=7)
        axis.set_yticks(range(len(rows)), rows, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def _share(some: Sequence[list[bool]]) -> float:
    return sum(map(all, some)) / len(some) if some else math.nan


def main() -> None:
    """Print the table, and draw the map where one is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("niah", "babilong"))
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--map", type=Path, metavar="PNG")
    chosen = parser.parse_args()
    found = cells(chosen.task, chosen.data, chosen.run)
    print("\n".join(table(found)))
    if chosen.map:
        draw(found, chosen.map)


if __name__ == "__main__":
    main()
