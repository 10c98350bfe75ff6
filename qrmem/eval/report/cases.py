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
    ours, theirs = (preset.systems[preset.cases[side]] for side in ("ours", "theirs"))
    pieces = []
    for part in preset.parts:
        folder = path / folder_of(part)
        if (folder / "run.json").exists():
            results = read_results(folder)
            if {ours, theirs} <= results.systems.keys():
                pieces += await _of_part(results, ours, theirs, part.metrics[0])
    return (
        "\n".join(pieces) or "No question was answered right by the one and wrong by the other.\n"
    )


async def _of_part(results: Results, ours: str, theirs: str, metric: str) -> list[str]:
    mine, other = results.systems[ours], results.systems[theirs]
    won = [
        id
        for id in results.items
        if mine.scores.get(metric, {}).get(id, 0) > other.scores.get(metric, {}).get(id, 1)
    ]
    found = []
    for id in won[:COUNT]:
        found.append(await _case(results, results.items[id], mine.rows[id], other.rows[id]))
    return found


async def _case(results: Results, item: Item, ours: Row, theirs: Row) -> str:
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
        f"Retriever's answer: {theirs.short or '(none)'}",
        f"Ours: {ours.short or '(none)'}",
    ]
    head = ["segment", "retriever's rank", "read by ours"]
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
