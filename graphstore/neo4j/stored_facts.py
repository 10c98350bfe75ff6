"""Facts extracted from segments, the state of each segment, and the user's decisions on names."""

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter

from qrmem.errors import NotFound
from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.neo4j.connection import Properties, Work
from qrmem.graphstore.neo4j.keys import joined, numbered, short, shortened
from qrmem.graphstore.neo4j.runs import add_calls
from qrmem.graphstore.protocol import MERGED, Unmerged, UserEdit
from qrmem.text.dates import said_at
from qrmem.text.names import meant_name
from qrmem.types import CallRecord, Contribution, LedgerRow, MergeDecision, Segment

_PASS = attrgetter("kind", "asked")
"""Sort keys of a segment's contributions."""


async def record(
    work: Work,
    rows: Sequence[tuple[LedgerRow, Contribution | None]],
    calls: Sequence[CallRecord] = (),
    *,
    summaries: Mapping[str, str] = {},
) -> None:
    """Write ledger rows, contributions of the segments, calls and summaries."""
    ids = shortened({row.segment_id for row, _ in rows})
    locked = await work.row("stored_facts.lock", keys=sorted(ids))
    if locked is None:
        raise NotFound(f"there is no namespace {work.ns!r} in this memory")
    if missing := sorted(ids[key] for key in ids.keys() - set(locked[0])):
        raise NotFound(f"segment {missing[0]!r} is not in the memory; was its document deleted?")
    latest = {row.segment_id: row for row, _ in rows}
    states = [
        {"key": short(r.segment_id), "state": r.state, "reason": r.reason, "reasoner": r.reasoner}
        for r in latest.values()
    ]
    frozen = [{"key": short(id_), "summary": summary} for id_, summary in summaries.items()]
    await work.together(
        [
            ("stored_facts.put_ledger", states),
            ("stored_facts.put_contributions", contribution_rows(c for _, c in rows if c)),
            ("stored_facts.put_summaries", frozen),
        ]
    )
    await add_calls(work, calls)


def contribution_rows(made: Iterable[Contribution]) -> list[Properties]:
    """Return the rows of contributions, for `put_contributions`."""
    passes = {_key(c): c for c in made}
    return [
        {"segment": short(c.segment_id), "key": key, "kind": c.kind, "body": dumps(c)}
        for key, c in sorted(passes.items())
    ]


def _key(contribution: Contribution) -> str:
    return joined(contribution.segment_id, contribution.kind, json.dumps(contribution.asked))


async def ledger(work: Work, *document_ids: str) -> list[LedgerRow]:
    """Return the ledger rows of some documents, or of all; a segment without one is `pending`."""
    if document_ids:
        rows = await work.each("stored_facts.ledger_of", numbered(document_ids))
    else:
        rows = await work.rows("stored_facts.ledger")
    return [LedgerRow(*row[2:]) for row in sorted(rows, key=itemgetter(0, 1))]


async def contributions(
    work: Work, *document_ids: str, kinds: Sequence[str] = ("extraction", "supplement")
) -> list[Contribution]:
    """Return some documents' contributions by segment, then kind, then `asked`."""
    rows = await work.each("stored_facts.contributions", numbered(document_ids), kinds=list(kinds))
    placed_contributions = [
        ((place, index), loads(body, Contribution)) for place, index, body in rows
    ]
    placed_contributions.sort(key=lambda pair: (pair[0], _PASS(pair[1])))
    return [contribution for _, contribution in placed_contributions]


async def edits(work: Work) -> list[UserEdit]:
    """Return the user's edits of all statements, by document, segment and `asked`."""
    placed_edits = [
        ((document_id, index), UserEdit(user, loads(body, Contribution)))
        for document_id, index, user, body in await work.rows("stored_facts.edits")
    ]
    placed_edits.sort(key=lambda pair: (pair[0], pair[1].made.asked))
    return [edit for _, edit in placed_edits]


async def unmerged(work: Work, *document_ids: str) -> Unmerged:
    """Return the unmerged segments of some documents, and what else a merge needs."""
    ((revision, stale, decisions),) = await work.rows("stored_facts.unmerged")
    rows = await work.each("stored_facts.read", numbered(document_ids), kinds=list(MERGED))
    rows.sort(key=itemgetter(0, 3))
    contributions_by_document = [
        [loads(body, Contribution) for body in bodies] for *_, bodies in rows
    ]
    dated = {row[2]: said_at({"at": row[-5], "date": row[-4]}) for row in rows}
    return Unmerged(
        revision=revision,
        segments=[Segment(*row[1:-5]) for row in rows],
        contributions=[
            one
            for document_contributions in contributions_by_document
            for one in sorted(document_contributions, key=_PASS)
        ],
        merged={row[1]: row[-2] for row in rows if row[-2]},
        stale=dict(sorted(stale)),
        decisions=[MergeDecision(*row) for row in sorted(decisions)],
        edits=await edits(work),
        said_at={id_: moment for id_, moment in dated.items() if moment},
        users={row[2]: row[-3] for row in rows if row[-3]},
    )


async def override_merge(work: Work, decision: MergeDecision) -> None:
    """Store a user's decision on two names, and mark both to be resolved again."""
    await work.lock()
    await put_decisions(work, [decision])
    await work.together([("namespaces.raise_revision", [1])])


async def put_decisions(work: Work, decisions: Iterable[MergeDecision]) -> None:
    """Store a user's decisions on pairs of names, and mark the names to be resolved again."""
    for decision in decisions:
        first, second = sorted((decision.first, decision.second))
        await work.run(
            "stored_facts.override_merge",
            key=joined(first, second),
            first=first,
            second=second,
            same=decision.same,
        )
        prefixes = sorted({f"{meant_name(name)}|" for name in (first, second)})
        await work.each("stored_facts.mark_called", prefixes)
