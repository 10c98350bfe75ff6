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
from qrmem.types.options import AddOptions, CapOptions
from qrmem.types.trees import Tree, TreeKind, TreeReport

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver


class ChangeMethods(Handle):
    """What changes a memory, and what brings it in and out of files."""

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
        """Read documents into the memory; what is complete already costs nothing.

        Args:
            source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
                iterable of them; or a list of messages (`{"role", "content"}`, or LangChain's),
                which are kept as turns: see `add_messages`. A file's id is its path below the
                folder given, with more of the folders above it where another file has that id.
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
            id: of the document; `None`: made of the text.
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
        """Forget documents: afterwards the memory equals one that never held them.

        Args:
            checkpointer: LangGraph's, that questions were asked with; threads that read one of the
                documents are dropped. Those used since the memory was opened need not be named.

        Raises:
            NotFound: one of them is not there; nothing is deleted.
            StoreUnavailable: a checkpointer used before is closed, and none is given; nothing is
                deleted.
        """
        await change.delete(self._session, document_ids, checkpointer)

    async def delete_all(self, *, checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> None:
        """Forget the whole namespace.

        Args:
            checkpointer: see `delete`.

        Raises:
            NotFound: there is none of that name.
        """
        await change.delete_all(self._session, checkpointer)

    async def merge(self, first: str, second: str) -> None:
        """Count two names as one from now on; your decision overrides the rules and is kept."""
        await change.override_merge(self._session, first, second, same=True)

    async def separate(self, first: str, second: str) -> None:
        """Keep two names apart from now on; your decision overrides the rules and is kept."""
        await change.override_merge(self._session, first, second, same=False)

    async def judge_facts(self, *, plan: bool = False, **caps: Unpack[CapOptions]) -> JudgeReport:
        """Ask the chat model which statements later ones replace; each judgement is kept.

        It judges pairs of statements, from one user's turns and dated documents, that may clash:
        both about the same entity, in similar words, one said later. A call holds eight pairs, and
        ten turns or documents take at most one call. A judged pair is not asked again. Deleting a
        document deletes the judgements on its statements.

        Args:
            plan: return what it would take; nothing is sent.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            UsageError: no chat model is set.
            ModelUnavailable: it does not answer; what was judged is kept.
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
        """Change what a statement says, or when it holds; the edit is kept.

        The edit is deleted with the segment that states it. `restore_fact` undoes it.

        Args:
            fact_id: as `facts` has it.
            text: its description; `None`: as it is.
            valid_from: `2026-05-03`, `2026-05` or `2026`, "" for nothing; `None`: as it is.
            valid_until: the same.

        Raises:
            NotFound: there is no such statement.
            UsageError: a date is not valid, or the end lies before the beginning.
        """
        return await statements.edit(self._session, fact_id, text, valid_from, valid_until)

    async def end_fact(self, fact_id: str, on: str | date = "") -> FactView:
        """Mark a statement as no longer true.

        Args:
            fact_id: as `facts` has it.
            on: its last day, month or year; "": today, in UTC.

        Raises:
            NotFound: there is no such statement.
            UsageError: the date is not valid, or lies before the statement's beginning.
        """
        return await statements.end(self._session, fact_id, on)

    async def delete_fact(self, fact_id: str) -> None:
        """Leave a statement out of the graph from now on; its text stays as it is.

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

    async def repair(self) -> Repair:
        """Compare the graph with what was read, and build it again where they differ.

        For a memory that somebody edited in Neo4j Browser, or that was damaged. Names that were
        merged or moved by hand are kept, as if by `merge` and `separate`; other edits are not. An
        SQLite file is written anew, without the room and the remains of what was deleted.

        Raises:
            NotFound: there is no such namespace.
            StoreConflict: somebody else changed it meanwhile.
            StoreUnavailable: the file of the memory is damaged.
        """
        return await change.repair(self._session)

    async def prune(self) -> int:
        """Delete the cached replies of chat models; return how many.

        What was read out of them stays, and so do merged descriptions. A question that is asked
        again, or a failed segment that is read again, is then paid for again.
        """
        return await change.prune(self._session)

    async def reembed(self, embedder: str, **caps: Unpack[CapOptions]) -> int:
        """Embed all segments with another model; return how many were embedded now.

        A run that was stopped goes on where it was.

        Args:
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: what was embedded is kept, and the same call goes on from there.
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
        Nodes that are there already are not made again.

        Args:
            document_ids: the documents; none means all.
            kind: `ilm` (ILM-TR): every segment has a summary and its surprises, and summaries are
                clustered; `raptor` (RAPTOR): segments are clustered, and nodes are plain summaries.
            preset: `default` clusters within chapters first, so that a changed chapter changes few
                nodes; `paper` clusters each level as a whole, and sends the parameters of sampling
                of ILM-TR, appendix A.3, to servers that take them.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            What was made. A cap that was reached is in `stopped`, and the same call goes on.

        Raises:
            MissingError: the extra is not installed.
            NotFound: one of the documents is not there.
            ModelUnavailable: the model does not answer; what was made is kept.
        """
        return await change.build_tree(
            self._session, document_ids, self._emit, caps, kind=kind, preset=preset
        )

    async def trees(self, *document_ids: str, kind: TreeKind = "ilm") -> Sequence[Tree]:
        """Return the trees of some documents, or all that were built.

        Raises:
            NotFound: one of the documents is not there.
        """
        return await change.trees(self._session, document_ids, kind)

    async def load(self, path: str | PathLike[str]) -> Archived:
        """Fill the namespace with an archive that `export` wrote: all of it, or nothing.

        Raises:
            BadImport: the archive is cut, altered or not in its form; nothing is written.
            MissingError: it was written by a newer qrmem, or embedded by another model than the
                one that is chosen.
            UsageError: the namespace holds something already.
        """
        return await change.load(self._session, path, self._emit)

    async def load_openie(self, path: str | PathLike[str]) -> ExtractionReport:
        """Bring in what was extracted elsewhere: HippoRAG's OpenIE results, or plain triples.

        Passages whose text the file has become documents; others are found by the id of a document
        or a segment. See docs/archive.md for the forms.

        Raises:
            BadImport: the file is not in its form, or names a passage that is not there;
                nothing is written.
        """
        return await change.load_openie(self._session, path, self._emit)

    async def export(self, path: str | PathLike[str], *, runs: bool = False) -> Archived:
        """Write the namespace to one file: equal memories give equal bytes, from every store.

        Args:
            path: replaced if an archive stands there; anything else is not written over.
            runs: write trails, the ledger of calls and cached replies too; they have a clock in
                them.

        Raises:
            NotFound: there is no such namespace.
            StoreConflict: somebody changed it meanwhile, and it is not in SQLite; nothing is
            written.
        """
        return await change.export(self._session, path, runs=runs)

    async def graphml(self, path: str) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); returns how many entities."""
        return await change.graphml(self._session, path)

    async def markdown(self, folder: str | PathLike[str]) -> int:
        """Write the memory as linked Markdown notes (Obsidian, git); returns how many.

        Args:
            folder: new, empty, or that of an earlier export, whose notes are replaced; other files
                in it stay.

        Raises:
            UsageError: it holds something else.
        """
        return await change.markdown(self._session, folder)
