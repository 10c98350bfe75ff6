"""Use of a chat model: time that qrmem adds to its calls, number of calls, tokens.

    QRMEM_DATA=… PYTHONPATH=tests python -m benchmarks model [--part time|tokens] …

Time: for each concurrency a document is built into a memory by `add`, with two calls a segment and
one for its summary, by the test server in a process of its own, with a fixed latency; printed are
wall time over calls x latency / concurrency, and processor time a call, all of `add` included. At
concurrency 1 a few calls bear all that is done for the first time. Processor time depends on how
long a process has slept before: how much so is measured on segments read without a model, each
after a pause of the latency, and at once. Then processor time of the model layer alone, and what
stays allocated after so many calls.

Tokens: of building, by mode, and of asking, by strategy, and which part of a prompt costs what, on
the package's sample and on 394 MuSiQue passages, on which HippoRAG 2, the cheapest of the others,
was seen to pay 2.0 calls and 831 + 224 tokens a passage: 1,727, a token out weighed as four in.
Tokens are words and marks, the same counter as for the others, of all messages and of the schema
that goes with them. Replies are of realistic size (`benchmarks.replies_of_size`). No question finds
a reply of another in the cache.
"""

import argparse
import asyncio
import gc
import os
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import qrmem
from benchmarks.frame import Figure
from qrmem.answering.local import LocalReasoner
from qrmem.graph.segmenting import cut
from qrmem.llm.budget import Budget
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.meter import Meter
from qrmem.llm.routing import ChatModels
from qrmem.llm.structured import ask
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.prompts.replies import EntitiesReply
from qrmem.types import CallRecord, ChatRequest, Message, Reading

ROOT = Path(__file__).resolve().parent.parent
SYSTEM = 'Name what the passage names.\nReply with JSON only: {"entities": ["…"]}'
SENTENCE = "Ahab met Captain Bildad on the quay at Nantucket and spoke of the white whale. "
PEOPLE = ("Ilse Brandt", "Jonas Vey", "Mara Holt", "Old Tobias", "Captain Reed", "Nell Ashby")


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Run the test server; yields its base URL."""
    command = [sys.executable, "-m", "servers.openai_server", "--latency", str(latency)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def story(segments: int) -> qrmem.Document:
    """Return a text of so many different segments of about 550 tokens each."""
    dice = random.Random(segments)
    letters = "aeioubdfgklmnprstv"
    words = ["".join(dice.choices(letters, k=dice.randrange(3, 9))) for _ in range(3000)]
    chapters = []
    for n in range(segments):
        lines = [
            f"In the {' '.join(dice.sample(words, 4))} {PEOPLE[dice.randrange(6)]} met "
            f"{PEOPLE[dice.randrange(6)]} of {dice.choice(words[:150]).title()} and "
            f"{' '.join(dice.sample(words, 6))}."
            for _ in range(11)
        ]
        chapters.append(f"# Chapter {n}\n\n" + " ".join(lines))
    while True:
        made = qrmem.Document("\n\n".join(chapters), "The Ledger", "ledger")
        if len(cut("ledger", made, open_tokenizer("builtin"), 600)) <= segments:
            return made
        chapters.pop()


async def build(
    url: str, latency: float, concurrency: int, rounds: int
) -> tuple[float, float, int]:
    """Return the ratio of wall times of a build, its processor seconds and its calls."""
    settings = qrmem.Settings(
        model="test", base_url=url, concurrency=concurrency, embedder="none", shared_tokens=0
    )
    segments = max(1, concurrency * rounds // 2)
    async with qrmem.open("memory://", settings=settings) as memory:
        await memory.add(qrmem.Document("Ann Lee met Bob Hale.", "Warm", "warm"))
        document = story(segments)
        began, used = time.perf_counter(), time.process_time()
        report = await memory.add(document)
        wall, busy = time.perf_counter() - began, time.process_time() - used
    assert report.is_complete, report.problems[:3]
    calls = report.usage.calls
    ratio = wall / (calls * latency / concurrency)
    return ratio, busy, calls


async def waking(pause: float, rounds: int = 20) -> float:
    """Return the ratio of processor times of the same work with and without pauses."""
    tokenizer = open_tokenizer("builtin")
    segments = cut("ledger", story(2 * rounds), tokenizer, 600)
    reasoner = LocalReasoner(tokenizer)
    for other in cut("warm", story(2), tokenizer, 600):
        await reasoner.extract(other, Reading())
    spent: tuple[list[float], list[float]] = [], []
    for n, segment in enumerate(segments):
        await asyncio.sleep(pause if n % 2 else 0)
        began = time.process_time()
        await reasoner.extract(segment, Reading())
        spent[n % 2].append(time.process_time() - began)
    return statistics.median(spent[1]) / statistics.median(spent[0])


def request(n: int) -> ChatRequest:
    """Return a new request of the size of a segment's."""
    text = f"Passage:\n<text>\n{n}. {SENTENCE * 30}\n</text>"
    return ChatRequest((Message("system", SYSTEM), Message("user", text)), stage="read")


async def layer(url: str, calls: int) -> tuple[float, int]:
    """Return processor seconds per call of the layer alone, and the memory that stays allocated."""
    settings = qrmem.Settings(model="test", base_url=url, concurrency=8)

    def nowhere(record: CallRecord) -> None:
        """Take a record like a store."""

    async with ServerChatModel(settings) as chat:
        budget = Budget(run="r", phase="construction", sink=nowhere)
        meter = Meter(ChatModels(chat), budget, open_tokenizer("builtin"))
        await asyncio.gather(*(ask(meter, request(n), EntitiesReply) for n in range(16)))
        used = time.process_time()
        for start in range(0, calls, 100):
            await asyncio.gather(
                *(ask(meter, request(start + n), EntitiesReply) for n in range(100))
            )
        busy = (time.process_time() - used) / calls
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for start in range(0, calls, 100):
            await asyncio.gather(
                *(ask(meter, request(start + n), EntitiesReply) for n in range(100))
            )
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    return busy, after - before


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--part", choices=("time", "tokens"), help="default: both")
    time_of = parser.add_argument_group("time")
    time_of.add_argument("--latency", type=float, default=1.0)
    time_of.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32])
    time_of.add_argument("--rounds", type=int, default=20, help="calls of each worker")
    tokens = parser.add_argument_group("tokens")
    tokens.add_argument("--passages", type=int, default=394, help="0: the sample alone")
    tokens.add_argument("--questions", type=int, default=20)
    tokens.add_argument("--strategy", action="append", help="default: all but those over trees")
    tokens.add_argument("--brief", action="store_true", help="mode `compact`, nothing asked")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the figures of the builds and of the layer alone, then calls and tokens."""
    if chosen.part != "tokens":
        yield from times(chosen.latency, chosen.concurrency, chosen.rounds)
    if chosen.part != "time":
        from benchmarks.model_tokens import figures

        asked = chosen.strategy or ()
        yield from figures(chosen.passages, chosen.questions, asked, brief=chosen.brief)


def times(latency: float, levels: Sequence[int], rounds: int) -> Iterator[Figure]:
    """Yield wall and processor time of whole builds, and of the layer alone."""
    all_busy, all_calls = 0.0, 0
    with server(latency) as url:
        for concurrency in levels:
            ratio, busy, calls = asyncio.run(build(url, latency, concurrency, rounds))
            name = f"a whole add, concurrency {concurrency}, {calls} calls"
            yield Figure(f"{name}: wall / (calls x latency / concurrency)", ratio, "", at_most=1.15)
            yield Figure(f"{name}: processor a call", 1000 * busy / calls, "ms")
            all_busy, all_calls = all_busy + busy, all_calls + calls
    yield Figure("whole adds: processor a call", 1000 * all_busy / all_calls, "ms", at_most=10)
    yield Figure(
        f"other work after a pause of {latency:g} s, to the same at once",
        asyncio.run(waking(latency)),
    )
    with server(0.0) as url:
        for calls in (400, 1600):
            busy, kept = asyncio.run(layer(url, calls))
            yield Figure(f"layer alone, {calls} calls: processor a call", 1000 * busy, "ms")
            yield Figure(f"layer alone, {calls} calls: stays allocated", kept / 1000, "kB")
