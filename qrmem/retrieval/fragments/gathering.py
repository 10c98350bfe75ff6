"""The fragments of a memory for FragRel: their order, places, vectors and independent scores."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import UsageError
from qrmem.llm.parallel import in_batches
from qrmem.llm.tokenizers import open_pieces
from qrmem.text.code.languages import CODE_KEY
from qrmem.types import options as presets
from qrmem.types.turns import CHAT_KEY, turn_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Entry
    from qrmem.retrieval.searcher import Searcher
    from qrmem.types import DocumentInfo, Segment
    from qrmem.types.options import FragmentSettings

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fragments:
    """All fragments that a question may find, in order.

    Attributes:
        ids: segment ids.
        documents: the documents that contain the fragments.
        document_of: `(n,)`, index into `documents` of each fragment.
        sequences: `(n,)`, ascending: number of the sequence of each fragment. A sequence is a
            document, or a session of a conversation.
        places: `(n,)`, position of each fragment in its sequence: `loc` of Equation 7.
        vectors: `(n, dimension)`, normalised sum of the vectors of a fragment's windows; a row of
            zeros for a fragment without vectors.
        segments: the segments themselves; only set for a relation that the user supplies.
    """

    ids: Sequence[str]
    documents: "Sequence[DocumentInfo]"
    document_of: "NDArray[np.int64]"
    sequences: "NDArray[np.int64]"
    places: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"
    segments: "Sequence[Segment]" = ()

    @property
    def size(self) -> int:
        """Number of fragments."""
        return len(self.ids)


async def gather(searcher: "Searcher", documents: frozenset[str] | None) -> Fragments:
    """Return the fragments of a namespace, ordered by sequence, then by place.

    Args:
        documents: ids of the documents to include; `None` includes all.
    """
    store, ns = searcher.store, searcher.ns
    ids = [row.segment_id for row in await store.ledger(ns, *sorted(documents or ()))]
    entries = [
        entry
        for entry in await store.entries(ns, ids)
        if documents is None or entry.document_id in documents
    ]
    present = {entry.document_id for entry in entries}
    infos = [info for info in await store.documents(ns) if info.id in present]
    numbers = {info.id: number for number, info in enumerate(infos)}
    sequence_of, turn_of = _sequences(infos)
    document_of = np.array([numbers[entry.document_id] for entry in entries], dtype=np.int64)
    index = np.array([entry.index for entry in entries], dtype=np.int64)
    places = np.where(turn_of[document_of] >= 0, turn_of[document_of], index)
    sequences = sequence_of[document_of]
    order = np.lexsort((index, document_of, places, sequences))
    ordered = [entries[row] for row in order.tolist()]
    return Fragments(
        ids=[entry.id for entry in ordered],
        documents=infos,
        document_of=document_of[order],
        sequences=sequences[order],
        places=places[order],
        vectors=await _directions(searcher, ordered),
    )


def _sequences(documents: "Sequence[DocumentInfo]") -> "tuple[NDArray[np.int64], ...]":
    """Return each document's sequence number and turn number (-1 if it is not a turn)."""
    numbers: dict[tuple[str, str], int] = {}
    sequence_of, turn_of = [], []
    for info in documents:
        number = turn_number(info.id, info.metadata)
        name = (CHAT_KEY, str(info.metadata[CHAT_KEY])) if number else ("", info.id)
        sequence_of.append(numbers.setdefault(name, len(numbers)))
        turn_of.append(number or -1)
    return np.array(sequence_of, dtype=np.int64), np.array(turn_of, dtype=np.int64)


async def _directions(searcher: "Searcher", entries: "Sequence[Entry]") -> "NDArray[np.float32]":
    """Return one unit vector per segment: the normalised sum of its windows' vectors."""
    row_of = {entry.id: row for row, entry in enumerate(entries)}
    vectors = await searcher.store.vectors(searcher.ns, "segment", list(row_of))
    result = np.zeros((len(entries), vectors.matrix.shape[1]), dtype=np.float32)
    np.add.at(result, [row_of[owner] for owner in vectors.owners], vectors.matrix)
    length = np.linalg.norm(result, axis=1, keepdims=True)
    np.divide(result, length, out=result, where=length > 0)
    return result


def preset(fragments: Fragments) -> "FragmentSettings":
    """Return the paper's settings for the most frequent kind of fragment: text, code or turns."""
    kinds = np.array(
        [
            1 if CODE_KEY in info.metadata else 2 if turn_number(info.id, info.metadata) else 0
            for info in fragments.documents
        ],
        dtype=np.int64,
    )
    counts = np.bincount(kinds[fragments.document_of], minlength=3)
    return (presets.STORY, presets.CODE, presets.CHAT)[int(counts.argmax())]


# The independent score of a fragment (FragRel, Equation 4): cosine, BM25, Jaccard, or a search.

_BATCH = 2_000


async def scores(
    searcher: "Searcher", fragments: "Fragments", question: str, settings: "FragmentSettings"
) -> "Vector":
    """Return the independent score of every fragment (FragRel, Equation 4).

    Returns:
        `(n,)`; 0 for a fragment that the score does not rank.

    Raises:
        UsageError: the score is `cosine` and the memory has no vectors.
    """
    kind = settings.score
    has_vectors = searcher.embedder is not None and bool(fragments.vectors.any())
    if kind == "cosine" and not has_vectors:
        raise UsageError("score 'cosine' needs an embedder; `qrmem reembed` adds vectors")
    if kind == "jaccard":
        return await _jaccards(searcher, fragments, question, open_pieces(settings.pieces))
    size, documents = fragments.size, {info.id for info in fragments.documents}
    if kind == "search":
        findings = await searcher.findings(question, documents=documents, at_least=size)
        assert findings is not None  # the namespace exists, since it has fragments
        score_of = {one.id: findings.scores[row] for row, one in enumerate(findings.near.entries)}
    else:
        by = "bm25" if kind == "bm25" or not has_vectors else "cosine"
        score_of = await searcher.ranking(question, by, size, documents)
    return np.array([score_of.get(id_, 0.0) for id_ in fragments.ids], dtype=np.float64)


async def _jaccards(
    searcher: "Searcher",
    fragments: "Fragments",
    question: str,
    pieces: Callable[[str], frozenset[str] | frozenset[int]],
) -> "Vector":
    ids, query_pieces = fragments.ids, pieces(question)
    similarities: dict[str, float] = {}
    for some in in_batches(ids, _BATCH):
        for segment in await searcher.store.segments(searcher.ns, some):
            similarities[segment.id] = jaccard(query_pieces, pieces(segment.text))
    return np.array([similarities.get(id_, 0.0) for id_ in ids], dtype=np.float64)


def jaccard(one: Set[object], other: Set[object]) -> float:
    """Return the Jaccard index of two sets, in [0, 1]; 0 if both are empty."""
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def within_words(counts: Sequence[int], limit: int) -> int:
    """Return how many of the first fragments have at most `limit` words together; at least 1.

    Args:
        counts: number of words of each fragment, in order.
        limit: upper bound on the sum.
    """
    total = np.cumsum(np.asarray(counts, dtype=np.int64))
    return max(1, int(np.searchsorted(total, limit, side="right")))
