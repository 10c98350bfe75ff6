"""What later turns correct or later statements replace: the newer is read with the older."""

from collections.abc import Sequence
from dataclasses import replace

from qrmem.agents.search.run import Search
from qrmem.graph import dialog
from qrmem.types import Passage


async def with_corrections(run: Search, passages: Sequence[Passage]) -> list[Passage]:
    """Return passages with the turns and segments that correct them, the labels given anew.

    What does not fit with its correction makes room: the passages of the lowest score, of those
    that neither correct nor are corrected. Without turns among the passages nothing is looked up.
    """
    ids = {p.segment.document_id for p in passages}
    infos = await dialog.turn_infos(run.store, run.ns, ids)
    turns = await dialog.read_turns(run.store, run.ns, infos)
    found, _ = await dialog.corrected(run.searcher, turns) if turns else ({}, {})
    allowed = {old: _allowed(run, later) for old, later in found.items()}
    replaced = await run.graph.replaced({p.segment.id for p in passages})
    if not any(allowed.values()) and not replaced:
        return list(passages)
    return await _labelled(run, passages, allowed, replaced)


def _allowed(run: Search, later: Sequence[str]) -> list[str]:
    allowed = run.options.documents
    return [id for id in later if allowed is None or id in allowed]


async def _labelled(
    run: Search,
    passages: Sequence[Passage],
    found: dict[str, list[str]],
    replaced: dict[str, list[str]],
) -> list[Passage]:
    known = {p.segment.document_id for p in passages}
    missing = dict.fromkeys(id for later in found.values() for id in later if id not in known)
    own = {p.segment.id for p in passages}
    later = dict.fromkeys(id for by in replaced.values() for id in by if id not in own)
    added = await run.store.segments(run.ns, list(later), documents=list(missing))
    added = list({segment.id: segment for segment in added}.values())
    scores = {p.segment.id: p.score for p in passages}
    segments = [*(p.segment for p in passages), *added]
    while True:
        segments.sort(key=lambda s: (s.document_id, s.index))
        made = _marked(await run.graph.passages(segments), found, replaced, scores)
        concerned = {*found, *(id for later in found.values() for id in later)}
        concerned |= {*replaced, *(id for by in replaced.values() for id in by)}
        others = [p for p in made if concerned.isdisjoint((p.segment.document_id, p.segment.id))]
        if sum(map(run.reasoner.size, made)) <= run.room or not others:
            break
        last = min(others, key=lambda p: p.score)
        segments = [s for s in segments if s.id != last.segment.id]
    return _within(run, made)


def _marked(
    passages: Sequence[Passage],
    found: dict[str, list[str]],
    replaced: dict[str, list[str]],
    scores: dict[str, float],
) -> list[Passage]:
    labels: dict[str, list[str]] = {}
    for p in passages:
        labels.setdefault(p.segment.document_id, []).append(p.label)
        labels[p.segment.id] = [p.label]
    made = []
    for p in passages:
        ids = (*found.get(p.segment.document_id, ()), *replaced.get(p.segment.id, ()))
        by = dict.fromkeys(label for id in ids for label in labels.get(id, ()))
        made.append(replace(p, score=scores.get(p.segment.id, 0.0), superseded_by=tuple(by)))
    return made


def _within(run: Search, passages: Sequence[Passage]) -> list[Passage]:
    """Return passages that fit, the newest first to stay, in their order."""
    kept: list[Passage] = []
    left = run.room
    for passage in reversed(passages):
        size = run.reasoner.size(passage)
        if size <= left:
            kept.append(passage)
            left -= size
    return kept[::-1]
