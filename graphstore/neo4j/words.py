"""The columns that BM25 reads: which segments are indexed, and where each term occurs.

Postings are written in runs, one for each change: terms in the order of a hash, packed into nodes
of some kilobytes. A reader takes the nodes whose range of hashes holds its terms. Runs cover rising
ranges of segment numbers, and are joined when there are many. Numbers are never used twice; those
of segments that left the index stand in the namespace's `dropped` until their run is written anew.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qrmem.graphstore.neo4j.connection import Row, Work
from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.protocol import Catalog, IndexRow, Postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int32]
    _Lists = dict[str, tuple[_Ints, _Ints]]

MAX_RUNS = 16
"""Runs of a namespace from which on the newer ones are joined."""

MAX_DROPPED = 5_000
"""Numbers that left the index before all runs are written anew."""

NODE_BYTES = 8_192


async def add(work: Work, rows: Sequence[IndexRow]) -> None:
    """Index segments that are not in the index."""
    latest = {short(row.segment_id): row for row in rows}
    if not latest:
        return
    (last,) = await work.row("namespaces.take_numbers", count=len(latest)) or (0,)
    numbers = dict(zip(latest, range(last - len(latest) + 1, last + 1), strict=True))
    marks = [[key, number, latest[key].length] for key, number in numbers.items()]
    await work.each("words.number", marks)
    await _put_run(work, last, _lists(numbers, latest))
    await _join(work)


async def drop(work: Work, segments: Collection[str]) -> None:
    """Take segments, given by short key, out of the index."""
    import numpy as np

    gone = [number for (number,) in await work.each("words.unnumber", sorted(segments))]
    if gone:
        dropped = np.union1d(await _dropped(work), np.array(gone, dtype=np.int32))
        await work.run("words.set_dropped", dropped=dropped.astype(np.int32).tobytes())


async def _dropped(work: Work) -> "_Ints":
    import numpy as np

    (packed,) = await work.row("words.dropped") or (None,)
    return np.frombuffer(packed or b"", np.int32)


def _lists(numbers: Mapping[str, int], rows: Mapping[str, IndexRow]) -> "_Lists":
    import numpy as np

    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for key, number in numbers.items():
        for term, count in rows[key].terms.items():
            found[term].append((number, count))
    arrays = {term: np.array(pairs, dtype=np.int32) for term, pairs in found.items()}
    return {term: (pairs[:, 0], pairs[:, 1]) for term, pairs in arrays.items()}


def _mark(term: str) -> int:
    """Return where a term stands: databases and Python do not order texts alike."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=6).digest())


async def _put_run(work: Work, run: int, lists: "_Lists") -> None:
    await work.each("words.put", _nodes(run, lists))


def _nodes(run: int, lists: "_Lists") -> Iterator[Row]:
    group: list[tuple[int, str]] = []
    size = 0
    for mark, term in sorted((_mark(term), term) for term in lists):
        weight = len(term) + 8 * len(lists[term][0])
        if group and size + weight > NODE_BYTES:
            yield _node(run, group, lists)
            group, size = [], 0
        group.append((mark, term))
        size += weight
    if group:
        yield _node(run, group, lists)


def _node(run: int, group: Sequence[tuple[int, str]], lists: "_Lists") -> Row:
    import numpy as np

    terms = [term for _, term in group]
    sizes = np.array([len(lists[term][0]) for term in terms], dtype=np.int32)
    numbers = np.concatenate([lists[term][0] for term in terms])
    counts = np.concatenate([lists[term][1] for term in terms])
    if int(counts.max()) < 256:
        counts = counts.astype(np.uint8)
    first, last = group[0][0], group[-1][0]
    packed = [array.tobytes() for array in (sizes, numbers, counts)]
    key = f"{run:012d}-{first:015d}-{terms[0][:50]}"
    return [key, run, first, last, terms, *packed, int(sizes.sum())]


async def _join(work: Work) -> None:
    """Join the newer runs when there are many.

    A run that is larger than all newer ones together is left alone, so that a long one is not
    written again for every few segments.
    """
    runs = await work.rows("words.runs")
    dropped = await _dropped(work)
    if len(dropped) > MAX_DROPPED:
        start = 0
    elif len(runs) > MAX_RUNS:
        start, size = len(runs) - 1, runs[-1][1]
        while start and runs[start - 1][1] <= size:
            start -= 1
            size += runs[start][1]
    else:
        return
    await _rewrite(work, [run for run, _ in runs], start, dropped)


async def _rewrite(work: Work, runs: Sequence[int], start: int, dropped: "_Ints") -> None:
    """Put one run in the place of all from `start` on, without the numbers that are dropped."""
    joined = list(runs[start:])
    lists = _merged(await work.rows("words.run", runs=joined), dropped, None)
    await work.run("words.drop_runs", runs=joined)
    await _put_run(work, joined[-1], lists)
    kept = dropped[dropped <= (runs[start - 1] if start else 0)]
    await work.run("words.set_dropped", dropped=kept.tobytes())


def _merged(rows: Iterable[Row], dropped: "_Ints", wanted: Collection[str] | None) -> "_Lists":
    """Return the lists of the wanted terms, or of all, out of nodes in the order of their run."""
    import numpy as np

    parts: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for terms, sizes, numbers, counts in rows:
        for term, part in _unpacked(terms, sizes, numbers, counts, wanted):
            parts[term].append(part)
    found = {}
    for term, pieces in parts.items():
        numbers = np.concatenate([piece[0] for piece in pieces])
        counts = np.concatenate([piece[1].astype(np.int32) for piece in pieces])
        alive = ~np.isin(numbers, dropped)
        if alive.any():
            found[term] = numbers[alive], counts[alive]
    return found


def _unpacked(
    terms: Sequence[str],
    sizes: bytes,
    numbers: bytes,
    counts: bytes,
    wanted: Collection[str] | None,
) -> "Iterator[tuple[str, tuple[_Ints, NDArray[Any]]]]":
    import numpy as np

    ends = np.cumsum(np.frombuffer(sizes, np.int32)).tolist()
    places = np.frombuffer(numbers, np.int32)
    kind = np.uint8 if len(counts) == len(places) else np.int32
    often = np.frombuffer(counts, kind)
    for term, start, end in zip(terms, [0, *ends], ends, strict=False):
        if wanted is None or term in wanted:
            yield term, (places[start:end], often[start:end])


async def catalog(work: Work) -> Catalog:
    """Return all indexed segments as columns."""
    import numpy as np

    row = await work.row("namespaces.get")
    (columns, ids, documents), *_ = await work.rows("words.catalog")
    numbers, lengths, indexes = np.array(columns, dtype=np.int64).reshape(-1, 3).T
    order = np.argsort(numbers)
    return Catalog(
        revision=row[5] if row else 0,
        numbers=numbers[order],
        segment_ids=tuple(ids[at] for at in order.tolist()),
        document_ids=tuple(documents[at] for at in order.tolist()),
        indexes=indexes[order],
        lengths=lengths[order],
    )


async def postings(work: Work, terms: Sequence[str]) -> Mapping[str, Postings]:
    """Return where each term occurs; terms that occur nowhere are left out."""
    import numpy as np

    wanted = dict.fromkeys(terms)
    rows = await work.rows("words.find", marks=[_mark(term) for term in wanted])
    lists = _merged(rows, await _dropped(work), wanted.keys())
    return {
        term: Postings(*(part.astype(np.int64) for part in lists[term]))
        for term in wanted
        if term in lists
    }
