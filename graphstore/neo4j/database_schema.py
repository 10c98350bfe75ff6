"""Constraints and indexes, and the node with their version.

Every statement can run again, and two clients may run them at once. The version is written when
all of them exist and are online.
"""

from qrmem.errors import MissingError, NotFound
from qrmem.graphstore.neo4j.connection import Connection, Work, statement
from qrmem.text.names import camel_case, is_type

VERSION = 12

LABELS = (
    "QrmemNamespace",
    "Document",
    "Segment",
    "QrmemContribution",
    "QrmemDecision",
    "Name",
    "QrmemBlock",
    "QrmemStale",
    "Entity",
    "Statement",
    "Question",
    "QrmemTitle",
    "QrmemWindow",
    "QrmemRelationVector",
    "Trail",
    "Step",
    "QrmemCall",
    "QrmemReply",
)
"""Labels of all nodes of a namespace, its own node first."""

VIEW_LABELS = ("Question", "Statement", "QrmemStale", "QrmemBlock", "Name", "Entity")
"""Labels of nodes that are derived from the facts."""

TYPES = (
    "ABOUT",
    "ADDED",
    "ASKED_OF",
    "CONTRIBUTED",
    "COVERS",
    "DROPPED",
    "EXPANDED",
    "FROM",
    "HAS",
    "IN",
    "MEANS",
    "MENTIONS",
    "NAMES",
    "NEXT",
    "READ",
    "RELATES",
    "STATES",
    "STEP",
    "THEN",
    "TO",
    "WINDOW",
)
"""Types of all relationships."""

RELATES = "RELATES"
"""Relationship type of a statement, unless the memory's schema has one for it."""


def entity_labels(type: str) -> list[str]:
    """Return the labels of an entity of a type besides `Entity`: `SHIP_YARD` has `ShipYard`."""
    label = camel_case(type)
    return [label] if is_type(type) and label not in (*LABELS, "TreeNode", "QrmemSchema") else []


def relationship_type(type: str) -> str:
    """Return the relationship type for statements of a schema's type, or without a type."""
    return type if is_type(type) and type not in TYPES else RELATES


SHOWN = (
    *("action", "answer", "arrival", "count", "created", "description", "document", "entities"),
    *("first", "full", "index", "key", "level", "n", "name", "ns", "question", "questions"),
    *("reason", "said_at", "same", "score", "second", "segment", "state", "statements", "status"),
    *("strategy", "summary", "surface", "surprise", "taken", "text", "title", "tokens", "type"),
    *("usage", "valid_from", "valid_until", "verdict", "via", "window"),
)
"""Properties that ready queries may use."""

STATEMENTS = (
    *(
        f"CREATE CONSTRAINT qrmem_{label.lower()}_key IF NOT EXISTS"
        f" FOR (n:{label}) REQUIRE (n.ns, n.key) IS UNIQUE"
        for label in ("QrmemSchema", *LABELS)
    ),
    "CREATE FULLTEXT INDEX qrmem_terms IF NOT EXISTS FOR (s:Segment)"
    " ON EACH [s.qrmem_terms, s.qrmem_space]"
    " OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}}",
    # For people only; writes need not wait for it.
    "CREATE FULLTEXT INDEX qrmem_text IF NOT EXISTS FOR (n:Segment|Entity|Statement)"
    " ON EACH [n.text, n.name, n.description]"
    " OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}}",
    "CREATE INDEX qrmem_entity_name IF NOT EXISTS FOR (e:Entity) ON (e.ns, e.name)",
    "CREATE INDEX qrmem_contribution_kind IF NOT EXISTS FOR (c:QrmemContribution)"
    " ON (c.ns, c.kind)",
    "CREATE INDEX qrmem_trail_created IF NOT EXISTS FOR (t:Trail) ON (t.ns, t.created, t.arrival)",
)


async def prepare(connection: Connection, *, create: bool) -> None:
    """Check that the database has this version's schema; create it if there is none.

    Raises:
        NotFound: there is none, and `create` is not set.
        MissingError: it was made by another version of qrmem.
    """
    version = await connection.read(_version, "")
    if version == VERSION:
        return
    if version:
        other = "a newer" if version > VERSION else "an older"
        raise MissingError(
            f"{connection.location} was made by {other} qrmem; export its memories with that one"
            " and import them into an empty database"
        )
    if not create:
        raise NotFound(f"{connection.location} holds no memory yet; add a document first")
    for text in STATEMENTS:
        await connection.outside(text)
    await connection.outside(statement("database_schema.await"))
    # The server warns of unknown labels and properties, also in ready queries.
    await connection.write(_name_all, "")
    await connection.write(_set_version, "")


async def _version(work: Work) -> int:
    row = await work.row("database_schema.version")
    return row[0] if row else 0


async def _name_all(work: Work) -> None:
    await work.run("database_schema.name_labels", names=[*LABELS, "TreeNode"])
    await work.run("database_schema.name_types", names=list(TYPES))
    await work.run("database_schema.name_properties", names=list(SHOWN))


async def _set_version(work: Work) -> None:
    await work.run("database_schema.set_version", version=VERSION)
