"""Import of extractions by other programs: plan, match to segments, write."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

from qrmem.errors import BadDocument, BadImport, StoreConflict
from qrmem.graph.merging import Similar, merge_documents
from qrmem.graph.segmenting import cut
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.io.sources import identified
from qrmem.io.triple_files import Extraction, FilePassage, Triple, read_openie
from qrmem.text.names import Occurrences, normalise_name
from qrmem.types import (
    Contribution,
    Document,
    Event,
    ExtractionReport,
    LedgerRow,
    Listener,
    Mention,
    Segment,
    Statement,
    Tokenizer,
)

# Matching of a passage's names and triples to the segments of its document.


@dataclass(slots=True)
class MatchResult:
    """The result of matching a passage.

    Attributes:
        contributions: one for each segment with a match, in order.
        entities: number of names that occur in the document.
        triples: number of triples with both ends in one segment.
        absent_entities: number of names that do not occur.
        absent_triples: number of triples without such a segment.
    """

    contributions: list[Contribution]
    entities: int = 0
    triples: int = 0
    absent_entities: int = 0
    absent_triples: int = 0


def place(segments: Sequence[Segment], passage: FilePassage) -> MatchResult:
    """Match the names and triples of a passage to segments.

    A name is an entity of every segment that it occurs in. A triple belongs to the first segment
    with both its ends. A name or triple that the text does not have in this spelling is counted and
    left out, as it is for a model's reply.

    Args:
        segments: the segments of the passage's document, or the one segment that it is.
        passage: the passage.
    """
    pages = [_Page(segment) for segment in segments]
    placed = MatchResult([])
    for name in dict.fromkeys(passage.entities):
        pages_with_name = [page for page in pages if page.add_name(name)]
        placed.entities += bool(pages_with_name)
        placed.absent_entities += not pages_with_name
    for triple in dict.fromkeys(passage.triples):
        is_placed = any(page.add(triple) for page in pages)
        placed.triples += is_placed
        placed.absent_triples += not is_placed
    placed.contributions += [page.contribution for page in pages if page.is_filled]
    return placed


def united(before: Contribution, added: Contribution) -> Contribution:
    """Return a first extraction with the new entities and statements of another."""
    names_known = {normalise_name(form) for m in before.mentions for form in (m.name, *m.forms)}
    mentions = [m for m in added.mentions if normalise_name(m.name) not in names_known]
    statements = [s for s in added.statements if s not in before.statements]
    return replace(
        before,
        mentions=(*before.mentions, *mentions),
        statements=(*before.statements, *statements),
    )


class _Page:
    """A segment with its matches so far."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._in_text = Occurrences(segment.text)
        self._spelled: dict[str, str | None] = {}
        self._statements: dict[Statement, None] = {}
        self._names: dict[str, None] = {}

    @property
    def is_filled(self) -> bool:
        """Whether there are matches."""
        return bool(self._names)

    @property
    def contribution(self) -> Contribution:
        """The matches as a first reading of the segment."""
        counts = self._in_text.counted(self._names)
        return Contribution(
            self._segment.id,
            "extraction",
            mentions=tuple(Mention(n, "", (n,), counts[n]) for n in self._names),
            statements=tuple(self._statements),
        )

    def add_name(self, name: str) -> bool:
        """Add a name if it occurs in the segment."""
        spelled = self._find(name)
        if spelled is not None:
            self._names[spelled] = None
        return spelled is not None

    def add(self, triple: Triple) -> bool:
        """Add a triple if both its ends occur in the segment."""
        head, tail = self._find(triple.subject), self._find(triple.object)
        if head is None or tail is None:
            return False
        self._names |= {head: None, tail: None}
        description = f"{triple.subject} {triple.relation} {triple.object}"
        self._statements[Statement(head, tail, description)] = None
        return True

    def _find(self, name: str) -> str | None:
        if name not in self._spelled:
            spelling = self._in_text.spelled(name)
            self._spelled[name] = spelling if spelling and normalise_name(spelling) else None
        return self._spelled[name]


# Assignment of passages to documents, for the whole file before the first write.


@dataclass(slots=True)
class PassageGroup:
    """A document and its passages.

    Attributes:
        document_id: id of the document.
        document: the document, if it is new.
        segments: its segments, if it is new.
        passages: each with the id of its segment, or "" for the whole document.
        is_carried: whether the file has the document's text; then all segments count as read.
    """

    document_id: str
    document: Document | None = None
    segments: Sequence[Segment] = ()
    passages: list[tuple[FilePassage, str]] = field(default_factory=list)
    is_carried: bool = False


async def planned(
    store: GraphStore, info: NamespaceInfo, cutter: Tokenizer, extraction: Extraction, path: str
) -> list[PassageGroup]:
    """Return a job for every document of the file, in the file's order.

    Raises:
        BadImport: a passage refers to an unknown document or segment, or its document has another
            text.
    """
    digests = {one.id: one.digest for one in await store.documents(info.name)}
    jobs: dict[str, PassageGroup] = {}
    try:
        for passage in extraction.passages:
            if passage.text is not None:
                _plan_text(jobs, digests, passage, info, cutter)
        passages_named = [passage for passage in extraction.passages if passage.text is None]
        ids_wanted = sorted({p.id for p in passages_named if p.id not in digests})
        of_segment = {s.id: s.document_id for s in await store.segments(info.name, ids_wanted)}
        _plan_named(jobs, digests.keys(), of_segment, passages_named)
    except _Unplaced as exc:
        raise BadImport(
            f"{path}, {exc.where}: {exc}; nothing was imported into namespace {info.name!r} of"
            f" {store.location}"
        ) from exc
    return list(jobs.values())


class _Unplaced(Exception):
    """A passage has no place in the memory."""

    def __init__(self, passage: FilePassage, why: str) -> None:
        super().__init__(why)
        self.where = passage.where


def _plan_text(
    jobs: dict[str, PassageGroup],
    known: dict[str, str],
    passage: FilePassage,
    info: NamespaceInfo,
    cutter: Tokenizer,
) -> None:
    """Plan a passage with its text; new documents are added to `known`."""
    try:
        document = identified(Document(passage.text or "", passage.title, passage.id or None))
    except BadDocument as exc:
        raise _Unplaced(passage, str(exc)) from exc
    id_ = document.id or ""
    digest = document.digest
    if known.get(id_, digest) != digest:
        raise _Unplaced(
            passage, f"document {id_!r} already exists with another text; give another id"
        )
    job = jobs.setdefault(id_, PassageGroup(id_))
    if id_ not in known:
        known[id_] = digest
        job.document, job.segments = document, cut(id_, document, cutter, info.segment_tokens)
    job.is_carried = True
    job.passages.append((passage, ""))


def _plan_named(
    jobs: dict[str, PassageGroup],
    known: Iterable[str],
    of_segment: dict[str, str],
    passages: Sequence[FilePassage],
) -> None:
    """Plan passages without text, by their ids."""
    documents = set(known)
    for passage in passages:
        document_id = passage.id if passage.id in documents else of_segment.get(passage.id)
        if document_id is None:
            raise _Unplaced(passage, f"there is no document or segment {passage.id[:80]!r}")
        segment_id = "" if passage.id in documents else passage.id
        jobs.setdefault(document_id, PassageGroup(document_id)).passages.append(
            (passage, segment_id)
        )


REASONER = "openie"
"""Reasoner in the ledger for segments that another program read."""

_ROWS = 256
"""Number of segments per commit."""

_DOCUMENTS = 1024
"""Number of documents per merge, as a merge reads every name of the namespace."""

_READ = ("extracted", "ok", "partial")
"""States of segments that were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """The dependencies of an import.

    Attributes:
        store: the store.
        info: settings of the namespace, which need not exist yet.
        cutter: tokenizer that bounds segments.
        embed: computes and stores the vectors of segments, by id; `None` without an embedder.
        similar: returns the comparison of names for merging, or `None`.
        listener: gets the events of the import.
    """

    store: GraphStore
    info: NamespaceInfo
    cutter: Tokenizer
    embed: Callable[[Sequence[str]], Awaitable[object]] | None
    similar: Callable[[], Awaitable[Similar | None]]
    listener: Listener


async def import_openie(deps: Deps, path: str | PathLike[str]) -> ExtractionReport:
    """Import extractions into a namespace; a second run resumes a stopped import.

    A passage with its text becomes a document, unless that document exists. A passage without text
    is found by the id of a document or a segment. A segment that was read before gets only new
    entities and statements.

    Raises:
        BadImport: the file is malformed, refers to an unknown passage, or has another text for an
            existing document; nothing is written.
    """
    extraction = await asyncio.to_thread(read_openie, path)
    jobs = await planned(deps.store, deps.info, deps.cutter, extraction, str(path))
    work = _Work(deps)
    await work.make_namespace()
    for job in jobs:
        await work.take(job)
    await work.end()
    return ExtractionReport(
        documents=sum(job.document is not None for job in jobs),
        attached=sum(job.document is None for job in jobs),
        segments=work.segments,
        entities=work.sums.entities,
        triples=work.sums.triples,
        absent_entities=work.sums.absent_entities,
        absent_triples=work.sums.absent_triples,
        malformed=extraction.malformed,
        left_out=tuple(extraction.left_out),
    )


class _Work:
    """Counts of an import, and its buffered rows."""

    def __init__(self, deps: Deps) -> None:
        self.sums = MatchResult([])
        self.segments = 0
        self._deps = deps
        self._store, self._ns = deps.store, deps.info.name
        self._rows: list[tuple[LedgerRow, Contribution | None]] = []
        self._unmerged: list[str] = []
        self._ids: list[str] = []

    async def make_namespace(self) -> None:
        """Create the namespace if it does not exist."""
        info = self._deps.info
        info_made = await self._store.create_namespace(self._ns, info)
        if replace(info_made, revision=info.revision, single=info.single) != info:
            raise StoreConflict(
                f"namespace {self._ns!r} was created meanwhile with other settings; run the "
                "command again"
            )

    async def take(self, job: PassageGroup) -> None:
        """Write a document if it is new, and its extractions."""
        if job.document is not None:
            await self._store.put_documents(self._ns, [(job.document, job.segments)])
        segments = job.segments or await self._store.segments(self._ns, documents=[job.document_id])
        rows = {r.segment_id: r for r in await self._store.ledger(self._ns, job.document_id)}
        contributions = await self._store.contributions(
            self._ns, job.document_id, kinds=("extraction",)
        )
        before = {earlier.segment_id: earlier for earlier in contributions}
        added = self._place(job, segments)
        for segment in segments:
            row, earlier = rows[segment.id], before.get(segment.id)
            if segment.id in added or (job.is_carried and row.state not in _READ):
                self._record(
                    row, earlier, added.get(segment.id, Contribution(segment.id, "extraction"))
                )
        self._unmerged.append(job.document_id)
        self._ids += [segment.id for segment in segments]
        self._deps.listener(Event("document", {"id": job.document_id, "segments": len(segments)}))
        await self._commit(_ROWS, _DOCUMENTS)
        self._deps.listener(Event("segment", {"count": len(segments)}))

    def _place(self, job: PassageGroup, segments: Sequence[Segment]) -> dict[str, Contribution]:
        """Return the new contribution of each segment, and count it."""
        added: dict[str, Contribution] = {}
        for passage, segment_id in job.passages:
            placed = place([s for s in segments if segment_id in ("", s.id)], passage)
            self.sums.entities += placed.entities
            self.sums.triples += placed.triples
            self.sums.absent_entities += placed.absent_entities
            self.sums.absent_triples += placed.absent_triples
            for contribution in placed.contributions:
                first = added.get(contribution.segment_id)
                added[contribution.segment_id] = (
                    united(first, contribution) if first else contribution
                )
        return added

    def _record(self, row: LedgerRow, before: Contribution | None, added: Contribution) -> None:
        """Buffer the new row of a segment, unless it is unchanged."""
        contribution = united(before, added) if before and row.state in _READ else added
        if row.state not in _READ:
            row = LedgerRow(row.segment_id, "ok", "", REASONER)
        elif contribution == before:
            return
        elif REASONER not in row.reasoner.split(" + "):
            row = replace(row, reasoner=f"{row.reasoner} + {REASONER}")
        self.segments += 1
        self._rows.append((row, contribution))

    async def _commit(self, rows: int, documents: int) -> None:
        """Write and merge the buffered rows, if there are enough of them."""
        if len(self._rows) >= rows:
            await self._store.record(self._ns, self._rows)
            self._rows = []
        if len(self._unmerged) >= documents and not self._rows:
            self._deps.listener(Event("phase", {"phase": "merging"}))
            await merge_documents(
                self._store, self._ns, self._unmerged, similar=await self._deps.similar()
            )
            self._unmerged = []

    async def end(self) -> None:
        """Write, merge and embed the rest."""
        await self._commit(1, 1)
        if self._deps.embed is not None:
            await self._deps.embed(self._ids)
