"""One `qrmem eval run`: what was asked for becomes a configuration, a folder, and a run in it."""

import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.eval.arranging import Arrangement, arranged
from qrmem.eval.bench import open_bench, price_of, require, resolved
from qrmem.eval.records import Dataset, Item
from qrmem.eval.rundir import RunFolder
from qrmem.eval.runner import Ran, run
from qrmem.eval.sampling import sample, sample_digest
from qrmem.eval.systems import System, parse, ranks
from qrmem.eval.tasks import Corpus, load
from qrmem.llm.caps import Caps
from qrmem.types import ChatModel, Embedder, Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run is to be; two runs of the same `Wanted` give the same results.

    Attributes:
        task: name of a task.
        data: its file or folder.
        systems: as written, with parameters.
        skip: leave so many items of the file's beginning out, such as those that something was
            fitted on; their passages stay in a union.
        retrieve: rank only, answer nothing.
        force: force an answer where none was found.
    """

    task: str
    data: Path
    systems: tuple[str, ...]
    corpus: Corpus = field(default_factory=Corpus)
    size: int | None = None
    seed: int = 0
    strata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    arrange: Arrangement | None = None
    skip: int = 0
    retrieve: bool = False
    force: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """With what a run is made; none of it shapes a result.

    Attributes:
        concurrency: items at the same time, in each process.
        workers: processes.
        chat: instead of the model that the settings name, such as a cassette.
        embedder: the one that the settings name, such as one that keeps its vectors.
    """

    listener: Listener
    concurrency: int = 1
    workers: int = 1
    caps: Caps = field(default_factory=Caps)
    chat: ChatModel | None = None
    embedder: Embedder | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.workers < 1:
            raise UsageError("--concurrency and --workers are at least 1")
        if self.workers > 1 and (self.caps != Caps() or self.chat or self.embedder):
            raise UsageError("caps and cassettes hold for one process; leave --workers out")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that was checked and has its data."""

    wanted: Wanted
    settings: Settings
    systems: Mapping[str, System]
    dataset: Dataset
    items: Sequence[Item]


async def run_task(wanted: Wanted, out: Path, settings: Settings, means: Means) -> Ran:
    """Run a task in a folder; the same call again goes on where the last one stopped.

    Raises:
        UsageError: something is wrong with what was asked for, or with the data.
        MissingError: a system needs a model, an embedder or an extra that is not there.
        CapReached: a cap was reached.
    """
    return await run_made(prepared(wanted, settings), out, means)


async def run_made(made: Prepared, out: Path, means: Means) -> Ran:
    """Run what was prepared; see `run_task`."""
    with RunFolder(out).begin(configuration(made), made.items) as folder:
        if means.workers > 1:
            from qrmem.eval.workers import run_by_workers

            return await run_by_workers(made, folder, means)
        return await run_prepared(made, folder, means, made.items)


def prepared(wanted: Wanted, settings: Settings) -> Prepared:
    """Check what is wanted, and load and sample its data."""
    settings = resolved(settings)
    systems: dict[str, System] = {}
    for word in wanted.systems:
        systems[word] = parse(word)
        require(systems[word].needs, settings, word)
        if wanted.retrieve and not ranks(systems[word]):
            raise UsageError(f"the system {word!r} only answers; leave it or --retrieve out")
    if not systems:
        raise UsageError("name at least one system: --system reflection,bm25")
    dataset = load(wanted.task, wanted.data, wanted.corpus)
    if wanted.arrange is not None:
        dataset = arranged(dataset, wanted.arrange)
    if wanted.skip:
        dataset = replace(dataset, items=dataset.items[wanted.skip :])
    if not dataset.items:
        raise UsageError(f"no item is left of {wanted.data} after the first {wanted.skip}")
    items = sample(dataset.items, wanted.size, wanted.seed, wanted.strata)
    return Prepared(wanted, settings, systems, dataset, items)


async def run_prepared(
    made: Prepared, folder: RunFolder, means: Means, items: Sequence[Item]
) -> Ran:
    """Run some of a run's items in this process."""
    async with open_bench(
        made.settings,
        folder.path,
        chat=means.chat,
        embedder=means.embedder,
        caps=means.caps,
        listener=means.listener,
        record=folder.add_memory,
        force=made.wanted.force,
        retrieve=made.wanted.retrieve,
    ) as bench:
        concurrency = means.concurrency
        return await run(bench, made.dataset, items, made.systems, folder, concurrency=concurrency)


def configuration(made: Prepared) -> dict[str, Any]:
    """Return everything that shapes the results, and, under `about`, where they were made."""
    wanted, settings, dataset, items = made.wanted, made.settings, made.dataset, made.items
    price = price_of(settings)
    return {
        "task": wanted.task,
        "corpus": wanted.corpus.kind,
        "files": [
            {"name": f.path.name, "sha256": f.sha256, "verified": f.verified} for f in dataset.files
        ],
        "items": {"n": len(items), "of": len(dataset.items), "sample": sample_digest(items)},
        "size": wanted.size,
        "seed": wanted.seed,
        **({"skip": wanted.skip} if wanted.skip else {}),
        "arrange": asdict(wanted.arrange) if wanted.arrange else None,
        "strata": {label: dict(counts) for label, counts in wanted.strata.items()},
        "answers": "none" if wanted.retrieve else "forced" if wanted.force else "may abstain",
        "settings": {name: getattr(settings, name) for name in _SHAPING},
        "price": asdict(price) if price else None,
        "prompts": _prompts() if settings.model else {},
        "systems": list(wanted.systems),
        "about": about(),
    }


_SHAPING = (
    "model",
    "base_url",
    "embedder",
    "tokenizer",
    "tagger",
    "segment_tokens",
    "window",
    "reserve",
    "questions",
    "similar_names",
)
"""Settings that shape results."""


def _prompts() -> dict[str, int]:
    from qrmem.prompts import Prompt, catalogue

    found = (p for p in vars(catalogue).values() if isinstance(p, Prompt))
    return {prompt.name: prompt.version for prompt in found}


def about() -> dict[str, Any]:
    """Return by which code, and where, something is made."""
    return {
        "qrmem": version("qrmem"),
        "git": _git_hash(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _git_hash() -> str:
    """Return the commit of the code that runs, with a `+` if it was changed; "" outside of git."""
    here = Path(__file__).parent
    # Result files are written one after the other, and shape no result.
    code = ("--", ":/", ":(top,exclude)docs")
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True
        )
        changes = subprocess.run(
            ["git", "status", "--porcelain", "-uno", *code],
            cwd=here,
            capture_output=True,
            text=True,
        )
    except OSError:
        return ""
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")
