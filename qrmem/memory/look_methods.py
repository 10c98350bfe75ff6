"""Methods of a memory that only read it: status, documents, entities, facts, trees, trails."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from qrmem.graphstore.protocol import EntityCount
from qrmem.llm.totals import By
from qrmem.memory import inspect, statements, summary_trees
from qrmem.memory.handle import Handle
from qrmem.types import (
    Document,
    DocumentInfo,
    EntityView,
    FactView,
    GraphPart,
    MemoryStatus,
    Merge,
    Page,
    Segment,
    Trail,
    UsageRow,
    Where,
)
from qrmem.types.documents import TreeNode, TreeTop

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery


class LookMethods(Handle):
    """Methods that show a memory: figures, documents, entities, trees, trails."""

    async def status(self) -> MemoryStatus:
        """Return figures, problems and costs of the namespace."""
        counts_now = await inspect.status(self._session)
        if not self._session.settings.model:
            return counts_now
        from qrmem.memory import plan  # loads all code for reading

        counts, price = await plan.cost_of_reading_again(self._session)
        if not counts:
            return counts_now
        warnings = (*counts_now.warnings, inspect.otherwise(counts, price))
        return replace(counts_now, warnings=warnings, read_otherwise=counts, reading_again=price)

    async def usage(self, by: By = "stage") -> Sequence[UsageRow]:
        """Return the usage of all runs together, construction and online separately.

        Args:
            by: the rows of the table: `stage`, `run` or `day` (UTC).
        """
        return await inspect.usage(self._session, by)

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces in this store."""
        return await self._session.store.namespaces()

    async def documents(
        self,
        where: Where | None = None,
        *,
        turns: bool | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> Page[DocumentInfo]:
        """Return documents by id, without their texts.

        Args:
            turns: `True`: only turns of conversations and facts of them, `False`: all others.
            offset: number of documents to skip.
            limit: maximum number of results; `None`: all.

        Returns:
            A list; its `total` is the number without `offset` and `limit`.
        """
        return await inspect.documents(self._session, where, turns, offset, limit)

    async def document(self, document_id: str) -> Document:
        """Return a document with its text.

        Raises:
            NotFound: no such document.
        """
        return await inspect.document(self._session, document_id)

    async def segments(self, document: str = "", *, ids: Iterable[str] = ()) -> Sequence[Segment]:
        """Return the segments of a document in order, or segments by their ids.

        Args:
            ids: ids of segments; unknown ones are left out.

        Raises:
            NotFound: no such document.
        """
        return await inspect.segments(self._session, document, ids)

    async def entities(self, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities, those with most segments first."""
        return await inspect.entities(self._session, limit)

    async def entity(
        self,
        name: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        as_of: str | date = "",
    ) -> EntityView:
        """Return an entity by any of its names, with relations, questions and segments.

        Args:
            offset: number of relations, and of segments, to skip.
            limit: maximum number of each, with the questions of these segments; `None`: all.
            as_of: names, relations and segments as of a time; relations that were not true then are
                marked. A date, `2026-05-03`, `2026-05` or `2026`, or a moment; "": now.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: `as_of` is not a date.
        """
        return await inspect.entity(self._session, name, offset, limit, as_of)

    async def graph(self, name: str = "", *, limit: int = 40) -> GraphPart:
        """Return an entity with its nearest neighbours and all edges between them, for drawing.

        Args:
            name: name of the entity; "": the most frequent one.
            limit: maximum number of neighbours, those with most statements; at least 1.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: `limit` is below 1.
        """
        return await inspect.graph(self._session, name, limit)

    async def facts(
        self,
        entity: str = "",
        *,
        user: str = "",
        as_of: str | date = "",
        superseded: bool = False,
        deleted: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> Page[FactView]:
        """Return statements with their times, replacements and the sentences that state them.

        Args:
            entity: only those about the entity of this name.
            user: only those of this user's turns and documents.
            as_of: what had been said by then, and was true then: a date, `2026-05-03`, `2026-05` or
                `2026`, or a moment; "": now.
            superseded: also return statements that are no longer true, or not yet.
            deleted: return the statements that were deleted by hand instead; `restore_fact` undoes
                a deletion.
            offset: number of statements to skip.
            limit: maximum number of statements; `None`: all.

        Returns:
            A list of statements in the order of document ids, then of the text; its `total` is the
            number without `offset` and `limit`.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: `as_of` is not a date, or both `superseded` and `deleted` are set.
        """
        return await statements.facts(
            self._session,
            entity=entity,
            user=user,
            as_of=as_of,
            superseded=superseded,
            deleted=deleted,
            offset=offset,
            limit=limit,
        )

    async def merges(self) -> Sequence[Merge]:
        """Return merged names with the reasons; a name with two types is returned once."""
        return await inspect.merges(self._session)

    async def tree_tops(self) -> Sequence[TreeTop]:
        """Return all trees without their nodes; `tree_nodes` returns these."""
        return await summary_trees.tops(self._session)

    async def tree_nodes(self, keys: Iterable[str]) -> Sequence[TreeNode]:
        """Return nodes of trees by their keys, in this order; unknown keys are left out."""
        return await summary_trees.nodes(self._session, keys)

    async def trail(self, trail_id: str | None = None) -> Trail:
        """Return a recorded run, or the last.

        Raises:
            NotFound: no such trail, or none at all.
        """
        return await inspect.trail(self._session, trail_id)

    async def trails(self, limit: int = 20) -> Sequence[Trail]:
        """Return recorded runs, newest first."""
        return await inspect.trails(self._session, limit)

    async def neo4j_queries(self, name: str = "") -> "Sequence[SavedQuery]":
        """Return ready queries to look at this namespace in Neo4j Browser.

        Args:
            name: any name of the entity to look at; "": the most frequent entity.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: this memory is not in Neo4j.
        """
        return await inspect.neo4j_queries(self._session, name)
