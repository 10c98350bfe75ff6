"""How long `recall` takes in a long conversation.

    python -m benchmarks chat TEXT [--turns 10000]

Turns are sentences of a text, shuffled; the first call of a process, which opens the memory, is
told apart from those that follow.
"""

import argparse
import asyncio
import random
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import qrmem
from benchmarks.frame import Figure

_ASKED = ("What did she say about the ball?", "Who sold the house?", "When does the ship leave?")


def messages(text: str, count: int) -> list[tuple[str, str]]:
    """Return turns of one or two sentences each."""
    found = (" ".join(s.split()) for s in re.split(r"(?<=[.!?])\s+", text))
    sentences = [sentence for sentence in found if 30 < len(sentence) < 400]
    draw = random.Random(6)
    draw.shuffle(sentences)
    said = [" ".join(draw.choices(sentences, k=draw.choice((1, 1, 2)))) for _ in range(count)]
    return [("assistant" if n % 2 else "user", text) for n, text in enumerate(said)]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("text", type=Path)
    parser.add_argument("--turns", type=int, default=10_000)


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Keep the turns, and recall in another opening."""
    source = chosen.text.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_recalled(f"{folder}/chat.db", source, chosen.turns))


async def _recalled(path: str, text: str, count: int) -> list[Figure]:
    async with qrmem.open(path, model="", embedder="none") as memory:
        await memory.add_messages(messages(text, count), at="2026-01-01T00:00:00")
    figures: list[Figure] = []
    began, busy = time.perf_counter(), time.process_time()
    async with qrmem.open(path, model="", embedder="none") as memory:
        for turn, prompt in enumerate(_ASKED):
            await memory.recall(prompt)
            wall, work = time.perf_counter() - began, time.process_time() - busy
            name = f"{count} turns, recall {turn + 1}{'' if turn else ' with the opening'}"
            figures.append(Figure(name, 1000 * wall, "ms"))
            figures.append(Figure(f"{name}: of the processor", 1000 * work, "ms"))
            began, busy = time.perf_counter(), time.process_time()
    return figures
