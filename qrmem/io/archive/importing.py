"""From an archive to a store.

The whole archive is looked at before the first write. The namespace is made with a token that says
that it is being filled; until the import declares it whole, nothing else opens it. So an import
that was stopped leaves nothing that could be taken for a memory, and the same import begins anew.
"""

import asyncio
import os
import uuid
from collections.abc import Callable
from contextlib import suppress

from qrmem.errors import QrmemError, UsageError
from qrmem.graphstore.checking import lost_import
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.io.archive.file import Reader
from qrmem.io.archive.filling import Filling
from qrmem.io.archive.order import ordered
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Archived, Listener


async def import_archive(
    store: GraphStore,
    ns: str,
    path: str | os.PathLike[str],
    *,
    accept: Callable[[NamespaceInfo], NamespaceInfo],
    listener: Listener,
) -> tuple[Archived, tuple[str, ...]]:
    """Make a namespace of an archive: all of it, or nothing.

    Args:
        ns: a namespace that is not there, or empty, or left behind by an import that was stopped.
        accept: says what the namespace is made with, given what the archive names: the archive's
            word for an embedder or tokenizer is not reason enough to open it. Without the
            embedder the vectors are left out; with another tokenizer the segments are counted anew.

    Returns:
        What was read, and the ids of the documents whose graph the archive does not have as the
        facts have it: they are to be merged.

    Raises:
        BadImport: the archive is cut, altered or not in its form.
        MissingError: it was written by a newer qrmem.
        UsageError: the namespace holds something.
        StoreConflict: another import took the namespace over.
    """
    reader = await asyncio.to_thread(_looked_through, path)
    head, token = reader.head, uuid.uuid4().hex
    named = NamespaceInfo(
        name=ns,
        tokenizer=head.tokenizer,
        segment_tokens=head.segment_tokens,
        embedder=head.embedder,
        dimension=head.dimension,
        importing=token,
    )
    info = accept(named)
    count = BuiltinTokenizer().count if info.tokenizer != named.tokenizer else None
    try:
        await _claim(store, ns, info)
        filling = Filling(store, info, listener, count)
        for kind, value in ordered(reader):
            await filling.take(kind, value)
        await filling.end()
        await store.finish_import(ns, token)
    except BaseException:
        # If the store is gone too, the token stays, and the next import begins anew.
        with suppress(QrmemError):
            await _abandon(store, ns, token)
        raise
    graph, documents = filling.graph, len(filling.documents)
    done = Archived(str(path), documents, filling.segments, graph.size, reader.end.sha256)
    return done, tuple(graph.stale)


def _looked_through(path: str | os.PathLike[str]) -> Reader:
    """Return an archive every line of which was looked at."""
    reader = Reader.open(path)
    for _ in ordered(reader):
        pass
    return reader


async def _claim(store: GraphStore, ns: str, info: NamespaceInfo) -> None:
    """Make the namespace, for this import alone."""
    there = await store.namespace(ns)
    if there is not None:
        if not there.importing:
            await _require_empty(store, ns)
        await store.delete_namespace(ns, importing=there.importing)
    made = await store.create_namespace(ns, info)
    if made.importing != info.importing:
        raise lost_import(ns)


async def _require_empty(store: GraphStore, ns: str) -> None:
    counts = await store.counts(ns)
    rest = (await store.decisions(ns), await store.calls(ns), await store.kept_keys(ns))
    if any(counts.values()) or any(rest):
        raise UsageError(
            f"namespace {ns!r} of {store.location} is not empty ({counts['documents']} documents):"
            " import into another one (--namespace NAME), or forget it first (qrmem delete --all)"
        )


async def _abandon(store: GraphStore, ns: str, token: str) -> None:
    """Remove what was written, unless another import has the namespace by now."""
    await store.delete_namespace(ns, importing=token)
