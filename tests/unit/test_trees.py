"""Clusters, surprises and labelled replies: the parts of a tree."""

import asyncio
import ctypes
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from contract.reference import ReferenceStore
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_info, threadpool_limits

from qrmem.agents.tree_building import TreeDeps, build_tree
from qrmem.extraction.summaries import NodeText, Summarised, extractive, parsed, surprises
from qrmem.graph.segmenting import cut
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.retrieval.trees.clustering import ClusterSettings, clusters
from qrmem.retrieval.trees.nodes import parts
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Document, Segment

SHIP = (
    "The ship left the harbour with a full cargo. The captain watched the harbour from the ship. "
    "The cargo of the ship was heavy. The captain feared for the cargo in the harbour. "
    "Goat cheese is a secret ingredient of a perfect pizza. The ship and its captain came back to "
    "the harbour without the cargo."
)


def blobs(sizes: list[int], spread: float = 0.05) -> np.ndarray:
    chance = np.random.default_rng(0)
    centres = np.eye(len(sizes), 16)
    rows = [c + spread * chance.normal(size=(n, 16)) for c, n in zip(centres, sizes, strict=True)]
    return np.concatenate(rows)


def test_rows_that_lie_apart_come_into_different_clusters() -> None:
    found = clusters(blobs([12, 12, 12]), [10] * 36, ClusterSettings(reduction="pca")).groups
    kinds = [{row // 12 for row in group} for group in found]
    assert all(len(kind) == 1 for kind in kinds)
    assert {row for group in found for row in group} == set(range(36))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 12, 200])
def test_any_number_of_equal_rows_becomes_fewer_groups(n: int) -> None:
    found = clusters(np.ones((n, 8)), [1000] * n, ClusterSettings(reduction="pca")).groups
    assert sorted({row for group in found for row in group}) == list(range(n))
    assert len(found) < max(n, 2)


def test_the_same_rows_give_the_same_clusters() -> None:
    rows, settings = blobs([7, 20, 5, 9], spread=0.4), ClusterSettings(reduction="pca")
    assert clusters(rows, [50] * 41, settings) == clusters(rows, [50] * 41, settings)


def test_clusters_are_made_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    def threads() -> set[int]:
        return {int(pool["num_threads"]) for pool in threadpool_info()}

    def fit(mixture: GaussianMixture, rows: np.ndarray) -> GaussianMixture:
        seen.update(threads())
        return fitted(mixture, rows)

    fitted = GaussianMixture.fit
    clusters(blobs([12, 12]), [10] * 24, ClusterSettings(reduction="pca"))
    with suppress(OSError):  # a pool of threads that comes later, as numba's does
        ctypes.CDLL("libgomp.so.1")
    monkeypatch.setattr(GaussianMixture, "fit", fit)
    with threadpool_limits(2):
        clusters(blobs([12, 12]), [10] * 24, ClusterSettings(reduction="pca"))
        assert threads() == {2}
    assert seen == {1}


async def test_finished_nodes_are_stored_while_others_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", "builtin", 600))
    document = Document("\n\n".join(f"Line {n} of the log." for n in range(80)), id="d")
    segments = cut("d", document, BuiltinTokenizer(), 8)
    await store.put_documents("ns", [(document, segments)])

    async def summarised(text: NodeText) -> Summarised:
        if "Line 79 " in text.pieces[0]:
            async with asyncio.timeout(10):
                await kept.wait()
        return Summarised(text.pieces[0])

    async def put_cache_entry(*args: Any, **options: Any) -> None:
        await put(*args, **options)
        kept.set()

    kept, put = asyncio.Event(), store.put_cache_entry
    monkeypatch.setattr(store, "put_cache_entry", put_cache_entry)

    deps = TreeDeps(
        store=store,
        ns="ns",
        summarise=summarised,
        method="test",
        is_local=False,
        count=BuiltinTokenizer().count,
        concurrency=2,
    )
    tree = await build_tree(deps, "d")
    assert len(tree.nodes) == deps.made > len(segments) == 80


def test_a_cluster_over_the_token_limit_is_divided() -> None:
    found = clusters(blobs([24]), [600] * 24, ClusterSettings(reduction="pca")).groups
    assert max(len(group) for group in found) <= 5


def test_the_sentence_that_the_rest_does_not_predict_is_surprising() -> None:
    assert surprises(SHIP) == ("Goat cheese is a secret ingredient of a perfect pizza.",)
    assert surprises("One sentence alone is no surprise.") == ()


def test_an_extractive_summary_is_shorter_than_the_text_and_never_empty() -> None:
    count = BuiltinTokenizer().count
    made = extractive(NodeText((SHIP * 4,)), count, limit=300)
    assert 0 < count(made.summary) < count(SHIP * 4) / 2
    assert extractive(NodeText(("word " * 900,)), count, limit=20).summary


@pytest.mark.parametrize(
    ("reply", "summary", "surprises_", "is_well_formed"),
    [
        ("(Summary): A ship.\n(Surprise): A pizza.", "A ship.", ("A pizza.",), True),
        (
            "**Summary:** A ship.\n\n**Surprises:**\n- One.\n- Two.",
            "A ship.",
            ("One.", "Two."),
            True,
        ),
        ("(Surprise): A pizza.\n(Summary): A ship.", "A ship.", ("A pizza.",), True),
        ("(Summary) A ship.\n<surprise> A pizza.", "A ship.", ("A pizza.",), True),
        ("(Summary): A ship.\n(Surprise): None", "A ship.", (), True),
        ("## Summary\nA ship.\n\n## Surprise\nA pizza.", "A ship.", ("A pizza.",), True),
        ("**Summary**\nA ship.\n**Surprising facts**\nNone", "A ship.", (), True),
        ("1. Summary: A ship.\n2. Surprise: A pizza.", "A ship.", ("A pizza.",), True),
        ("(Summary): A ship. (Surprise): A pizza.", "A ship.", ("A pizza.",), True),
        (
            "(Summary): He came. To his surprise: the door was open. In summary: he left.\n"
            "(Surprise): A pizza.",
            "He came. To his surprise: the door was open. In summary: he left.",
            ("A pizza.",),
            True,
        ),
        ('{"summary": "A ship.", "surprise": ["A pizza."]}', "A ship.", ("A pizza.",), True),
        ('```json\n{"Summary": "A ship.", "Surprises": "None"}\n```', "A ship.", (), True),
        ('{"summary": "A ship."}', "A ship.", (), False),
        ("(Summary): A ship.", "A ship.", (), False),
        ("A ship sails.", "A ship sails.", (), False),
        ("", "", (), False),
    ],
)
def test_replies_are_read_with_and_without_their_labels(
    reply: str, summary: str, surprises_: tuple[str, ...], is_well_formed: bool
) -> None:
    made = parsed(reply)
    assert (made.summary, made.surprises, made.is_well_formed) == (
        summary,
        surprises_,
        is_well_formed,
    )


def test_parts_end_at_chapters_and_keep_their_ends_when_text_is_added() -> None:
    def segment(n: int, part: str) -> Segment:
        return Segment(f"id{n}", "d", n, n, n + 1, "x", 1, part)

    whole = [segment(n, f"chapter {n // 40}") for n in range(200)]
    assert [len(part) for part in parts(whole)] == [40] * 5
    plain = [segment(n, "") for n in range(1000)]
    before, after = parts(plain[:900]), parts(plain)
    assert before[:-1] == after[: len(before) - 1]
    assert max(map(len, after)) <= 150
