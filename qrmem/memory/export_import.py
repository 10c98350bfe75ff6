"""What brings a memory in and out: archives, GraphML, notes, extractions made elsewhere."""

import asyncio
from dataclasses import replace
from os import PathLike
from pathlib import Path

from qrmem.config import Settings
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory import statements
from qrmem.memory.models import check_embedder
from qrmem.memory.session import Session
from qrmem.settings_files import PLAIN_EMBEDDERS
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Archived, Event, ExtractionReport, Listener


async def load(session: Session, path: str | PathLike[str], listener: Listener) -> Archived:
    """See `Memory.load`."""
    from qrmem.graph.merging import refresh_names
    from qrmem.io.archive import import_archive

    session.require_writable()
    await session.settle()
    done = await import_archive(
        session.store,
        session.ns,
        path,
        accept=lambda info: _trusted(info, session.settings, listener),
        listener=listener,
    )
    await session.renew()
    similar = await session.similar()
    if similar is not None:
        await refresh_names(session.store, session.ns, similar=similar)
    return done


def _trusted(info: NamespaceInfo, settings: Settings, listener: Listener) -> NamespaceInfo:
    """Return what a namespace is made with, if an archive names this.

    Models and files that an archive names are used only if the settings name them too: it may have
    been written by anybody.

    Raises:
        EmbedderMismatch: the settings name another embedder.
    """
    check_embedder(settings, info)
    if info.embedder not in (*PLAIN_EMBEDDERS, settings.embedder):
        message = (
            f"the archive was embedded by {info.embedder!r}, which the settings do not name: its"
            " vectors are left out (name it with --embedder and import again, or run qrmem reembed)"
        )
        listener(Event("warning", {"message": message}))
        info = replace(info, embedder="none", dimension=0)
    if info.tokenizer not in (BuiltinTokenizer.name, open_tokenizer(settings.tokenizer).name):
        message = (
            f"the archive was counted by {info.tokenizer!r}, which the settings do not name: its"
            " segments are counted by the built-in tokenizer"
        )
        listener(Event("warning", {"message": message}))
        info = replace(info, tokenizer=BuiltinTokenizer.name)
    return info


async def load_openie(
    session: Session, path: str | PathLike[str], listener: Listener
) -> ExtractionReport:
    """See `Memory.load_openie`."""
    from qrmem.io.openie import Deps, import_openie

    session.require_writable()
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
            await session.store.record(session.ns, (), run.calls)


async def export(session: Session, path: str | PathLike[str], *, runs: bool = False) -> Archived:
    """See `Memory.export`."""
    from qrmem.io.archive import export_archive

    await session.info()
    async with session.store.snapshot() as store:
        return await export_archive(store, session.ns, path, runs=runs)


async def graphml(session: Session, path: str) -> int:
    """See `Memory.graphml`."""
    from qrmem.io.graphml import write_graphml

    await session.info()
    return await write_graphml(session.store, session.ns, path)


async def markdown(session: Session, folder: str | PathLike[str]) -> int:
    """See `Memory.markdown`."""
    from qrmem.io.notes import Contents, write_notes

    await session.info()
    store, ns = session.store, session.ns
    documents = await store.documents(ns)
    segments = await store.segments(ns, documents=[d.id for d in documents])
    there = {segment.id for segment in segments}  # another process may delete one meanwhile
    keys = sorted(entity.key for entity in await store.list_entities(ns, 2**31 - 1))
    facts = await statements.facts(session, superseded=True)
    contents = Contents(
        title=ns,
        documents=documents,
        segments=segments,
        entities=await store.entities(ns, keys),
        facts=[fact for fact in facts if fact.segment_id in there],
    )
    return await asyncio.to_thread(write_notes, Path(folder), contents)
