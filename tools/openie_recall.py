"""Recall on MuSiQue with a paid extraction in the memory: instead of our own, and beside it.

    QRMEM_DATA=… python -m tools.openie_recall [--kept FOLDER]

The extraction is GPT-3.5's of all 1,890 passages, brought in by `load_openie`.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import qrmem
from benchmarks import multihop
from benchmarks.search_memories import Built, KeptEmbedder, document_id, embed
from qrmem.config import Settings
from qrmem.graphstore import open_store

AT = (2, 5, 10)
EXTRACTION = "musique/hippo_train_openie_gpt35_1890.json"
READINGS = {
    "read by `add`": (True, False),
    "the paid extraction alone": (False, True),
    "both": (True, True),
}
"""What the memory is made of: what `add` read, what was extracted elsewhere."""


def _extraction(corpus: multihop.Corpus, data: Path, folder: Path) -> Path:
    """Write the extraction with the benchmark's document ids; return where."""
    docs = json.loads((data / EXTRACTION).read_text())["docs"]
    place = {passage: document_id(n) for n, passage in enumerate(corpus.passages)}
    named = [{**doc, "idx": place[doc["title"], doc["text"]]} for doc in docs]
    path = folder / "extraction.json"
    path.write_text(json.dumps({"docs": named}))
    return path


async def _build(corpus: multihop.Corpus, path: Path, extraction: Path | None, reads: bool) -> None:
    async with qrmem.open(str(path), namespace=corpus.name, embedder="none") as memory:
        if reads:
            await memory.add(
                {"id": document_id(n), "title": title, "text": text}
                for n, (title, text) in enumerate(corpus.passages)
            )
        if extraction is not None:
            await memory.load_openie(extraction)


async def table(folder: Path) -> AsyncIterator[str]:
    """Yield R@2, R@5 and R@10 of each memory, as lines of a table."""
    data = multihop.folder()
    corpus = multihop.load("musique", data)
    extraction = _extraction(corpus, data, folder)
    yield "### musique with GPT-3.5's triples: R@2, R@5, R@10"
    yield ""
    yield "| | with the embedder | without |"
    yield "|---|---|---|"
    for number, (name, (reads, loads)) in enumerate(READINGS.items()):
        path = folder / f"openie-{number}.db"
        if not path.exists():
            await _build(corpus, path, extraction if loads else None, reads)
        store = await open_store(str(path), Settings())
        bare = await Built(corpus, store, None).recall(corpus.measured, AT)
        embedder = KeptEmbedder(folder)
        await embed(store, corpus.name, embedder)
        dense = await Built(corpus, store, embedder).recall(corpus.measured, AT)
        figures = (" ".join(f"{share:.1f}" for share in shares) for shares in (dense, bare))
        yield f"| {name} | {' | '.join(figures)} |"
        await store.close()


async def main(folder: Path) -> None:
    """Print the table as its lines are measured."""
    async for line in table(folder):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    chosen = parser.parse_args()
    chosen.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen.kept))
