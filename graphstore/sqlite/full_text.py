"""Full-text search: one FTS5 table for all namespaces, and the names of documents.

A row of `indexed` is a segment: the terms of its document's title, and those of its text. The terms
are already stemmed and folded. `words` finds segments by them. Each term in `words` begins with the
number of its namespace. So each namespace has its own postings and rarities, and a query reads and
weighs nothing of another namespace.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from qrmem.graphstore.protocol import FIRST_TITLED, MOST_TITLED, Entry, Titled, Vocabulary
from qrmem.graphstore.records import K1, B
from qrmem.graphstore.sqlite.lookup import execute_in, namespace_number, rows_in, segments_allowed
from qrmem.text.names import forms_of
from qrmem.text.words import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_ROWS = 10_000
"""Maximum number of segments that a group may match; beyond it, its commonest terms are left out.

The score of each match is computed, so this bounds the cost of a question. Common terms hardly
change the order, and the exact score of each found segment counts them again.
"""

_AT_FIRST = 4
"""Number of segments whose lengths are read first, as a multiple of the limit."""
_SECURE_DELETE = (3, 42)
"""First version of SQLite whose FTS5 can overwrite deleted terms."""
_STRUCTURE = 10
"""Number of the row in FTS5's own table that lists the index's levels."""
_LONGEST_STRUCTURE = 1000
"""Size in bytes of that row, some two a level, from which an index is rebuilt."""
_BATCH = 1_000
_Row = tuple[int, str, str]
"""Number of a segment, terms of its title, and terms of its text."""


def _namespaced(ns: int, term: str) -> str:
    """Return a namespace's term in the form of `words`; terms have no underscore."""
    return f"{ns}_{term}"


def prepare(db: sqlite3.Connection) -> None:
    """Make the index overwrite removed terms, if this SQLite can."""
    if sqlite3.sqlite_version_info >= _SECURE_DELETE:
        db.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")


def delete(db: sqlite3.Connection, ns: int) -> None:
    """Remove all segments of a namespace from the index."""
    full = {num for (num,) in db.execute("SELECT num FROM namespace WHERE indexed > 0")}
    if full == {ns}:
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        db.execute("DELETE FROM indexed")
    elif ns in full:
        drop(db, ns, [num for (num,) in db.execute("SELECT num FROM segment WHERE ns = ?", (ns,))])
        forget(db)


def add(db: sqlite3.Connection, ns: int, given: Mapping[int, Mapping[str, int]]) -> None:
    """Index segments, given by number with their terms; replace earlier entries."""
    drop(db, ns, given)
    sql = (
        "SELECT s.num, d.title FROM segment s CROSS JOIN document d ON d.num = s.document"
        " WHERE s.num IN ({})"
    )
    titles = dict(rows_in(db, sql, given))
    words = {title: " ".join(terms(title)) for title in set(titles.values())}
    put(
        db,
        ns,
        [
            (num, words[titles[num]], " ".join(Counter(document_terms).elements()))
            for num, document_terms in sorted(given.items())
        ],
    )


def put(db: sqlite3.Connection, ns: int, rows: Sequence[_Row]) -> None:
    """Index segments that are not indexed yet."""
    db.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", _stood(ns, rows))
    lengths = [len(title.split()) + len(text.split()) for _, title, text in rows]
    db.executemany(
        "INSERT INTO indexed (segment, title, text, length) VALUES (?, ?, ?, ?)",
        ((*row, length) for row, length in zip(rows, lengths, strict=True)),
    )
    _count(db, ns, len(rows), sum(lengths))


def drop(db: sqlite3.Connection, ns: int, segments: Collection[int]) -> None:
    """Remove segments from the index."""
    ordered = sorted(set(segments))  # else the index would remove a row twice
    for start in range(0, len(ordered), _BATCH):
        _drop(db, ns, ordered[start : start + _BATCH])


def _drop(db: sqlite3.Connection, ns: int, segments: Collection[int]) -> None:
    sql = "SELECT segment, title, text, length FROM indexed WHERE segment IN ({})"
    rows_found = list(rows_in(db, sql, segments))
    db.executemany(
        "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)",
        _stood(ns, [(num, title, text) for num, title, text, _ in rows_found]),
    )
    execute_in(db, "DELETE FROM indexed WHERE segment IN ({})", [num for num, *_ in rows_found])
    _count(db, ns, -len(rows_found), -sum(length for *_, length in rows_found))


def _stood(ns: int, rows: Iterable[_Row]) -> Iterable[tuple[int, str]]:
    """Yield the present rows of segments in `words`."""
    for num, title, text in rows:
        yield num, " ".join(_namespaced(ns, term) for term in (*title.split(), *text.split()))


def forget(db: sqlite3.Connection) -> None:
    """Overwrite dropped rows, if the index did not do so itself.

    Each `optimize` adds two levels to the index's structure. SQLite treats an index with more than
    2,000 levels as damaged, so it is rebuilt before.
    """
    if sqlite3.sqlite_version_info >= _SECURE_DELETE:
        return
    structure = f"SELECT length(block) FROM words_data WHERE id = {_STRUCTURE}"
    (length,) = db.execute(structure).fetchone()
    if length > _LONGEST_STRUCTURE:
        _make_anew(db)
    else:
        db.execute("INSERT INTO words (words) VALUES ('optimize')")


def _make_anew(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    for (ns,) in db.execute("SELECT num FROM namespace").fetchall():
        rows = db.execute(
            "SELECT s.num, i.title, i.text FROM segment s CROSS JOIN indexed i ON i.segment = s.num"
            " WHERE s.ns = ?",
            (ns,),
        )
        db.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", _stood(ns, rows))


def _count(db: sqlite3.Connection, ns: int, segments: int, total: int) -> None:
    if segments or total:
        db.execute(
            "UPDATE namespace SET indexed = indexed + ?, terms = terms + ? WHERE num = ?",
            (segments, total, ns),
        )


def entitle(db: sqlite3.Connection, ns: int, document: int, title: str, text: str) -> None:
    """Write the names of a document, and the terms of its title in its indexed segments."""
    db.execute("DELETE FROM title_form WHERE document = ?", (document,))
    db.executemany(
        "INSERT INTO title_form VALUES (?, ?, ?, ?)",
        ((ns, form, document, sure) for form, sure in forms_of(title, text).items()),
    )
    words = " ".join(terms(title))
    stale = db.execute(
        "SELECT s.num, i.text FROM segment s CROSS JOIN indexed i ON i.segment = s.num"
        " WHERE s.document = ? AND i.title <> ?",
        (document, words),
    ).fetchall()
    drop(db, ns, [num for num, _ in stale])
    put(db, ns, [(num, words, text) for num, text in stale])


def vocabulary(db: sqlite3.Connection, ns: str, wanted: Sequence[str]) -> Vocabulary:
    """Return how many segments have each term."""
    row = db.execute("SELECT num, indexed, terms FROM namespace WHERE name = ?", (ns,)).fetchone()
    if row is None or not row[1]:
        return Vocabulary(0, 0, {})
    return Vocabulary(row[1], row[2], _frequencies(db, row[0], wanted))


def _frequencies(db: sqlite3.Connection, ns: int, wanted: Iterable[str]) -> dict[str, int]:
    term_of = {_namespaced(ns, term): term for term in wanted}
    sql = "SELECT w.value, v.doc FROM json_each(?) w CROSS JOIN vocabulary v ON v.term = w.value"
    return {term_of[term]: count for term, count in db.execute(sql, (_as_json(term_of),))}


def _as_json(values: Iterable[str | int]) -> str:
    """Return values as one JSON parameter: a statement for each would cost more than its lookup."""
    return json.dumps(list(values))


def matching(
    db: sqlite3.Connection,
    ns: str,
    groups: Sequence[Sequence[str]],
    limit: int,
    documents: Collection[str] | None = None,
    *,
    among: Collection[str] | None = None,
) -> list[str]:
    """Return the segments with a term of every group, best first by BM25."""
    (found,) = matching_each(db, ns, [groups], limit, documents, among=among)
    return found


def matching_each(
    db: sqlite3.Connection,
    ns: str,
    queries: Sequence[Sequence[Sequence[str]]],
    limit: int,
    documents: Collection[str] | None = None,
    *,
    among: Collection[str] | None = None,
) -> list[list[str]]:
    """Return the result of `matching` for each query."""
    import numpy as np

    # The queries of a search share most terms, and reading a frequent one takes long.
    used = {term for groups in queries for group in groups for term in group}
    known = vocabulary(db, ns, list(used))
    number = namespace_number(db, ns)
    numbers = segments_allowed(db, number, documents, among)
    allowed = None if numbers is None else np.array(numbers, np.int64)
    occurrences = _Occurrences(db, number)
    return [_matching(db, known, occurrences, groups, limit, allowed) for groups in queries]


def _matching(
    db: sqlite3.Connection,
    known: Vocabulary,
    occurrences: "_Occurrences",
    groups: Sequence[Sequence[str]],
    limit: int,
    allowed: "NDArray[np.int64] | None",
) -> list[str]:
    import numpy as np

    rarest = [_rarest(group, known.frequencies) for group in groups]
    if not groups or not all(rarest):
        return []
    found = allowed
    held: dict[str, NDArray[np.int64]] = {}
    for group in sorted(rarest, key=lambda group: sum(map(known.frequencies.__getitem__, group))):
        by_term = occurrences.of(group)
        if found is not None:
            by_term = {term: held_by[np.isin(held_by, found)] for term, held_by in by_term.items()}
        held |= by_term
        found = np.unique(np.concatenate(list(by_term.values())))
    weights = {term: known.rarity(term) for group in rarest for term in group}
    assert found is not None
    best = _best(db, known.mean_length, weights, held, found, limit)
    ids = dict(rows_in(db, "SELECT num, id FROM segment WHERE num IN ({})", best))
    return [ids[num] for num in best]


class _Occurrences:
    """The segments with each term of a namespace; each term is read once."""

    def __init__(self, db: sqlite3.Connection, ns: int) -> None:
        self._db = db
        self._ns = ns
        self._read: dict[str, NDArray[np.int64]] = {}

    def of(self, group: Sequence[str]) -> "dict[str, NDArray[np.int64]]":
        """Return the segments that contain each term, as often as they contain it."""
        import numpy as np

        if missing := [term for term in group if term not in self._read]:
            # One row for each term: Python releases and takes its lock again for each row.
            rows = self._db.execute(
                "SELECT w.key, (SELECT group_concat(o.doc) FROM occurrence o"
                " WHERE o.term = w.value) FROM json_each(?) w",
                (_as_json(_namespaced(self._ns, term) for term in missing),),
            )
            for place, text in rows:
                self._read[missing[place]] = np.fromstring(text or "", np.int64, sep=",")
        return {term: self._read[term] for term in group}


def _best(
    db: sqlite3.Connection,
    mean_length: float,
    weights: Mapping[str, float],
    held: "Mapping[str, NDArray[np.int64]]",
    segments: "NDArray[np.int64]",
    limit: int,
) -> list[int]:
    """Return the segments with the highest BM25, best first, ties by number.

    A segment without any other words would score highest; this bounds the score of each segment.
    Lengths are read only of segments whose bound is high enough.

    Args:
        segments: their numbers, ascending.
    """
    import numpy as np

    counted = []
    for term, term_segments in held.items() if segments.size else ():
        among, counts = np.unique(term_segments, return_counts=True)
        places = np.searchsorted(segments, among)
        is_wanted = (places < segments.size) & (segments[places % segments.size] == among)
        counted.append((weights[term], places[is_wanted], counts[is_wanted]))

    def scores(norms: "NDArray[np.float64]") -> "NDArray[np.float64]":
        total = np.zeros(segments.size)
        for weight, places, counts in counted:
            total[places] += weight * counts / (counts + norms[places])
        return total

    most = scores(np.full(segments.size, K1 * (1 - B)))
    order = np.argsort(-most)
    norms = np.full(segments.size, np.inf)
    exact, read, wanted = np.zeros(0), 0, _AT_FIRST * limit
    while read < order.size and not _has(exact, limit, above=most[order[read]]):
        rows = order[read:wanted]
        lengths = _lengths(db, segments[rows].tolist())
        norms[rows] = K1 * (1 - B) + K1 * B / mean_length * lengths
        exact, read, wanted = scores(norms), wanted, 2 * wanted
    found_rows = np.flatnonzero(norms < np.inf)
    best = np.lexsort((segments[found_rows], -exact[found_rows]))[:limit]
    numbers: list[int] = segments[found_rows[best]].tolist()
    return numbers


def _has(scores: "NDArray[np.float64]", count: int, *, above: float) -> bool:
    """Return whether at least so many scores are above a given one."""
    return int((scores > above).sum()) >= count


def _lengths(db: sqlite3.Connection, segments: Sequence[int]) -> "NDArray[np.float64]":
    """Return the number of terms of segments, in the order of the list."""
    import numpy as np

    sql = "SELECT group_concat(length) FROM json_each(?) CROSS JOIN indexed ON segment = value"
    (lengths,) = db.execute(sql, (_as_json(segments),)).fetchone()
    return np.fromstring(lengths or "", np.float64, sep=",")


def _rarest(group: Sequence[str], found: Mapping[str, int]) -> list[str]:
    """Return the terms of a group that occur, except the most common one."""
    terms_kept: list[str] = []
    total = 0
    for term in sorted((t for t in dict.fromkeys(group) if t in found), key=found.__getitem__):
        total += found[term]
        if terms_kept and total > MOST_ROWS:
            break
        terms_kept.append(term)
    return terms_kept


def entries(db: sqlite3.Connection, ns: str, segment_ids: Sequence[str]) -> list[Entry]:
    """Return the index entries of segments, in the order of the ids."""
    number = namespace_number(db, ns)
    sql = (
        "SELECT s.id, d.id, s.idx, d.title, d.metadata, i.title, i.text"
        " FROM segment s CROSS JOIN indexed i ON i.segment = s.num"
        " CROSS JOIN document d ON d.num = s.document WHERE s.ns = ? AND s.id IN ({})"
    )
    result = {
        id_: Entry(
            id_,
            document,
            index,
            title,
            {} if metadata == "{}" else json.loads(metadata),
            [*entry_terms.split(), *text.split()],
        )
        for id_, document, index, title, metadata, entry_terms, text in rows_in(
            db, sql, set(segment_ids), number
        )
    }
    return [result[id_] for id_ in segment_ids if id_ in result]


def titled(db: sqlite3.Connection, ns: str, names: Sequence[str]) -> dict[str, list[Titled]]:
    """Return the documents whose titles are among some names."""
    number = namespace_number(db, ns)
    firsts: dict[int, list[str]] = {}
    documents_by_name = {}
    for name in _known_titles(db, number, names):
        rows = db.execute(
            "SELECT d.num, d.id, t.sure FROM title_form t CROSS JOIN document d ON d.num ="
            " t.document WHERE t.ns = ? AND t.form = ? LIMIT ?",
            (number, name, MOST_TITLED + 1),
        ).fetchall()
        if len(rows) > MOST_TITLED:
            continue
        for document, _, _ in rows:
            if document not in firsts:
                firsts[document] = _first(db, document)
        documents = [Titled(id_, sure, firsts[num]) for num, id_, sure in rows if firsts[num]]
        if documents:
            documents_by_name[name] = sorted(
                documents, key=lambda one: (-one.sure, one.document_id)
            )
    return documents_by_name


def _known_titles(db: sqlite3.Connection, ns: int, names: Iterable[str]) -> list[str]:
    """Return those names that some document has."""
    sql = (
        "SELECT value FROM json_each(?) WHERE EXISTS"
        " (SELECT 1 FROM title_form WHERE ns = ? AND form = value)"
    )
    return [name for (name,) in db.execute(sql, (_as_json(dict.fromkeys(names)), ns))]


def _first(db: sqlite3.Connection, document: int) -> list[str]:
    rows = db.execute(
        "SELECT s.id FROM segment s CROSS JOIN indexed i ON i.segment = s.num"
        " WHERE s.document = ? ORDER BY s.idx LIMIT ?",
        (document, FIRST_TITLED),
    )
    return [id_ for (id_,) in rows]
