"""Stability of a long-running process: handles, memory, log and times.

    python -m benchmarks soak [--asks 20000] [--namespaces 5000] [--operations 100000]
        [--memory URI]

One process asks the questions of a small memory again and again, without a chat model; then it
opens one namespace after the other in one file, adds a passage to each, searches it and closes it.
Then it draws operations at random (adds, updates, deletions, turns, questions, searches, merges,
reopenings, other processes that are killed while they add) and compares the memory with what must
be there; anything that is lost, or is back, ends it with an error. `--seed` draws others.
Each is done in ten parts. Growth is the last part against the third. What qrmem remembers of texts
and names has an end, which thousands of namespaces or operations do not reach: it is filled before
the first of them.
Memory and handles are read from `/proc`, so this needs Linux. Texts are made up: no data is needed.
"""

import argparse
import asyncio
import gc
import logging
import os
import random
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import count, islice, product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import qrmem
from benchmarks.frame import Figure, note
from benchmarks.soaked import Model, word
from qrmem.config import Settings
from qrmem.text.names.aliases import MEMO_SIZE
from qrmem.text.names.blocks import blocks_of

PARTS, FIRST = 10, 2
MOST_GROWTH, MOST_TIME = 1.1, 1.5
_WORDS = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in ("ra", "lot", "nis", "ven")]


class State(NamedTuple):
    """Resources of a process after a part, and the median time of its steps, in ms."""

    memory: float
    handles: int
    lines: int
    log: float
    step: float


class _Lines(logging.Handler):
    """Counts log lines."""

    lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--asks", type=int, default=20_000)
    parser.add_argument("--namespaces", type=int, default=5_000)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--memory", default="", help="a store's URI; a new file if none is given")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the growth of each resource."""
    with tempfile.TemporaryDirectory() as folder:
        where = chosen.memory or str(Path(folder) / "soak.db")
        for name, steps, work in (
            ("asks", chosen.asks, _asks),
            ("namespaces", chosen.namespaces, _namespaces),
        ):
            if steps:
                yield from _grown(name, steps, asyncio.run(_parts(where, steps, work(where))))
        if chosen.operations:
            # A separate memory: other documents would count as ones that came back.
            where = chosen.memory or str(Path(folder) / "operations.db")
            drawn = _operations(where, chosen.seed)
            states = asyncio.run(_parts(where, chosen.operations, drawn))
            yield from _grown("operations", chosen.operations, states)


def _grown(name: str, steps: int, states: list[State]) -> Iterator[Figure]:
    first, last = states[FIRST], states[-1]
    name = f"{steps} {name}"
    yield Figure(f"{name}: memory", last.memory, "MB")
    yield Figure(f"{name}: memory, growth", last.memory / first.memory, at_most=MOST_GROWTH)
    yield Figure(f"{name}: handles, growth", last.handles - first.handles, at_most=0)
    yield Figure(f"{name}: lines logged, growth", last.lines - first.lines, at_most=0)
    yield Figure(f"{name}: file of the log", last.log, "MB", at_most=64)
    yield Figure(f"{name}: a step", last.step, "ms")
    yield Figure(f"{name}: a step, growth", last.step / first.step, at_most=MOST_TIME)


async def _parts(where: str, steps: int, step: AsyncGenerator[None]) -> list[State]:
    counter = _Lines()
    logging.getLogger().addHandler(counter)
    states = []
    try:
        for part in range(PARTS):
            times = []
            for _ in range(steps // PARTS):
                began = time.process_time()
                await anext(step)
                times.append(time.process_time() - began)
            states.append(_state(where, counter.lines, median(times) * 1000))
            note(f"part {part + 1} of {PARTS}: {states[-1]}")
    finally:
        await step.aclose()
        logging.getLogger().removeHandler(counter)
    return states


def _state(where: str, lines: int, step: float) -> State:
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in status if line.startswith("VmRSS"))
    log = Path(f"{where}-wal")
    size = log.stat().st_size if log.exists() else 0
    return State(int(kilobytes) / 1000, len(os.listdir("/proc/self/fd")), lines, size / 1e6, step)


def _text(draw: random.Random, names: Sequence[str] = ()) -> str:
    names = names or [f"{draw.choice(_WORDS)} {draw.choice(_WORDS)}".title() for _ in range(3)]
    words = " ".join(draw.choices(_WORDS, k=20))
    return f"{names[0]} met {names[1]} in {names[2]}. They spoke of {words}. {names[1]} left."


def _settings() -> Settings:
    return Settings().with_(embedder="none")


async def _asks(where: str) -> AsyncGenerator[None]:
    draw = random.Random(1)
    texts = [_text(draw) for _ in range(40)]
    async with qrmem.open(where, settings=_settings()) as memory:
        await memory.add([{"id": f"d{n}", "text": text} for n, text in enumerate(texts)])
        while True:
            text = draw.choice(texts)
            await memory.ask(f"Who met {text.split(' met ')[1].split(' in ')[0]}, {draw.random()}?")
            yield


async def _namespaces(where: str) -> AsyncGenerator[None]:
    await _fill_caches()
    draw = random.Random(2)
    for number in count():
        async with qrmem.open(where, namespace=f"user{number}", settings=_settings()) as memory:
            text = _text(draw)
            await memory.add([{"id": "d", "text": text}])
            await memory.search(f"Who spoke of {draw.choice(text.split()[8:20])}?")
        yield


async def _operations(where: str, seed: int) -> AsyncGenerator[None]:
    await _fill_caches()
    async with aclosing(Model(where, seed).steps()) as steps:
        async for _ in steps:
            yield


async def _fill_caches() -> None:
    """Add 5,600 texts with 16,800 names and 33,600 words, and name as many as a cache holds.

    Each hundred has a memory of its own, so that little room is left in which growth could hide.
    """
    draw = random.Random(4)
    pairs = [" ".join(pair).title() for pair in product(_WORDS, repeat=2)]
    draw.shuffle(pairs)
    names, words = iter(pairs), map(word, count())
    for _ in range(56):
        texts = [
            f"{_text(draw, list(islice(names, 3)))} They ate {' '.join(islice(words, 6))}."
            for _ in range(100)
        ]
        async with qrmem.open("memory://", settings=_settings()) as memory:
            await memory.add([{"id": f"d{n}", "text": text} for n, text in enumerate(texts)])
    for parts in islice(product(_WORDS, repeat=3), MEMO_SIZE):
        blocks_of(" ".join(parts))
