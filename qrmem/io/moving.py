"""Memories in and out: archives, and extractions that were made elsewhere."""

from os import PathLike
from typing import TYPE_CHECKING

from qrmem.types import Archived, ExtractionReport, Listener

if TYPE_CHECKING:
    from qrmem.session import Opened


async def load_archive(opened: "Opened", path: str | PathLike[str], listener: Listener) -> Archived:
    """Fill a namespace with an archive; see `Memory.load`."""
    from qrmem.graph.merging import merge_documents
    from qrmem.io.archive import import_archive
    from qrmem.wiring import check_embedder

    done, stale = await import_archive(
        opened.store,
        opened.ns,
        path,
        accept=lambda info: check_embedder(opened.settings, info),
        listener=listener,
    )
    await opened.renew()
    if stale:
        await merge_documents(opened.store, opened.ns, stale, similar=await opened.similar())
    return done


async def load_extraction(
    opened: "Opened", path: str | PathLike[str], listener: Listener
) -> ExtractionReport:
    """Bring extractions into a namespace; see `Memory.load_openie`."""
    from qrmem.io.openie import Deps, import_openie

    tools = await opened.tools(create=True)
    run = tools.run("construction", listener)
    deps = Deps(
        store=opened.store,
        info=tools.info,
        cutter=tools.cutter,
        embedder=run.embedder,
        similar=opened.similar,
        listener=listener,
    )
    try:
        return await import_openie(deps, path)
    finally:
        if run.calls:
            await opened.store.put_calls(opened.ns, run.calls)
