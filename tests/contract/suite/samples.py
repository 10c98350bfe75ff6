"""Small memories for tests, and everything of a memory in one comparable value."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from qrmem.graphstore.protocol import (
    EntityRow,
    FactRow,
    GraphStore,
    MentionRow,
    NamespaceInfo,
    VectorKind,
    Vectors,
    ViewUpdate,
)
from qrmem.graphstore.reads import entities_in, facts_of
from qrmem.text.names import plain
from qrmem.types import Document, MetaValue, Question, Segment

INFO = NamespaceInfo(name="", tokenizer="builtin-v1", segment_tokens=600, embedder="e", dimension=3)

Text = tuple[Document, Sequence[Segment]]


def text(
    id_: str, *pieces: str, title: str = "", metadata: Mapping[str, MetaValue] | None = None
) -> Text:
    """Return a document and its segments, one per piece, with ids that follow from the pieces."""
    segments, start, seen = [], 0, list[str]()
    for index, piece in enumerate(pieces):
        segment_id = hashlib.sha256(f"{id_}|{piece}|{seen.count(piece)}".encode()).hexdigest()[:16]
        segments.append(
            Segment(segment_id, id_, index, start, start + len(piece), piece, len(piece.split()))
        )
        start += len(piece)
        seen.append(piece)
    return Document("".join(pieces), title=title, id=id_, metadata=metadata or {}), segments


def series(writer: str) -> list[Text]:
    """Return twelve small texts that share names with those of every other writer."""
    return [
        text(f"{writer}{n}", f"Ann met {writer.title()} ", f"Bob saw Cy {n} ") for n in range(12)
    ]


def change(segments: Iterable[Segment], known: Iterable[str] = ()) -> ViewUpdate:
    """Return what a very plain reader makes of segments.

    Every capitalised word is a name and an entity of its own, neighbouring names state a fact, a
    word with a question mark is a question.

    Args:
        known: names that are in the memory already.
    """
    segments = list(segments)
    names = {word for s in segments for word in s.text.split() if word[:1].isupper()}
    new = sorted(names - set(known))
    return ViewUpdate(
        clear=[s.id for s in segments],
        mentions=[row for s in segments for row in _mentions(s)],
        facts=[row for s in segments for row in _facts(s)],
        questions=[Question(w, s.id) for s in segments for w in s.text.split() if "?" in w],
        index={s.id: _counts(_words(s.text)) for s in segments},
        names={name: name for name in new},
        entities=[EntityRow(name, name, "") for name in new],
        merged={s.id: f"digest of {s.id}" for s in segments},
    )


def _words(text: str) -> list[str]:
    """Return the words of a text as terms, which have no question mark."""
    return text.lower().replace("?", "").split()


def _counts(words: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


def _mentions(segment: Segment) -> list[MentionRow]:
    words = [word for word in segment.text.split() if word[:1].isupper()]
    return [MentionRow(segment.id, w, ((w, n),)) for w, n in _counts(words).items()]


def _facts(segment: Segment) -> list[FactRow]:
    words = [word for word in segment.text.split() if word[:1].isupper()]
    pairs = enumerate(pairwise(words))
    return [FactRow(segment.id, n, a, b, f"{a} meets {b}") for n, (a, b) in pairs]


async def add(store: GraphStore, ns: str, *texts: Text) -> None:
    """Put texts and apply what the plain reader makes of them, one after the other."""
    await store.create_namespace(ns, INFO)
    for document, segments in texts:
        await store.put_documents(ns, [(document, segments)])
        await apply(store, ns, change(segments, [row.key for row in await store.names(ns)]))


async def apply(store: GraphStore, ns: str, given: ViewUpdate) -> int:
    """Apply a change to the present revision."""
    info = await store.namespace(ns)
    assert info is not None
    return await store.apply(ns, info.revision, given)


async def contents(store: GraphStore, ns: str, terms: Sequence[str] = ()) -> dict[str, Any]:
    """Return all that a memory holds but its revision, in values that compare.

    Args:
        terms: which to look up in the index, beside all words of the texts.
    """
    documents = [info.id for info in await store.documents(ns)]
    names = await store.names(ns)
    keys = sorted({row.entity for row in names})
    segments = [s for id_ in documents for s in await store.segments(ns, documents=[id_])]
    ids = [segment.id for segment in segments]
    words = {word for segment in segments for word in _words(segment.text)}
    return {
        "documents": [await store.document(ns, id_) for id_ in documents],
        "infos": list(await store.documents(ns)),
        "segments": segments,
        "ledger": list(await store.ledger(ns)),
        "contributions": [
            list(await store.contributions(ns, id_, kinds=("extraction", "supplement", "oriented")))
            for id_ in documents
        ],
        "decisions": list((await store.unmerged(ns)).decisions),
        "names": list(names),
        "entities": list(await store.entities(ns, keys)),
        "listed": list(await store.list_entities(ns)),
        "entities in": {k: tuple(v) for k, v in (await entities_in(store, ns, ids)).items()},
        "places": {k: tuple(v) for k, v in (await store.around(ns, keys)).places.items()},
        "facts": list(await facts_of(store, ns, keys)),
        "relations": list(await store.relations(ns, keys)),
        "questions": list(await store.questions(ns)),
        "counts": dict(await store.counts(ns)),
        "states": dict(await store.states(ns)),
        "index": await _index(store, ns, ids, sorted(words.union(terms))),
        "vectors": [await _vectors(store, ns, "segment"), await _vectors(store, ns, "relation")],
        "trails": list(await store.trails(ns)),
        "calls": list(await store.calls(ns)),
    }


async def indexed(store: GraphStore, ns: str) -> list[str]:
    """Return the ids of the segments that the search index holds, in order."""
    ids = [row.segment_id for row in await store.ledger(ns)]
    return [entry.id for entry in await store.entries(ns, ids)]


async def matching(
    store: GraphStore,
    ns: str,
    groups: Sequence[Sequence[str]],
    limit: int,
    documents: Sequence[str] | None = None,
    *,
    among: Sequence[str] | None = None,
) -> Sequence[str]:
    """Return the segments with a term of every group, best first."""
    (ids,) = await store.matching_each(ns, [groups], limit, documents, among=among)
    return ids


async def _index(
    store: GraphStore, ns: str, ids: Sequence[str], terms: Sequence[str]
) -> dict[str, Any]:
    """Return what the search indexes say of segments, terms, titles and names."""
    found = await indexed(store, ns)
    known = await store.vocabulary(ns, terms)
    entries = await store.entries(ns, ids)
    assert sorted(entry.id for entry in entries) == sorted(found)
    titles = sorted({plain(entry.title) for entry in entries})
    return {
        "indexed": found,
        "vocabulary": (known.segments, known.terms, dict(sorted(known.frequencies.items()))),
        "entries": [replace(entry, terms=sorted(entry.terms)) for entry in entries],
        "matching": {term: sorted(await matching(store, ns, [[term]], 1000)) for term in terms},
        "titled": dict(await store.titled(ns, titles)),
        "named": {
            id_: sorted(pairs) for id_, pairs in (await store.mentions(ns, ids)).named.items()
        },
    }


async def all_vectors(store: GraphStore, ns: str, kind: VectorKind) -> Vectors:
    """Return the rows of all owners."""
    return await store.vectors(ns, kind, await store.owners(ns, kind))


async def _vectors(store: GraphStore, ns: str, kind: VectorKind) -> list[tuple[str, list[float]]]:
    found = await all_vectors(store, ns, kind)
    assert list(await store.owners(ns, kind)) == list(dict.fromkeys(found.owners))
    return list(zip(found.owners, found.matrix.tolist(), strict=True))
