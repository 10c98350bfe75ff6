"""From an address and settings to a store that is ready: reached, let in, of the right version."""

import logging
from urllib.parse import urlsplit

from neo4j import AsyncDriver, AsyncGraphDatabase, NotificationMinimumSeverity

from qrmem.config import Settings, shown
from qrmem.errors import UsageError
from qrmem.graphstore.neo4j import schema
from qrmem.graphstore.neo4j.connection import (
    MAX_WRITERS,
    Connection,
    is_too_old,
    too_old,
    translated,
)
from qrmem.graphstore.neo4j.store import Neo4jStore

CONNECT_SECONDS = 10.0
ACQUIRE_SECONDS = 30.0
"""How long opening may take, whatever the other side does."""


async def open_neo4j(uri: str, settings: Settings, *, create: bool = True) -> Neo4jStore:
    """Open a Neo4j database as a store.

    Args:
        uri: `neo4j://HOST[:PORT]`, `bolt://…`, with `+s` for TLS, `+ssc` for TLS whose certificate
            nobody vouches for; without user and password.
        create: make what is missing (constraints, an index).

    Raises:
        UsageError: the address is not one.
        AccessRefused: user or password are wrong.
        MissingError: the server is too old, or has no such database.
        NotFound: the database holds no memory and none is to be made.
        StoreUnavailable: nothing answers there, or not over (or not without) TLS.
    """
    # what the driver logs is said by our errors; without a handler Python would print it
    logging.getLogger("neo4j").addHandler(logging.NullHandler())
    location = _location(uri)
    with translated(location):
        driver = _driver(uri, settings)
    database, patience = settings.neo4j_database or None, settings.neo4j_patience
    connection = Connection(driver, database, location, patience)
    try:
        agent = await connection.agent()
        if is_too_old(agent):
            raise too_old(location, agent)
        await connection.settle()
        await schema.prepare(connection, create=create)
    except BaseException:
        await connection.close()
        raise
    return Neo4jStore(connection)


def _location(uri: str) -> str:
    """Return the address for messages.

    Raises:
        UsageError: it holds a secret, or no host.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise UsageError(f"not an address of a Neo4j server: {exc}") from exc
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "user and password do not belong into the address: set NEO4J_USERNAME and"
            " NEO4J_PASSWORD"
        )
    if not host:
        raise UsageError(f"{shown(uri)}: the host is missing; write {parts.scheme}://HOST:7687")
    if parts.query and not parts.scheme.startswith("neo4j"):
        raise UsageError(f"{shown(uri)}: only a neo4j:// address takes options after the ?")
    if parts.path.strip("/"):
        raise UsageError(
            f"{shown(uri)}: the address ends with the port; set QRMEM_NEO4J_DATABASE to"
            f" {parts.path.strip('/')}"
        )
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}:{port or 7687}"


def _driver(uri: str, settings: Settings) -> AsyncDriver:
    password = settings.neo4j_password.reveal()
    return AsyncGraphDatabase.driver(
        uri,
        auth=(settings.neo4j_user, password) if password else None,
        connection_timeout=CONNECT_SECONDS,
        connection_acquisition_timeout=ACQUIRE_SECONDS,
        max_transaction_retry_time=settings.neo4j_patience,
        max_connection_pool_size=4 * MAX_WRITERS,
        notifications_min_severity=NotificationMinimumSeverity.OFF,
        user_agent="qrmem",
    )
