"""Methods of a memory that change it: documents in and out, names, vectors, trees.

`qrmem.Memory` has each as a method. What is heavy is imported with the first call.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from qrmem.errors import StoreUnavailable, UsageError, require_text
from qrmem.graphstore import check, clean
from qrmem.io.sources import Source
from qrmem.llm.budget import CapOptions
from qrmem.llm.parallel import in_batches
from qrmem.memory import observability
from qrmem.memory.models import caps_of
from qrmem.memory.models import reembed as change_embedder
from qrmem.memory.session import Session
from qrmem.types import AddReport, Document, Event, MergeDecision, Repair, Scalar
from qrmem.types.trees import Tree, TreeKind, TreeReport

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.memory import Memory


_TOGETHER = 256
"""Documents that are deleted in one transaction."""


async def add(
    memory: "Memory",
    source: Source,
    *,
    update: bool = False,
    rebuild: bool = False,
    glob: str | None = None,
    follow_links: bool = False,
    question: str = "",
    user: str = "",
    session: str = "",
    extract: bool = False,
    **caps: Unpack[CapOptions],
) -> AddReport:
    """Read documents into the memory; what is there already, complete, costs nothing.

    Args:
        source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
            iterable of them; or a list of messages (`{"role", "content"}`, or LangChain's),
            which are kept as turns: see `add_messages`.
        update: replace documents of the same id whose text, title or metadata differ; only
            segments that changed are read again. Threads of checkpointers used since the memory
            was opened that read an old segment are dropped.
        rebuild: read every segment again, and summarise again.
        glob: which files of a folder.
        follow_links: whether links in a folder are followed wherever they lead; else those that
            lead out of it are passed over and counted.
        question: shapes the graph (orientation `full`).
        user: of messages: whose conversation it is.
        session: of messages: the conversation that they are part of.
        extract: of messages: draw facts from them, see `add_messages`.
        caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

    Returns:
        What was done; failed segments are in `problems`, and the same call tries them again. A
        cap that was reached is in `stopped`, and the same call goes on from there.

    Raises:
        BadDocument: the one source given cannot be read.
        UsageError: a document is there with another text, and `update` is not set.
        AccessRefused: key or model name refused.
        ModelUnavailable: the model does not answer; what was read is kept.
    """
    from qrmem.graph.dialog import are_messages
    from qrmem.memory.add import Adder

    own = memory._session
    if are_messages(source):
        from qrmem.memory.chat import conversation

        messages = cast(Iterable[Any], source)
        _, report = await conversation.add_messages(
            own, messages, memory._emit, session=session, user=user, extract=extract
        )
        if report is None:
            raise UsageError("none of the messages has a text")
        return report
    if user or session or extract:
        raise UsageError("user, session and extract are for messages; a document takes metadata")
    own.require_writable()
    with own.adding(), observability.run("add", namespace=own.ns):
        adder = Adder(
            own.store,
            own.ns,
            await own.models(create=True),
            listener=memory._emit,
            update=update,
            rebuild=rebuild,
            question=question,
            caps=caps_of(memory.settings, **caps),
        )
        try:
            return await adder.add(source, glob, follow_links=follow_links)
        finally:
            if adder.replaced:
                try:
                    await own.forget_threads(adder.replaced)
                except StoreUnavailable as exc:  # the documents are replaced
                    memory._emit(Event("warning", {"message": str(exc)}))
                await clean(own.store)


async def add_text(
    memory: "Memory",
    text: str,
    *,
    title: str = "",
    id: str | None = None,
    metadata: Mapping[str, Scalar] | None = None,
    update: bool = False,
    **caps: Unpack[CapOptions],
) -> AddReport:
    """Read a text into the memory, as `add` reads a file.

    Args:
        id: of the document; `None`: made of the text.
        metadata: primitive values to narrow `search` and `ask` by.
        update: replace a document of the same id.
        caps: see `add`.

    Raises:
        BadDocument: the text is empty.
    """
    document = Document(text, title=title, id=id, metadata=metadata or {})
    return await add(memory, document, update=update, **caps)


async def delete(
    memory: "Memory", *document_ids: str, checkpointer: "BaseCheckpointSaver[Any] | None" = None
) -> None:
    """Forget documents: afterwards the memory equals one that never held them.

    Args:
        checkpointer: LangGraph's, that questions were asked with; threads that read one of the
            documents are dropped. Those used since the memory was opened need not be named.

    Raises:
        NotFound: one of them is not there; nothing is deleted.
        StoreUnavailable: a checkpointer used before is closed, and none is given; nothing is
            deleted.
    """
    session = memory._session
    session.require_writable()
    kept_ids = await session.require_documents(document_ids)
    gone = await _with_facts(session, kept_ids)
    segments = [s.id for s in await session.store.segments(session.ns, documents=gone)]
    await session.forget_threads(segments, checkpointer)
    for some in in_batches(gone, _TOGETHER):
        await session.store.delete_documents(session.ns, *some)
    await _refresh_names(memory)
    await clean(session.store)


async def delete_all(
    memory: "Memory", *, checkpointer: "BaseCheckpointSaver[Any] | None" = None
) -> None:
    """Forget the whole namespace.

    Args:
        checkpointer: see `delete`.

    Raises:
        NotFound: there is none of that name.
    """
    session = memory._session
    session.require_writable()
    is_there = await session.store.namespace(session.ns) is not None
    if is_there:
        await session.forget_threads(None, checkpointer)
    await session.store.delete_namespace(session.ns)  # finishes what a killed run began, too
    if not is_there:
        await session.info()
    await clean(session.store)


async def merge(memory: "Memory", first: str, second: str) -> None:
    """Count two names as one from now on; beats every rule, and stays."""
    await _decide(memory, first, second, same=True)


async def separate(memory: "Memory", first: str, second: str) -> None:
    """Keep two names apart from now on; beats every rule, and stays."""
    await _decide(memory, first, second, same=False)


async def repair(memory: "Memory") -> Repair:
    """Compare the graph with what was read, and build it again where they differ.

    For a memory that somebody edited in Neo4j Browser, or that was damaged. Names that were
    merged or moved by hand are kept, as if by `merge` and `separate`; other edits are not. An
    SQLite file is written anew, without the room and the remains of what was deleted.

    Raises:
        NotFound: there is no such namespace.
        StoreConflict: somebody else changed it meanwhile.
        StoreUnavailable: the file of the memory is damaged.
    """
    from qrmem.graph.repair import repair as rebuild

    session = memory._session
    session.require_writable()
    await check(session.store)
    await session.info()
    done = await rebuild(session.store, session.ns, similar=await session.similar())
    await clean(session.store, wholly=True)
    await session.renew()
    return done


async def prune(memory: "Memory") -> int:
    """Forget the replies that are kept so as not to be paid for again; returns how many.

    What was made of them stays, and so do descriptions that a model folded. A question that is
    asked again and a failed segment are then paid for again.
    """
    from qrmem.llm.cache import is_reply_key

    session = memory._session
    session.require_writable()
    await session.info()
    replies = [key for key in await session.store.kept_keys(session.ns) if is_reply_key(key)]
    await session.store.drop_kept(session.ns, replies)
    await clean(session.store)
    return len(replies)


async def reembed(memory: "Memory", embedder: str, **caps: Unpack[CapOptions]) -> int:
    """Embed all segments by another model; resumable. Returns how many were embedded now.

    Args:
        caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

    Raises:
        CapReached: what was embedded is kept, and the same call goes on from there.
    """
    session = memory._session
    session.require_writable()
    await session.info()
    try:
        bounds = caps_of(memory.settings, **caps)
        with observability.run("reembed", namespace=session.ns):
            return await change_embedder(
                session.store, session.ns, memory.settings, embedder, memory._emit, bounds
            )
    finally:
        await session.follow_embedder()


async def build_tree(
    memory: "Memory",
    *document_ids: str,
    kind: TreeKind = "ilm",
    preset: Literal["default", "paper"] = "default",
    **caps: Unpack[CapOptions],
) -> TreeReport:
    """Build a tree of summaries over each document; needs the extra `tree`.

    With a chat model it writes the summaries; without one they are sentences of the text.
    Nodes that are there already are not made again.

    Args:
        document_ids: the documents; none means all.
        kind: `ilm` (ILM-TR): every segment has a summary and its surprises, and summaries are
            clustered; `raptor` (RAPTOR): segments are clustered, and nodes are plain summaries.
        preset: `default` clusters within chapters first, so that a changed chapter changes few
            nodes; `paper` clusters each level as a whole, and sends the parameters of sampling of
            ILM-TR, appendix A.3, to servers that take them.
        caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

    Returns:
        What was made. A cap that was reached is in `stopped`, and the same call goes on.

    Raises:
        MissingError: the extra is not installed.
        NotFound: one of the documents is not there.
        ModelUnavailable: the model does not answer; what was made is kept.
    """
    from qrmem.memory.trees import build

    memory._session.require_writable()
    bounds = caps_of(memory.settings, **caps)
    with observability.run("tree", namespace=memory._session.ns):
        return await build(
            memory._session, document_ids, memory._emit, bounds, kind=kind, preset=preset
        )


async def trees(memory: "Memory", *document_ids: str, kind: TreeKind = "ilm") -> Sequence[Tree]:
    """Return the trees of some documents, or all that were built.

    Raises:
        NotFound: one of the documents is not there.
    """
    from qrmem.retrieval.trees.nodes import load_trees

    session = memory._session
    await session.info()
    ids = await session.require_documents(document_ids)
    found = await load_trees(session.store, session.ns, kind, ids or None)
    return [stored.tree for stored in found]


async def _decide(memory: "Memory", first: str, second: str, *, same: bool) -> None:
    memory._session.require_writable()
    for name in (first, second):
        require_text(name, "a name")
    if first == second:
        raise UsageError("give two different names")
    await memory._session.info()
    one, other = sorted((first, second))
    await memory._session.store.decide(memory._session.ns, MergeDecision(one, other, same=same))
    await _refresh_names(memory)


async def _with_facts(session: Session, document_ids: Sequence[str]) -> tuple[str, ...]:
    """Return ids of documents, with those of the facts that were noted of the turns among them."""
    from qrmem.graph import dialog

    numbers = [dialog.turn_number(id) for id in document_ids if id.startswith(dialog.TURN)]
    found = await dialog.facts_of(session.store, session.ns, [n for n in numbers if n])
    return tuple(dict.fromkeys([*document_ids, *(info.id for info in found)]))


async def _refresh_names(memory: "Memory") -> None:
    from qrmem.graph.merging import refresh_names

    session = memory._session
    await refresh_names(session.store, session.ns, similar=await session.similar())
