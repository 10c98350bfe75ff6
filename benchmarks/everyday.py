"""Cost of an everyday step: add one passage or turn, then search, by size of the memory.

    python -m benchmarks everyday [--sizes 1000 10000 100000] [--memory URI] [--rounds 15]

Memories grow from one size to the next out of real passages: those of HotpotQA, 2WikiMultihopQA and
MuSiQue (`QRMEM_DATA`), shuffled; beyond some 17,000 they come again under other ids. At each size
some passages are added one by one, some of them with the commonest names, and turns; a search
follows each; searches are repeated warm; and a fresh process opens the memory and searches once
(its memory is read from `/proc`, so this needs Linux). Medians, with no chat model and no embedder.
Growth is the last size against the first.
"""

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

import qrmem
from benchmarks.frame import Figure, note
from benchmarks.multihop import folder, load
from qrmem.config import Settings

CORPORA = ("hotpotqa", "2wikimultihopqa", "musique")
_NAME = re.compile(r"\b[A-Z]\w+ [A-Z]\w+")
RESERVED = 300
"""Number of passages with the most frequent names, which are not used for growing."""
MOST_GROWTH = 1.5


class Bounds(NamedTuple):
    """Bounds: ms of a step and of a search, seconds and MB of a fresh process."""

    step: float
    search: float
    fresh: float
    memory: float


IN_A_FILE, IN_A_SERVER = Bounds(60, 120, 1, 400), Bounds(100, 120, 1.5, 300)
QUESTIONS = 20

FRESH = """
import asyncio, sys, qrmem
from qrmem.config import Settings
async def main():
    settings = Settings.from_env().with_(embedder="none")
    async with qrmem.open(sys.argv[1], settings=settings) as memory:
        await memory.search(sys.argv[2], k=10)
asyncio.run(main())
# Its own peak: getrusage would tell that of the process that started this one, which is larger.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
import time
print(time.process_time(), int(peak.split()[1]) // 1024)
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--memory", default="", help="a store's URI; a new file if none is given")
    parser.add_argument("--rounds", type=int, default=15)


class Passages:
    """Real passages and questions, in the order of their files, and from the start when they end.

    Attributes:
        written: characters of all passages that were taken.
    """

    def __init__(self) -> None:
        corpora = [load(name, folder()) for name in CORPORA]
        every = list(dict.fromkeys(each for corpus in corpora for each in corpus.passages))
        counts = Counter(name for _, text in every for name in {*_NAME.findall(text)})
        every.sort(key=lambda each: -max((counts[n] for n in _NAME.findall(each[1])), default=0))
        common, rest = every[:RESERVED], every[RESERVED:]
        random.Random(1).shuffle(rest)
        self._common, self._rest = cycle(common), cycle(rest)
        self._questions = cycle([asked.text for asked in corpora[0].measured])
        self.written = 0

    def passage(self, *, common: bool = False) -> tuple[str, str]:
        """Return title and text of the next passage."""
        title, text = next(self._common if common else self._rest)
        self.written += len(text)
        return title, text

    def document(self, id: str, *, common: bool = False) -> qrmem.Document:
        """Return the next passage as a document."""
        title, text = self.passage(common=common)
        return qrmem.Document(text, title=title, id=id)

    def question(self) -> str:
        """Return the next question."""
        return next(self._questions)


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the medians at each size, and how much they grow."""
    with tempfile.TemporaryDirectory() as folder:
        where = chosen.memory or str(Path(folder) / "everyday.db")
        bounds = IN_A_SERVER if chosen.memory else IN_A_FILE
        first: dict[str, float] = {}
        writer, size = Passages(), 0
        for wanted in chosen.sizes:
            began = time.monotonic()
            asyncio.run(_grow(where, writer, size, wanted))
            rate = (wanted - size) / (time.monotonic() - began)
            size = wanted
            note(f"{wanted} passages; built at {rate:.0f} a second")
            yield Figure(f"build up to {wanted}", rate, "passages/s", at_least=150)
            found = asyncio.run(steps(where, writer, chosen.rounds))
            for what, value in found.items():
                is_step = what in ("add", "add of common names", "add_turn")
                most = bounds.step if is_step else None
                most = bounds.search if what == "search warm" else most
                yield Figure(f"{what}, {wanted} passages", value, "ms", at_most=most)
                if first.setdefault(what, value) and wanted == chosen.sizes[-1] != chosen.sizes[0]:
                    growth = value / first[what]
                    most = MOST_GROWTH if is_step else None
                    yield Figure(f"growth of {what}", growth, at_most=most)
            again = found["search after add"] / found["search warm"]
            yield Figure(f"search after add to warm, {wanted} passages", again, at_most=1.5)
            yield from fresh(where, writer, wanted, bounds)
            if not chosen.memory:
                yield size_of(where, writer, wanted)


async def _grow(where: str, writer: Passages, size: int, wanted: int) -> None:
    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        await memory.add(writer.document(f"p{n:07}") for n in range(size, wanted))


async def steps(where: str, writer: Passages, rounds: int) -> dict[str, float]:
    """Return the medians of adding and searching, in ms, by kind of step."""
    seconds: dict[str, list[float]] = {}

    async def timed(what: str, step: Callable[[], Awaitable[object]]) -> None:
        began, used = time.perf_counter(), time.process_time()
        await step()
        seconds.setdefault(what, []).append((time.perf_counter() - began) * 1000)
        of = f"{what}, processor"
        seconds.setdefault(of, []).append((time.process_time() - used) * 1000)

    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        stamp = time.time_ns()
        await memory.add(writer.document(f"warm {stamp}"))
        await memory.search(writer.question(), k=10)
        for n in range(rounds):
            for what, common in (("add", False), ("add of common names", True)):
                document = writer.document(f"{what} {stamp} {n}", common=common)
                await timed(what, partial(memory.add, document))
                await timed("search after add", lambda: _asked(memory, writer))
            await timed("add_turn", lambda: memory.add_turn("user", writer.passage()[1]))
        for _ in range(QUESTIONS):
            await timed("search warm", lambda: _asked(memory, writer))
    return {what: median(values) for what, values in seconds.items()}


async def _asked(memory: qrmem.Memory, writer: Passages) -> object:
    return await memory.search(writer.question(), k=10)


def fresh(where: str, writer: Passages, size: int, bounds: Bounds) -> Iterator[Figure]:
    """Yield time and memory of a new process that opens a memory and searches once."""
    times, works, megabytes = [], [], 0.0
    for _ in range(3):
        began = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, "-c", FRESH, where, writer.question()],
            check=True,
            capture_output=True,
            text=True,
        )
        times.append(time.perf_counter() - began)
        work, megabytes = map(float, ran.stdout.split())
        works.append(work)
    yield Figure(
        f"fresh process and search, {size} passages", median(times), "s", at_most=bounds.fresh
    )
    yield Figure(f"its processor time, {size} passages", median(works), "s")
    yield Figure(f"its memory, {size} passages", megabytes, "MB", at_most=bounds.memory)


def size_of(where: str, writer: Passages, size: int) -> Figure:
    """Return the size of a memory's file as a multiple of its texts."""
    ratio = Path(where).stat().st_size / writer.written
    return Figure(f"file to text, {size} passages", ratio, at_most=12)
