"""The facade: open a memory, add documents, search, ask, look, forget."""

import time
import uuid
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from qrmem.config import Settings
from qrmem.errors import NotFound, StoreUnavailable, UsageError
from qrmem.graphstore.protocol import EntityCount, GraphStore, NamespaceInfo
from qrmem.inspecting import describe, view_entity
from qrmem.ports import Event, Listener
from qrmem.records import (
    AddReport,
    Answer,
    Document,
    DocumentInfo,
    EntityView,
    Hit,
    MemoryStatus,
    Merge,
    MergeDecision,
    Orientation,
    Scalar,
    Step,
    Trail,
)
from qrmem.sources import Source

if TYPE_CHECKING:
    from qrmem.graphstore.aside import Aside
    from qrmem.memory.merging import Similar
    from qrmem.retrieval.searcher import Searcher
    from qrmem.wiring import Tools

__all__ = ["EntityCount", "Memory", "open"]


def open(
    memory: str | None = None,
    *,
    namespace: str | None = None,
    settings: Settings | None = None,
    create: bool = True,
    listener: Listener | None = None,
    **chosen: Any,
) -> "Opening":
    """Open a memory; `await` it or use it in `async with`.

    Args:
        memory: a path, `sqlite://…`, `neo4j://…`, `bolt://…` or `memory://`.
        settings: instead of those of the environment and the settings file.
        create: whether a database that is not there is made.
        listener: takes the events of all runs (progress, steps, calls, warnings).
        chosen: any field of `Settings`, such as `model=`, `base_url=`, `embedder=`.

    Raises (when awaited):
        UsageError: a setting is wrong, or the file is no database.
        NotFound: no such database, with `create=False`.
        EmbedderMismatch: the namespace was embedded by another model.
        OutOfReach: the store does not answer.
    """
    base = settings or Settings.from_env()
    chosen = {"memory": memory, "namespace": namespace, **chosen}
    return Opening(base.with_(**chosen), create=create, listener=listener)


class Opening:
    """A memory that is about to be opened."""

    def __init__(self, settings: Settings, *, create: bool, listener: Listener | None) -> None:
        self._settings = settings
        self._create = create
        self._listener = listener
        self._memory: Memory | None = None

    def __await__(self) -> Generator[Any, None, "Memory"]:
        return self._open().__await__()

    async def __aenter__(self) -> "Memory":
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def _open(self) -> "Memory":
        from qrmem.graphstore import open_store
        from qrmem.wiring import check_embedder

        store = await open_store(self._settings.memory, self._settings, create=self._create)
        try:
            check_embedder(self._settings, await store.namespace(self._settings.namespace))
        except BaseException:
            await store.close()
            raise
        return Memory(store, self._settings, self._listener)


class Memory:
    """One namespace of a store: add documents to it, search it, ask it.

    Attributes:
        settings: what it was opened with.
    """

    def __init__(
        self, store: GraphStore, settings: Settings, listener: Listener | None = None
    ) -> None:
        self.settings = settings
        self._store = store
        self._ns = settings.namespace
        self._listener = listener
        self._tools: Tools | None = None
        self._searcher: Searcher | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store and the model's connections."""
        if self._tools is not None:
            await self._tools.close()
        await self._store.close()

    # --- reading documents in -------------------------------------------------------------------

    async def add(
        self,
        source: Source,
        *,
        update: bool = False,
        rebuild: bool = False,
        glob: str | None = None,
        question: str = "",
    ) -> AddReport:
        """Read documents into the memory; what is there already, complete, costs nothing.

        Args:
            source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
                iterable of them.
            update: replace documents of the same id whose text, title or metadata differ; only
                segments that changed are read again.
            rebuild: read every segment again, and summarise again.
            glob: which files of a folder.
            question: shapes the graph (orientation `full`).

        Returns:
            What was done; failed segments are in `problems`, and the same call tries them again.

        Raises:
            BadDocument: the one source given cannot be read.
            UsageError: a document is there with another text, and `update` is not set.
            AccessRefused: key or model name refused.
            ModelUnavailable: the model does not answer; what was read is kept.
        """
        from qrmem.adding import Adder

        self._refuse_read_only()
        adder = Adder(
            self._store,
            self._ns,
            await self._wired(create=True),
            listener=self._emit,
            update=update,
            rebuild=rebuild,
            question=question,
        )
        return await adder.add(source, glob)

    async def delete(self, *document_ids: str) -> None:
        """Forget documents: afterwards the memory equals one that never held them.

        Raises:
            NotFound: one of them is not there; nothing is deleted.
        """
        self._refuse_read_only()
        await self._known(document_ids)
        from qrmem.memory.merging import refresh_names

        for document_id in document_ids:
            await self._store.delete_document(self._ns, document_id)
        await refresh_names(self._store, self._ns, similar=await self._similar())

    async def delete_all(self) -> None:
        """Forget the whole namespace.

        Raises:
            NotFound: there is none of that name.
        """
        self._refuse_read_only()
        await self._namespace()
        await self._store.delete_namespace(self._ns)

    async def reembed(self, embedder: str) -> int:
        """Embed all segments by another model; resumable. Returns how many were embedded now."""
        from qrmem.wiring import reembed

        self._refuse_read_only()
        await self._namespace()
        count = await reembed(self._store, self._ns, self.settings, embedder, self._emit)
        self.settings = self.settings.with_(embedder=embedder)
        self._tools = self._searcher = None
        return count

    # --- finding and answering --------------------------------------------------------------------

    async def search(
        self,
        question: str,
        *,
        k: int = 10,
        documents: Sequence[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
    ) -> list[Hit]:
        """Rank segments for a question; no chat model is called.

        Args:
            k: how many at most, at least 1.
            documents: only these documents.
            where: only documents whose metadata has these values.

        Raises:
            UsageError: the question is empty, or k is below 1.
            NotFound: a document named is not there, or none fits `where`.
        """
        searcher = await self._search()
        return await searcher.search(
            question, k=k, documents=await self._narrowed(documents, where)
        )

    async def ask(
        self,
        question: str,
        *,
        strategy: str = "reflection",
        window: int | None = None,
        choices: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
        orientation: Orientation | None = None,
        share_orientation: bool = False,
        max_trials: int = 5,
        start: Literal["search", "entities"] = "search",
        on_exhausted: Literal["abstain", "force"] = "abstain",
        keep_trail: bool | None = None,
    ) -> Answer:
        """Answer a question by walking the graph and reading only what fits the window.

        Args:
            strategy: `reflection` (Algorithm 1), `graph-expansion` or `entity-trial`.
            window: L in tokens, a hard bound on every call (Q21).
            choices: options of a multiple-choice question.
            orientation: `local` extracts the nearest segments again with the question, once.
            share_orientation: let this run see what other questions' orientation added.
            max_trials: how often segments are read at most (Q22).
            start: begin from search hits, or from entities named in the question (Q14).
            on_exhausted: when the trials are used up, abstain or force an answer.
            keep_trail: write the trail to the store; default: the setting `keep_trails`.

        Raises:
            UsageError: empty question, unknown strategy, or fewer than two choices.
            WindowTooSmall: question, options and skeleton alone exceed the window.
            NotFound: a document named is not there.
        """
        from qrmem.asking import Asker, Asking
        from qrmem.graphstore.aside import Aside

        if isinstance(choices, str):
            raise UsageError("choices are a list of texts, not one text")
        asking = Asking(
            question=question,
            strategy=strategy,
            window=self.settings.window if window is None else window,
            choices=tuple(choices or ()),
            documents=await self._narrowed(documents, where),
            orientation=orientation or self.settings.orientation,
            share_orientation=share_orientation,
            max_trials=max_trials,
            start=start,
            on_exhausted=on_exhausted,
        )
        tools, searcher = await self._wired(), await self._search()
        aside = Aside(self._store, self._emit)
        asker = Asker(self._store, self._ns, tools, searcher, self._emit, aside)
        answer = await asker.ask(asking)
        if self.settings.keep_trails if keep_trail is None else keep_trail:
            answer = await self._kept(answer, aside)
        return answer

    async def stream(self, question: str, **options: Any) -> AsyncIterator[Step | Answer]:
        """Answer like `ask`, yielding every step as it happens, then the answer."""
        from qrmem.asking import streamed

        # Opened here, so that the copy that listens shares them and this one closes them.
        await self._wired()
        await self._search()
        async for item in streamed(self, question, options):
            yield item

    def listening(self, listener: Listener) -> "Memory":
        """Return this memory with one more listener; both share store and model."""

        def both(event: Event) -> None:
            self._emit(event)
            listener(event)

        other = copy(self)
        other._listener = both
        return other

    # --- looking --------------------------------------------------------------------------------

    async def status(self) -> MemoryStatus:
        """Return the namespace in figures, with problems and what it cost."""
        return await describe(self._store, await self._namespace())

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces in this store."""
        return await self._store.namespaces()

    async def documents(self, where: Mapping[str, Scalar] | None = None) -> Sequence[DocumentInfo]:
        """Return all documents by id, without their texts."""
        found = await self._store.documents(self._ns)
        return [info for info in found if _matches(info, where)]

    async def document(self, document_id: str) -> Document:
        """Return a document with its text.

        Raises:
            NotFound: no such document.
        """
        document = await self._store.document(self._ns, document_id)
        if document is None:
            raise NotFound(f"no document {document_id!r} in {self._where()}")
        return document

    async def entities(self, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities by falling number of segments."""
        await self._namespace()
        return await self._store.list_entities(self._ns, limit)

    async def entity(self, name: str) -> EntityView:
        """Return an entity by any of its names, with relations, questions and segments.

        Raises:
            NotFound: nothing is called so; the message names what comes near.
        """
        await self._namespace()
        return await view_entity(self._store, self._ns, name)

    async def merges(self) -> Sequence[Merge]:
        """Return which names count as one entity, and why."""
        from qrmem.memory.merging import current_merges

        await self._namespace()
        return await current_merges(self._store, self._ns, similar=await self._similar())

    async def merge(self, first: str, second: str) -> None:
        """Count two names as one from now on; beats every rule, and stays."""
        await self._decide(first, second, same=True)

    async def separate(self, first: str, second: str) -> None:
        """Keep two names apart from now on; beats every rule, and stays."""
        await self._decide(first, second, same=False)

    async def trail(self, trail_id: str | None = None) -> Trail:
        """Return a recorded run, or the last.

        Raises:
            NotFound: no such trail, or none at all.
        """
        trail = await self._store.trail(self._ns, trail_id)
        if trail is None:
            what = f"no trail {trail_id!r}" if trail_id else "no trail yet"
            raise NotFound(f"{what} in {self._where()}")
        return trail

    async def trails(self, limit: int = 20) -> Sequence[Trail]:
        """Return recorded runs, newest first."""
        return await self._store.trails(self._ns, limit)

    async def graphml(self, path: str) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); returns how many entities."""
        from qrmem.inspecting import write_graphml

        await self._namespace()
        return await write_graphml(self._store, self._ns, path)

    # --- inside ---------------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)

    def _where(self) -> str:
        return f"namespace {self._ns!r} of {self._store.location}"

    def _refuse_read_only(self) -> None:
        if self._store.is_read_only:
            raise StoreUnavailable(f"{self._store.location} is read-only; nothing was changed")

    async def _namespace(self) -> NamespaceInfo:
        info = await self._store.namespace(self._ns)
        if info is None:
            names = await self._store.namespaces()
            hint = f"there are: {', '.join(names)}" if names else "it is empty; use `add` first"
            raise NotFound(f"no namespace {self._ns!r} in {self._store.location}; {hint}")
        return info

    async def _wired(self, *, create: bool = False) -> "Tools":
        from qrmem.wiring import Tools, new_namespace

        if self._tools is None:
            if create and await self._store.namespace(self._ns) is None:
                await self._store.create_namespace(self._ns, new_namespace(self.settings))
            self._tools = await Tools.open(self._store, await self._namespace(), self.settings)
        return self._tools

    async def _search(self) -> "Searcher":
        if self._searcher is None:
            from qrmem.retrieval.searcher import Searcher
            from qrmem.wiring import recorded_embedder

            embedder = recorded_embedder(await self._namespace(), self.settings)
            self._searcher = Searcher(self._store, self._ns, embedder)
        return self._searcher

    async def _similar(self) -> "Similar | None":
        if not self.settings.similar_names:
            return None
        from qrmem.agents.likeness import alike_by

        embedder = (await self._wired()).embedder
        return alike_by(self._store, self._ns, embedder, self.settings.similar_names)

    async def _known(self, document_ids: Sequence[str]) -> None:
        known = {info.id for info in await self._store.documents(self._ns)}
        for document_id in document_ids:
            if document_id not in known:
                raise NotFound(f"no document {document_id!r} in {self._where()}")

    async def _narrowed(
        self, documents: Sequence[str] | None, where: Mapping[str, Scalar] | None
    ) -> frozenset[str] | None:
        if documents is None and not where:
            return None
        if isinstance(documents, str):
            raise UsageError("documents are a list of ids, not one text")
        if documents is not None:
            await self._known(documents)
        found = frozenset(
            info.id
            for info in await self._store.documents(self._ns)
            if (documents is None or info.id in documents) and _matches(info, where)
        )
        if not found:
            raise NotFound(f"no document of {self._where()} has the metadata {dict(where or {})}")
        return found

    async def _decide(self, first: str, second: str, *, same: bool) -> None:
        from qrmem.memory.merging import refresh_names

        self._refuse_read_only()
        if not first.strip() or not second.strip() or first == second:
            raise UsageError("give two different names")
        await self._namespace()
        one, other = sorted((first, second))
        await self._store.decide(self._ns, MergeDecision(one, other, same=same))
        await refresh_names(self._store, self._ns, similar=await self._similar())

    async def _kept(self, answer: Answer, aside: "Aside") -> Answer:
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        trail = replace(answer.trail, id=uuid.uuid4().hex[:12], created=created)
        if self._store.is_read_only:
            message = f"{self._store.location} is read-only: no trail is kept"
            self._emit(Event("warning", {"message": message}))
        await aside.write(lambda: self._store.put_trail(self._ns, trail))
        return replace(answer, trail=trail)


def _matches(info: DocumentInfo, where: Mapping[str, Scalar] | None) -> bool:
    # A value typed on a command line is a number by its looks alone, so both compare as text.
    return all(
        key in info.metadata and str(info.metadata[key]) == str(value)
        for key, value in (where or {}).items()
    )
