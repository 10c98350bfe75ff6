"""Print how many segments a second the local reasoner reads on one core.

Usage: `python benchmarks/local_reasoner.py FILE`. Processor time of extraction and supplementing
alone, no store and no embedder, on segments of about 600 tokens.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from qrmem.graph.segmenting import cut
from qrmem.language.local import LocalReasoner
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.text.files import read
from qrmem.types import Contribution, Reading, Segment


async def measure(path: Path) -> dict[str, float]:
    """Return segments per second of each pass over a file."""
    tokenizer = open_tokenizer("builtin")
    segments = cut("file", read(path), tokenizer, 600)
    reasoner, reading = LocalReasoner(tokenizer), Reading()
    extracted: list[Contribution] = []

    async def extract(segment: Segment) -> None:
        extracted.append(await reasoner.extract(segment, reading))

    async def supplement(segment: Segment) -> None:
        known = extracted[segment.index]
        await reasoner.supplement(segment, reading, known, known.questions)

    return {
        "segments": len(segments),
        "extract": await _rate(extract, segments),
        "supplement": await _rate(supplement, segments),
    }


async def _rate(work: Callable[[Segment], Awaitable[None]], segments: list[Segment]) -> float:
    started = time.process_time()
    for segment in segments:
        await work(segment)
    return len(segments) / (time.process_time() - started)


def main() -> None:
    """Measure the file named on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python benchmarks/local_reasoner.py FILE")
    found = asyncio.run(measure(Path(sys.argv[1])))
    print(f"segments: {found.pop('segments'):.0f}")
    for name, rate in found.items():
        print(f"{name}: {rate:.0f} segments/s")


if __name__ == "__main__":
    main()
