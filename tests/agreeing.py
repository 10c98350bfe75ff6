"""Stores that agree: each operation has the same result, contents are equal, searches are equal."""

from collections.abc import Sequence

import pytest
from contract.suite.operations import NAMESPACES, Operation, play
from fakes import HashEmbedder

from qrmem.graphstore import GraphStore
from qrmem.retrieval import Searcher
from qrmem.types import Hit

QUESTIONS = ("Why did Ann meet Bob?", "éa ran", 'Cy (AND) ann~ "bob" OR -ran')
WITHIN = 1e-4


async def agree(stores: Sequence[GraphStore], script: Sequence[tuple[str, Operation]]) -> None:
    """Play a script and ask some questions; the first store is the oracle."""
    await play(stores, script)
    for ns in NAMESPACES:
        expected, *others = [await _searched(store, ns) for store in stores]
        for found in others:
            assert [_identity(hit) for hit in found] == [_identity(hit) for hit in expected]
            scores = [hit.score for hit in expected]
            assert [hit.score for hit in found] == pytest.approx(scores, abs=WITHIN)


async def _searched(store: GraphStore, ns: str) -> Sequence[Hit]:
    info = await store.namespace(ns)
    assert info is not None
    searcher = Searcher(store, ns, HashEmbedder(info.dimension, name=info.embedder))
    return [hit for question in QUESTIONS for hit in await searcher.search(question)]


def _identity(hit: Hit) -> tuple[object, ...]:
    return hit.document_id, hit.title, hit.segment_id, hit.text, hit.via
