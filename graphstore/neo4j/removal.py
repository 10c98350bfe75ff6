"""What goes: segments with all that hangs on them, and whole namespaces."""

from collections.abc import Collection

from qrmem.graphstore.neo4j import changes, runs, vectors
from qrmem.graphstore.neo4j.connection import Connection, Work
from qrmem.graphstore.neo4j.errors import translated
from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.neo4j.schema import LABELS
from qrmem.graphstore.protocol import relation_key
from qrmem.graphstore.redaction import Removal


async def drop_segments(work: Work, segments: Collection[str]) -> None:
    """Remove segments with all that hangs on them."""
    if not segments:
        return
    keys = sorted(map(short, segments))
    has_trails = await runs.has_trails(work)
    stated = await work.gathered("changes.stated", keys) if has_trails else []
    gone = await changes.clear(work, keys)
    await vectors.drop(work, "segment", segments)
    await vectors.drop_relations(work)
    await runs.drop_cached(work, segments)
    await work.each("documents.drop_segments", keys)
    if has_trails:
        words = {word for entity in gone for word in entity}
        words -= {word for (word,) in await work.rows("removal.living", words=sorted(words))}
        relations = {relation_key(head, tail) for _, _, head, tail in stated}
        await runs.blank_trails(work, Removal(segments, relations, words))


async def delete_namespace(connection: Connection, ns: str) -> None:
    """Remove everything of a namespace, in portions; harmless if there is none.

    It counts as gone from the first moment on; whoever makes it again finishes what was begun.
    """
    if not await connection.write(_doom, ns):
        return
    with translated(connection.location):
        for label in reversed(LABELS[1:]):
            await connection.outside(
                f"MATCH (n:{label}) USING INDEX SEEK n:{label}(ns, key)"
                " WHERE n.ns = $ns AND n.key IS NOT NULL"
                " CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 1000 ROWS",
                ns=short(ns),
            )
    await connection.write(_drop, ns)


async def _doom(work: Work) -> bool:
    return bool(await work.rows("namespaces.doom"))


async def _drop(work: Work) -> None:
    await work.run("namespaces.drop")


async def is_doomed(work: Work) -> bool:
    """Say whether deleting the namespace was begun and not finished."""
    return bool(await work.rows("namespaces.is_doomed"))
