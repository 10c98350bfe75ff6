"""How long a search takes, without the encoder, beside BM25 and a matrix product alone.

    QRMEM_DATA=… python -m benchmarks.search_speed [--kept FOLDER] [--segments 12000]

Vectors are drawn at random: their values don't change how long a search takes.
"""

import argparse
import asyncio
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop
from benchmarks.multihop import Corpus
from benchmarks.search_memories import NAMESPACE, built
from qrmem.retrieval import Searcher, SearchSettings

_QUESTIONS = 200
_DIMENSION = 384


class DrawnEmbedder:
    """A unit vector per text, drawn with the text's hash as seed."""

    name = "drawn"
    dimension = _DIMENSION

    def windows(self, text: str) -> Sequence[str]:
        """Return the text whole."""
        return [text]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> NDArray[np.float32]:
        """Draw the vectors."""
        rows = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
            rows.append(np.random.default_rng(seed).standard_normal(_DIMENSION))
        matrix = np.array(rows, dtype=np.float32)
        unit: NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return unit


def corpus_of(size: int) -> Corpus:
    """Return passages of the sets, one after the other, and questions that are asked of them."""
    data = multihop.folder()
    parts = [multihop.load(name, data) for name in ("hotpotqa", "2wikimultihopqa", "musique-fit")]
    passages = [passage for part in parts for passage in part.passages][:size]
    asked = [question for part in parts for question in part.measured]
    step = max(1, len(asked) // _QUESTIONS)
    return Corpus(f"speed-{size}", tuple(passages), (), tuple(asked[::step][:_QUESTIONS]))


async def _timed(searcher: Searcher, questions: Sequence[str]) -> NDArray[np.float64]:
    """Return milliseconds per question; each is new to the searcher but for its first one."""
    await searcher.search(questions[0])
    result = []
    for question in questions[1:]:
        began = time.perf_counter()
        await searcher.search(question)
        result.append(1000 * (time.perf_counter() - began))
    return np.array(result)


async def _main(folder: Path, size: int) -> None:
    corpus = corpus_of(size)
    questions = [question.text for question in corpus.measured]
    embedder = DrawnEmbedder()
    async with built(corpus, folder, embedded=False) as memory:
        store = memory.store
        segments = (await store.catalog(NAMESPACE)).segment_ids
        await store.set_embedder(NAMESPACE, embedder.name, embedder.dimension)
        await store.put_vectors(NAMESPACE, "segment", segments, await embedder.embed(segments))
        began = time.perf_counter()
        searcher = Searcher(store, NAMESPACE, embedder)
        await searcher.search(questions[0])
        opening = time.perf_counter() - began
        alone = Searcher(store, NAMESPACE, embedder, SearchSettings(graph=False, names=0))
        base = await _timed(alone, questions)
        whole = await _timed(searcher, questions)
        await store.set_embedder(NAMESPACE, "none", 0)
    print(f"{len(segments)} segments, {len(whole)} questions, each asked once, encoder left out")
    print(f"first search, columns read  {opening:8.2f} s")
    for name, times in (("BM25 and matrix product", base), ("search", whole)):
        middle, late = np.percentile(times, [50, 95])
        print(f"{name:26}  median {middle:6.1f} ms   p95 {late:6.1f} ms")
    print(f"ratio of the medians        {np.median(whole) / np.median(base):8.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--segments", type=int, default=12_000)
    chosen = parser.parse_args()
    chosen.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(_main(chosen.kept, chosen.segments))
