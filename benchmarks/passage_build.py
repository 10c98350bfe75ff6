"""How fast passages become a memory that answers at once: vectors given, every index included.

    QRMEM_DATA=… python -m benchmarks.passage_build [--passages 12000]

Read by the local reasoner, merged, indexed for words, vectors put, and what the first search needs
worked out; then a new process's first search, which finds all of that.
"""

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import qrmem
from benchmarks.search_memories import NAMESPACE, document_id
from benchmarks.search_speed import DrawnEmbedder, corpus_of
from qrmem.config import Settings
from qrmem.graphstore import open_store
from qrmem.retrieval import Searcher


async def _main(count: int) -> None:
    passages = corpus_of(count).passages
    embedder = DrawnEmbedder()
    drawn = np.random.default_rng(0).standard_normal((2 * count, embedder.dimension))
    given = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "built.db")
        began, busy = time.perf_counter(), _busy()
        async with qrmem.open(path, namespace=NAMESPACE, embedder="none", model="") as memory:
            await memory.add(
                {"id": document_id(place), "title": title, "text": text}
                for place, (title, text) in enumerate(passages)
            )
        store = await open_store(path, Settings())
        ids = (await store.catalog(NAMESPACE)).segment_ids
        await store.set_embedder(NAMESPACE, embedder.name, embedder.dimension)
        await store.put_vectors(NAMESPACE, "segment", ids, given[: len(ids)])
        await store.close()
        wall, busy = time.perf_counter() - began, _busy() - busy
        began = time.perf_counter()
        store = await open_store(path, Settings())
        await Searcher(store, NAMESPACE, embedder).search(passages[0][1])
        first = time.perf_counter() - began
        await store.close()
    print(
        f"{len(passages)} passages, {len(ids)} segments: {wall:.1f} s, {busy:.1f} s of processors"
    )
    print(f"{len(passages) / wall:.0f} passages a second, {len(passages) / busy:.0f} of processors")
    print(f"first search afterwards {first:.2f} s")


def _busy() -> float:
    """Return the processor time of this process, and of those that it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=12_000)
    asyncio.run(_main(parser.parse_args().passages))
