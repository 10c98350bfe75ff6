"""Methods of a memory that change it: documents in and out, names, vectors, trees, files."""

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack

from qrmem.io.sources import Source
from qrmem.memory import change, statements
from qrmem.memory.handle import Handle
from qrmem.types import (
    AddReport,
    Archived,
    Document,
    ExtractionReport,
    FactView,
    JudgeReport,
    MetaValue,
    Repair,
)
from qrmem.types.documents import Tree, TreeKind, TreeReport
from qrmem.types.options import AddOptions, CapOptions

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver


class ChangeMethods(Handle):
    """Methods that change a memory, export it and import it."""

    async def add(
        self,
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
        """Read documents into the memory; complete documents cost nothing again.

        Args:
            source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
                iterable of them; or a list of messages (`{"role", "content"}`, or LangChain's),
                which are kept as turns: see `add_messages`. A file's id is its path below the given
                folder, with more parent folders if another file has that id.
            update: replace documents of the same id whose text, title or metadata differ; only
                segments that changed are read again. Threads of checkpointers used since the memory
                was opened that read an old segment are dropped.
            rebuild: read every segment again, and summarise again.
            glob: pattern that selects the files of a folder.
            follow_links: whether to follow symbolic links out of a folder; otherwise they are
                skipped and counted.
            question: shapes the graph (orientation `full`).
            user: for messages: the user whose conversation it is.
            session: for messages: name of the conversation.
            extract: for messages: extract facts from them, see `add_messages`.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            A report. Failed segments are in `problems`, and the same call tries them again. A cap
            that was reached is in `stopped`, and the same call continues from there.

        Raises:
            BadDocument: the one source given cannot be read.
            UsageError: a document exists with another text, and `update` is not set.
            AccessRefused: the server rejects the key or the model's name.
            ModelUnavailable: the model does not answer; segments read so far are kept.
        """
        options = AddOptions(
            update=update,
            rebuild=rebuild,
            glob=glob,
            follow_links=follow_links,
            question=question,
            user=user,
            session=session,
            extract=extract,
            caps=caps,
        )
        return await change.add(self._session, source, options, self._emit)

    async def add_text(
        self,
        text: str,
        *,
        title: str = "",
        id: str | None = None,
        metadata: Mapping[str, MetaValue] | None = None,
        update: bool = False,
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """Read a text into the memory, as `add` reads a file.

        Args:
            id: id of the document; `None`: derived from the text.
            metadata: primitive values, and lists of texts, to narrow `search` and `ask` by.
            update: replace a document of the same id.
            caps: see `add`.

        Raises:
            BadDocument: the text is empty.
        """
        document = Document(text, title=title, id=id, metadata=metadata or {})
        return await self.add(document, update=update, **caps)

    async def delete(
        self, *document_ids: str, checkpointer: "BaseCheckpointSaver[Any] | None" = None
    ) -> None:
        """Delete documents; afterwards the memory equals one that never held them.

        Args:
            checkpointer: a LangGraph checkpointer that was used for questions; threads that read
                one of the documents are deleted. Those used since the memory was opened need not be
                given.

        Raises:
            NotFound: one of them does not exist; nothing is deleted.
            StoreUnavailable: a checkpointer used before is closed, and none is given; nothing is
                deleted.
        """
        await change.delete(self._session, document_ids, checkpointer)

    async def delete_all(self, *, checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> None:
        """Delete the whole namespace.

        Args:
            checkpointer: see `delete`.

        Raises:
            NotFound: the namespace does not exist.
        """
        await change.delete_all(self._session, checkpointer)

    async def merge(self, first: str, second: str) -> None:
        """Merge two names from now on; your decision overrides the rules and is kept."""
        await change.override_merge(self._session, first, second, same=True)

    async def separate(self, first: str, second: str) -> None:
        """Keep two names apart from now on; your decision overrides the rules and is kept.

        Names are told apart by their spelling. Two people who are both called Victor stay one
        entity; "Victor" and "Victor Hugo" can be kept apart.
        """
        await change.override_merge(self._session, first, second, same=False)

    async def judge_facts(self, *, plan: bool = False, **caps: Unpack[CapOptions]) -> JudgeReport:
        """Ask the chat model which statements later ones replace; each judgement is kept.

        It judges pairs of statements, from one user's turns and dated documents, that may clash:
        both about the same entity, in similar words, one said later. A call holds eight pairs, and
        ten turns or documents take at most one call. A judged pair is not asked again. Deleting a
        document deletes the judgements on its statements.

        Args:
            plan: only estimate the cost; nothing is sent.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            UsageError: no chat model is set.
            ModelUnavailable: it does not answer; judgements so far are kept.
        """
        return await statements.judge(self._session, self._emit, caps, is_plan=plan)

    async def edit_fact(
        self,
        fact_id: str,
        text: str | None = None,
        *,
        valid_from: str | None = None,
        valid_until: str | None = None,
    ) -> FactView:
        """Change the description or the dates of a statement; the edit is kept.

        The edit is deleted with the segment that states it. `restore_fact` undoes it.

        Args:
            fact_id: as `facts` has it.
            text: its new description; `None`: unchanged.
            valid_from: `2026-05-03`, `2026-05` or `2026`, "" for none; `None`: unchanged.
            valid_until: the same.

        Raises:
            NotFound: there is no such statement.
            UsageError: a date is not valid, or the end is before the beginning.
        """
        return await statements.edit(self._session, fact_id, text, valid_from, valid_until)

    async def end_fact(self, fact_id: str, on: str | date = "") -> FactView:
        """Mark a statement as no longer true.

        Args:
            fact_id: as `facts` has it.
            on: its last day, month or year; "": today, in UTC.

        Raises:
            NotFound: there is no such statement.
            UsageError: the date is not valid, or is before the statement's beginning.
        """
        return await statements.end(self._session, fact_id, on)

    async def delete_fact(self, fact_id: str) -> None:
        """Delete a statement from the graph; the document's text stays as it is.

        Raises:
            NotFound: there is no such statement.
        """
        await statements.delete(self._session, fact_id)

    async def restore_fact(self, fact_id: str) -> FactView:
        """Undo an edit, an end or a deletion: the statement is as it was read.

        Raises:
            NotFound: there is no such statement.
        """
        return await statements.restore(self._session, fact_id)

    async def repair(self, *, compare_only: bool = False) -> Repair:
        """Compare the graph with the extractions, and rebuild it if they differ.

        Use it after edits in Neo4j Browser, or for a damaged memory. Names that were merged or
        moved by hand are kept, as if by `merge` and `separate`; other edits are not. An SQLite file
        is rewritten, without the space and the remains of deleted data.

        Args:
            compare_only: say what differs, and change nothing.

        Raises:
            NotFound: the namespace does not exist.
            StoreConflict: somebody else changed it meanwhile.
            StoreUnavailable: the file of the memory is damaged.
        """
        return await change.repair(self._session, compare_only=compare_only)

    async def prune(self) -> int:
        """Delete the cached replies of chat models; return how many.

        What was extracted from them stays, and so do merged descriptions. If you ask a question
        again, or read a failed segment again, you pay again.
        """
        return await change.prune(self._session)

    async def reembed(self, embedder: str, **caps: Unpack[CapOptions]) -> int:
        """Embed all segments with another model; return how many were embedded in this call.

        A run that was stopped continues where it stopped.

        Args:
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: what was embedded is kept, and the same call continues from there.
        """
        return await change.reembed(self._session, embedder, self._emit, caps)

    async def build_tree(
        self,
        *document_ids: str,
        kind: TreeKind = "ilm",
        preset: Literal["default", "paper"] = "default",
        **caps: Unpack[CapOptions],
    ) -> TreeReport:
        """Build a tree of summaries over each document; needs the extra `tree`.

        With a chat model it writes the summaries; without one they are sentences of the text.
        Existing nodes are not made again.

        Args:
            document_ids: the documents; none means all.
            kind: `ilm` (ILM-TR): every segment has a summary and its surprises, and summaries are
                clustered; `raptor` (RAPTOR): segments are clustered, and nodes are plain summaries.
            preset: `default` clusters within chapters first, so that a changed chapter changes few
                nodes; `paper` clusters each level as a whole, and sends the sampling parameters of
                ILM-TR, appendix A.3, to servers that accept them.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            A report. A cap that was reached is in `stopped`, and the same call continues.

        Raises:
            MissingError: the extra is not installed.
            NotFound: one of the documents does not exist.
            ModelUnavailable: the model does not answer; finished nodes are kept.
        """
        return await change.build_tree(
            self._session, document_ids, self._emit, caps, kind=kind, preset=preset
        )

    async def trees(self, *document_ids: str, kind: TreeKind = "ilm") -> Sequence[Tree]:
        """Return the trees of some documents, or all that were built.

        Raises:
            NotFound: one of the documents does not exist.
        """
        return await change.trees(self._session, document_ids, kind)

    async def load(self, path: str | PathLike[str]) -> Archived:
        """Fill an empty namespace with an archive from `export`: completely, or not at all.

        Raises:
            BadImport: the archive is cut, altered or malformed; nothing is written.
            MissingError: it was written by a newer qrmem, or embedded by another model than the
                chosen one.
            UsageError: the namespace is not empty.
        """
        return await change.load(self._session, path, self._emit)

    async def load_openie(self, path: str | PathLike[str]) -> ExtractionReport:
        """Import extractions of other programs: HippoRAG's OpenIE results, or plain triples.

        Passages with a text become documents; others are found by the id of a document or a
        segment. See docs/archive.md for the forms.

        Raises:
            BadImport: the file is malformed, or names an unknown passage; nothing is written.
        """
        return await change.load_openie(self._session, path, self._emit)

    async def export(
        self, path: str | PathLike[str], *, runs: bool = False, overwrite: bool = False
    ) -> Archived:
        """Write the namespace to one file: equal memories give equal bytes, from every store.

        Args:
            runs: also write trails, the ledger of calls and cached replies, which contain times.
            overwrite: replace an archive at `path`; any other file is never overwritten.

        Raises:
            NotFound: there is no such namespace.
            UsageError: there is a file already.
            StoreConflict: somebody changed it meanwhile, and it is not in SQLite; nothing is
            written.
        """
        return await change.export(self._session, path, runs=runs, overwrite=overwrite)

    async def graphml(self, path: str | PathLike[str], *, overwrite: bool = False) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); return the number of entities.

        Args:
            overwrite: replace an XML file at `path`; any other file is never overwritten.

        Raises:
            UsageError: there is a file already.
        """
        return await change.graphml(self._session, path, overwrite=overwrite)

    async def markdown(self, folder: str | PathLike[str]) -> int:
        """Write the memory as linked Markdown notes (Obsidian, git); return their number.

        Args:
            folder: new, empty, or that of an earlier export, whose notes are replaced; other files
                in it stay, also a note that you edited. A note whose name is taken gets another.

        Raises:
            UsageError: the folder contains other files.
        """
        return await change.markdown(self._session, folder)
