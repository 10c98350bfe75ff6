"""Full-text search: a Lucene index over the terms of segments, and the names of documents as nodes.

Terms are already stemmed and folded, so the analyzer only splits them at spaces. One index
holds all namespaces: each segment has a mark of its namespace, which every query requires. Lucene
weighs terms over all namespaces, so its order only proposes candidates.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from qrmem.graphstore.neo4j.connection import Properties, Step, Work
from qrmem.graphstore.neo4j.keys import in_order, short, shortened
from qrmem.graphstore.protocol import FIRST_TITLED, MOST_TITLED, Entry, Titled, Vocabulary
from qrmem.text.names import forms_of
from qrmem.text.words import terms
from qrmem.types import Document

METADATA = "meta_"
"""Prefix of a document's properties that hold its metadata."""

_SHORT = 3
"""Words of a name that is looked up as it is; longer ones are looked up by so many words first."""


def _space(work: Work) -> str:
    return "ns" + hashlib.blake2b(work.ns.encode(), digest_size=12).hexdigest()


def add_steps(
    work: Work, given: Mapping[str, Mapping[str, int]], titles: Mapping[str, str]
) -> list[Step]:
    """Return the steps that add segments to the index.

    Args:
        given: segment id to its terms with their frequencies.
        titles: short key of each segment to its document's title.
    """
    title_terms = {title: terms(title) for title in set(titles.values())}
    ready: list[Properties] = []
    for id_, frequencies in given.items():
        title = title_terms[titles[short(id_)]]
        words = [*title, *Counter(frequencies).elements()]
        ready.append(
            {
                "key": short(id_),
                "qrmem_terms": " ".join(words),
                "qrmem_of_title": len(title),
                "qrmem_length": len(words),
                "qrmem_space": _space(work),
            }
        )
    return [
        ("full_text.put", ready),
        _counted(len(ready), sum(row["qrmem_length"] for row in ready)),
    ]


def drop_steps(lengths: Mapping[str, int | None]) -> list[Step]:
    """Return the steps that remove segments from the index.

    Args:
        lengths: short key to the number of terms; `None` for a segment that is not in the index.
    """
    lengths_known = {key: length for key, length in lengths.items() if length is not None}
    return [
        ("full_text.drop", sorted(lengths_known)),
        _counted(-len(lengths_known), -sum(lengths_known.values())),
    ]


def _counted(segments: int, terms: int) -> Step:
    rows = [{"segments": segments, "terms": terms}] if segments or terms else []
    return "full_text.count", rows


def title_steps(documents: Iterable[tuple[str, Document]]) -> list[Step]:
    """Return the steps that write the names of documents, given by short key."""
    document_of = dict(documents)
    return [
        ("full_text.untitle", sorted(document_of)),
        (
            "full_text.title",
            [
                {"document": key, "form": short(form), "sure": sure}
                for key, document in document_of.items()
                for form, sure in forms_of(document.title, document.text).items()
            ],
        ),
    ]


async def retitle(work: Work, documents: Collection[str]) -> None:
    """Update the index terms of documents' titles; the documents are given by short key."""
    changed, more = [], 0
    for key, title, before, of_title in await work.each(
        "full_text.indexed_titles", sorted(documents)
    ):
        title_terms, words = terms(title), before.split()
        if title_terms != words[:of_title]:
            more += len(title_terms) - of_title
            words[:of_title] = title_terms
            changed.append(
                {
                    "key": key,
                    "qrmem_terms": " ".join(words),
                    "qrmem_of_title": len(title_terms),
                    "qrmem_length": len(words),
                }
            )
    await work.together([("full_text.put", changed), _counted(0, more)])


async def vocabulary(work: Work, wanted: Sequence[str]) -> Vocabulary:
    """Return how many segments have each term."""
    rows = [{"term": term, "query": _query(work, [[term]])} for term in dict.fromkeys(wanted)]
    row = await work.row("full_text.vocabulary", rows=rows)
    segments, total, counts = row or (0, 0, ())
    return Vocabulary(segments, total, dict(counts))


def _query(work: Work, groups: Iterable[Iterable[str]]) -> str:
    """Return a Lucene query for segments with a term of every group."""
    clauses = (" ".join(f"qrmem_terms:{_quoted(term)}" for term in group) for group in groups)
    return f"+qrmem_space:{_space(work)} " + " ".join(f"+({any_of})" for any_of in clauses)


def _quoted(term: str) -> str:
    return '"' + term.replace("\\", "\\\\").replace('"', '\\"') + '"'


async def matching_each(
    work: Work,
    queries: Sequence[Sequence[Sequence[str]]],
    limit: int,
    documents: Collection[str] | None = None,
    *,
    among: Collection[str] | None = None,
) -> list[list[str]]:
    """Return the segments of each query, best first by BM25; a round trip each would cost 1 ms."""
    asked = [
        _query(work, map(dict.fromkeys, groups)) if groups and all(groups) else ""
        for groups in queries
    ]
    rows = sorted({*asked} - {""})
    if documents is None and among is None:
        answers = await work.rows("full_text.matching", rows=rows, limit=limit)
    else:
        only = {
            "documents": None if documents is None else sorted(documents),
            "among": None if among is None else sorted({short(id_) for id_ in among}),
        }
        answers = await work.rows("full_text.matching_in", rows=rows, limit=limit, **only)
    ids_by_query: dict[str, list[str]] = {}
    for query, found in answers:
        found.sort(key=lambda row: (-round(row[1], 5), row[2], row[3]))
        ids_by_query[query] = [id_ for id_, *_ in found]
    return [ids_by_query.get(query, []) for query in asked]


async def entries(work: Work, segment_ids: Sequence[str]) -> list[Entry]:
    """Return the index entries of segments, in the order of the ids."""
    keys = sorted({short(id_) for id_ in segment_ids})
    result = {}
    for batch in await work.each("full_text.entries", keys, metadata=METADATA):
        for id_, document, index, title, metadata, words in batch[0]:
            metadata_fields = {name.removeprefix(METADATA): value for name, value in metadata}
            result[id_] = Entry(id_, document, index, title, metadata_fields, words.split())
    return in_order(segment_ids, result)


async def titled(work: Work, names: Sequence[str]) -> dict[str, list[Titled]]:
    """Return the documents whose titles are among some names."""
    names_shortened = shortened(name for name in names if "\n" not in name)  # no title has one
    words_by_name = {name: name.split(" ") for name in sorted(names_shortened)}
    long = [name for name, words in words_by_name.items() if len(words) > _SHORT]
    beginnings = {" ".join([*words_by_name[name][:_SHORT], ""]) for name in long}
    documents_by_name: dict[str, list[Titled]] = {}
    for form, id_, sure, segments in await work.rows(
        "full_text.titled",
        short="\n".join(words_by_name.keys() - long),
        long="\n".join(long) or None,
        beginnings="\n".join(beginnings) or None,
        most=MOST_TITLED,
        first=FIRST_TITLED,
    ):
        if segments:
            documents_by_name.setdefault(names_shortened[form], []).append(
                Titled(id_, sure, segments)
            )
    for documents in documents_by_name.values():
        documents.sort(key=lambda one: (-one.sure, one.document_id))
    return documents_by_name
