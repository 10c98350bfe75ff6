"""Which document each passage belongs to; decided for all of a file before anything is written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from qrmem.errors import BadDocument, BadImport
from qrmem.graph.segmenting import cut
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.io.openie.reading import Extraction, Passage
from qrmem.io.sources import identified
from qrmem.types import Document, Segment, Tokenizer


@dataclass(slots=True)
class Job:
    """A document and the passages that are about it.

    Attributes:
        document: with its segments, if it is new.
        passages: each with the id of the one segment that it is about, or "".
        is_carried: whether the file has its text: then all of it was read.
    """

    document_id: str
    document: Document | None = None
    segments: Sequence[Segment] = ()
    passages: list[tuple[Passage, str]] = field(default_factory=list)
    is_carried: bool = False


async def planned(
    store: GraphStore, info: NamespaceInfo, cutter: Tokenizer, extraction: Extraction, path: str
) -> list[Job]:
    """Return a job for every document that the file speaks of, in the file's order.

    Raises:
        BadImport: a passage is no document and no segment, or is a document with another text.
    """
    known = {one.id: one.digest for one in await store.documents(info.name)}
    jobs: dict[str, Job] = {}
    try:
        for passage in extraction.passages:
            if passage.text is not None:
                _plan_text(jobs, known, passage, info, cutter)
        named = [passage for passage in extraction.passages if passage.text is None]
        wanted = sorted({p.id for p in named if p.id not in known})
        of_segment = {s.id: s.document_id for s in await store.segments(info.name, wanted)}
        _plan_named(jobs, known.keys(), of_segment, named)
    except _Unplaced as exc:
        raise BadImport(
            f"{path}, {exc.where}: {exc}; nothing was imported into namespace {info.name!r} of"
            f" {store.location}"
        ) from exc
    return list(jobs.values())


class _Unplaced(Exception):
    """A passage has no place in the memory."""

    def __init__(self, passage: Passage, why: str) -> None:
        super().__init__(why)
        self.where = passage.where


def _plan_text(
    jobs: dict[str, Job],
    known: dict[str, str],
    passage: Passage,
    info: NamespaceInfo,
    cutter: Tokenizer,
) -> None:
    """Plan for a passage whose text is there; `known` learns of new documents."""
    try:
        document = identified(Document(passage.text or "", passage.title, passage.id or None))
    except BadDocument as exc:
        raise _Unplaced(passage, str(exc)) from exc
    id_ = document.id or ""
    digest = document.digest
    if known.get(id_, digest) != digest:
        raise _Unplaced(passage, f"document {id_!r} is there with another text; give another id")
    job = jobs.setdefault(id_, Job(id_))
    if id_ not in known:
        known[id_] = digest
        job.document, job.segments = document, cut(id_, document, cutter, info.segment_tokens)
    job.is_carried = True
    job.passages.append((passage, ""))


def _plan_named(
    jobs: dict[str, Job],
    known: Iterable[str],
    of_segment: dict[str, str],
    passages: Sequence[Passage],
) -> None:
    """Plan for passages that are given by id."""
    documents = set(known)
    for passage in passages:
        document_id = passage.id if passage.id in documents else of_segment.get(passage.id)
        if document_id is None:
            raise _Unplaced(passage, f"there is no document or segment {passage.id[:80]!r}")
        segment_id = "" if passage.id in documents else passage.id
        jobs.setdefault(document_id, Job(document_id)).passages.append((passage, segment_id))
