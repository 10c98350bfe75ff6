"""How long `recall` takes in a long conversation, and keeping one more turn.

    python -m benchmarks chat TEXT [--turns 10000] [--embedder local] [--kept chat.db]

Turns are sentences of a text, shuffled; prompts are others of them. The first call of a process,
which opens the memory, is told apart from those that follow, and so is what the encoder takes.
"""

import argparse
import asyncio
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import qrmem
from benchmarks.frame import Figure

_PROMPTS = 21
_CLOCKS = time.perf_counter, time.process_time
Spent = tuple[float, float]
"""Milliseconds: of the clock, and of the processor."""


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
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--kept", help="the memory, made where it is not there; default: none kept")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Keep the turns, and recall in another opening."""
    source = chosen.text.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.kept or f"{folder}/chat.db"
        if not Path(path).exists():
            asyncio.run(_kept(path, messages(source, chosen.turns), chosen.embedder))
        asked = [text for _, text in messages(source, chosen.turns + _PROMPTS)[chosen.turns :]]
        yield from asyncio.run(_recalled(path, asked, chosen.embedder))


async def _kept(path: str, said: Sequence[tuple[str, str]], embedder: str) -> None:
    async with qrmem.open(path, model="", embedder=embedder) as memory:
        await memory.add_messages(said, at="2026-01-01T00:00:00")


async def _recalled(path: str, asked: Sequence[str], embedder: str) -> list[Figure]:
    recalls: list[Spent] = []
    encoding: list[Spent] = []
    keeping: list[Spent] = []
    began = _now()
    async with qrmem.open(path, model="", embedder=embedder) as memory:
        encoder = (await memory._session.models()).embedder
        for prompt in asked:
            await memory.recall(prompt)
            recalls.append(_since(began))
            began = _now()
            if encoder is not None:
                await encoder.embed([f"{prompt} "])  # another text: none is remembered
            encoding.append(_since(began))
            began = _now()
        for prompt in asked:
            began = _now()
            await memory.add_turn("user", prompt)
            keeping.append(_since(began))
        count = len(await memory.documents())
    wall, work = map(median, zip(*recalls[1:], strict=True))
    encoded = median(one for one, _ in encoding[1:]), median(one for _, one in encoding[1:])
    return [
        Figure(f"{count} turns, first recall with the opening", recalls[0][0], "ms"),
        Figure("recall, median", wall, "ms"),
        Figure("recall, median of the processor", work, "ms"),
        Figure("the encoder's part of it", encoded[1], "ms"),
        Figure("recall without the encoder", work - encoded[1], "ms", at_most=60),
        Figure("keeping a turn, median of the processor", median(w for _, w in keeping), "ms"),
    ]


def _now() -> Spent:
    wall, work = (clock() for clock in _CLOCKS)
    return wall, work


def _since(began: Spent) -> Spent:
    wall, work = _now()
    return 1000 * (wall - began[0]), 1000 * (work - began[1])
