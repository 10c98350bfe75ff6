"""Memories in and out: archives, and extractions that were made elsewhere."""

from os import PathLike
from typing import TYPE_CHECKING

from qrmem.types import Archived, ExtractionReport, Listener

if TYPE_CHECKING:
    from qrmem.session import Session


async def load_archive(
    session: "Session", path: str | PathLike[str], listener: Listener
) -> Archived:
    """Fill a namespace with an archive; see `Memory.load`."""
    from qrmem.graph.merging import merge_documents
    from qrmem.io.archive import import_archive
    from qrmem.session import check_embedder

    done, stale = await import_archive(
        session.store,
        session.ns,
        path,
        accept=lambda info: check_embedder(session.settings, info),
        listener=listener,
    )
    await session.renew()
    if stale:
        await merge_documents(session.store, session.ns, stale, similar=await session.similar())
    return done


async def load_extraction(
    session: "Session", path: str | PathLike[str], listener: Listener
) -> ExtractionReport:
    """Bring extractions into a namespace; see `Memory.load_openie`."""
    from qrmem.io.openie import Deps, import_openie

    tools = await session.models(create=True)
    run = tools.run("construction", listener)
    deps = Deps(
        store=session.store,
        info=tools.info,
        cutter=tools.cutter,
        embedder=run.embedder,
        similar=session.similar,
        listener=listener,
    )
    try:
        return await import_openie(deps, path)
    finally:
        if run.calls:
            await session.store.put_calls(session.ns, run.calls)
