"""The columns that BM25 reads: which segments are indexed, and where each term occurs."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from qrmem.graphstore.protocol import Catalog, IndexRow, Postings
from qrmem.graphstore.sqlite.lookup import (
    execute_in,
    namespace_number,
    next_number,
    pick,
    rows_in,
    term_numbers,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int32]

MAX_BLOCKS = 16
"""Blocks of one term from which on the newer ones are joined."""

_SMALL = 255
"""What fits a count of one byte."""

_Block = tuple[int, int, bytes, bytes]


def add(db: sqlite3.Connection, ns: int, rows: Sequence[tuple[int, IndexRow]]) -> None:
    """Index segments, given by number; one that was indexed already is indexed anew."""
    latest = dict(rows)
    if not latest:
        return
    drop(db, ns, latest)
    numbers = _new_numbers(db, ns, len(latest))
    db.executemany(
        "INSERT INTO indexed VALUES (?, ?, ?, ?)",
        (
            (ns, n, segment, row.length)
            for n, (segment, row) in zip(numbers, latest.items(), strict=True)
        ),
    )
    indexed = list(latest.values())
    sizes = [len(row.terms) for row in indexed]
    terms = _term_column(db, ns, indexed, sum(sizes))
    db.executemany("INSERT INTO forward VALUES (?, ?)", _forward(latest, sizes, terms))
    db.executemany(
        "INSERT INTO posting VALUES (?, ?, ?, ?)", _blocks(numbers, indexed, sizes, terms)
    )
    _compact(db, set(terms.tolist()))


def _new_numbers(db: sqlite3.Connection, ns: int, count: int) -> range:
    (last,) = db.execute(
        "UPDATE namespace SET last_indexed = last_indexed + ? WHERE num = ? RETURNING last_indexed",
        (count, ns),
    ).fetchall()[0]
    return range(last - count + 1, last + 1)


def _term_column(db: sqlite3.Connection, ns: int, rows: Sequence[IndexRow], total: int) -> "_Ints":
    """Return the term numbers of all rows, one after the other; new terms get one."""
    import numpy as np

    seen: defaultdict[str, int] = defaultdict(count().__next__)
    texts = chain.from_iterable(row.terms for row in rows)
    column = np.fromiter(map(seen.__getitem__, texts), np.int32, total)
    numbers = term_numbers(db, ns, seen)
    first = next_number(db, "term")
    new = {text: num for num, text in enumerate(sorted(seen.keys() - numbers.keys()), first)}
    db.executemany("INSERT INTO term VALUES (?, ?, ?)", ((n, ns, text) for text, n in new.items()))
    numbers |= new
    return np.array([numbers[text] for text in seen], dtype=np.int32)[column]


def _forward(
    segments: Iterable[int], sizes: Sequence[int], terms: "_Ints"
) -> Iterator[tuple[int, bytes]]:
    start = 0
    for segment, size in zip(segments, sizes, strict=True):
        yield segment, terms[start : start + size].tobytes()
        start += size


def _blocks(
    numbers: range, rows: Sequence[IndexRow], sizes: Sequence[int], term: "_Ints"
) -> Iterator[_Block]:
    """Yield one block for each term, its numbers ascending."""
    import numpy as np

    if not len(term):
        return
    all_counts = chain.from_iterable(row.terms.values() for row in rows)
    counts = np.fromiter(all_counts, np.int32, len(term))
    number = np.repeat(np.arange(numbers.start, numbers.stop, dtype=np.int32), sizes)
    order = np.argsort(term, kind="stable")
    term, counts, number = term[order], counts[order], number[order]
    starts = np.flatnonzero(np.diff(term, prepend=-1))
    # Cut bytes rather than arrays: most blocks are a few numbers, and there are many.
    numbers_packed = number.tobytes()
    counts_packed = np.minimum(counts, _SMALL).astype(np.uint8).tobytes()
    columns = (term[starts], number[starts], np.maximum.reduceat(counts, starts), starts)
    ends = [*starts[1:].tolist(), len(term)]
    for num, first, most, start, end in zip(*(c.tolist() for c in columns), ends, strict=True):
        packed = counts_packed[start:end] if most <= _SMALL else counts[start:end].tobytes()
        yield num, first, numbers_packed[4 * start : 4 * end], packed


def _block(term: int, numbers: "_Ints", counts: "_Ints") -> _Block:
    import numpy as np

    is_small = int(counts.max()) <= _SMALL
    packed = counts.astype(np.uint8) if is_small else counts
    return term, int(numbers[0]), numbers.tobytes(), packed.tobytes()


def _unpacked(numbers: bytes, counts: bytes) -> "tuple[_Ints, NDArray[Any]]":
    import numpy as np

    found = np.frombuffer(numbers, np.int32)
    kind = np.uint8 if len(counts) == len(found) else np.int32
    return found, np.frombuffer(counts, kind)


def _joined(
    blocks: Sequence[tuple[bytes, bytes]], kind: Any
) -> "tuple[NDArray[Any], NDArray[Any]]":
    import numpy as np

    pairs = [_unpacked(*block) for block in blocks]
    numbers = np.concatenate([pair[0] for pair in pairs], dtype=kind)
    return numbers, np.concatenate([pair[1] for pair in pairs], dtype=kind)


def _compact(db: sqlite3.Connection, terms: Collection[int]) -> None:
    """Join the newer blocks of terms that have many.

    A block that is larger than all newer ones together is left alone, so that a long list is not
    written again for every few segments.
    """
    pick(db, terms)
    many = db.execute(
        "SELECT term FROM picked CROSS JOIN posting ON term = num GROUP BY term"
        f" HAVING count(*) > {MAX_BLOCKS}"
    ).fetchall()
    for (term,) in many:
        blocks = _term_blocks(db, term)
        start, size = len(blocks) - 1, len(blocks[-1][1])
        while start and len(blocks[start - 1][1]) <= size:
            start -= 1
            size += len(blocks[start][1])
        _replace(db, term, blocks[start:])


def _term_blocks(db: sqlite3.Connection, term: int) -> list[tuple[int, bytes, bytes]]:
    return db.execute(
        "SELECT first, numbers, counts FROM posting WHERE term = ? ORDER BY first", (term,)
    ).fetchall()


def _replace(db: sqlite3.Connection, term: int, blocks: Sequence[tuple[int, bytes, bytes]]) -> None:
    """Put one block in the place of several neighbours."""
    import numpy as np

    db.execute(
        "DELETE FROM posting WHERE term = ? AND first BETWEEN ? AND ?",
        (term, blocks[0][0], blocks[-1][0]),
    )
    numbers = b"".join(block[1] for block in blocks)
    counts = b"".join(block[2] for block in blocks)
    if 4 * len(counts) != len(numbers):  # counts of two sizes
        _, joined = _joined([block[1:] for block in blocks], np.int32)
        counts = joined.tobytes()
    db.execute("INSERT INTO posting VALUES (?, ?, ?, ?)", (term, blocks[0][0], numbers, counts))


def drop(db: sqlite3.Connection, ns: int, segments: Collection[int]) -> None:
    """Take segments out of the index; terms that occur nowhere else vanish."""
    import numpy as np

    sql = "SELECT number FROM indexed WHERE segment IN ({})"
    gone = np.array(sorted(n for (n,) in rows_in(db, sql, segments)), dtype=np.int32)
    if not gone.size:
        return
    forward = rows_in(db, "SELECT terms FROM forward WHERE segment IN ({})", segments)
    terms = np.unique(np.frombuffer(b"".join(blob for (blob,) in forward), np.int32)).tolist()
    is_gone = np.zeros(int(gone[-1]) + 1, dtype=bool)
    is_gone[gone] = True
    for term in terms:
        _drop_numbers(db, term, is_gone)
    empty = "NOT EXISTS (SELECT 1 FROM posting WHERE posting.term = num)"
    execute_in(db, f"DELETE FROM term WHERE num IN ({{}}) AND {empty}", terms)
    execute_in(db, "DELETE FROM forward WHERE segment IN ({})", segments)
    execute_in(db, "DELETE FROM indexed WHERE segment IN ({})", segments)


def _drop_numbers(db: sqlite3.Connection, term: int, is_gone: "NDArray[np.bool_]") -> None:
    import numpy as np

    for first, *packed in _term_blocks(db, term):
        if first >= len(is_gone):
            return
        numbers, counts = _unpacked(*packed)
        kept = ~is_gone[np.minimum(numbers, len(is_gone) - 1)]
        kept |= numbers >= len(is_gone)
        if kept.all():
            continue
        db.execute("DELETE FROM posting WHERE term = ? AND first = ?", (term, first))
        if kept.any():
            block = _block(term, numbers[kept], counts[kept].astype(np.int32))
            db.execute("INSERT INTO posting VALUES (?, ?, ?, ?)", block)


def catalog(db: sqlite3.Connection, ns: str) -> Catalog:
    """Return all indexed segments as columns."""
    import numpy as np

    number = namespace_number(db, ns)
    row = db.execute("SELECT revision FROM namespace WHERE num = ?", (number,)).fetchone()
    documents = dict(db.execute("SELECT num, id FROM document WHERE ns = ?", (number,)))
    # One row of JSON: SQLite packs a column twice as fast as Python takes its rows.
    packed = db.execute(
        "SELECT json_group_array(number), json_group_array(length), json_group_array(id),"
        " json_group_array(document), json_group_array(idx) FROM (SELECT i.number, i.length, s.id,"
        " s.document, s.idx FROM indexed i CROSS JOIN segment s ON s.num = i.segment"
        " WHERE i.ns = ? ORDER BY i.number)",
        (number,),
    ).fetchone()
    numbers, lengths, ids, docs, indexes = map(json.loads, packed)
    return Catalog(
        revision=row[0] if row else 0,
        numbers=np.array(numbers, dtype=np.int64),
        segment_ids=ids,
        document_ids=[documents[doc] for doc in docs],
        indexes=np.array(indexes, dtype=np.int64),
        lengths=np.array(lengths, dtype=np.int64),
    )


def postings(db: sqlite3.Connection, ns: str, terms: Sequence[str]) -> Mapping[str, Postings]:
    """Return where each term occurs; terms that occur nowhere are left out."""
    import numpy as np

    numbers = term_numbers(db, namespace_number(db, ns), terms)
    found = {}
    for text in dict.fromkeys(terms):
        if text in numbers:
            blocks = [block[1:] for block in _term_blocks(db, numbers[text])]
            found[text] = Postings(*_joined(blocks, np.int64))
    return found
