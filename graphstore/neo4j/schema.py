"""Constraints and indexes, and the node that says which version of them is there.

Version `n` is what the first `n` entries of `MIGRATIONS` make. Every statement can be run again,
and two clients may run them at once; the version is written when all is there and online.
"""

import asyncio
from collections.abc import Sequence

from neo4j.exceptions import ClientError, TransientError

from qrmem.errors import MissingError, NotFound
from qrmem.graphstore.neo4j.connection import Connection, Work
from qrmem.graphstore.neo4j.errors import translated
from qrmem.graphstore.neo4j.statements import statement
from qrmem.graphstore.protocol import SCHEMA_VERSION

LABELS = (
    "Namespace",
    "Document",
    "Segment",
    "Contribution",
    "Decision",
    "Name",
    "Entity",
    "Question",
    "Postings",
    "Vectors",
    "Trail",
    "Step",
    "Call",
    "Reply",
)
"""Labels of everything that belongs to a namespace; the namespace's own node first."""

MIGRATIONS: Sequence[Sequence[str]] = (
    (
        *(
            f"CREATE CONSTRAINT qrmem_{label.lower()}_key IF NOT EXISTS"
            f" FOR (n:{label}) REQUIRE (n.ns, n.key) IS UNIQUE"
            for label in ("QrmemSchema", *LABELS)
        ),
        "CREATE INDEX qrmem_relates_segment IF NOT EXISTS"
        " FOR ()-[r:RELATES]-() ON (r.ns, r.segment)",
    ),
    # Namespaces may be `importing`: an older qrmem would take half of a memory for a whole one.
    (),
    # Files keep what a search works out; here nothing is new.
    (),
)

_AT_ONCE = ("EquivalentSchemaRule", "IndexAlreadyExists", "ConstraintAlreadyExists")
_ATTEMPTS = 8


async def prepare(connection: Connection, *, create: bool) -> None:
    """See that the database has this version's schema; make or migrate it if need be.

    Raises:
        NotFound: there is none, and none is to be made.
        MissingError: it was made by a newer qrmem.
    """
    version = await connection.read(_version, "")
    if version > SCHEMA_VERSION:
        raise MissingError(
            f"{connection.location} was made by a newer qrmem; upgrade qrmem to open it"
        )
    if version == 0 and not create:
        raise NotFound(f"{connection.location} holds no memory yet; add a document first")
    if version < SCHEMA_VERSION:
        await _migrate(connection, version)


async def _version(work: Work) -> int:
    row = await work.row("schema.version")
    return row[0] if row else 0


async def _migrate(connection: Connection, version: int) -> None:
    with translated(connection.location):
        for migration in MIGRATIONS[version:]:
            for text in migration:
                await _run_again(connection, text)
        await connection.outside(statement("schema.await"))
    await connection.write(_set_version, "", len(MIGRATIONS))


async def _set_version(work: Work, version: int) -> None:
    await work.run("schema.set_version", version=version)


async def _run_again(connection: Connection, text: str) -> None:
    """Run a schema statement; another client may be making the same thing."""
    for attempt in range(_ATTEMPTS):
        try:
            await connection.outside(text)
            return
        except (ClientError, TransientError) as exc:
            is_shared = any(word in (exc.code or "") for word in _AT_ONCE)
            if attempt == _ATTEMPTS - 1 or not (is_shared or exc.is_retryable()):
                raise
            await asyncio.sleep(0.05 * 2**attempt)
