"""Changes to a memory: documents, names, vectors, trees, archives and other files.

Heavy modules are imported with the first call.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from qrmem.config import Settings
from qrmem.errors import StoreUnavailable, UsageError, clean_name, require_path, require_text
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.graphstore.reads import entities_in_time, every_trail
from qrmem.graphstore.redaction import emptied, seen
from qrmem.io.sources import Source
from qrmem.llm.parallel import in_batches
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory import observability, statements
from qrmem.memory.runtime import caps_of, check_embedder
from qrmem.memory.runtime import reembed as change_embedder
from qrmem.memory.session import Session
from qrmem.settings_files import PLAIN_EMBEDDERS
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import (
    AddReport,
    Archived,
    Event,
    ExtractionReport,
    Listener,
    MergeDecision,
    Repair,
)
from qrmem.types.documents import Tree, TreeKind, TreeReport
from qrmem.types.options import AddOptions, CapOptions
from qrmem.types.turns import FACT_KEY, USER_KEY

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver


_TOGETHER = 256
"""Number of documents that are deleted in one transaction."""


async def add(
    session: Session, source: Source, options: AddOptions, listener: Listener
) -> AddReport:
    """Read documents, or keep messages as turns."""
    from qrmem.memory.chat.message_log import are_messages

    if are_messages(source):
        from qrmem.memory.chat import conversation

        _, report = await conversation.add_messages(
            session,
            cast(Iterable[Any], source),
            listener,
            session=options.session,
            user=options.user,
            extract=options.extract,
        )
        if report is None:
            raise UsageError("none of the messages has a text")
        return report
    if options.user or options.session or options.extract:
        raise UsageError("user, session and extract are for messages; a document takes metadata")
    from qrmem.memory.add import Adder

    session.require_writable()
    await session.record_single_types()
    with session.adding(), observability.run("add", namespace=session.ns):
        models = await session.models(create=True)
        adder = Adder(session.store, session.ns, models, listener, options)
        try:
            return await adder.add(source)
        finally:
            if adder.replaced:
                try:
                    await session.forget_threads(adder.replaced)
                except StoreUnavailable as exc:  # `rebuild` replaces the documents
                    listener(Event("warning", {"message": str(exc)}))
                await session.store.clean()


async def delete(
    session: Session,
    document_ids: Sequence[str],
    checkpointer: "BaseCheckpointSaver[Any] | None" = None,
) -> None:
    """Delete documents with the facts of their turns, then resolve the names that are left."""
    session.require_writable()
    ids = await _with_facts(session, await session.require_documents(document_ids))
    segments = [s.id for s in await session.store.segments(session.ns, documents=ids)]
    await session.forget_threads(segments, checkpointer)
    deleted = 0
    try:
        for batch in in_batches(ids, _TOGETHER):
            await session.store.delete_documents(session.ns, *batch)
            deleted += len(batch)
        await _refresh_names(session)
    except StoreUnavailable as exc:
        if not deleted:
            raise
        if deleted < len(ids):
            message = (
                f"{deleted:,} of {len(ids):,} documents are deleted, the others are not: {exc}"
            )
            raise StoreUnavailable(message) from exc
        # The documents are deleted. The names wait: the next opening, or change, resolves them.
    await session.store.clean()


async def delete_all(
    session: Session, checkpointer: "BaseCheckpointSaver[Any] | None" = None
) -> None:
    """Delete the namespace; finish a deletion that was killed."""
    session.require_writable()
    is_there = await session.store.namespace(session.ns) is not None
    if is_there:
        await session.forget_threads(None, checkpointer)
    await session.store.delete_namespace(session.ns)  # also finishes a deletion that was killed
    if not is_there:
        await session.info()
    await session.store.clean()


async def forget_user(session: Session, user: str) -> int:
    """Delete a user's documents; empty the trails that read nothing else."""
    require_text(user, "the user")
    user = clean_name(user, "user")
    await session.known()
    session.require_writable()
    store, ns = session.store, session.ns
    ids = sorted(await store.document_ids(ns, where={USER_KEY: user}))
    theirs = {segment.id for segment in await store.segments(ns, documents=ids)}
    async for trail in every_trail(store, ns):
        # The questions are the user's, too. Old trails do not name a user.
        if trail.user == user or (not trail.user and seen(trail) and seen(trail) <= theirs):
            await store.put_trail(ns, emptied(trail))
    if ids:
        await delete(session, ids)
    else:
        await store.clean()
    return len(ids)


async def override_merge(session: Session, first: str, second: str, *, same: bool) -> None:
    """Record that two names are one entity, or two, and resolve the names again."""
    from qrmem.graph.merging import override_merge as override

    session.require_writable()
    for name in (first, second):
        require_text(name, "a name")
    if first == second:
        raise UsageError("give two different names")
    await session.info()
    one, other = sorted((first, second))
    decision, similar = MergeDecision(one, other, same=same), await session.similar()
    await override(session.store, session.ns, decision, similar=similar)


async def repair(session: Session, *, compare_only: bool) -> Repair:
    """Check the store, and rebuild what is derived from what was read, or only compare it."""
    from qrmem.graph.repair import repair as rebuild

    if not compare_only:
        session.require_writable()
    await session.settle()
    await session.store.check()
    await session.info()
    similar = await session.similar()
    changes = await rebuild(session.store, session.ns, similar=similar, compare_only=compare_only)
    if compare_only:
        return changes
    await session.store.clean(wholly=True)
    await session.renew()
    return changes


async def prune(session: Session) -> int:
    """Delete the cached replies; return how many."""
    session.require_writable()
    await session.info()
    replies = await session.store.cache_keys(session.ns, "reply")
    await session.store.drop_cache_entries(session.ns, "reply", replies)
    await session.store.clean()
    return len(replies)


async def reembed(session: Session, embedder: str, listener: Listener, caps: CapOptions) -> int:
    """Embed all segments with another model, which the session uses from then on."""
    session.require_writable()
    require_text(embedder, "the embedder")
    await session.settle()
    await session.info()
    try:
        bounds = caps_of(session.settings, **caps)
        with observability.run("reembed", namespace=session.ns):
            return await change_embedder(
                session.store, session.ns, session.settings, embedder, listener, bounds
            )
    finally:
        await session.follow_embedder()


async def build_tree(
    session: Session,
    document_ids: Sequence[str],
    listener: Listener,
    caps: CapOptions,
    *,
    kind: TreeKind,
    preset: Literal["default", "paper"],
) -> TreeReport:
    """Build a tree over each document, as one run."""
    from qrmem.memory.summary_trees import build

    session.require_writable()
    bounds = caps_of(session.settings, **caps)
    with observability.run("tree", namespace=session.ns):
        return await build(session, document_ids, listener, bounds, kind=kind, preset=preset)


async def trees(session: Session, document_ids: Sequence[str], kind: TreeKind) -> Sequence[Tree]:
    """Return the trees of some documents, or of all."""
    from qrmem.memory.summary_trees import require_known
    from qrmem.retrieval.trees.nodes import load_trees

    require_known(kind, "default")
    await session.info()
    ids = await session.require_documents(document_ids)
    stored_trees = await load_trees(session.store, session.ns, kind, ids or None)
    return [tree.tree for tree in stored_trees]


async def _with_facts(session: Session, document_ids: Sequence[str]) -> tuple[str, ...]:
    """Return ids of documents, with those of facts that were extracted from turns among them."""
    from qrmem.memory.chat import stored_turns

    infos = await stored_turns.turn_infos(session.store, session.ns, document_ids)
    numbers = [stored_turns.number_of(info) for info in infos if FACT_KEY not in info.metadata]
    fact_ids = await stored_turns.facts_of(session.store, session.ns, numbers)
    return tuple(dict.fromkeys([*document_ids, *(info.id for info in fact_ids)]))


async def _refresh_names(session: Session) -> None:
    from qrmem.graph.merging import refresh_names

    await refresh_names(session.store, session.ns, similar=await session.similar())


# Import and export: archives, GraphML, notes, extractions of other programs.


async def load(session: Session, path: str | PathLike[str], listener: Listener) -> Archived:
    """Fill an empty namespace with an archive; models that only the archive names are left out."""
    from qrmem.graph.merging import refresh_names
    from qrmem.io.archive import import_archive

    require_path(path)
    session.require_writable()
    await session.settle()
    report = await import_archive(
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
    return report


def _trusted(info: NamespaceInfo, settings: Settings, listener: Listener) -> NamespaceInfo:
    """Return the properties for a namespace that an archive names, if they can be trusted.

    Models and files in an archive are used only if the settings name them too, because anybody may
    have written the archive.

    Raises:
        EmbedderMismatch: the settings name another embedder.
    """
    check_embedder(settings, info)
    if settings.schema:
        info = replace(info, single=tuple(sorted(settings.schema.single_with(info.single))))
    if info.embedder not in (*PLAIN_EMBEDDERS, settings.embedder):
        message = (
            f"the archive was embedded by {info.embedder!r}, which the settings do not name: its"
            " vectors are left out (name it with --embedder and import again, or run qrmem reembed)"
        )
        listener(Event("warning", {"message": message}))
        info = replace(info, embedder="none", dimension=0)
    if info.tokenizer not in (BuiltinTokenizer.name, open_tokenizer(settings.tokenizer).name):
        message = (
            f"the archive's tokens were counted by {info.tokenizer!r}, which the settings do not "
            "name: its"
            " segments are counted by the built-in tokenizer"
        )
        listener(Event("warning", {"message": message}))
        info = replace(info, tokenizer=BuiltinTokenizer.name)
    return info


async def load_openie(
    session: Session, path: str | PathLike[str], listener: Listener
) -> ExtractionReport:
    """Import extractions; embed their segments if the namespace has an embedder."""
    from qrmem.agents.embedding import embed_segments
    from qrmem.io.openie import Deps, import_openie

    require_path(path)
    session.require_writable()
    tools = await session.models(create=True)
    run = tools.run("construction", listener)
    try:
        embed = None
        if run.embedder is not None:
            store, ns = session.store, session.ns
            embed = partial(embed_segments, store, ns, run.embedder, listener=listener)
        deps = Deps(
            store=session.store,
            info=await tools.measured_info(run.embedder),
            cutter=tools.cutter,
            embed=embed,
            similar=session.similar,
            listener=listener,
        )
        return await import_openie(deps, path)
    finally:
        if run.calls:
            await session.store.record(session.ns, (), run.calls)


async def export(
    session: Session, path: str | PathLike[str], *, runs: bool, overwrite: bool
) -> Archived:
    """Write the namespace to one file, from a snapshot of the store."""
    from qrmem.io.archive import export_archive

    require_path(path)
    await session.info()
    async with session.store.snapshot() as store:
        return await export_archive(store, session.ns, path, runs=runs, overwrite=overwrite)


async def graphml(session: Session, path: str | PathLike[str], *, overwrite: bool) -> int:
    """Write the graph as GraphML; return the number of entities."""
    from qrmem.io.graphml import write_graphml

    require_path(path)
    await session.info()
    single = await session.single_types()
    return await write_graphml(session.store, session.ns, path, single=single, overwrite=overwrite)


async def markdown(session: Session, folder: str | PathLike[str]) -> int:
    """Write the memory as linked notes; return their number."""
    from qrmem.io.notes import Contents, write_notes

    require_path(folder)
    await session.info()
    store, ns = session.store, session.ns
    documents = await store.documents(ns)
    segments = await store.segments(ns, documents=[d.id for d in documents])
    there = {segment.id for segment in segments}  # another process may delete a document meanwhile
    keys = sorted(entity.key for entity in await store.list_entities(ns, 2**31 - 1))
    facts = await statements.facts(session, superseded=True)
    ends = {fact.id: (fact.head, fact.tail) for fact in (await store.around(ns, keys)).facts}
    contents = Contents(
        title=ns,
        documents=documents,
        segments=segments,
        entities=await entities_in_time(store, ns, keys),
        facts=[fact for fact in facts if fact.segment_id in there and fact.id in ends],
        ends=ends,
    )
    return await asyncio.to_thread(write_notes, Path(folder), contents)
