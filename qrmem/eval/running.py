"""Runs a task: from a specification to a configuration, a folder, and results."""

import asyncio
import multiprocessing
import platform
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from qrmem.agents.build_state import silent
from qrmem.config import Address, Secret, Settings
from qrmem.errors import (
    AccessRefused,
    CapReached,
    MissingError,
    ModelOutputError,
    OutOfReach,
    UsageError,
)
from qrmem.eval.datasets.data_files import load
from qrmem.eval.datasets.multihop import Arrangement, arranged
from qrmem.eval.harness import Harness, RunOptions, open_harness, price_of, require, resolved
from qrmem.eval.items import WHOLE, Context, Corpus, Dataset, Item, Prediction, Row
from qrmem.eval.registry import System, needs, parameters, parse, ranks
from qrmem.eval.run_folder import RunFolder
from qrmem.eval.sampling import sample, sample_digest
from qrmem.prompts import fenced, load_prompts
from qrmem.prompts.replies import ShortReply
from qrmem.types import Event, Usage

# Results: one item with one system, many at the same time.


T = TypeVar("T")

SHORT_ENOUGH = 5
"""An answer with at most this many words is short enough."""
REPLY = 128


async def shortened(harness: Harness, item: Item, found: Prediction) -> str:
    """Return the short form of an answer."""
    if "repository" in item.labels or found.rounds:
        return found.text  # code is compared unchanged, and a judge reads whole replies
    text = " ".join(found.text.split())
    if item.labels.get("answers") == WHOLE:
        return text
    if item.choices or harness.model is None or len(text.split()) <= SHORT_ENOUGH:
        return text
    try:
        call = await harness.caller.call(
            "short-answer",
            ShortReply,
            lambda kept: dict(
                question=f"Question: {item.question}", given=fenced(" ".join(kept[0]))
            ),
            [text.split()],
            window=harness.settings.window,
            reply=REPLY,
        )
    except ModelOutputError:
        return text
    return " ".join(call.value.answer.split())


FATAL = (AccessRefused, CapReached, MissingError, OutOfReach)
"""Errors that would occur for every other item too: the run stops, and results so far are kept."""


@dataclass(frozen=True, slots=True)
class RunStats:
    """Numbers of results of one run.

    Attributes:
        reused: number of earlier results.
    """

    done: int = 0
    failed: int = 0
    reused: int = 0

    def plus(self, other: "RunStats") -> "RunStats":
        """Return the sums of two runs."""
        return RunStats(
            self.done + other.done, self.failed + other.failed, self.reused + other.reused
        )


async def at_once(
    items: Sequence[T], work: Callable[[T], Awaitable[None]], concurrency: int
) -> None:
    """Process all items, `concurrency` at a time; the first error is raised and stops the rest."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    tasks = [asyncio.create_task(worker()) for _ in range(min(concurrency, len(items)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def result_of(
    harness: Harness, context: Context, item: Item, name: str, system: System
) -> Row:
    """Return a system's result for an item; errors are stored, except those that stop the run."""
    began, own_harness = time.monotonic(), harness.with_own_count()
    try:
        prediction = await system(item, context, own_harness)
        short = await shortened(own_harness, item, prediction)
        online = {**prediction.usage.online, **own_harness.calls.stages}
        prediction = replace(prediction, usage=Usage(prediction.usage.construction, online))
        row = Row(item=item.id, system=name, prediction=prediction, short=short)
    except FATAL:
        raise
    except Exception as exc:
        error = f"{type(exc).__name__}: {' '.join(str(exc).split())}"
        row = Row(item=item.id, system=name, error=error)
    return replace(row, seconds=round(time.monotonic() - began, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """The specification of a run; two runs with the same `RunSpec` give the same results.

    Attributes:
        task: name of a task.
        data: its file or folder.
        systems: names of systems with parameters.
        first: use only this many items from the start of the file; 0 uses all.
        skip: leave out this many items from the start of the file, such as those of a fit; their
            passages stay in a union.
        full_window: window of systems that read the whole text; 0 uses the model's. `None` uses
            the window of the settings if one was chosen, else the model's.
        retrieve: rank only, without answers.
        force: force an answer if none was found.
    """

    task: str
    data: Path
    systems: tuple[str, ...]
    corpus: Corpus = field(default_factory=Corpus)
    size: int | None = None
    seed: int = 0
    strata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    arrange: Arrangement | None = None
    first: int = 0
    skip: int = 0
    full_window: int | None = None
    retrieve: bool = False
    force: bool = True


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A checked run with its data."""

    spec: RunSpec
    settings: Settings
    systems: Mapping[str, System]
    dataset: Dataset
    items: Sequence[Item]
    full_window: int


async def run_task(spec: RunSpec, out: Path, settings: Settings, options: RunOptions) -> RunStats:
    """Run a task in a folder; a second call resumes a stopped run.

    Raises:
        UsageError: the specification or the data are wrong.
        MissingError: a system needs a model, an embedder or an extra that is missing.
        CapReached: a cap was reached.
    """
    return await run_made(prepared(spec, settings), out, options)


async def run_made(made: PreparedRun, out: Path, options: RunOptions) -> RunStats:
    """Run a prepared run; see `run_task`."""
    with RunFolder(out).begin(configuration(made), made.items) as folder:
        if options.workers > 1:
            return await run_by_workers(made, folder, options)
        return await run_prepared(made, folder, options, made.items)


_RANKING = ("search", "bm25", "fragment")


def prepared(spec: RunSpec, settings: Settings) -> PreparedRun:
    """Check a specification, and load and sample its data."""
    window_chosen = 0 if settings.has_usual_window else settings.window
    full_window = window_chosen if spec.full_window is None else spec.full_window
    systems: dict[str, System] = {word: parse(word) for word in spec.systems}
    settings = resolved(_as_in_the_paper(settings, systems.values()))
    for word in spec.systems:
        require(needs(systems[word]), settings, word)
        if spec.retrieve and not ranks(systems[word]):
            raise UsageError(
                f"the system {word!r} only answers, and --retrieve only ranks: leave --retrieve "
                f"out, or name systems that rank, such as {', '.join(_RANKING)}"
            )
    if not systems:
        raise UsageError("name at least one system: --system reflection,bm25")
    dataset = load(spec.task, spec.data, spec.corpus)
    if spec.arrange is not None:
        dataset = arranged(dataset, spec.arrange)
    if spec.first:
        dataset = replace(dataset, items=dataset.items[: spec.first])
    if spec.skip:
        dataset = replace(dataset, items=dataset.items[spec.skip :])
    if not dataset.items:
        first_option = f"--first {spec.first}, " if spec.first else ""
        selection_in_words = f": {first_option}--skip {spec.skip} leaves none" if spec.skip else ""
        raise UsageError(f"{spec.data} has no items to run{selection_in_words}")
    items = sample(dataset.items, spec.size, spec.seed, spec.strata)
    return PreparedRun(spec, settings, systems, dataset, items, full_window)


def _as_in_the_paper(settings: Settings, systems: Iterable[System]) -> Settings:
    """Return the settings of a run with a `paper_exact` system; they apply to all its systems.

    These are the prompts `paper`, CoreNLP if its jars are installed, and a window of 4,096 if
    none is chosen.
    """
    if not any(getattr(system, "paper_exact", False) for system in systems):
        return settings
    exact = settings.with_(paper_exact=True)
    return exact.with_(paper_exact=settings.paper_exact, window=exact.window)


async def run_prepared(
    made: PreparedRun, folder: RunFolder, options: RunOptions, items: Sequence[Item]
) -> RunStats:
    """Run all systems over some of a run's items in this process; retry failed items.

    Raises:
        CapReached: a cap was reached; the same command with a higher cap resumes.
        OutOfReach: the model does not answer any more.
    """
    rows_known = {key for key, row in folder.rows().items() if not row.error}
    todo = [
        (name, item) for item in items for name in made.systems if (name, item.id) not in rows_known
    ]
    failed = 0
    async with open_harness(
        made.settings,
        folder.path,
        options,
        record=folder.add_memory,
        force=made.spec.force,
        full_window=made.full_window,
        retrieve=made.spec.retrieve,
    ) as harness:
        options.listener(Event("items", {"total": len(todo)}))

        async def work(wanted: tuple[str, Item]) -> None:
            nonlocal failed
            name, item = wanted
            context = made.dataset.contexts[item.context]
            row = await result_of(harness, context, item, name, made.systems[name])
            folder.add(row)
            failed += bool(row.error)
            event_data = {"system": name, "item": item.id, "error": row.error}
            options.listener(Event("item", event_data))
            harness.tell_paid()

        await at_once(todo, work, options.concurrency)
        reused = len(items) * len(made.systems) - len(todo)
        return RunStats(len(todo) - failed, failed, reused)


def configuration(made: PreparedRun) -> dict[str, Any]:
    """Return everything that affects the results, and, under `about`, code and machine."""
    spec, settings, dataset, items = made.spec, made.settings, made.dataset, made.items
    price = price_of(settings)
    prompts = load_prompts(settings.prompts)
    versions = {
        "set": prompts.label,
        "named": settings.prompts,
        "versions": sorted(prompt.label for prompt in prompts.values()),
    }
    return {
        "task": spec.task,
        "corpus": spec.corpus.kind,
        "files": [
            {"name": f.path.name, "sha256": f.sha256, "verified": f.verified} for f in dataset.files
        ],
        "items": {"n": len(items), "of": len(dataset.items), "sample": sample_digest(items)},
        "size": spec.size,
        "seed": spec.seed,
        **({"first": spec.first} if spec.first else {}),
        **({"skip": spec.skip} if spec.skip else {}),
        **({"full_window": made.full_window} if made.full_window else {}),
        "arrange": asdict(spec.arrange) if spec.arrange else None,
        "strata": {label: dict(counts) for label, counts in spec.strata.items()},
        "answers": "none" if spec.retrieve else "forced" if spec.force else "may abstain",
        "settings": {name: getattr(settings, name) for name in _SHAPING},
        "price": asdict(price) if price else None,
        "prompts": versions if settings.model else {},
        "systems": list(spec.systems),
        "parameters": {word: _parameters(word, settings) for word in spec.systems},
        "about": about(),
    }


def _parameters(word: str, settings: Settings) -> dict[str, Any]:
    """Return all parameters of a system; `paper_exact` of the run holds for each."""
    own = parameters(word)
    if "paper_exact" in own:
        own["paper_exact"] |= settings.paper_exact
    return own


_SHAPING = (
    "model",
    "base_url",
    "embedder",
    "tokenizer",
    "tagger",
    "paper_exact",
    "segment_tokens",
    "window",
    "reserve",
    "questions",
    "similar_names",
)
"""Settings that affect results."""


def about() -> dict[str, Any]:
    """Return the version of the code, and the machine."""
    return {
        "qrmem": version("qrmem"),
        "git": _git_hash(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _git_hash(file: Path = Path(__file__)) -> str:
    """Return the commit of the running code, with a `+` if it was changed; "" outside of git.

    An installed package may be inside of another project's checkout, which does not track it.
    """

    def git(*words: str) -> str:
        completed = subprocess.run(["git", *words], cwd=file.parent, capture_output=True, text=True)
        return completed.stdout.strip()

    try:
        if not git("ls-files", file.name):
            return ""
        # Processes for runs; they do not affect results.
        changes = git("status", "--porcelain", "-uno", "--", ":/", ":(top,exclude)docs")
        return git("rev-parse", "--short", "HEAD") + ("+" if changes else "")
    except OSError:
        return ""


POLL = 0.5
"""Seconds between two checks of the workers' progress."""


async def run_by_workers(made: PreparedRun, folder: RunFolder, options: RunOptions) -> RunStats:
    """Run all items without a result in several processes, and wait for them."""
    rows_known = sum(not row.error for row in folder.rows().values())
    options.listener(Event("items", {"total": len(made.items) * len(made.systems) - rows_known}))
    # Not forked: threads of the embedder or the database would not survive a fork.
    context = multiprocessing.get_context("spawn")
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        working = [
            loop.run_in_executor(
                pool,
                _work,
                made.spec,
                _plain(made.settings),
                folder.path,
                (number, options.workers),
                options.concurrency,
            )
            for number in range(options.workers)
        ]
        all_work = asyncio.gather(*working)
        count_seen = folder.count()
        while not all_work.done():
            await asyncio.wait([all_work], timeout=POLL)
            now = folder.count()
            for _ in range(now - count_seen):
                options.listener(Event("item", {"error": ""}))
            count_seen = now
        rans = await all_work
    return reduce(RunStats.plus, rans)


def _plain(settings: Settings) -> dict[str, Any]:
    """Return settings for our own process: keys go through its pipe and are stored nowhere."""
    values = {one.name: getattr(settings, one.name) for one in fields(settings)}
    if settings.has_usual_window:
        values["window"] = 0
    hidden = (Secret, Address)
    return {n: v.reveal() if isinstance(v, hidden) else v for n, v in values.items()}


def _work(
    spec: RunSpec,
    settings: Mapping[str, Any],
    path: Path,
    shard: tuple[int, int],
    concurrency: int,
) -> RunStats:
    number, of = shard
    prepared_run = prepared(spec, Settings().with_(**settings))
    options = RunOptions(listener=silent, concurrency=concurrency)
    folder = RunFolder(path, worker=number)
    return asyncio.run(run_prepared(prepared_run, folder, options, prepared_run.items[number::of]))
