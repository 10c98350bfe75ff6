"""How much longer an evaluation run takes than the search alone: questions over one corpus.

    QRMEM_DATA=… python -m benchmarks.evaluation_speed [--passages 12000] [--questions 500]

The passages of HotpotQA and 2WikiMultihopQA, retrieval only, in one process, without the embedder.
Building the memory is left out on both sides. Prints both times, their ratio and the memory taken.
"""

import argparse
import asyncio
import json
import resource
import tempfile
import time
from pathlib import Path

from benchmarks import multihop
from qrmem.config import Settings
from qrmem.eval.memories import NAMESPACE
from qrmem.eval.running import Means, Wanted, run_task
from qrmem.eval.systems.retrieved import DEPTH
from qrmem.graphstore import open_store
from qrmem.retrieval.searcher import Searcher
from qrmem.types import Event

SETS = ("hotpotqa", "2wikimultihopqa")


def write_data(folder: Path, passages: int, questions: int) -> list[str]:
    """Write a plain corpus and its questions; returns the questions' texts."""
    corpora = [multihop.load(name, multihop.folder()) for name in SETS]
    texts = [passage for corpus in corpora for passage in corpus.passages][:passages]
    asked = [q.text for corpus in corpora for q in (*corpus.measured, *corpus.fitted)][:questions]
    _write(
        folder / "corpus.jsonl",
        [{"_id": f"p{n}", "title": title, "text": text} for n, (title, text) in enumerate(texts)],
    )
    _write(
        folder / "questions.jsonl",
        [{"_id": f"q{n}", "question": text, "gold": ["p0"]} for n, text in enumerate(asked)],
    )
    return asked


def _write(path: Path, records: list[dict[str, object]]) -> None:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")


class _Clock:
    """Notes when the first memory was built; everything after it is the run."""

    def __init__(self) -> None:
        self.begun = 0.0

    def __call__(self, event: Event) -> None:
        if event.kind == "memory":
            self.begun = time.perf_counter()


async def measure(folder: Path, passages: int, questions: int) -> None:
    """Print what a run and the search alone take."""
    asked = write_data(folder, passages, questions)
    clock = _Clock()
    wanted = Wanted(task="plain", data=folder, systems=("search",), retrieve=True)
    settings = Settings(embedder="none")
    await run_task(wanted, folder / "run", settings, Means(listener=clock))
    run = time.perf_counter() - clock.begun
    (file,) = (folder / "run" / "memories").glob("*.db")
    store = await open_store(str(file), settings)
    try:
        searcher = Searcher(store, NAMESPACE, None)
        began = time.perf_counter()
        for text in asked:
            await searcher.search(text, k=DEPTH)
        alone = time.perf_counter() - began
    finally:
        await store.close()
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(asked)} questions over {passages} passages: run {run:.1f} s, search alone "
        f"{alone:.1f} s, ratio {run / alone:.2f} (at most 2); memory {size:.0f} MB (at most 2,000)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=12_000)
    parser.add_argument("--questions", type=int, default=500)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(measure(Path(made), chosen.passages, chosen.questions))
