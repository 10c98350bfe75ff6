"""One opened namespace: its store, its settings, and the parts that are made when first needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qrmem.config import Settings
from qrmem.errors import NotFound, StoreUnavailable, UsageError
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.types import DocumentInfo, Scalar

if TYPE_CHECKING:
    from qrmem.graph.merging import Similar
    from qrmem.retrieval.fragments import FragmentScorer
    from qrmem.retrieval.fragments.code_keeping import CodeIndex
    from qrmem.retrieval.searcher import Searcher
    from qrmem.wiring import Tools


CLOSED = "the memory is closed; open it again"


class Opened:
    """What all methods of a memory stand on; shared by those that listen to the same memory.

    Attributes:
        ns: the namespace's name.
        settings: what it was opened with.
    """

    def __init__(self, store: GraphStore, settings: Settings, made: Path | None = None) -> None:
        self._made = made
        self.ns = settings.namespace
        self.settings = settings
        self._store: GraphStore | None = store
        self._tools: Tools | None = None
        self._searcher: Searcher | None = None
        self._fragments: FragmentScorer | None = None
        self._index: CodeIndex | None = None

    @property
    def store(self) -> GraphStore:
        """The store.

        Raises:
            UsageError: the memory is closed.
        """
        if self._store is None:
            raise UsageError(CLOSED)
        return self._store

    @property
    def where(self) -> str:
        """The namespace and its store, in words."""
        return f"namespace {self.ns!r} of {self.store.location}"

    async def close(self) -> None:
        """Close the store and the model's connections; a second time does nothing."""
        store, self._store = self._store, None
        tools, self._tools, self._searcher = self._tools, None, None
        self._fragments = None
        if tools is not None:
            await tools.close()
        if store is not None:
            await store.close()
            await self._withdraw()

    async def _withdraw(self) -> None:
        """Leave no file where there was none, if nothing came into it."""
        from qrmem.graphstore import withdraw

        if self._made is not None:
            await withdraw(self._made)

    # --- what is there --------------------------------------------------------------------------

    async def known(self) -> NamespaceInfo | None:
        """Return what the namespace was made with, if there is one.

        Raises:
            UsageError: it holds part of an archive.
        """
        info = await self.store.namespace(self.ns)
        if info is not None and info.importing:
            raise UsageError(
                f"{self.where} holds a part of an archive: its import is still running, or was"
                " stopped; run the same import again, or forget it (qrmem delete --all)"
            )
        return info

    async def info(self) -> NamespaceInfo:
        """Return what the namespace was made with.

        Raises:
            NotFound: there is none of that name.
            UsageError: it holds part of an archive.
        """
        info = await self.known()
        if info is None:
            names = await self.store.namespaces()
            hint = f"there are: {', '.join(names)}" if names else "it is empty; use `add` first"
            raise NotFound(f"no namespace {self.ns!r} in {self.store.location}; {hint}")
        return info

    def require_writable(self) -> None:
        """Refuse to change a store that is open for reading only."""
        if self.store.is_read_only:
            raise StoreUnavailable(f"{self.store.location} is read-only; nothing was changed")

    async def require_documents(self, document_ids: Sequence[str]) -> None:
        """Refuse ids that no document has."""
        await self.known()
        known = {info.id for info in await self.store.documents(self.ns)}
        for document_id in document_ids:
            if document_id not in known:
                raise NotFound(f"no document {document_id!r} in {self.where}")

    async def narrowed(
        self, documents: Sequence[str] | None, where: Mapping[str, Scalar] | None
    ) -> frozenset[str] | None:
        """Return the ids that are named and fit, or `None` for all.

        Raises:
            NotFound: a document named is not there, or none fits `where`.
        """
        if documents is None and not where:
            return None
        if isinstance(documents, str):
            raise UsageError("documents are a list of ids, not one text")
        if documents is not None:
            await self.require_documents(documents)
        found = frozenset(
            info.id
            for info in await self.store.documents(self.ns)
            if (documents is None or info.id in documents) and has_metadata(info, where)
        )
        if not found:
            raise NotFound(f"no document of {self.where} has the metadata {dict(where or {})}")
        return found

    async def require_read(self, documents: frozenset[str] | None) -> None:
        """Refuse to look for anything where nothing was read: that is no answer.

        Args:
            documents: ids of the only documents to look at; `None`: all.

        Raises:
            NotFound: with what is missing.
        """
        await self.info()
        columns = await (await self.searcher()).columns()
        read = {info.id for info in columns.documents} if columns else set()
        if read if documents is None else read & documents:
            return
        rows = await self.store.ledger(self.ns)
        if not rows:
            raise NotFound(f"there is no document in {self.where}; use `add` first")
        where = self.where if documents is None else f"{', '.join(sorted(documents))}"
        raise NotFound(f"nothing has been read yet of {where}: run the same `add` again")

    async def unread(self, documents: frozenset[str] | None) -> str:
        """Return what an answer cannot rest on, in words; "" if everything was read."""
        found = [
            info
            for info in await self.store.documents(self.ns)
            if documents is None or info.id in documents
        ]
        missing = sum(info.segments - info.states.get("ok", 0) for info in found)
        if not missing:
            return ""
        total = sum(info.segments for info in found)
        return f"{missing} of {total} segments are not read, or not wholly: run `add` again"

    # --- parts that are made when first needed --------------------------------------------------

    async def tools(self, *, create: bool = False) -> "Tools":
        """Return reasoner, embedder and tokenizers.

        Args:
            create: where the namespace is missing, those that it will be made with.
        """
        from qrmem.wiring import Tools, new_namespace

        if self._tools is None:
            info = await self.known() if create else await self.info()
            info = info or new_namespace(self.settings)
            self._tools = await Tools.open(self.store, info, self.settings)
        return self._tools

    async def searcher(self) -> "Searcher":
        """Return what ranks segments; it loads no chat model."""
        if self._searcher is None:
            from qrmem.retrieval.searcher import Searcher
            from qrmem.wiring import recorded_embedder

            embedder = recorded_embedder(await self.info(), self.settings)
            self._searcher = Searcher(self.store, self.ns, embedder)
        return self._searcher

    async def fragment_scorer(self) -> "FragmentScorer":
        """Return what assesses fragments; it keeps their relations while the memory is open."""
        if self._fragments is None:
            from qrmem.retrieval.fragments import FragmentScorer

            self._fragments = FragmentScorer(await self.searcher(), self.code_index())
        return self._fragments

    def code_index(self) -> "CodeIndex":
        """Return what is known of the namespace's source files, for adding and for asking."""
        if self._index is None:
            from qrmem.retrieval.fragments.code_keeping import CodeIndex

            self._index = CodeIndex(self.store, self.ns)
        return self._index

    async def renew(self) -> None:
        """Make all parts anew when they are needed: the namespace is another now."""
        tools, self._tools, self._searcher = self._tools, None, None
        self._fragments = self._index = None
        if tools is not None:
            await tools.close()

    async def similar(self) -> "Similar | None":
        """Return what finds names alike by their vectors, where the settings want it."""
        if not self.settings.similar_names:
            return None
        from qrmem.agents.likeness import alike_by

        embedder = (await self.tools()).embedder
        return alike_by(self.store, self.ns, embedder, self.settings.similar_names)

    async def follow_embedder(self) -> None:
        """Use the embedder that the namespace has now."""
        self.settings = self.settings.with_(embedder=(await self.info()).embedder)
        await self.renew()


def has_metadata(info: DocumentInfo, where: Mapping[str, Scalar] | None) -> bool:
    """Whether a document's metadata has all the values of `where`."""
    # A value typed on a command line is a number by its looks alone, so both compare as text.
    return all(
        key in info.metadata and str(info.metadata[key]) == str(value)
        for key, value in (where or {}).items()
    )
