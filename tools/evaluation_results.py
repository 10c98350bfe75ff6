"""Makes the result files of `docs/results` that need no chat model, on the real files.

    QRMEM_DATA=… python -m tools.evaluation_results [NAME …] [--kept FOLDER] [--systems N]

Each is a run of `qrmem eval run` in a folder of its own below `--kept`, which goes on where it was
stopped, and its `report/summary.json`. The runs with the embedder keep its vectors there too, so
that no text is embedded twice. `python -m tools.evaluation_tables` writes the tables anew.
"""

import argparse
import asyncio
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import multihop
from benchmarks.search_memories import KeptEmbedder
from qrmem.config import Settings
from qrmem.eval.console import Progress
from qrmem.eval.records import Corpus
from qrmem.eval.report.results import read_results
from qrmem.eval.report.tables import write_report
from qrmem.eval.running import RunOptions, RunSpec, run_task
from tools.evaluation_tables import RESULTS

AGAINST = "bm25:k=3"

RETRIEVING = ("search:k=8", "bm25:k=1", "bm25:k=2", AGAINST, "bm25:k=0", "fragment")
WALKING = ("reflection", "graph-expansion", "entity-trial")
CUTTING = ("keep-left", "keep-right", "keep-ends", "summary", "closed-book")
WHOLE = ("full-text", "sliding-window")
"""They read all of a text, which in a union is all passages of a set."""
RANKING = ("search", "dense", "bm25")
EMBEDDED = ("search:k=8", "dense:k=1", "dense:k=2", "dense:k=3", "dense:k=0", "dos-rag", AGAINST)
TURNS = ("fragment-chat", "dense-chat", "fragment-chat:alpha=0:score=bm25")
"""FragRel's Table 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A run.

    Attributes:
        file: below the folder with the data.
        corpus: `own`, `union`, or a file beside.
        skip: questions at the file's beginning that something was fitted on.
    """

    task: str
    file: str
    systems: tuple[str, ...]
    corpus: str = "own"
    skip: int = 0
    embedder: str = "none"
    retrieve: bool = False
    against: str = AGAINST

    def first(self, count: int) -> "Recipe":
        """Return the run of the first systems alone; the others can be added to it later."""
        return replace(self, systems=self.systems[:count])

    def spec(self, data: Path) -> RunSpec:
        """Return the run as `qrmem eval run` takes it."""
        is_kind = self.corpus in {"own", "union"}
        beside = None if is_kind else data / self.corpus
        return RunSpec(
            task=self.task,
            data=data / self.file,
            systems=self.systems,
            corpus=Corpus(self.corpus if is_kind else "file", beside),
            skip=self.skip,
            retrieve=self.retrieve,
        )


_SETS = {
    "hotpotqa": ("hotpotqa", "hotpotqa/rpt_dev300.jsonl", "union", 0),
    "2wikimultihopqa": (
        "2wikimultihopqa",
        "2wikimultihopqa/migres_train500_llm_decomp.jsonl",
        "union",
        250,
    ),
    "musique": (
        "musique",
        "musique/hippo_train100.json",
        "musique/hippo_train_corpus1890.json",
        0,
    ),
    "leval-quality": ("leval-quality", "quality/leval_quality15docs.jsonl", "own", 0),
}


def recipes() -> dict[str, Recipe]:
    """Return all runs, by the names of their result files."""
    found = {}
    for name, (task, file, corpus, skip) in _SETS.items():
        whole = WHOLE if corpus == "own" else ()
        systems = (*RETRIEVING, *WALKING, *CUTTING, *whole)
        found[f"answers-{name}"] = Recipe(
            task=task, file=file, corpus=corpus, skip=skip, systems=systems
        )
        found[f"answers-{name}-minilm"] = Recipe(
            task=task, file=file, corpus=corpus, skip=skip, systems=EMBEDDED, embedder="local"
        )
        if corpus != "own":
            found[f"retrieval-{name}"] = Recipe(
                task=task,
                file=file,
                corpus=corpus,
                skip=skip,
                systems=RANKING,
                embedder="local",
                retrieve=True,
                against="bm25",
            )
    found["retrieval-mtbenchplus"] = Recipe(
        task="mtbenchplus",
        file="mtbenchplus/mtbenchplus.json",
        systems=TURNS,
        embedder="local",
        retrieve=True,
        against=TURNS[-1],
    )
    return found


async def make(name: str, recipe: Recipe, kept: Path) -> None:
    """Run a recipe, or what is missing of it, and keep its summary."""
    out = kept / "runs" / name
    settings = Settings(embedder=recipe.embedder)
    embedder = KeptEmbedder(kept / "vectors.sqlite") if recipe.embedder == "local" else None
    with Progress(quiet=False) as progress:
        options = RunOptions(listener=progress, embedder=embedder)
        ran = await run_task(recipe.spec(multihop.folder()), out, settings, options)
    if ran.failed:
        raise SystemExit(f"{name}: {ran.failed} items failed; see {out}")
    write_report(read_results(out), recipe.against)
    shutil.copy(out / "report" / "summary.json", RESULTS / f"{name}.json")
    print(f"{name}: {ran.done} results, {ran.reused} were there", flush=True)


async def main(names: list[str], kept: Path, count: int) -> None:
    """Make the files of these names, of so many systems each."""
    known = recipes()
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise SystemExit(f"no run is called {unknown[0]!r}; there are: {', '.join(known)}")
    for name in names or known:
        await make(name, known[name].first(count), kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--systems", type=int, default=99, metavar="N", help="the first N alone")
    chosen = parser.parse_args()
    chosen.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen.names, chosen.kept, chosen.systems))
