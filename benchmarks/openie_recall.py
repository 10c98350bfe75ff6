"""Recall on MuSiQue with a paid extraction in the memory: instead of our own, and beside it.

    QRMEM_DATA=… python -m benchmarks.openie_recall [--embedder]

The extraction is GPT-3.5's of all 1,890 passages, brought in by `load_openie`.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

import qrmem
from benchmarks import multihop
from benchmarks.search_memories import NAMESPACE, Built, KeptEmbedder, document_id, embed
from qrmem.config import Settings
from qrmem.graphstore import open_store

AT = (1, 2, 5, 10)
EXTRACTION = "musique/hippo_train_openie_gpt35_1890.json"
READINGS = {"read here": (True, False), "extraction": (False, True), "both": (True, True)}
"""What the memory is made of: what `add` read, what was extracted elsewhere."""


def _extraction(corpus: multihop.Corpus, data: Path, folder: Path) -> Path:
    """Write the extraction with the benchmark's document ids; return where."""
    docs = json.loads((data / EXTRACTION).read_text())["docs"]
    place = {passage: document_id(n) for n, passage in enumerate(corpus.passages)}
    named = [{**doc, "idx": place[doc["title"], doc["text"]]} for doc in docs]
    path = folder / "extraction.json"
    path.write_text(json.dumps({"docs": named}))
    return path


async def _measure(corpus: multihop.Corpus, data: Path, folder: Path, *, embedded: bool) -> None:
    extraction = _extraction(corpus, data, folder)
    for name, (reads, loads) in READINGS.items():
        path = str(folder / f"{name}.db")
        async with qrmem.open(path, namespace=NAMESPACE, embedder="none") as memory:
            if reads:
                await memory.add(
                    {"id": document_id(n), "title": title, "text": text}
                    for n, (title, text) in enumerate(corpus.passages)
                )
            if loads:
                await memory.load_openie(extraction)
        store = await open_store(path, Settings())
        embedder = KeptEmbedder(folder / "vectors.sqlite") if embedded else None
        if embedder is not None:
            await embed(store, embedder)
        shares = await Built(corpus, store, embedder).recall(corpus.measured, AT)
        print(f"{name:12}" + " ".join(f"{share:6.1f}" for share in shares), flush=True)
        await store.close()


def main() -> None:
    """Print R@1, R@2, R@5 and R@10 of each memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", action="store_true", help="all-MiniLM-L6-v2 (extra `local`)")
    arguments = parser.parse_args()
    data = multihop.folder()
    corpus = multihop.load("musique", data)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(corpus, data, Path(folder), embedded=arguments.embedder))


if __name__ == "__main__":
    main()
