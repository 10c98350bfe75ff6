"""Costs of a tree of summaries: without a model, after one more chapter, and with a chat model.

    PYTHONPATH=tests python -m benchmarks tree TEXT… [--tokens 500000] [--latency 2]

A text of so many tokens, made of the sentences of all texts, gets a tree with no chat model and no
embedder; then a chapter is added. Times are of the processor, so that a busy machine does not
count, and without the collection of what the reading of the text left in memory.

Then a part of it gets one by a server on loopback that replies after a fixed time. What its calls
need is counted level by level, as a level is made of the one below: calls / concurrency, rounded
up to whole waves, times the latency. The bound is on the wall of all levels to their sum.
"""

import argparse
import asyncio
import gc
import math
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from servers.openai_server import Behaviour, OpenAIServer, in_thread

import qrmem
from benchmarks.build import long_text
from benchmarks.frame import Figure, note
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.text.files import read
from qrmem.types import Event

CHAPTER = 6_000
"""Tokens of the added chapter."""
WARM = 24_000
"""Tokens of a first tree, which imports everything."""
SAMPLE = 60_000
"""Tokens of the text of the tree with a model."""
CONCURRENCY = 8
MOST_SECONDS, MOST_MEMORY, MOST_GROWN, MOST_WALL = 180, 2_000, 5, 1.2


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--tokens", type=int, default=500_000)
    parser.add_argument("--latency", type=float, default=2, help="seconds of a reply")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Build, add, and build with a model."""
    texts = [read(path).text for path in chosen.texts]
    count = open_tokenizer("builtin").count
    each = len(texts[0]) / count(texts[0])
    text = long_text(texts, int((chosen.tokens + CHAPTER) * each))
    cut = text.index(" ", int(chosen.tokens * each))
    asyncio.run(_local(text[: int(WARM * each)], "Chapter one\n\nIt rained."))
    yield from asyncio.run(_local(text[:cut], f"Chapter the last\n\n{text[cut:]}"))
    yield from asyncio.run(_asked(text[: int(SAMPLE * each)], chosen.latency))


async def _local(text: str, chapter: str) -> list[Figure]:
    with TemporaryDirectory() as folder:
        path = f"{folder}/t.db"
        async with qrmem.open(path, embedder="none", model="") as memory:
            await memory.add(qrmem.Document(text, id="text"))
            report, seconds = await _built(memory)
            await memory.add(qrmem.Document(f"{text}\n\n{chapter}", id="text"), update=True)
            again, more = await _built(memory)
    note(f"{report.made} nodes, {report.levels} levels; after the chapter {again.made} new ones")
    name = f"tree of {len(text):,} characters"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return [
        Figure(f"{name}, of the processor", seconds, "s", at_most=MOST_SECONDS),
        Figure("peak memory, the reading included", peak, "MB", at_most=MOST_MEMORY),
        Figure("one more chapter: of that time", 100 * more / seconds, "%", at_most=MOST_GROWN),
    ]


async def _built(memory: qrmem.Memory) -> tuple[qrmem.types.documents.TreeReport, float]:
    gc.collect()
    gc.freeze()
    began = time.process_time()
    report = await memory.build_tree()
    return report, time.process_time() - began


# --- with a chat model ---------------------------------------------------------------------------


async def _asked(text: str, latency: float) -> list[Figure]:
    ended: dict[int, list[float]] = {}

    def told(event: Event) -> None:
        if event.kind == "node":
            ended.setdefault(int(event.data["level"]), []).append(time.perf_counter())

    server = OpenAIServer(answer=_said, behaviour=Behaviour(latency=latency))
    with in_thread(server), TemporaryDirectory() as folder:
        path = f"{folder}/t.db"
        async with qrmem.open(path, embedder="none", model="") as memory:
            await memory.add(qrmem.Document(text, id="text"))
        chat: dict[str, Any] = {"model": "test", "base_url": server.url, "concurrency": CONCURRENCY}
        async with qrmem.open(path, embedder="none", **chat) as memory:
            began = time.perf_counter()
            await memory.listening(told).build_tree()
    return _by_level(ended, began, latency)


def _by_level(ended: Mapping[int, Sequence[float]], began: float, latency: float) -> list[Figure]:
    figures, needed = [], 0.0
    start = began
    for level in sorted(ended):
        calls, last = len(ended[level]), max(ended[level])
        waves = math.ceil(calls / CONCURRENCY)
        least = waves * latency
        name = f"level {level}, {calls} calls, {CONCURRENCY} at once"
        name = f"{name}: wall to {waves} waves of {latency:g} s"
        figures.append(Figure(name, (last - start) / least))
        needed, start = needed + least, last
    whole = Figure("all levels: wall to their waves", (start - began) / needed, at_most=MOST_WALL)
    return [*figures, whole]


def _said(request: Mapping[str, Any]) -> str:
    """Return a summary of some words of the text, and a surprise."""
    words = str(request["messages"][-1]["content"]).split()
    return f"(Summary): {' '.join(words[1:60])}\n(Surprise): {' '.join(words[60:75])}"
