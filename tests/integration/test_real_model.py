"""A real, small chat model behind HTTP: whole runs, counted by a witness between us and the server.

What the model says is not judged; `.ci/real-model` starts one and runs this file.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from servers.relay import Exchanged, Relay, relaying

import qrmem
from qrmem.config import Settings
from qrmem.errors import ModelOutputError
from qrmem.graph.segmenting import cut
from qrmem.graphstore import open_store
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.text.files import read
from qrmem.types import (
    Answer,
    CallRecord,
    Contribution,
    Document,
    MemoryStatus,
    Strategy,
    Usage,
)

URL = os.environ.get("QRMEM_REAL_MODEL_URL", "")
MODEL = os.environ.get("QRMEM_REAL_MODEL", "smollm2-135m")
SAMPLE = Path(__file__).parents[2] / "qrmem" / "sample" / "harbour.md"
ASKED = {
    "entity-trial": "Who brought Nell a mug of ginger tea?",
    "graph-expansion": "When was the Salt House last lived in?",
    "reflection": "How is the lighthouse of Skarrow called?",
}
"""A question for each strategy: the same one would be answered out of the cache."""
SEGMENTS = 10
TOKENS = 64
WINDOW = 960
"""Too small for all that the strategies would read, so that some of it is left out."""

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not URL, reason="QRMEM_REAL_MODEL_URL is not set: no real model answers"),
    pytest.mark.timeout(1800),
]


def beginning() -> Document:
    """Return as much of the sample as fills the segments."""
    whole = read(SAMPLE)
    found = cut("harbour", whole, open_tokenizer("builtin"), TOKENS)
    return Document(whole.text[: found[SEGMENTS - 1].end], title=whole.title, id="harbour")


def settings(folder: Path, relay: Relay, mode: Literal["compact", "paper"]) -> Settings:
    """Return settings under which a model of 50 tokens a second is done in minutes."""
    return Settings(
        memory=str(folder / "real.db"),
        model=MODEL,
        base_url=relay.url,
        embedder="none",
        mode=mode,
        segment_tokens=TOKENS,
        window=WINDOW,
        reserve=96,
        questions=1,
        concurrency=1,
        timeout=600,
    )


@pytest.mark.parametrize("mode", ["compact", "paper"])
async def test_a_real_model_builds_and_answers(
    mode: Literal["compact", "paper"], tmp_path: Path
) -> None:
    with relaying(URL) as relay:
        chosen = settings(tmp_path, relay, mode)
        async with qrmem.open(settings=chosen) as memory:
            report = await memory.add(beginning())
            asked = [await answered(memory, name, question) for name, question in ASKED.items()]
            answers = [answer for answer in asked if answer is not None]
            status = await memory.status()
    store = await open_store(chosen.memory, chosen)
    calls = await store.calls(chosen.namespace)
    ids = [row.segment_id for row in await store.ledger(chosen.namespace, "harbour")]
    noted = await store.contributions(chosen.namespace, "harbour")
    await store.close()

    assert sum(report.states.values()) == len(ids) == SEGMENTS
    assert len(report.problems) == SEGMENTS - report.states.get("ok", 0)
    assert {answer.trail.strategy for answer in answers} <= ASKED.keys()
    assert all(is_true_to(beginning(), answer) for answer in answers)
    assert relay.replies, "the model was asked nothing"
    assert all(has_grammar(exchange) for exchange in relay.replies)
    assert all(within(exchange, WINDOW) for exchange in relay.replies)
    assert_counted(relay.replies, calls, status.usage)
    say(mode, noted, calls, status, answers)


async def answered(memory: qrmem.Memory, strategy: str, question: str) -> Answer | None:
    """Ask; `None` if no verdict of so small a model can be read, which is an error."""
    try:
        return await memory.ask(
            question,
            strategy=cast(Strategy, strategy),
            start="entities",
            max_trials=2,
            on_exhausted="force",
        )
    except ModelOutputError as exc:
        print(f"  {strategy}: {exc}")
        return None


def is_true_to(document: Document, answer: Answer) -> bool:
    """Whether an answer's citations stand in the document where they say."""
    return all(document.text[c.start : c.end] == c.quote for c in answer.citations)


def has_grammar(exchange: Exchanged) -> bool:
    """Whether the reply was held to a schema."""
    form = exchange.asked.get("response_format", {})
    return "schema" in form or "json_schema" in form


def within(exchange: Exchanged, window: int) -> bool:
    """Whether prompt and the longest reply allowed are within the window, in the server's count."""
    tokens_in, tokens_out = exchange.usage
    limit = int(exchange.asked["max_tokens"])
    return tokens_in + limit <= window and tokens_out <= limit


def assert_counted(replies: Sequence[Exchanged], calls: Sequence[CallRecord], usage: Usage) -> None:
    """Every reply has its record, with the server's counts, and the sums are those of all."""
    sent = [call for call in calls if call.outcome != "cached"]
    assert {call.outcome for call in sent} <= {"ok", "repaired", "unparsable"}
    served = Counter(exchange.usage for exchange in replies)
    assert Counter((call.tokens_in, call.tokens_out) for call in sent) == served
    assert usage.calls == len(replies)
    assert usage.tokens_in == sum(exchange.usage[0] for exchange in replies)
    assert usage.tokens_out == sum(exchange.usage[1] for exchange in replies)
    spoilt = [exchange for exchange in replies if not isinstance(value(exchange.text), dict)]
    assert sum(call.outcome != "ok" for call in sent) >= len(spoilt)


def value(text: str) -> Any:
    """Return a reply read as plain JSON, `None` where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def say(
    mode: str,
    noted: Sequence[Contribution],
    calls: Sequence[CallRecord],
    status: MemoryStatus,
    answers: Sequence[Answer],
) -> None:
    """Print the yield."""
    sent = [call for call in calls if call.outcome != "cached"]
    outcomes = Counter(call.outcome for call in sent)
    parsed = 1 - outcomes["unparsable"] / len(sent)
    mentions = sum(len(contribution.mentions) for contribution in noted)
    statements = sum(len(contribution.statements) for contribution in noted)
    print(f"\n{mode}: {dict(status.states)}, {dict(status.counts)}")
    print(
        f"  {mentions / SEGMENTS:.1f} mentions and {statements / SEGMENTS:.1f} relations a segment"
    )
    print(f"  {len(sent)} calls, {parsed:.0%} of the replies parsed: {dict(outcomes)}")
    print(f"  {sum(call.seconds for call in sent):.0f} s in the model")
    for name, sums in (*status.usage.construction.items(), *status.usage.online.items()):
        print(f"  {name}: {sums.calls} calls, {sums.tokens_in} + {sums.tokens_out} tokens")
    for answer in answers:
        print(f"  {answer.trail.strategy}: {answer.status}, {answer.text[:80]!r}")
