"""Local build, without an embedder: segments a second and core, and how time grows with the text.

    python -m benchmarks.local_build TEXT… [--megabytes 50]

Builds the first text as it is; then, of all texts, one of the given size and its first tenth,
and prints the ratio of the times (bound: 13 for ten times the text). The large text repeats the
sentences of the given ones in another order and with other names in each round, so that names and
questions keep growing as they do in a long text. Times are of the processor, so that a busy
machine does not count.
"""

import argparse
import asyncio
import random
import re
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import qrmem
from qrmem.text.files import read
from qrmem.text.sentences import sentences

LEAST_RATE = 100
MOST_GROWTH = 13
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to"]
NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{3,}")


@dataclass(frozen=True)
class Built:
    """One build: segments and processor seconds."""

    segments: int
    seconds: float

    @property
    def rate(self) -> float:
        """Segments a second."""
        return self.segments / self.seconds


async def build(text: str) -> Built:
    """Read a text into a new memory."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        async with qrmem.open(f"{folder}/b.db", embedder="none", model="") as memory:
            report = await memory.add(qrmem.Document(text, id="text"))
        return Built(report.read, time.process_time() - began)


def long_text(texts: Sequence[str], characters: int) -> str:
    """Return a text of that size made of the sentences of others."""
    pieces = [text[start:end] for text in texts for start, end in sentences(text)]
    return "".join(_rounds(pieces, characters))[:characters]


def _rounds(pieces: Sequence[str], characters: int) -> Iterator[str]:
    done, turn = 0, 0
    while done < characters:
        chance = random.Random(turn)
        for piece in chance.sample(pieces, len(pieces)):
            other = NAME.sub(partial(_renamed, turn), piece)
            yield other
            done += len(other)
        turn += 1


def _renamed(turn: int, found: re.Match[str]) -> str:
    """Return another name in each round, the same one throughout a round."""
    name = found[0]
    if not turn:
        return name
    chance = random.Random(f"{name} {turn}")
    return name[:3] + "".join(chance.choices(SYLLABLES, k=2))


async def main(arguments: argparse.Namespace) -> None:
    """Print the rate of the first text, and the growth."""
    texts = [read(path).text for path in arguments.texts]
    await build(texts[0][:2000])  # imports what a first build imports
    novel = await build(texts[0])
    print(
        f"{arguments.texts[0].name}: {novel.segments} segments, {novel.seconds:.1f} s of processor"
    )
    print(f"  {novel.rate:.0f} segments/s and core (bound: at least {LEAST_RATE})")
    characters = int(arguments.megabytes * 1e6)
    text = long_text(texts, characters)
    tenth = await build(text[: characters // 10])
    print(f"{characters / 1e7:.1f} MB: {tenth.segments} segments, {tenth.seconds:.1f} s")
    whole = await build(text)
    print(f"{characters / 1e6:.1f} MB: {whole.segments} segments, {whole.seconds:.1f} s")
    print(f"  {whole.rate:.0f} segments/s and core")
    growth = whole.seconds / tenth.seconds
    print(f"  {growth:.1f} times the time for 10 times the text (bound: at most {MOST_GROWTH})")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"  peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=float, default=50)
    asyncio.run(main(parser.parse_args()))
