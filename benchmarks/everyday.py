"""What the everyday step costs: keep one passage or one turn, then search, however much is kept.

    python -m benchmarks everyday [--sizes 1000 10000 100000] [--memory URI] [--rounds 15]

Memories grow from one size to the next out of passages of about 100 words, made of repeated
sentences with names drawn by Zipf's law, so that common names recur and rare ones keep coming. At
each size some passages are added one by one, some of them with the commonest names alone, and
turns; a search follows each; searches are repeated warm; and a fresh process opens the memory and
searches once (its memory is read from `/proc`, so this needs Linux). Medians, with no chat model
and no embedder. Growth is the last size against the first.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import NamedTuple

import qrmem
from benchmarks.frame import Figure, note
from qrmem.config import Settings

SENTENCES = (
    "{a} met {b} on the pier and spoke of the voyage to {p} until it grew dark.",
    "Nobody in {p} had heard from {a} since the winter, when {b} sold the old mill.",
    "{a} wrote a long letter to {b} about the trial and the price of oil.",
    "In the spring {a} left {p}, and {b} took over the school by the harbour.",
    "The council of {p} asked {a} to survey the river before the bridge was built.",
    "{b} remembered that {a} had painted the portrait in a single night.",
    "It was in {p} that {a} first read the report which {b} had signed.",
    "{a} repaired the engine while {b} went to {p} for another pump.",
)
PLAIN = (
    "The rain had not stopped for three days and the lower road was under water.",
    "Nothing of what was promised in the summer had been done by the end of the year.",
    "After the meeting they counted the votes twice, and the result was the same both times.",
    "A small boat with a red sail came round the point at about six in the evening.",
    "The old books were kept in a room that nobody had opened since the fire.",
    "It took four weeks to bring the stones down from the hill, and two more to lay them.",
    "Prices rose by a fifth, and many families had to sell what they could do without.",
    "The machine was simple, but it worked for eleven years without a single repair.",
)
SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to vu wa ye zo".split()  # noqa: SIM905
PEOPLE, PLACES = 60_000, 5_000
COMMON = 5
"""How many of the most frequent names a passage of common names is made of."""
MOST_GROWTH = 1.5


class Bounds(NamedTuple):
    """What a step may take in ms, a fresh process in s, and its memory in MB."""

    step: float
    fresh: float
    memory: float


_IN_A_FILE, _IN_A_SERVER = Bounds(60, 1, 400), Bounds(200, 1.5, 300)
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


class Writer:
    """Writes passages whose names follow Zipf's law.

    Attributes:
        written: characters of all passages.
    """

    def __init__(self, seed: int = 1) -> None:
        self._dice = random.Random(seed)
        self._weights = list(accumulate(1 / rank for rank in range(1, PEOPLE + 1)))
        self.written = 0

    def passage(self, *, common: bool = False) -> str:
        """Return a passage of about 100 words."""
        named, plain = self._dice.sample(SENTENCES, 3), self._dice.sample(PLAIN, 4)
        told = [
            sentence.format(a=self.person(common), b=self.person(common), p=self._place(common))
            for sentence in named
        ]
        text = " ".join(sentence for pair in zip(told, plain, strict=False) for sentence in pair)
        self.written += len(text)
        return text

    def person(self, common: bool = False) -> str:
        """Return a person's name; the same rank gives the same name."""
        number = self._drawn(PEOPLE, common)
        return f"{_word(number % 997, 2)} {_word(number, 3)}"

    def _place(self, common: bool) -> str:
        return _word(self._drawn(PLACES, common) + PEOPLE, 4)

    def _drawn(self, count: int, common: bool) -> int:
        if common:
            return self._dice.randrange(COMMON)
        return bisect(self._weights, self._dice.uniform(0, self._weights[count - 1]))


def _word(number: int, syllables: int) -> str:
    parts = []
    for _ in range(syllables):
        number, rest = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[rest])
    return "".join(parts).capitalize() + ("" if not number else SYLLABLES[number % 18])


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the medians at each size, and how much they grow."""
    with tempfile.TemporaryDirectory() as folder:
        where = chosen.memory or str(Path(folder) / "everyday.db")
        bounds = _IN_A_SERVER if chosen.memory else _IN_A_FILE
        first: dict[str, float] = {}
        writer, size = Writer(), 0
        for wanted in chosen.sizes:
            began = time.monotonic()
            asyncio.run(_grow(where, writer, size, wanted))
            rate = (wanted - size) / (time.monotonic() - began)
            size = wanted
            note(f"{wanted} passages; built at {rate:.0f} a second")
            yield Figure(f"build up to {wanted}", rate, "passages/s", at_least=150)
            found = asyncio.run(_steps(where, writer, chosen.rounds))
            for what, value in found.items():
                is_step = what in ("add", "add of common names", "add_turn")
                yield Figure(
                    f"{what}, {wanted} passages",
                    value,
                    "ms",
                    at_most=bounds.step if is_step else None,
                )
                if first.setdefault(what, value) and wanted == chosen.sizes[-1] != chosen.sizes[0]:
                    growth = value / first[what]
                    most = MOST_GROWTH if is_step else None
                    yield Figure(f"growth of {what}", growth, at_most=most)
            again = found["search after add"] / found["search warm"]
            yield Figure(f"search after add to warm, {wanted} passages", again, at_most=1.5)
            yield from _fresh(where, writer, wanted, bounds)
            if not chosen.memory:
                yield _size(where, writer, wanted)


async def _grow(where: str, writer: Writer, size: int, wanted: int) -> None:
    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        await memory.add({"id": f"p{n:07}", "text": writer.passage()} for n in range(size, wanted))


async def _steps(where: str, writer: Writer, rounds: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {}

    async def timed(what: str, step: Callable[[], Awaitable[object]]) -> None:
        began, used = time.perf_counter(), time.process_time()
        await step()
        seconds.setdefault(what, []).append((time.perf_counter() - began) * 1000)
        of = f"{what}, processor"
        seconds.setdefault(of, []).append((time.process_time() - used) * 1000)

    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        stamp = time.time_ns()
        await memory.add({"id": f"warm {stamp}", "text": writer.passage()})
        await memory.search(writer.person(), k=10)
        for n in range(rounds):
            for what, common in (("add", False), ("add of common names", True)):
                document = {"id": f"{what} {stamp} {n}", "text": writer.passage(common=common)}
                await timed(what, partial(memory.add, document))
                await timed("search after add", lambda: _asked(memory, writer))
            await timed("add_turn", lambda: memory.add_turn("user", writer.passage()))
        for _ in range(QUESTIONS):
            await timed("search warm", lambda: _asked(memory, writer))
    return {what: median(values) for what, values in seconds.items()}


async def _asked(memory: qrmem.Memory, writer: Writer) -> object:
    return await memory.search(f"What did {writer.person()} do before the bridge was built?", k=10)


def _fresh(where: str, writer: Writer, size: int, bounds: Bounds) -> Iterator[Figure]:
    times, works, megabytes = [], [], 0.0
    for _ in range(3):
        began = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, "-c", FRESH, where, f"Where was {writer.person()}?"],
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


def _size(where: str, writer: Writer, size: int) -> Figure:
    ratio = Path(where).stat().st_size / writer.written
    return Figure(f"file to text, {size} passages", ratio, at_most=8)
