"""Methods of a memory that bring it in and out: archives, GraphML, extractions made elsewhere.

`qrmem.Memory` has each as a method.
"""

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from qrmem.config import Settings
from qrmem.graphstore import unchanging
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory.models import check_embedder
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Archived, Event, ExtractionReport, Listener

if TYPE_CHECKING:
    from qrmem.memory import Memory


async def load(memory: "Memory", path: str | PathLike[str]) -> Archived:
    """Fill the namespace with an archive that `export` wrote: all of it, or nothing.

    Raises:
        BadImport: the archive is cut, altered or not in its form; nothing is written.
        MissingError: it was written by a newer qrmem, or embedded by another model than the
            one that is chosen.
        UsageError: the namespace holds something already.
    """
    from qrmem.graph.merging import refresh_names
    from qrmem.io.archive import import_archive

    session = memory._session
    session.require_writable()
    done = await import_archive(
        session.store,
        session.ns,
        path,
        accept=lambda info: _trusted(info, session.settings, memory._emit),
        listener=memory._emit,
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
    if info.embedder not in ("none", "local", settings.embedder):
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


async def load_openie(memory: "Memory", path: str | PathLike[str]) -> ExtractionReport:
    """Bring in what was extracted elsewhere: HippoRAG's OpenIE results, or plain triples.

    Passages whose text the file has become documents; others are found by the id of a document
    or a segment. See docs/archive.md for the forms.

    Raises:
        BadImport: the file is not in its form, or speaks of a passage that is not there;
            nothing is written.
    """
    from qrmem.io.openie import Deps, import_openie

    session = memory._session
    session.require_writable()
    tools = await session.models(create=True)
    run = tools.run("construction", memory._emit)
    deps = Deps(
        store=session.store,
        info=tools.info,
        cutter=tools.cutter,
        embedder=run.embedder,
        similar=session.similar,
        listener=memory._emit,
    )
    try:
        return await import_openie(deps, path)
    finally:
        if run.calls:
            await session.store.record(session.ns, (), run.calls)


async def export(memory: "Memory", path: str | PathLike[str], *, runs: bool = False) -> Archived:
    """Write the namespace to one file: equal memories give equal bytes, from every store.

    Args:
        path: replaced if an archive stands there; anything else is not written over.
        runs: write trails, the ledger of calls and cached replies too; they have a clock in
            them.

    Raises:
        NotFound: there is no such namespace.
        StoreConflict: somebody changed it meanwhile, and it is not in SQLite; nothing is written.
    """
    from qrmem.io.archive import export_archive

    await memory._session.info()
    async with unchanging(memory._session.store) as store:
        return await export_archive(store, memory._session.ns, path, runs=runs)


async def graphml(memory: "Memory", path: str) -> int:
    """Write the graph as GraphML (Gephi, Cytoscape); returns how many entities."""
    from qrmem.io.graphml import write_graphml

    await memory._session.info()
    return await write_graphml(memory._session.store, memory._session.ns, path)
