"""Runs the evaluations for the tables of `docs/results`, on the real files, without a chat model.

    QRMEM_DATA=… python -m tools.evaluation_results [NAME …] [--kept FOLDER]

Each is a run of `qrmem eval run` in its own folder below `--kept`; a stopped run is resumed, and
its summary is stored there, too. At the end all tables are written again. The runs with the
embedder store its vectors, so that no text is embedded twice.
"""

import argparse
import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks import multihop
from benchmarks.search_memories import KeptEmbedder
from qrmem.cli.evaluating import RunProgress
from qrmem.config import Settings
from qrmem.eval import Corpus, RunOptions, RunSpec, read_results, run_task, write_report
from tools.evaluation_tables import write_tables

RANKING = ("search", "dense", "bm25", "fragment")
WALKING = ("reflection", "graph-expansion", "entity-trial")
"""Strategies rank by their readings: they are run without the embedder, and answer."""
CHOOSING = ("search:k=8", "bm25:k=3", "bm25:k=0", "closed-book", "full-text", *WALKING)
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
    against: str = ""

    def spec(self, data: Path) -> RunSpec:
        """Return the specification of the run."""
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
}


def recipes() -> dict[str, Recipe]:
    """Return all runs by name."""
    found = {}
    for name, (task, file, corpus, skip) in _SETS.items():
        for embedder in ("none", "local"):
            ranking = tuple(one for one in RANKING if embedder == "local" or one != "dense")
            found[f"retrieval-{name}-{embedder}"] = Recipe(
                task=task,
                file=file,
                corpus=corpus,
                skip=skip,
                systems=ranking,
                embedder=embedder,
                retrieve=True,
                against="bm25",
            )
        found[f"walks-{name}"] = Recipe(
            task=task, file=file, corpus=corpus, skip=skip, systems=WALKING
        )
    found["choices-leval-quality"] = Recipe(
        task="leval-quality",
        file="quality/leval_quality15docs.jsonl",
        systems=CHOOSING,
        against="bm25:k=3",
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
    """Run a recipe, or its missing part, and store its summary."""
    out = kept / "runs" / name
    settings = Settings(embedder=recipe.embedder)
    embedder = KeptEmbedder(kept) if recipe.embedder == "local" else None
    with RunProgress(quiet=False) as progress:
        options = RunOptions(listener=progress, embedder=embedder)
        ran = await run_task(recipe.spec(multihop.folder()), out, settings, options)
    if ran.failed:
        raise SystemExit(f"{name}: {ran.failed} items failed; see {out}")
    write_report(read_results(out), recipe.against)
    (kept / "summaries").mkdir(exist_ok=True)
    shutil.copy(out / "report" / "summary.json", kept / "summaries" / f"{name}.json")
    print(f"{name}: {ran.done} results, {ran.reused} were there", flush=True)


async def main(names: list[str], kept: Path) -> None:
    """Run the recipes with these names, all by default, and write the tables."""
    known = recipes()
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise SystemExit(f"no run is called {unknown[0]!r}; there are: {', '.join(known)}")
    for name in names or known:
        await make(name, known[name], kept)
    write_tables(kept / "summaries")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    chosen = parser.parse_args()
    chosen.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen.names, chosen.kept))
