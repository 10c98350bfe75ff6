"""An open memory: its store, and parts that are created when first needed."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from qrmem.config import Settings
from qrmem.errors import NotFound, QrmemError, StoreUnavailable, UsageError, place
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.graphstore.reads import merged_segments
from qrmem.llm.embedders import close_embedder
from qrmem.memory.runtime import Models, namespace_embedder, new_namespace
from qrmem.settings_files import Address
from qrmem.text.dates import is_said_by, said_at
from qrmem.text.names import camel_case, type_key
from qrmem.text.normalise import normalise_id, normalise_where
from qrmem.types import Embedder, Where
from qrmem.types.documents import conditions, written

if TYPE_CHECKING:
    from qrmem.graph.merging import Similar
    from qrmem.llm.reranking import Scorer
    from qrmem.retrieval.fragments import FragmentScorer
    from qrmem.retrieval.searcher import Searcher

CLOSED = "the memory is closed; open it again"
OTHER_LOOP = (
    "the memory was opened in another event loop: open it once in each loop, or use"
    " qrmem.sync.open, which any thread and loop can call"
)
_LOOKED_AT = 64
"""Number of documents that are looked up at once to find one that has been read."""
_FEW = 1_000
"""Number of unresolved names that an opening may resolve."""
_MOST_TYPES = 50
"""Maximum number of types in one question, as many as a schema may have."""


class BackgroundWork(Protocol):
    """Work in the background while a memory is open; it ends before the memory is closed."""

    async def rest(self) -> None:
        """Wait until all work is done."""
        ...


class Session:
    """The state behind all methods of a memory; shared by all handles of the same memory.

    Attributes:
        ns: the namespace's name.
        settings: the settings that it was opened with.
        turns: lock that is held while turns are numbered and stored.
        checkpointers: LangGraph's checkpointers that questions used.
        running: ids of the trails of running questions.
        facts: extracts facts from turns; `None` until needed.
    """

    def __init__(self, store: GraphStore, settings: Settings, made: Path | None = None) -> None:
        """Create a session on an open store.

        Args:
            made: the file that was created for it; it is deleted again if it stays empty.
        """
        self._made = made
        self.ns = settings.namespace
        self.settings = settings
        self._store: GraphStore | None = store
        self._loop = asyncio.get_running_loop()
        self._making = asyncio.Lock()
        self.turns = asyncio.Lock()
        self._models: Models | None = None
        self._embedder: Embedder | None = None
        self._searcher: Searcher | None = None
        self._fragments: FragmentScorer | None = None
        self._rerankers: dict[str, Scorer | None] = {}
        self.checkpointers: set[Any] = set()
        self.running: set[str] = set()
        self.facts: BackgroundWork | None = None
        self._adding: set[asyncio.Future[None]] = set()
        self._ended = 0

    @property
    def store(self) -> GraphStore:
        """The store.

        Raises:
            UsageError: the memory is closed, or was opened in another event loop.
        """
        if self._store is None:
            raise UsageError(CLOSED)
        with suppress(RuntimeError):  # no loop runs, so the caller wants only its address
            if asyncio.get_running_loop() is not self._loop:
                raise UsageError(OTHER_LOOP)  # its locks would wait forever
        return self._store

    @property
    def is_closed(self) -> bool:
        """Whether it is closed."""
        return self._store is None

    async def single_types(self) -> frozenset[str]:
        """Return the relation types of which an entity has only one at a time.

        The namespace has them. A given schema decides about its own types.
        """
        info = await self.store.namespace(self.ns)
        recorded, schema = frozenset(info.single if info else ()), self.settings.schema
        return schema.single_with(recorded) if schema else recorded

    async def record_single_types(self) -> None:
        """Record those of the given schema with the namespace, so that any opening knows them."""
        info = await self.store.namespace(self.ns) if self.settings.schema else None
        if info is not None and {*info.single} != (types := await self.single_types()):
            await self.store.set_single(self.ns, types)

    @property
    def where(self) -> str:
        """The namespace and its store, in words."""
        return f"namespace {self.ns!r} of {self.store.location}"

    async def close(self) -> None:
        """Close the store and the model's connections; a second call does nothing.

        Waits for facts that are still being extracted.
        """
        try:
            if self.facts is not None:
                await self.facts.rest()
        finally:
            await self._close()

    async def _close(self) -> None:
        store, self._store = self._store, None
        await self.renew()
        if store is not None:
            await store.close()
            if self._made is not None:
                from qrmem.graphstore import withdraw

                await withdraw(self._made)

    async def finish(self) -> None:
        """Resolve the few names that a killed deletion left unresolved; try it once."""
        if self.store.is_read_only or self.settings.similar_names:
            return
        with suppress(QrmemError):  # the next change does it
            if 0 < len((await self.store.unmerged(self.ns)).stale) <= _FEW:
                from qrmem.graph.merging import refresh_names

                await refresh_names(self.store, self.ns, attempts=1)

    # --- documents --------------------------------------------------------------------------------

    async def known(self) -> NamespaceInfo | None:
        """Return the properties of the namespace, if it exists.

        Raises:
            UsageError: it holds part of an archive.
        """
        info = await self.store.namespace(self.ns)
        if info is not None and info.importing:
            raise UsageError(
                f"{self.where} contains part of an archive: its import is still running, or was"
                " stopped; run the same import again, or delete it"
                f" (qrmem delete --all{place(self.store.location, self.ns)})"
            )
        return info

    async def info(self) -> NamespaceInfo:
        """Return the properties of the namespace.

        Raises:
            NotFound: there is no namespace of that name.
            UsageError: it holds part of an archive.
        """
        info = await self.known()
        if info is None:
            names = await self.store.namespaces()
            if not names:
                where = f" (namespace {self.ns!r})" if self.ns != "default" else ""
                raise NotFound("nothing kept yet", private=f"{where}; use `add` first")
            raise NotFound(
                f"no namespace {self.ns!r} in {self.store.location}",
                private=f"; there are: {', '.join(names)}",
            )
        return info

    def require_writable(self) -> None:
        """Raise an error if the store is open only for reading."""
        if self.store.is_read_only:
            raise StoreUnavailable(f"{self.store.location} is read-only; nothing was changed")

    async def require_documents(self, document_ids: Sequence[str]) -> list[str]:
        """Return ids in their stored form; raise `NotFound` for unknown documents."""
        await self.known()
        ids = [normalise_id(given) for given in document_ids]
        known_ids = {info.id for info in await self.store.documents(self.ns, ids)}
        for document_id in ids:
            if document_id not in known_ids:
                raise NotFound(f"no document {document_id!r} in {self.where}")
        return ids

    async def readable(
        self,
        documents: Collection[str] | None,
        where: Where | None,
        as_of: str = "",
    ) -> frozenset[str] | None:
        """Return the ids of the documents to search, `None` for all.

        If there is nothing to search yet, this waits for an `add` that runs at the same time
        through this memory.

        Args:
            documents: only documents with these ids.
            where: only documents with this metadata.
            as_of: only documents that were said by then, and undated ones; "": all.

        Raises:
            NotFound: a named document does not exist, none matches `where`, or none was read yet.
        """
        if isinstance(documents, str):
            raise UsageError("documents are a list of ids, not one text")
        where = normalise_where(where)
        while True:
            ended = self._ended
            try:
                narrowed = await self._narrowed(documents, where)
                narrowed = await self.said_by(narrowed, as_of)
                await self._require_read(narrowed)
                return narrowed
            except NotFound:
                await asyncio.sleep(0)  # lets an `add` that was called at the same time begin
                if self._adding:
                    await asyncio.wait(set(self._adding), return_when=asyncio.FIRST_COMPLETED)
                elif ended == self._ended:
                    raise

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Let readers that find nothing wait for this `add`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._adding.add(done)
        try:
            yield
        finally:
            self._ended += 1
            self._adding.discard(done)
            done.set_result(None)

    async def _narrowed(
        self, documents: Collection[str] | None, where: Where | None
    ) -> frozenset[str] | None:
        if documents is None and not where:
            return None
        if documents is not None:
            documents = await self.require_documents(list(documents))
        fitting = await self.store.document_ids(self.ns, where=where) if where else documents or ()
        found = frozenset(fitting if documents is None else set(fitting).intersection(documents))
        if not found:
            if not where:
                raise NotFound("no document is named")
            wanted = written(conditions(where))
            raise NotFound(f"no document of {self.where} has the metadata {wanted}")
        return found

    async def said_by(self, documents: frozenset[str] | None, as_of: str) -> frozenset[str] | None:
        """Return the documents that were said by a time, and undated ones.

        Raises:
            NotFound: there is none.
        """
        if not as_of:
            return documents
        infos = await self.store.documents(self.ns, documents)
        found = frozenset(i.id for i in infos if is_said_by(said_at(i.metadata), as_of))
        if not found:
            raise NotFound(f"nothing in {self.where} was said by {as_of}")
        return found

    async def of_types(self, types: Sequence[str] | None) -> frozenset[str] | None:
        """Return the ids of the segments with some types, `None` for all.

        Args:
            types: types of entities or relations, as named in a schema or in `TYPES`.

        Raises:
            UsageError: a type is neither in the schema nor in the graph.
            NotFound: nothing in the graph has these types.
        """
        if types is None:
            return None
        if isinstance(types, str) or not all(isinstance(name, str) for name in types):
            raise UsageError("types are a list of names, such as Person, not one text")
        if not 1 <= len(types) <= _MOST_TYPES:
            raise UsageError(f"types are 1 to {_MOST_TYPES} names, not {len(types):,}")
        wanted = {type_key(name): name for name in types}
        schema = self.settings.schema
        known_types = {*await self.store.types(self.ns), *(kind.key for kind in schema or ())}
        if unknown := [name for key, name in wanted.items() if key not in known_types]:
            there = ", ".join(map(camel_case, sorted(known_types)[:_MOST_TYPES])) or "none"
            message = f"no type is called {unknown[0][:40]!r}"
            raise UsageError(message, private=f"; there are: {there}")
        segments = frozenset(await self.store.segments_of_types(self.ns, wanted))
        if not segments:
            raise NotFound(f"nothing in {self.where} is of type {', '.join(wanted.values())}")
        return segments

    async def _require_read(self, documents: frozenset[str] | None) -> None:
        """Refuse a search if nothing was read yet: an empty result would be misleading."""
        info = await self.info()
        if documents is None and info.revision:
            return  # something was merged; `require_any` reports if it was deleted since
        ids = sorted(documents or ())
        # The first documents have nearly always been read.
        for start in range(0, len(ids), _LOOKED_AT):
            if await merged_segments(self.store, self.ns, *ids[start : start + _LOOKED_AT]):
                return
        await self.require_any()
        where = self.where if documents is None else ", ".join(ids)
        raise NotFound(f"nothing has been read yet of {where}: run the same `add` again")

    async def require_any(self) -> None:
        """Raise `NotFound` if the namespace has no document."""
        if not await self.store.document_ids(self.ns, last=1):
            raise NotFound(f"there is no document in {self.where}; use `add` first")

    async def unread(self, documents: frozenset[str] | None) -> str:
        """Return a description of the unread parts; "" if everything was read."""
        if documents is None:
            states = Counter(await self.store.states(self.ns))
        else:
            rows = await self.store.ledger(self.ns, *sorted(documents))
            states = Counter(row.state for row in rows)
        missing = states.total() - states["ok"]
        if not missing:
            return ""
        return (
            f"{missing} of {states.total()} segments are not read, or only in part: run `add` again"
        )

    # --- parts that are created when first needed -------------------------------------------------

    async def models(self, *, create: bool = False) -> "Models":
        """Return reasoner, embedder and tokenizers; made once, also for concurrent calls.

        Args:
            create: if the namespace is missing, return those for the new one.
        """
        async with self._making:
            if self._models is None:
                info = await self.known() if create else await self.info()
                info = info or new_namespace(self.settings)
                embedder = self._opened_embedder(info)
                self._models = await Models.open(self.store, info, self.settings, embedder)
            return self._models

    async def searcher(self) -> "Searcher":
        """Return the searcher; it loads no chat model."""
        async with self._making:
            if self._searcher is None:
                from qrmem.retrieval.searcher import Searcher

                embedder = self._opened_embedder(await self.info())
                self._searcher = Searcher(self.store, self.ns, embedder)
            return self._searcher

    def _opened_embedder(self, info: NamespaceInfo) -> Embedder | None:
        """Return the embedder of the namespace; all parts share it, since it may be large."""
        if self._embedder is None:
            self._embedder = namespace_embedder(info, self.settings)
        return self._embedder

    async def reranker(self, name: str) -> "Scorer | None":
        """Return a reranker by its name, as in the setting; "": the one of the settings.

        It is opened once, and closed with the memory.

        Raises:
            MissingError: the extra `local` is not installed.
            UsageError: it is not text, or looks like a URL but is not valid.
        """
        if not isinstance(name, str):
            raise UsageError(f"reranker must be text, not {type(name).__name__}")
        address = self.settings.reranker if name == "" else Address(name)
        if address in ("", "none"):
            return None
        async with self._making:
            if address not in self._rerankers:
                from qrmem.llm.reranking import open_reranker

                self._rerankers[address] = open_reranker(address, self.settings)
            return self._rerankers[address]

    async def fragment_scorer(self) -> "FragmentScorer":
        """Return the scorer of fragments; it caches their relations while the memory is open."""
        searcher = await self.searcher()
        if self._fragments is None:
            from qrmem.retrieval.fragments import FragmentScorer

            self._fragments = FragmentScorer(searcher)
        return self._fragments

    async def settle(self) -> None:
        """Wait until facts are extracted: a change of the memory closes their models."""
        if self.facts is not None and not self.is_closed:
            await self.facts.rest()

    async def renew(self) -> None:
        """Close and discard all parts, since the namespace changed or is closed."""
        await self.settle()
        async with self._making:
            models, self._models, self._searcher = self._models, None, None
            embedder, self._embedder = self._embedder, None
            self._fragments = None
            await close_embedder(embedder)
            rerankers, self._rerankers = self._rerankers, {}
            for one in filter(None, rerankers.values()):
                await one.aclose()
            if models is not None:
                await models.close()

    async def similar(self) -> "Similar | None":
        """Return the search for similar names by vectors, if the settings enable it."""
        if not self.settings.similar_names:
            return None
        from qrmem.agents.embedding import alike_by

        embedder = (await self.models()).embedder
        return alike_by(self.store, self.ns, embedder, self.settings.similar_names)

    async def forget_threads(self, segment_ids: Collection[str] | None, also: Any = None) -> None:
        """Delete checkpointer threads of runs that read any of some segments, or all threads.

        Raises:
            StoreUnavailable: a checkpointer does not answer. If the caller gives one, those used
                before may fail.
        """
        checkpointers = self.checkpointers | ({also} if also is not None else set())
        if checkpointers:
            from qrmem.agents.search.state import forget

            for checkpointer in checkpointers:
                try:
                    await forget(checkpointer, self.ns, segment_ids)
                except Exception as exc:
                    if also not in (None, checkpointer):
                        continue  # it was closed since; the given one has the same threads
                    raise StoreUnavailable(
                        f"the runs in a checkpointer cannot be deleted ({exc}): open it"
                        " again, then delete(…, checkpointer=…)"
                    ) from exc

    async def follow_embedder(self) -> None:
        """Use the present embedder of the namespace."""
        self.settings = self.settings.with_(embedder=(await self.info()).embedder)
        await self.renew()
