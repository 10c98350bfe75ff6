"""The report of a preset: its table or figure with the paper's numbers, and single cases."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.eval.items import Item, Row
from qrmem.eval.memories import NAMESPACE
from qrmem.eval.preset import Preset, PresetPart, deviations, folder_of
from qrmem.eval.report.plots import NAMES, OF_TEN, draw, draw_heat_maps, heat_maps, panels, run_by
from qrmem.eval.report.results import Result, Results, read_results
from qrmem.eval.report.tables import Table, conditions, heading, number, percent, write_report
from qrmem.eval.run_folder import CONFIG, REPORT, RunFolder, not_run_in
from qrmem.graphstore import open_store

CELLS = "cells"
"""Axis of a figure with heat maps, by two labels of the items."""
COUNT = 5
TOP = 5
LENGTH = 300


async def _cases(preset: Preset, results: Results, metric: str) -> list[str]:
    """Return the cases of one part as Markdown, or the reason why there are none."""
    ours = preset.cases["ours"]
    systems_compared = [preset.cases["theirs"], *preset.systems]
    no_retriever = (ours, preset.cases.get("compressed"))
    here = [label for label in systems_compared if preset.systems[label] in results.systems]
    run = [label for label in here if label not in no_retriever]
    if not run or preset.systems[ours] not in results.systems:
        return [f"No cases: they need results of {ours} and of a retriever.\n"]
    mine, other = (results.systems[preset.systems[label]] for label in (ours, run[0]))
    ids_won = [
        id
        for id in results.items
        if mine.scores.get(metric, {}).get(id, 0) > other.scores.get(metric, {}).get(id, 1)
    ]
    if not ids_won:
        return [f"No cases: no question was answered right by {ours} and wrong by {run[0]}.\n"]
    return [
        await _case(
            results,
            results.items[id],
            mine.rows[id],
            other.rows[id],
            run[0],
            _compressed(preset, results, id),
        )
        for id in ids_won[:COUNT]
    ]


def _compressed(preset: Preset, results: Results, id: str) -> list[str]:
    """Return the answer from the compressed text, if that system was run."""
    label = preset.cases.get("compressed", "")
    result = results.systems.get(preset.systems.get(label, ""))
    row = result.rows.get(id) if result else None
    return [f"{label} (compressed text) answers: {row.short or '(none)'}"] if row else []


async def _case(
    results: Results, item: Item, ours: Row, theirs: Row, retriever: str, also: Sequence[str]
) -> str:
    ranks = {id: rank for rank, id in enumerate(theirs.prediction.segments, 1)}
    ids = list(dict.fromkeys([*ours.prediction.read, *theirs.prediction.segments[:TOP]]))
    texts = await _texts(results, ours.prediction.memory, ids)
    ids.sort(key=lambda id: (id not in ours.prediction.read, ranks.get(id, len(ranks) + 1)))
    rows = [
        [texts.get(id, id), str(ranks.get(id, "-")), "yes" if id in ours.prediction.read else "no"]
        for id in ids
    ]
    notes = [
        f"Question: {item.question}",
        f"Gold answer: {' / '.join(item.answers)}",
        f"{retriever} answers: {theirs.short or '(none)'}",
        *also,
        f"Ours answers: {ours.short or '(none)'}",
    ]
    head = ["segment", f"rank by {retriever.partition(' (')[0]}", "read by ours"]
    return Table(f"case-{item.id}", f"Case {item.id}", head, rows, notes).markdown()


async def _texts(results: Results, memory: str, ids: Sequence[str]) -> dict[str, str]:
    file = results.path / "memories" / f"{memory}.db"
    if not file.exists():
        return {}
    store = await open_store(f"sqlite://{file}?mode=ro", Settings())
    try:
        segments = await store.segments(NAMESPACE, list(ids))
    finally:
        await store.close()
    return {segment.id: " ".join(segment.text.split())[:LENGTH] for segment in segments}


COSTS = {
    "calls": "calls, as the paper counts",
    "all_calls": "calls in all",
    "tokens_in": "tokens read",
    "tokens_out": "tokens written",
    "built_calls": "calls of all building",
    "seconds": "seconds of an item",
    "malformed": "malformed nodes, %",
}
"""Columns with costs: means per item, and of building everything that a system needs.

A paper counts the calls of its method; the step that shortens answers for scoring is ours.
"""


async def write_preset_report(preset: Preset, path: Path, against: str = "") -> Path:
    """Write a preset's report from the folders of its parts; return the path of the Markdown file.

    Args:
        preset: the preset.
        path: folder of the runs.
        against: label of the system to compare with in each part's own report; "", or a system that
            a part has not run, is its first system.

    Raises:
        UsageError: no part has results, or none has results of that system.
    """
    parts = _parts(preset, path)
    word = preset.systems.get(against, against)
    run = {name for _, results in parts for name in results.systems}
    if against and word not in run:
        systems_run = ", ".join(
            label for label, system_name in preset.systems.items() if system_name in run
        )
        raise UsageError(f"{path} has no results of the system {against!r}; it has {systems_run}")
    folder = path / REPORT
    folder.mkdir(exist_ok=True)
    tables = [
        _table(preset, parts, name, metrics)
        for name, metrics in (preset.tables or {"Results": ()}).items()
    ]
    for table in tables:
        (folder / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
    pieces = [f"# {preset.title}", "", _readings(preset), *(t.markdown() for t in tables)]
    config = parts[0][1].config
    pieces += ["What ran:", "", *conditions(config), ""]
    if not_run := not_run_in(path):
        lines = [f"- {what}: {why}" for what, why in not_run.items()]
        pieces += ["Not run:", "", *lines, ""]
    if deviations_left := deviations(preset, config):
        pieces += ["Differences from the paper, with reasons:", "", *deviations_left, ""]
    pieces += _figures(preset, parts, folder)
    for part, results in parts if preset.cases else ():
        pieces += await _cases(preset, results, part.metrics[0])
    for part, results in parts:
        write_report(results, word if word in results.systems else "")
        pieces.append(f"\n## {part.name}\n\n" + "\n".join(heading(results).splitlines()[2:]))
        pieces += [f"- {failure}" for failure in _failed(preset, results)]
        system_name = f"{folder_of(part)}/{REPORT}/report.md"
        pieces.append(f"- differences with intervals, costs, how answers ended: `{system_name}`")
    parts_begun = [part.name for part in preset.parts if (path / folder_of(part) / CONFIG).exists()]
    for name in parts_begun:
        if name not in {part.name for part, _ in parts}:
            pieces.append(f"- {name} has no results yet: run the same preset again")
    report = folder / "report.md"
    report.write_text("\n".join(pieces), encoding="utf-8")
    return report


def _parts(preset: Preset, path: Path) -> list[tuple[PresetPart, Results]]:
    parts = []
    for part in preset.parts:
        folder = path / folder_of(part)
        if (folder / CONFIG).exists() and RunFolder(folder).count():
            parts.append((part, read_results(folder)))
    if not parts:
        raise UsageError(f"{path} has no results of {preset.name}")
    return parts


def _readings(preset: Preset) -> str:
    lines = ["How the paper was read:", ""]
    return "\n".join([*lines, *(f"- {reading}" for reading in preset.readings), ""])


def _table(
    preset: Preset, found: Sequence[tuple[PresetPart, Results]], title: str, metrics: Sequence[str]
) -> Table:
    """Return a table of all metrics, or of some; it is split only by a given label."""
    is_split = not metrics or not set(preset.labels).isdisjoint(metrics)
    columns = [
        [
            one
            for one in _columns(preset, part, results)
            if not metrics or (one[3] in metrics and (is_split or one[2] is None))
        ]
        for part, results in found
    ]
    if preset.by == "parts":
        rows = [
            [part.name, *row]
            for (part, _), part_columns in zip(found, columns, strict=True)
            for row in _rows(preset, part_columns)
        ]
        head = ["data", "system", "run", *(_title(metric) for _, _, _, metric in columns[0])]
    else:
        every = [column for part_columns in columns for column in part_columns]
        rows = _rows(preset, every)
        head = ["system", "run", *(f"{name} {_title(metric)}" for name, _, _, metric in every)]
    notes = [
        "Metrics in %, calls as they are; in brackets the 95 % bootstrap interval over items. The "
        "paper's rows are other models over other samples: they are for orientation, not for "
        "comparison.",
        *_unrated(found),
    ]
    part_columns = _file_name(preset, title) if preset.tables else preset.name
    return Table(part_columns, title, head, rows, notes)


def _figures(
    preset: Preset, found: Sequence[tuple[PresetPart, Results]], folder: Path
) -> list[str]:
    """Draw a preset's figures; return them as Markdown."""
    if not preset.plot:
        return []
    figures_wanted = [(preset.title, preset.name, preset.plot["metric"])]
    figures_wanted += [(title, _file_name(preset, title), m) for title, m in preset.figures.items()]
    pieces = []
    for title, name, metric in figures_wanted:
        one = replace(preset, plot={**preset.plot, "metric": metric})
        if _draw(one, found, folder / f"{name}.png"):
            pieces.append(f"![{title}]({name}.png)\n")
    return pieces


def _draw(preset: Preset, found: Sequence[tuple[PresetPart, Results]], file: Path) -> bool:
    plot = preset.plot
    if plot["axis"] != CELLS:
        return draw(file, *panels(preset, found))
    metric = plot["metric"]
    most, scale = (10, "1 to 10") if metric in OF_TEN else (100, "%")
    title = f"{NAMES.get(metric, metric)} ({scale}); {run_by(found, metric)}"
    return draw_heat_maps(file, heat_maps(preset, found), plot["label"], plot["rows"], title, most)


def _file_name(preset: Preset, title: str) -> str:
    return "-".join([preset.name, *re.findall("[a-z0-9]+", title.lower())])


def _rows(preset: Preset, columns: "Sequence[_Column]") -> list[list[str]]:
    """Return a row for each system that was run, and one for each of the paper's models."""
    rows = []
    for label in (*preset.systems, *preset.quoted):
        word = preset.systems.get(label, "")
        cells = [
            _cell(results.systems.get(word), only, metric) for _, results, only, metric in columns
        ]
        if any(cells):
            rows.append([label, "here", *cells])
        for model, systems in preset.paper.items():
            printed = _printed(systems.get(label, {}), [(c[0], c[3]) for c in columns])
            if any(printed):
                rows.append([label, f"paper, {model}", *printed])
    return rows


def _title(metric: str) -> str:
    return COSTS.get(metric, metric)


def _failed(preset: Preset, results: Results) -> list[str]:
    """Return a note on failed items; their errors are in the part's own report."""
    labels = {word: label for label, word in preset.systems.items()}
    return [
        f"{labels.get(name, name)}: {len(result.errors)} of {len(result.rows)} items failed and "
        f"are unscored; the first: {next(iter(result.errors.values()))}"
        for name, result in results.systems.items()
        if result.errors
    ]


def _unrated(found: Sequence[tuple[PresetPart, Results]]) -> list[str]:
    """Return a note on answers without a rating."""
    judged = [
        (name, result.judged)
        for _, results in found
        for name, result in results.systems.items()
        if result.judged
    ]
    if not judged:
        return []
    missing = ", ".join(f"{one.missing} of {name}" for name, one in judged if one.missing)
    label = f"Ratings by {judged[0][1].judge}"
    return [f"{label}; without a rating, and left out: {missing or 'none'}."]


_Column = tuple[str, Results, frozenset[str] | None, str]
"""Name as in the paper's numbers, results, the scored items, metric."""


def _columns(preset: Preset, part: PresetPart, results: Results) -> list[_Column]:
    groups: list[tuple[str, frozenset[str] | None]] = [(part.name, None)]
    for label in preset.labels:
        groups += [(f"{part.name} {v}", ids) for v, ids in results.by_label(label).items()]
    columns: list[_Column] = [
        (name, results, only, metric) for name, only in groups for metric in part.metrics
    ]
    return [*columns, *((part.name, results, None, cost) for cost in preset.costs)]


def _cell(result: Result | None, only: frozenset[str] | None, metric: str) -> str:
    if result is None:
        return ""
    if metric == "built_calls":
        return number(result.alone.calls)
    if metric == "all_calls":
        return number(result.online.calls)
    if metric == "malformed":
        return percent(result.malformed)
    if metric in COSTS:
        return number(getattr(result.counted, metric))
    mean = result.mean(metric, only)
    if mean is None:
        return ""
    return f"{percent(mean.value)} [{percent(mean.low)}, {percent(mean.high)}] n={mean.n}"


def _printed(
    numbers: Mapping[str, Mapping[str, float]], columns: Sequence[tuple[str, str]]
) -> list[str]:
    cells = []
    for name, metric in columns:
        value = numbers.get(name, {}).get(metric)
        cells.append(number(value) if metric in COSTS else percent(value, 2))
    return cells
