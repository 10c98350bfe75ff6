"""Single cases: what ours read, and where a retriever ranks it (Table 5, Q30)."""

from collections.abc import Sequence
from pathlib import Path

from qrmem.config import Settings
from qrmem.eval.memories import NAMESPACE
from qrmem.eval.presetting import Preset
from qrmem.eval.records import Item, Row
from qrmem.eval.report.results import Results, read_results
from qrmem.eval.report.tables import Table
from qrmem.eval.running_presets import folder_of
from qrmem.graphstore import open_store

COUNT = 5
TOP = 5
LENGTH = 300


async def cases(preset: Preset, path: Path) -> str:
    """Return a preset's cases as Markdown, "" where it shows none."""
    if not preset.cases:
        return ""
    pieces = []
    for part in preset.parts:
        folder = path / folder_of(part)
        if (folder / "run.json").exists():
            pieces += await _of_part(preset, read_results(folder), part.metrics[0])
    return "\n".join(pieces)


async def _of_part(preset: Preset, results: Results, metric: str) -> list[str]:
    """Return the cases of one part, or why there are none."""
    ours = preset.cases["ours"]
    wanted = [preset.cases["theirs"], *preset.systems]
    run = [label for label in wanted if preset.systems[label] in results.systems and label != ours]
    if not run or preset.systems[ours] not in results.systems:
        return [f"No cases: they need results of {ours} and of a retriever.\n"]
    mine, other = (results.systems[preset.systems[label]] for label in (ours, run[0]))
    won = [
        id
        for id in results.items
        if mine.scores.get(metric, {}).get(id, 0) > other.scores.get(metric, {}).get(id, 1)
    ]
    if not won:
        return [f"No cases: no question was answered right by {ours} and wrong by {run[0]}.\n"]
    return [
        await _case(results, results.items[id], mine.rows[id], other.rows[id], run[0])
        for id in won[:COUNT]
    ]


async def _case(results: Results, item: Item, ours: Row, theirs: Row, retriever: str) -> str:
    ranks = {id: rank for rank, id in enumerate(theirs.found.segments, 1)}
    ids = list(dict.fromkeys([*ours.found.read, *theirs.found.segments[:TOP]]))
    texts = await _texts(results, ours.found.memory, ids)
    ids.sort(key=lambda id: (id not in ours.found.read, ranks.get(id, len(ranks) + 1)))
    rows = [
        [texts.get(id, id), str(ranks.get(id, "-")), "yes" if id in ours.found.read else "no"]
        for id in ids
    ]
    notes = [
        f"Question: {item.question}",
        f"Gold answer: {' / '.join(item.answers)}",
        f"{retriever} answers: {theirs.short or '(none)'}",
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
        found = await store.segments(NAMESPACE, list(ids))
    finally:
        await store.close()
    return {segment.id: " ".join(segment.text.split())[:LENGTH] for segment in found}
