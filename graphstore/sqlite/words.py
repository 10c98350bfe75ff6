"""Full-text search: one FTS5 table for each namespace, fed with terms, and the names of documents.

A row of the table is a segment: the terms of its document's title, and those of its text. They come
ready stemmed and folded, so the tokeniser only has to part them at spaces. The table keeps them: it
drops a row by itself, and `entries` reads them back without stemming a text again.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from qrmem.graphstore.protocol import FIRST_TITLED, MOST_TITLED, Entry, Titled, Vocabulary
from qrmem.graphstore.sqlite.lookup import namespace_number, pick, rows_in
from qrmem.text.naming import forms_of
from qrmem.text.words import terms

MOST_ROWS = 10_000
"""Segments that a group of terms may match before its commonest terms are left out.

The score of each match is computed, so this bounds what a question costs. Common terms hardly move
the order, and the exact score of whatever is found counts them again.
"""

_SECURE_DELETE = (3, 42)
"""SQLite from which on FTS5 can overwrite what it deletes."""
_STRUCTURE = 10
"""Row of FTS5's own table that lists its levels."""
_LONGEST_STRUCTURE = 1000
"""Bytes of that row, some two a level, from which on a table is made anew."""


def _create(db: sqlite3.Connection, ns: int) -> None:
    """Make a namespace's table unless it is there; only what holds something has one."""
    db.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS words_{ns} USING fts5(title, text, tokenize='ascii')"
    )
    db.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary_{ns} USING fts5vocab(words_{ns}, 'row')"
    )
    if sqlite3.sqlite_version_info >= _SECURE_DELETE:
        db.execute(f"INSERT INTO words_{ns} (words_{ns}, rank) VALUES ('secure-delete', 1)")


def delete(db: sqlite3.Connection, ns: int) -> None:
    """Drop a namespace's table."""
    db.execute(f"DROP TABLE IF EXISTS vocabulary_{ns}")
    db.execute(f"DROP TABLE IF EXISTS words_{ns}")


def add(db: sqlite3.Connection, ns: int, given: Mapping[int, Mapping[str, int]]) -> None:
    """Index segments by number with their terms; one that was indexed already is indexed anew."""
    if not given:
        return
    if namespace_has_words(db, ns):
        drop(db, ns, given)
    else:
        _create(db, ns)
    sql = (
        "SELECT s.num, d.title FROM segment s CROSS JOIN document d ON d.num = s.document"
        " WHERE s.num IN ({})"
    )
    titles = dict(rows_in(db, sql, given))
    words = {title: terms(title) for title in set(titles.values())}
    db.executemany(
        f"INSERT INTO words_{ns} (rowid, title, text) VALUES (?, ?, ?)",
        (
            (num, " ".join(words[titles[num]]), " ".join(Counter(own).elements()))
            for num, own in sorted(given.items())
        ),
    )
    total = sum(sum(own.values()) + len(words[titles[num]]) for num, own in given.items())
    _count(db, ns, len(given), total)


def drop(db: sqlite3.Connection, ns: int, segments: Collection[int]) -> None:
    """Take segments out of the index."""
    if not namespace_has_words(db, ns):
        return
    sql = f"SELECT rowid, title, text FROM words_{ns} WHERE rowid IN ({{}})"
    found = list(rows_in(db, sql, segments))
    db.executemany(f"DELETE FROM words_{ns} WHERE rowid = ?", ((num,) for num, _, _ in found))
    total = sum(len(title.split()) + len(text.split()) for _, title, text in found)
    _count(db, ns, -len(found), -total)


def namespace_has_words(db: sqlite3.Connection, ns: int) -> bool:
    """Return whether anything of a namespace is indexed."""
    row = db.execute("SELECT indexed FROM namespace WHERE num = ?", (ns,)).fetchone()
    return bool(row and row[0])


def _with_words(db: sqlite3.Connection, name: str) -> int:
    """Return the number of a namespace of which something is indexed, or 0."""
    number = namespace_number(db, name)
    return number if namespace_has_words(db, number) else 0


def forget(db: sqlite3.Connection, ns: int) -> None:
    """Overwrite what was dropped, where the table did not do it by itself.

    Each `optimize` adds two levels to the table's structure. SQLite takes a table with more than
    2,000 for damaged and reads it no more, so it is made anew before.
    """
    sql = "SELECT 1 FROM sqlite_master WHERE name = ?"
    is_there = db.execute(sql, (f"words_{ns}",)).fetchone()
    if is_there and sqlite3.sqlite_version_info < _SECURE_DELETE:
        structure = f"SELECT length(block) FROM words_{ns}_data WHERE id = {_STRUCTURE}"
        (length,) = db.execute(structure).fetchone()
        how = "rebuild" if length > _LONGEST_STRUCTURE else "optimize"
        db.execute(f"INSERT INTO words_{ns} (words_{ns}) VALUES (?)", (how,))


def _count(db: sqlite3.Connection, ns: int, segments: int, total: int) -> None:
    db.execute(
        "UPDATE namespace SET indexed = indexed + ?, terms = terms + ? WHERE num = ?",
        (segments, total, ns),
    )


def entitle(db: sqlite3.Connection, ns: int, document: int, title: str, text: str) -> None:
    """Write the names that a document goes by, and its title's terms where it is indexed."""
    db.execute("DELETE FROM title_form WHERE document = ?", (document,))
    db.executemany(
        "INSERT INTO title_form VALUES (?, ?, ?, ?)",
        ((ns, form, document, sure) for form, sure in forms_of(title, text).items()),
    )
    if not namespace_has_words(db, ns):
        return
    words = " ".join(terms(title))
    segments = [n for (n,) in db.execute("SELECT num FROM segment WHERE document = ?", (document,))]
    sql = f"SELECT rowid, title FROM words_{ns} WHERE rowid IN ({{}})"
    stale = [(num, old) for num, old in rows_in(db, sql, segments) if old != words]
    db.executemany(
        f"UPDATE words_{ns} SET title = ? WHERE rowid = ?", ((words, num) for num, _ in stale)
    )
    _count(db, ns, 0, sum(len(words.split()) - len(old.split()) for _, old in stale))


def vocabulary(db: sqlite3.Connection, ns: str, wanted: Sequence[str]) -> Vocabulary:
    """Return how many segments have each term."""
    row = db.execute("SELECT num, indexed, terms FROM namespace WHERE name = ?", (ns,)).fetchone()
    if row is None or not row[1]:
        return Vocabulary(0, 0, {})
    return Vocabulary(row[1], row[2], _frequencies(db, row[0], wanted))


def _frequencies(db: sqlite3.Connection, ns: int, wanted: Iterable[str]) -> dict[str, int]:
    sql = (
        f"SELECT w.value, v.doc FROM json_each(?) w CROSS JOIN vocabulary_{ns} v"
        " ON v.term = w.value"
    )
    return dict(db.execute(sql, (_listed(wanted),)))


def _listed(texts: Iterable[str]) -> str:
    """Return texts as one value: a statement for each would cost more than what it looks up."""
    return json.dumps(list(dict.fromkeys(texts)))


def matching(
    db: sqlite3.Connection,
    ns: str,
    groups: Sequence[Sequence[str]],
    limit: int,
    documents: Collection[str] | None = None,
) -> list[str]:
    """Return the segments with a term of every group, best first by BM25."""
    number = _with_words(db, ns)
    if not number or not groups:
        return []
    found = _frequencies(db, number, (term for group in groups for term in group))
    rarest = [_rarest(group, found) for group in groups]
    if not all(rarest):
        return []
    query = " AND ".join(f"({' OR '.join(map(_quoted, group))})" for group in rarest)
    sql = f"SELECT rowid FROM words_{number} WHERE words_{number} MATCH ?"
    if documents is not None:
        pick_documents(db, number, documents)
        sql += " AND +rowid IN (SELECT num FROM picked)"
    rows = db.execute(f"{sql} ORDER BY rank LIMIT ?", (query, limit)).fetchall()
    ids = dict(rows_in(db, "SELECT num, id FROM segment WHERE num IN ({})", [n for (n,) in rows]))
    return [ids[num] for (num,) in rows]


def _rarest(group: Sequence[str], found: Mapping[str, int]) -> list[str]:
    """Return the terms of a group that occur, without the commonest of them."""
    kept: list[str] = []
    total = 0
    for term in sorted((t for t in dict.fromkeys(group) if t in found), key=found.__getitem__):
        total += found[term]
        if kept and total > MOST_ROWS:
            break
        kept.append(term)
    return kept


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def pick_documents(db: sqlite3.Connection, ns: int, documents: Collection[str]) -> None:
    """Put the numbers of some documents' segments into the table `picked`."""
    pick(db, ())
    db.execute(
        "INSERT OR IGNORE INTO picked SELECT s.num FROM json_each(?) j"
        " CROSS JOIN document d ON d.ns = ? AND d.id = j.value"
        " CROSS JOIN segment s ON s.document = d.num",
        (json.dumps(list(documents)), ns),
    )


def entries(db: sqlite3.Connection, ns: str, segment_ids: Sequence[str]) -> list[Entry]:
    """Return what is indexed of segments, in the order of the ids."""
    number = _with_words(db, ns)
    if not number:
        return []
    sql = (
        "SELECT s.id, d.id, s.idx, d.title, d.metadata, w.title, w.text"
        f" FROM segment s CROSS JOIN words_{number} w ON w.rowid = s.num"
        " CROSS JOIN document d ON d.num = s.document WHERE s.ns = ? AND s.id IN ({})"
    )
    found = {
        id_: Entry(
            id_,
            document,
            index,
            title,
            {} if metadata == "{}" else json.loads(metadata),
            [*own.split(), *text.split()],
        )
        for id_, document, index, title, metadata, own, text in rows_in(
            db, sql, set(segment_ids), number
        )
    }
    return [found[id_] for id_ in segment_ids if id_ in found]


def titled(db: sqlite3.Connection, ns: str, names: Sequence[str]) -> dict[str, list[Titled]]:
    """Return the documents that names are titles of."""
    number = _with_words(db, ns)
    firsts: dict[int, list[str]] = {}
    found = {}
    for name in _known_titles(db, number, names) if number else ():
        rows = db.execute(
            "SELECT d.num, d.id, t.sure FROM title_form t CROSS JOIN document d ON d.num ="
            " t.document WHERE t.ns = ? AND t.form = ? LIMIT ?",
            (number, name, MOST_TITLED + 1),
        ).fetchall()
        if len(rows) > MOST_TITLED:
            continue
        for document, _, _ in rows:
            if document not in firsts:
                firsts[document] = _first(db, number, document)
        meant = [Titled(id_, sure, firsts[num]) for num, id_, sure in rows if firsts[num]]
        if meant:
            found[name] = sorted(meant, key=lambda one: (-one.sure, one.document_id))
    return found


def _known_titles(db: sqlite3.Connection, ns: int, names: Iterable[str]) -> list[str]:
    """Return the names that some document goes by."""
    sql = (
        "SELECT value FROM json_each(?) WHERE EXISTS"
        " (SELECT 1 FROM title_form WHERE ns = ? AND form = value)"
    )
    return [name for (name,) in db.execute(sql, (_listed(names), ns))]


def _first(db: sqlite3.Connection, ns: int, document: int) -> list[str]:
    rows = db.execute(
        f"SELECT s.id FROM segment s CROSS JOIN words_{ns} w ON w.rowid = s.num"
        " WHERE s.document = ? ORDER BY s.idx LIMIT ?",
        (document, FIRST_TITLED),
    )
    return [id_ for (id_,) in rows]
