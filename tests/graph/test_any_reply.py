"""Whatever a model replies, a segment ends `ok`, `partial` or `failed`, and nothing is invented."""

import json
from pathlib import Path
from typing import Any

import pytest
from contract.reference import ReferenceStore
from fakes import build_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.agents import BuildOutcome, build_documents
from qrmem.answering.with_model import PromptedReasoner
from qrmem.config import Settings
from qrmem.graph.segmenting import cut
from qrmem.graphstore import open_store
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import BuildMode, ChatReply, ChatRequest, Document

TOKENIZER = BuiltinTokenizer()
TEXTS = {
    "a": "Ann Lee left Rome in May. The ferry sank near Ostia, and Bob Hale swam ashore.",
    "b": "Old Cid sold three maps to Ann Lee.",
    "c": "Ann Lee wrote to Bob Hale. " * 3 + "Nobody answered, and Rome was far. " * 3,
}
"""Two documents whose segments share a call, and one of several segments."""
GOOD = {
    "summary": "Ann Lee left.",
    "entities": ["Ann Lee|PERSON", "Rome|PLACE", "1|Bob Hale|PERSON", "Atlantis|PLACE"],
    "relations": ["Ann Lee|left|Rome", "1|Ann Lee|wrote to|Bob Hale", "Ann Lee|saw|Atlantis"],
    "questions": ["Why did Ann Lee leave Rome?", "Who swam ashore near Ostia?"],
    "description": "they wrote",
}
ENTRIES = [{"n": n, **GOOD} for n in (1, 2)]
PIECES = ["{", "}", "[", "]", '"', ",", ":", "|", "null", "\\u0000", "Atlantis", '"entities"', "n"]


def as_sent(raw: bytes) -> str:
    """Bytes as they come out of a JSON body: not all of them are text."""
    return raw.decode("utf-8", "surrogateescape")


def damaged(at: int, piece: str) -> str:
    good = json.dumps({**GOOD, "passages": ENTRIES})
    at %= len(good)
    return good[:at] + piece + good[at + len(piece) :]


replies = st.one_of(
    st.binary(max_size=120).map(as_sent),
    st.text(max_size=120),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.builds(damaged, st.integers(0), st.sampled_from(PIECES) | st.text(max_size=5)),
    st.just(json.dumps({**GOOD, "passages": ENTRIES})),
)
finishes = st.sampled_from(["stop", "stop", "length", "content_filter", "refusal", "tool_calls"])


class Babbler:
    """Gives the replies that it was given, in turn."""

    name = "babbler"

    def __init__(self, said: list[tuple[str, str]]) -> None:
        self._said = said
        self._turn = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        text, finish = self._said[self._turn % len(self._said)]
        self._turn += 1
        return ChatReply(text, finish_reason=finish)


async def build(
    model: Any, mode: BuildMode, store: GraphStore | None = None
) -> tuple[GraphStore, BuildOutcome]:
    store = store or ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", TOKENIZER.name, 40))
    for name, text in TEXTS.items():
        document = Document(text, f"Title {name}", name)
        await store.put_documents("ns", [(document, cut(name, document, TOKENIZER, 40))])
    reasoner = PromptedReasoner(model, TOKENIZER, mode=mode, settings=Settings(mode=mode))
    run = build_of(store, reasoner, concurrency=1, mode=mode)
    return store, await build_documents(run, list(TEXTS))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    said=st.lists(st.tuples(replies, finishes), min_size=1, max_size=6),
    mode=st.sampled_from(["compact", "compact", "paper"]),
)
async def test_any_reply_ends_in_a_state_and_invents_nothing(
    said: list[tuple[str, str]], mode: BuildMode
) -> None:
    store, outcome = await build(Babbler(said), mode)
    assert set(outcome.states) <= {"ok", "partial", "failed"}
    segments = [s for name in TEXTS for s in await store.segments("ns", documents=[name])]
    assert sum(outcome.states.values()) == len(segments)
    assert len(outcome.problems) == len(segments) - outcome.states.get("ok", 0)
    assert all(reason for _, _, reason in outcome.problems)
    texts = {segment.id: segment.text for segment in segments}
    # A shared call shows several segments, with their titles and the lines before.
    everything = " ".join((*TEXTS.values(), *(f"Title {name}" for name in TEXTS)))
    for name in TEXTS:
        for made in await store.contributions("ns", name):
            text = everything if made.by_model else texts[made.segment_id]
            for mention in made.mentions:
                assert all(form in text for form in (mention.name, *mention.forms))
            ends = {end for s in made.statements for end in (s.head, s.tail)}
            assert all(end in text for end in ends)


NASTY = [
    ('{"entities": ["Ann Lee|PERSON"], "relations": ["\\ud800|\\u0000|Rome"]}', "stop"),
    ("\ud800 cannot help with \x00", "refusal"),
    ('{"entities": [{"\ud800": "\x00"}], "passages": [{"n": "\ud800"}]}', "stop"),
    ("\udcff\x00{", "content_filter"),
]


@pytest.mark.parametrize("said", NASTY, ids=lambda said: said[1])
async def test_a_reply_with_text_that_no_database_takes_ends_in_a_state(
    said: tuple[str, str], tmp_path: Path
) -> None:
    store = await open_store(str(tmp_path / "m.db"), Settings())
    try:
        _, outcome = await build(Babbler([said]), "compact", store)
        assert set(outcome.states) <= {"ok", "partial", "failed"}
        assert len(await store.ledger("ns")) == sum(outcome.states.values())
    finally:
        await store.close()


async def test_a_good_reply_is_ok_in_every_form_of_call() -> None:
    for mode in ("compact", "paper"):
        good = json.dumps({**GOOD, "passages": ENTRIES})
        store, outcome = await build(Babbler([(good, "stop")]), mode)
        assert set(outcome.states) == {"ok"}, outcome.problems
        named = {e.name for e in await store.list_entities("ns")}
        assert {"Ann Lee", "Rome"} <= named
        assert "Atlantis" not in named
