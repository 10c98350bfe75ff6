"""Recall of gold passages at 1, 2, 5, 10, with and without the embedder, beside BM25 and it alone.

    QRMEM_DATA=… python -m benchmarks.retrieval_recall [--kept FOLDER] [--parts]

Questions that weights are fitted on are never measured. `--parts` switches each part off in turn.
"""

import argparse
import asyncio
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import multihop
from benchmarks.search_memories import Built, built
from qrmem.retrieval import SearchSettings
from qrmem.retrieval.weights import WITH_EMBEDDER, WITHOUT_EMBEDDER

AT = (1, 2, 5, 10)
MEASURED = ("musique", "hotpotqa", "2wikimultihopqa", "xquad")


def systems(*, embedded: bool) -> Iterator[tuple[str, SearchSettings]]:
    """Yield what is compared, with its name."""
    yield "BM25", SearchSettings(graph=False, dense=0, names=0, lexical=1)
    if embedded:
        yield "embedder", SearchSettings(graph=False, lexical=0, names=0, dense=1)
    yield "both and titles", SearchSettings(graph=False)
    yield "search", SearchSettings()


def without_parts(*, embedded: bool) -> Iterator[tuple[str, SearchSettings]]:
    """Yield the search without each of its features in turn."""
    weights: Mapping[str, float] = WITH_EMBEDDER if embedded else WITHOUT_EMBEDDER
    for name in weights:
        rest = {other: weight for other, weight in weights.items() if other != name}
        yield f"  without {name}", SearchSettings(features=rest)


async def _measure(memory: Built, *, embedded: bool, parts: bool) -> None:
    asked = memory.corpus.measured
    compared = list(systems(embedded=embedded))
    if parts:
        compared += without_parts(embedded=embedded)
    for name, settings in compared:
        shares = await memory.recall(asked, AT, settings)
        # Of R@5, whose standard deviation is at most that of yes and no.
        error = math.sqrt(shares[2] * (100 - shares[2]) / len(asked))
        figures = " ".join(f"{share:6.1f}" for share in shares)
        print(f"{name:36}{figures}   ±{error:.1f}", flush=True)


async def _main(folder: Path, *, parts: bool) -> None:
    data = multihop.folder()
    for embedded in (True, False):
        for name in MEASURED:
            corpus = multihop.load(name, data)
            print(
                f"\n{name}, {len(corpus.measured)} questions over {len(corpus.passages)} passages, "
                f"{'with' if embedded else 'without'} the embedder: R@1 R@2 R@5 R@10"
            )
            async with built(corpus, folder, embedded=embedded) as memory:
                await _measure(memory, embedded=embedded, parts=parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--parts", action="store_true")
    chosen = parser.parse_args()
    chosen.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(_main(chosen.kept, parts=chosen.parts))
