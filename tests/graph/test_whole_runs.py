"""Whole runs of the prompted reasoner over a model that reads what it is sent."""

import asyncio
import json
import random
import re
from contextlib import suppress
from itertools import pairwise
from typing import Any

from contract.reference import ReferenceStore
from fakes import build_of
from graph.worlds import WITHOUT_TREE, outcome_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrmem.agents import (
    Search,
    build_documents,
)
from qrmem.answering.with_model import PromptedReasoner
from qrmem.config import Settings
from qrmem.errors import WindowTooSmall
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.graph.segmenting import cut
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.graphstore.reads import BestEffortWriter, facts_of
from qrmem.llm.prompting import MESSAGE_TOKENS, REQUEST_TOKENS
from qrmem.llm.run import Run
from qrmem.retrieval.searcher import Searcher
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import BuildMode, ChatReply, ChatRequest, Document
from qrmem.types.options import AskOptions

TOKENIZER = BuiltinTokenizer()


class Reader:
    """Notes the capitalised words of a prompt's texts; finds nothing answerable; may dawdle."""

    name = "reader"

    def __init__(self, seed: int | None = None) -> None:
        self.requests: list[ChatRequest] = []
        self._dice = random.Random(seed) if seed is not None else None

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if self._dice:
            await asyncio.sleep(self._dice.random() / 100)
        texts = re.findall(r"<(text\d*)(.*?)>\n(.*?)\n</\1>", said(request), re.DOTALL)
        asked = request.stage == "supplement"
        reply = self._reply(texts[-1][2] if texts else "", asked)
        numbered = [(int(n), read) for _, n, read in texts if n.strip().isdigit()]
        reply["passages"] = [{"n": n, **self._reply(read, asked)} for n, read in numbered]
        assert request.schema is not None
        return ChatReply(
            json.dumps({field: reply[field] for field in request.schema["properties"]})
        )

    def _reply(self, read: str, asked: bool) -> dict[str, Any]:
        names = list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]{2,}\b", read)))
        pairs = list(pairwise(names))
        return {
            "entities": [f"1|{n}|PERSON" if asked else f"{n}|PERSON" for n in names[:12]],
            "relations": [f"1|{a}|asks|{b}" if asked else f"{a}|sees|{b}" for a, b in pairs[:8]],
            "questions": [f"{a}, {b}?" for a, b in pairs[:5]],
            "summary": " ".join(names) * 20,
            "description": "they meet",
            "reasoning": "It is not said. " + " ".join(names[-20:]),
            "action": -1,
            "answer": "",
            "quotes": [],
            "keep": [f"S1|{name} is there" for name in names[:20]],
            "look_for": names[:5],
            "query": " ".join(names[:30]),
        }


def said(request: ChatRequest) -> str:
    return request.messages[-1].content


async def build(
    text: str, model: Reader, mode: BuildMode, window: int, concurrency: int = 4
) -> tuple[ReferenceStore, PromptedReasoner]:
    store = ReferenceStore()
    await store.create_namespace("ns", NamespaceInfo("ns", TOKENIZER.name, 120))
    document = Document(text, "A Title", "d")
    await store.put_documents("ns", [(document, cut("d", document, TOKENIZER, 120))])
    made = Settings(window=window, mode=mode, questions=5)
    reasoner = PromptedReasoner(model, TOKENIZER, mode=mode, settings=made)
    run = build_of(store, reasoner, tagger=RulesTagger(), concurrency=concurrency, mode=mode)
    await build_documents(run, ["d"])
    return store, reasoner


async def ask(
    store: ReferenceStore, reasoner: PromptedReasoner, window: int, strategy: str, **more: Any
) -> None:
    options = AskOptions(
        question="Whom did Ann and Bob see?",
        strategy=strategy,
        window=window,
        choices=("Cid", "nobody"),
        max_trials=3,
        on_exhausted="force",
        orientation="local",
        nearest=2,
        **more,
    )
    search = Search(
        parts=Run(reasoner, settings=Settings(mode="paper")),
        searcher=Searcher(store, "ns"),
        writer=BestEffortWriter(store),
        options=options,
    )
    await outcome_of(search)


def size(request: ChatRequest) -> int:
    count = TOKENIZER.count
    prompt = sum(count(m.content) + MESSAGE_TOKENS for m in request.messages) + REQUEST_TOKENS
    return prompt + count(str(request.schema)) + request.max_tokens


words = st.sampled_from(
    [
        "Ann ",
        "Bob ",
        "Cid ",
        "Dot ",
        "saw ",
        "rain. ",
        "東京へ。",
        "🙂",
        "</text> ",
        '"',
        "\n\n",
        "x" * 90,
    ]
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.lists(words, min_size=1, max_size=400).map("".join).filter(str.strip),
    mode=st.sampled_from(["compact", "paper"]),
    window=st.integers(500, 2500),
    start=st.sampled_from(["search", "entities"]),
)
async def test_no_call_of_a_run_exceeds_the_window(
    text: str, mode: BuildMode, window: int, start: str
) -> None:
    model = Reader()
    with suppress(WindowTooSmall):
        store, reasoner = await build(text, model, mode, window)
        for strategy in WITHOUT_TREE:
            built = len(model.requests)
            narrow = max(400, window // 2)
            with suppress(WindowTooSmall):
                await ask(store, reasoner, narrow, strategy, start=start)
            # A question with a window of its own is held to it, the readings it causes too.
            assert all(size(request) <= narrow for request in model.requests[built:])
    assert all(size(request) <= window for request in model.requests)


async def test_the_prompted_graph_does_not_depend_on_the_order_of_replies() -> None:
    names = ["Ann", "Bob", "Cid", "Dot", "Eve", "Fay", "Gus"]
    dice = random.Random(1)
    text = " ".join(
        f"{dice.choice(names)} saw {dice.choice(names)} on the {n}th of May." for n in range(150)
    )
    dumps = []
    for concurrency, seed in ((1, None), (16, 2), (16, 3)):
        store, _ = await build(text, Reader(seed), "compact", 4096, concurrency)
        keys = [found.key for found in await store.list_entities("ns", 1000)]
        dumps.append(
            (
                await store.entities("ns", sorted(keys)),
                await facts_of(store, "ns", keys),
                await store.questions("ns"),
                await store.contributions("ns", "d"),
            )
        )
    assert dumps[0] == dumps[1] == dumps[2]
    assert len(dumps[0][0]) > 7
    assert len(dumps[0][2]) > 3
