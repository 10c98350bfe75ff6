"""Memories that grow and shrink step by step, and equal ones that are built at once."""

import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

from contract.suite.samples import contents, text
from hypothesis import strategies as st

from qrmem.graph.merging import merge_documents, refresh_names
from qrmem.graph.view_rows import decided
from qrmem.graphstore.protocol import GraphStore
from qrmem.types import Contribution, LedgerRow, Mention, MergeDecision, Segment, Statement

PIECES = (
    "Mary Bennet met Mr. Darcy in Paris. ",
    "Mary spoke of Darcy, and MARY BENNET smiled. ",
    "Mary King ran from Paris to Fitzwilliam Darcy. ",
    "Miss Darcy saw Mary. ",
    "Henry IV fought Henry V near Paris. ",
    "Paris, said Mary, is far from London. ",
    "Nobody was there. ",
)
NAME = re.compile(r"(?:M(?:r|iss)\.? )?[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]*)*")


def extraction(segment: Segment) -> Contribution:
    """Read as a plain reasoner does: types where a title or a list tells them."""
    names = list(dict.fromkeys(NAME.findall(segment.text)))
    mentions = [Mention(name, _type(name), (name,)) for name in names]
    if "Mary Bennet" in names:
        mentions[names.index("Mary Bennet")] = Mention(
            "Mary Bennet", "PERSON", ("Mary Bennet", "Mary")
        )
    statements = [Statement(head, tail, f"{head} with {tail}") for head, tail in pairwise(names)]
    questions = tuple(f"What did {name} do there?" for name in names)
    return Contribution(segment.id, "extraction", tuple(mentions), tuple(statements), questions)


def supplement(segment: Segment, questions: tuple[str, ...]) -> Contribution:
    words = re.findall(r"[a-z]{4,}", segment.text)
    mentions = [
        Mention(word, "", (word,), question=question)
        for word, question in zip(words, questions, strict=False)
    ]
    return Contribution(segment.id, "supplement", tuple(mentions), asked=questions)


def _type(name: str) -> str:
    if name.startswith("M") or "Henry" in name:
        return "PERSON"
    return "PLACE" if name == "London" else ""


async def put(store: GraphStore, id_: str, pieces: Sequence[str]) -> None:
    """Put a document and read what was not read, as a build does."""
    document, segments = text(id_, *pieces)
    await store.put_documents("n", [(document, segments)])
    states = {row.segment_id: row.state for row in await store.ledger("n", id_)}
    for segment in segments:
        if states[segment.id] == "pending":
            await store.record("n", [(LedgerRow(segment.id, "extracted"), extraction(segment))])
    made = await store.contributions("n", id_)
    firsts = [c for c in made if c.kind == "extraction"]
    asked = {(c.segment_id, c.asked) for c in made if c.kind == "supplement"}
    by_id = {segment.id: segment for segment in segments}
    for first, questions in zip(firsts, decided(firsts), strict=True):
        row = LedgerRow(first.segment_id, "ok")
        if questions and (first.segment_id, questions) not in asked:
            await store.record("n", [(row, supplement(by_id[first.segment_id], questions))])
        else:
            await store.record("n", [(row, None)])


IDS = st.sampled_from("abc")


async def held(store: GraphStore) -> dict[str, Any]:
    """Return all that a memory holds, but for what no longer counts."""
    found = await contents(store, "n")
    return {what: value for what, value in found.items() if what not in ("contributions", "ledger")}


CROWDED = st.lists(
    st.sampled_from(
        [
            *PIECES,
            "Mary Hill met Mary Ford and Mary Lane. ",
            "Mr. Darcy and Georgiana Darcy left with Henry Darcy. ",
            "M. Bennet wrote to M. King. ",
            "Captain Ahab, Ahab Smith and Ahab Stone met Ahab. ",
        ]
    ),
    min_size=1,
    max_size=3,
).map(tuple)


Step = tuple[str, str, Any]

GROWTH: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("put"), IDS, CROWDED),
        st.tuples(st.just("delete"), IDS, st.none()),
        st.tuples(
            st.just("decide"),
            st.sampled_from(["Mary", "Ahab", "Mr. Darcy"]),
            st.sampled_from(["Mary Bennet", "Captain Ahab", "Henry Darcy"]),
        ),
    ),
    min_size=2,
    max_size=5,
)


async def grow(
    grown: GraphStore,
    opened: Callable[[], Awaitable[GraphStore]],
    steps: Sequence[Step],
    *,
    same: bool,
) -> None:
    """Change a memory step by step; after each step it equals one built from the present texts.

    Args:
        opened: returns an empty store with the namespace `n`, which is closed after the comparison.
        same: what is decided on two names.
    """
    final: dict[str, tuple[str, ...]] = {}
    for what, id_, given in steps:
        if what == "delete":
            await grown.delete_documents("n", id_)
            final.pop(id_, None)
        elif what == "decide":
            await grown.override_merge("n", MergeDecision(id_, given, same=same))
        else:
            await put(grown, id_, given)
            await merge_documents(grown, "n", [id_])
            final[id_] = given
        if what != "put":
            await refresh_names(grown, "n")
        fresh = await opened()
        for decision in (await grown.unmerged("n")).decisions:
            await fresh.override_merge("n", decision)
        for document_id in sorted(final):
            await put(fresh, document_id, final[document_id])
        await merge_documents(fresh, "n", sorted(final))
        assert await held(grown) == await held(fresh)
        assert not (await grown.unmerged("n")).stale
        await fresh.close()
