"""The file format: one schema, checked by its version.

A file of an older version is migrated when it is opened for writing; one of a newer version is
refused and not changed. `VERSION` rises with every change of `SCHEMA` or `USUAL`;
`tests/contract/test_file_format.py` checks this, and opens a file of 0.1.0. Tables are not an
interface: read a memory through qrmem, or export it.

Numbers: every text id is stored once and has its own integer, unique in the file. Tables that
belong to a namespace through such an integer do not repeat the namespace.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from qrmem.errors import MissingError, NotFound, StoreUnavailable, UsageError
from qrmem.graphstore.sqlite import full_text

# Migrations from earlier versions.

_INDEX = (
    "CREATE TABLE indexed (segment INTEGER PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL,"
    " length INTEGER NOT NULL)",
    "CREATE VIRTUAL TABLE words USING fts5 (terms, content='', columnsize=0,"
    " tokenize=\"ascii tokenchars '_'\")",
    "CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row')",
    "CREATE VIRTUAL TABLE occurrence USING fts5vocab (words, 'instance')",
)
_BATCH = 1_000


def _one_index(db: sqlite3.Connection) -> None:
    """Merge the full-text tables of all namespaces into one."""
    for statement in _INDEX:
        db.execute(statement)
    full_text.prepare(db)
    db.execute("UPDATE namespace SET indexed = 0, terms = 0")
    tables = db.execute(
        "SELECT num FROM namespace CROSS JOIN sqlite_master t ON t.name = 'words_' || num"
    ).fetchall()
    for (ns,) in tables:
        rows = db.execute(f"SELECT id, c0, c1 FROM words_{ns}_content ORDER BY id")
        while some := rows.fetchmany(_BATCH):
            full_text.put(db, ns, some)
        db.execute(f"DROP TABLE vocabulary_{ns}")
        db.execute(f"DROP TABLE words_{ns}")


def _columns(*places: tuple[str, str]) -> Callable[[sqlite3.Connection], None]:
    """Return a migration that adds columns, given as table and column."""

    def work(db: sqlite3.Connection) -> None:
        for table, column in places:
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")

    return work


def _edits_and_turns(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE namespace ADD COLUMN turns INTEGER NOT NULL DEFAULT 0")
    db.execute("CREATE INDEX contribution_edit ON contribution (segment) WHERE kind = 'edit'")


def _said(db: sqlite3.Connection) -> None:
    """Add whether a chat model named a mention; what was read before counts as read by rules."""
    db.execute("ALTER TABLE mention ADD COLUMN said INTEGER NOT NULL DEFAULT 0")
    db.execute("CREATE INDEX mention_said ON mention (name) WHERE said = 1")


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {
    7: _columns(*(("fact", name) for name in ("said_at", "valid_from", "valid_until"))),
    8: _columns(("fact", "type"), ("fact", "properties"), ("mention", "properties")),
    9: _one_index,
    10: _columns(("namespace", "single")),
    11: _edits_and_turns,
    12: _said,
}
"""Migration from each version to the next one."""


APPLICATION_ID = 0x71724D65  # "qrMe"; tells our files from other SQLite files
VERSION = 13

SCHEMA = """
    CREATE TABLE namespace (
        num INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, tokenizer TEXT NOT NULL,
        segment_tokens INTEGER NOT NULL, embedder TEXT NOT NULL, dimension INTEGER NOT NULL,
        revision INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0,
        terms INTEGER NOT NULL DEFAULT 0, vectors TEXT NOT NULL DEFAULT '',
        importing TEXT NOT NULL DEFAULT '', single TEXT NOT NULL DEFAULT '',
        turns INTEGER NOT NULL DEFAULT 0);
    -- indexed, terms: number of segments in the full-text index, and of the terms in them;
    -- vectors: changes when vectors are deleted; a copy with another value is stale
    -- single: relation types that an entity has one of at a time, with spaces between them
    -- turns: the highest number of a deleted turn
    -- text: NULL if it equals the segments' texts, joined
    CREATE TABLE document (
        num INTEGER PRIMARY KEY, ns INTEGER NOT NULL REFERENCES namespace ON DELETE CASCADE,
        id TEXT NOT NULL, title TEXT NOT NULL, metadata TEXT NOT NULL, parts TEXT NOT NULL,
        characters INTEGER NOT NULL, digest BLOB NOT NULL, summary TEXT NOT NULL DEFAULT '',
        text TEXT, UNIQUE (ns, id));
    -- value: a text; `where` compares it as text
    CREATE TABLE metadata (
        ns INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
        document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
        PRIMARY KEY (ns, name, value, document)) WITHOUT ROWID;
    CREATE INDEX metadata_document ON metadata (document);
    CREATE TABLE segment (
        num INTEGER PRIMARY KEY AUTOINCREMENT, ns INTEGER NOT NULL,
        document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE, id TEXT NOT NULL,
        idx INTEGER NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
        tokens INTEGER NOT NULL, part TEXT NOT NULL, UNIQUE (ns, id));
    CREATE INDEX segment_order ON segment (document, idx);
    CREATE TABLE passage (
        segment INTEGER PRIMARY KEY REFERENCES segment ON DELETE CASCADE, text TEXT NOT NULL);
    CREATE TABLE ledger (
        segment INTEGER PRIMARY KEY REFERENCES segment ON DELETE CASCADE, state TEXT NOT NULL,
        reason TEXT NOT NULL, reasoner TEXT NOT NULL);
    -- asked: a digest of the questions; body: see `compression`
    CREATE TABLE contribution (
        segment INTEGER NOT NULL REFERENCES segment ON DELETE CASCADE, kind TEXT NOT NULL,
        asked INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (segment, kind, asked)) WITHOUT ROWID;
    CREATE INDEX contribution_edit ON contribution (segment) WHERE kind = 'edit';
    CREATE TABLE decision (
        ns INTEGER NOT NULL REFERENCES namespace ON DELETE CASCADE, first TEXT NOT NULL,
        second TEXT NOT NULL, same INTEGER NOT NULL, PRIMARY KEY (ns, first, second)) WITHOUT ROWID;

    CREATE TABLE entity (
        num INTEGER PRIMARY KEY, ns INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL,
        type TEXT NOT NULL, UNIQUE (ns, key));
    CREATE TABLE name (
        num INTEGER PRIMARY KEY, ns INTEGER NOT NULL, key TEXT NOT NULL, entity INTEGER NOT NULL,
        UNIQUE (ns, key));
    CREATE INDEX name_entity ON name (entity);
    -- the blocks of a name; see qrmem.text.names.blocks
    CREATE TABLE name_block (
        ns INTEGER NOT NULL, block INTEGER NOT NULL, name INTEGER NOT NULL,
        PRIMARY KEY (ns, block, name)) WITHOUT ROWID;
    -- keys of names to resolve again (a name may be deleted); entity: key of its last entity
    CREATE TABLE stale (
        ns INTEGER NOT NULL, name TEXT NOT NULL, entity TEXT NOT NULL,
        PRIMARY KEY (ns, name)) WITHOUT ROWID;
    -- count: occurrences of a surface form of a name, over all mentions
    CREATE TABLE form (
        name INTEGER NOT NULL, form TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (name, form)) WITHOUT ROWID;
    -- tables with very many rows have no foreign keys; only `changes` writes them
    -- forms: see `compression.forms_kept`
    CREATE TABLE mention (
        segment INTEGER NOT NULL, name INTEGER NOT NULL, forms TEXT NOT NULL,
        question TEXT NOT NULL, properties TEXT NOT NULL, said INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (segment, name)) WITHOUT ROWID;
    CREATE INDEX mention_name ON mention (name, segment);
    -- said: whether a chat model named it
    CREATE INDEX mention_said ON mention (name) WHERE said = 1;
    CREATE TABLE fact (
        segment INTEGER NOT NULL, n INTEGER NOT NULL, head INTEGER NOT NULL, tail INTEGER NOT NULL,
        start INTEGER NOT NULL, length INTEGER NOT NULL, description TEXT NOT NULL,
        question TEXT NOT NULL, said_at TEXT NOT NULL, valid_from TEXT NOT NULL,
        valid_until TEXT NOT NULL, type TEXT NOT NULL, properties TEXT NOT NULL,
        PRIMARY KEY (segment, n)) WITHOUT ROWID;
    CREATE INDEX fact_head ON fact (head);
    CREATE INDEX fact_tail ON fact (tail);
    CREATE TABLE question (
        segment INTEGER NOT NULL, n INTEGER NOT NULL, text TEXT NOT NULL, kind TEXT NOT NULL,
        PRIMARY KEY (segment, n)) WITHOUT ROWID;
    CREATE TABLE merged (segment INTEGER PRIMARY KEY, digest TEXT NOT NULL);

    CREATE TABLE trail (
        num INTEGER PRIMARY KEY AUTOINCREMENT,
        ns INTEGER NOT NULL REFERENCES namespace ON DELETE CASCADE, id TEXT NOT NULL,
        created TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (ns, id));
    CREATE INDEX trail_order ON trail (ns, created, num);
    CREATE TABLE call (
        num INTEGER PRIMARY KEY AUTOINCREMENT,
        ns INTEGER NOT NULL REFERENCES namespace ON DELETE CASCADE, body TEXT NOT NULL);
    CREATE INDEX call_ns ON call (ns);
    CREATE TABLE cached (
        num INTEGER PRIMARY KEY, ns INTEGER NOT NULL REFERENCES namespace ON DELETE CASCADE,
        kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (ns, kind, key));
    -- segment: its text id, as a reply can be stored before its segment, or outlive it
    CREATE TABLE cached_segment (
        ns INTEGER NOT NULL, segment TEXT NOT NULL,
        cached INTEGER NOT NULL REFERENCES cached ON DELETE CASCADE,
        PRIMARY KEY (ns, segment, cached)) WITHOUT ROWID;
    CREATE INDEX cached_segment_cached ON cached_segment (cached);
    -- terms of a segment and of its document's title; length: number of terms
    CREATE TABLE indexed (
        segment INTEGER PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL,
        length INTEGER NOT NULL);
    -- positions of a namespace's terms: see `words`
    CREATE VIRTUAL TABLE words USING fts5 (
        terms, content='', columnsize=0, tokenize="ascii tokenchars '_'");
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');
    CREATE VIRTUAL TABLE occurrence USING fts5vocab (words, 'instance');
    CREATE TABLE title_form (
        ns INTEGER NOT NULL, form TEXT NOT NULL,
        document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE, sure REAL NOT NULL,
        PRIMARY KEY (ns, form, document)) WITHOUT ROWID;
    CREATE INDEX title_form_document ON title_form (document);
    -- one row for each window of a segment: float32 numbers
    CREATE TABLE segment_vector (
        num INTEGER PRIMARY KEY AUTOINCREMENT, ns INTEGER NOT NULL, segment INTEGER NOT NULL,
        data BLOB NOT NULL);
    CREATE INDEX segment_vector_ns ON segment_vector (ns);
    CREATE INDEX segment_vector_segment ON segment_vector (segment);
    CREATE TABLE relation_vector (
        num INTEGER PRIMARY KEY, ns INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL);
    CREATE INDEX relation_vector_key ON relation_vector (ns, key);
"""

USUAL = (
    '{"segment_id":"","kind":"supplement","mentions":[],"asked":["Who or what "],"losses":[],'
    '"kind":"extraction","mentions":[{"name":"","type":"NUMBER","forms":[""],"count":2},'
    '{"name":"","type":"PERSON","forms":[""]},{"name":"","forms":[""]}],'
    '"statements":[{"head":"","tail":"","description":""},{"head":""}],'
    '"question":"","questions":["Who "],"tagger":"rules"}'
)
"""Common parts of records, besides words of a text: the dictionary of `compression`.

A record that was packed with one sentence cannot be unpacked with another one, so this is a part of
the file format, as the tables are.
"""


def prepare(db: sqlite3.Connection, location: str, *, create: bool, is_read_only: bool) -> None:
    """Check that the open file has the tables of this version; create them if there are none.

    Raises:
        NotFound: there are none, and `create` is not set.
        UsageError: it is another program's SQLite file.
        MissingError: it was made by another version of qrmem.
    """
    version = _version(db)
    is_ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    is_empty = not version and not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if not is_ours and not is_empty:
        raise UsageError(f"{location} is an SQLite file, but not a qrmem memory")
    if version in MIGRATIONS and is_read_only:
        raise MissingError(
            f"{location} was made by an older qrmem and is read-only; open it once where it and its"
            " folder are writable"
        )
    if version in MIGRATIONS:
        migrate(db)
    elif version not in (0, VERSION):
        other = "a newer" if version > VERSION else "an older"
        raise MissingError(
            f"{location} was made by {other} qrmem; export its memories with that one"
            " and import them into a new file"
        )
    if version == 0 and (is_read_only or not create):
        raise NotFound(f"{location} holds no memory yet; add a document first")
    if version == 0:
        make(db)


def make(db: sqlite3.Connection, schema: str = SCHEMA) -> None:
    """Create the tables, all or none; a second process that opens the file finds them."""
    with _transaction(db):
        if not _version(db):
            for statement in _statements(schema):
                db.execute(statement)
            full_text.prepare(db)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def migrate(db: sqlite3.Connection) -> None:
    """Migrate an older file, all or nothing."""
    with _transaction(db):
        while (version := _version(db)) in MIGRATIONS:
            MIGRATIONS[version](db)
            db.execute(f"PRAGMA user_version = {version + 1}")


def check(db: sqlite3.Connection) -> None:
    """Check the whole file; raises what SQLite reports if it is damaged."""
    (integrity,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if integrity != "ok":
        damage = sqlite3.DatabaseError(integrity)
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage


def require_version(db: sqlite3.Connection, location: str) -> None:
    """Raise an error if another program has migrated the open file to a newer version."""
    if _version(db) != VERSION:
        raise StoreUnavailable(
            f"{location} was migrated by a newer qrmem while it was open here, so nothing more is"
            " read or written; open it again with that version"
        )


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    """Cut a script at statement ends (`executescript` would commit the transaction)."""
    statements, current = [], ""
    for piece in script.split(";"):
        current += piece + ";"
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
