"""`qrmem eval list|run|plan|judge|build|report`: what each does."""

from argparse import Namespace
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qrmem.cli import output
from qrmem.cli.arguments import BUILT
from qrmem.cli.costing import aligned
from qrmem.cli.parsed_arguments import settings_of
from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError, install
from qrmem.eval.console import Progress, listing, listing_lines
from qrmem.eval.harness import RunOptions
from qrmem.eval.items import Corpus
from qrmem.eval.judging import judge
from qrmem.eval.planning import forecasts, plan_lines
from qrmem.eval.preset import (
    PresetOptions,
    Skipped,
    preset_named,
    preset_names,
    run_preset,
    runs_of,
)
from qrmem.eval.registry import DATASETS, build
from qrmem.eval.report.preset_report import write_preset_report
from qrmem.eval.report.results import Results, read_results
from qrmem.eval.report.tables import (
    passages_note,
    percent,
    summaries,
    write_comparison,
    write_report,
)
from qrmem.eval.run_folder import REPORT, RunFolder, preset_in, runs_in, written
from qrmem.eval.running import PreparedRun, RunSpec, prepared, run_task
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.recorder import Recorder, Replayer
from qrmem.llm.routing import ChatModels
from qrmem.memory.runtime import caps_of
from qrmem.text.numbers import counted
from qrmem.types import ChatModel


async def _list(arguments: Namespace) -> int:
    return output.print_result(arguments, listing(), listing_lines())


async def _run_named(arguments: Namespace) -> int:
    """Run a task or a preset, then report; exit 1 if anything failed or was left out."""
    _require_fitting(arguments)
    out = Path(arguments.out or Path("runs") / arguments.name)
    tell = partial(output.note, quiet=arguments.quiet)
    skipped: list[Skipped] = []
    async with _opened(arguments) as (settings, options):
        if arguments.name in preset_names():
            preset, preset_options = preset_named(arguments.name), _preset_options(arguments)
            ran, skipped = await run_preset(preset, preset_options, out, settings, options, tell)
        else:
            ran = await run_task(_spec(arguments), out, settings, options)
    reused_in_words = f", {ran.reused} were there before" if ran.reused else ""
    tell(f"{ran.done} results, {ran.failed} failed{reused_in_words}; in {out}")
    await _show_report(out, arguments, in_short=True)
    missing = sum(RunFolder(one).unread()[0] for one in runs_in(out))
    if missing:
        missing_in_words = (
            f"{counted(missing, 'segments')} of the memories: not read, or only in part"
        )
        why = "memories.jsonl has the reasons; a system that is added to the run reads them again"
        output.note(f"{missing_in_words}; {why}", quiet=False)
    return 1 if ran.failed or skipped or missing else 0


def _spec(arguments: Namespace) -> RunSpec:
    _require_name(arguments.name)
    if not arguments.system:
        raise UsageError("name at least one system: --system reflection,bm25")
    return RunSpec(
        task=arguments.name,
        data=Path(arguments.data),
        systems=_words(arguments.system),
        corpus=_corpus(arguments.corpus),
        size=arguments.sample,
        seed=arguments.seed,
        first=arguments.first or 0,
        skip=arguments.skip,
        retrieve=arguments.retrieve,
        force=not arguments.abstain,
    )


_OF_TASKS = ("corpus", "skip", "abstain", "retrieve")
"""Options that a preset sets itself."""


def _require_fitting(arguments: Namespace) -> None:
    """Refuse negative counts, and options that a preset would ignore."""
    for option in ("first", "skip"):
        count = getattr(arguments, option) or 0
        if count < 0:
            raise UsageError(f"--{option} is a number of items, 0 or more, not {count}")
    names = [f"--{option}" for option in _OF_TASKS if getattr(arguments, option)]
    if names and arguments.name in preset_names():
        raise UsageError(
            f"{arguments.name} is a preset, which sets this itself: leave {', '.join(names)} out, "
            "or run a task of `qrmem eval list`"
        )


def _require_name(name: str) -> None:
    names = [*(task for task, _ in DATASETS.items()), *preset_names()]
    if name not in names:
        alike = get_close_matches(name, names, 1)
        hint = f"did you mean {alike[0]}?" if alike else "`qrmem eval list` shows them"
        raise UsageError(f"no task or preset is called {name!r}; {hint}")


def _preset_options(arguments: Namespace) -> PresetOptions:
    return PresetOptions(
        data=Path(arguments.data),
        size=arguments.sample,
        first=arguments.first,
        seed=arguments.seed,
        window=arguments.window,
        systems=_words(arguments.system or ""),
    )


async def _plan(arguments: Namespace) -> int:
    """Estimate what a run would use; for a preset, part by part."""
    _require_fitting(arguments)
    settings = settings_of(arguments)
    if not settings.model:
        raise UsageError("a run without a chat model costs nothing; name one with --model")
    skipped: list[Skipped] = []
    if arguments.name in preset_names():
        parts = runs_of(preset_named(arguments.name), _preset_options(arguments), settings, skipped)
        runs: Iterable[PreparedRun] = (made for _, made in parts)
    else:
        runs = [prepared(_spec(arguments), settings)]
    with Progress(quiet=arguments.quiet, is_rehearsal=True) as progress:
        plans = [(made, await forecasts(made, progress)) for made in runs]
    value = [{"task": m.spec.task, "systems": [*map(asdict, f)]} for m, f in plans]
    lines = [line for made, run_forecasts in plans for line in plan_lines(made, run_forecasts)]
    output.print_result(arguments, value, lines)
    for one in skipped:
        output.note(f"not planned: {one.what}: {one.why}", quiet=arguments.quiet)
    return 1 if skipped else 0


@asynccontextmanager
async def _opened(arguments: Namespace) -> AsyncIterator[tuple[Settings, RunOptions]]:
    """Yield the settings of a run with its progress, caps and cassette."""
    settings = settings_of(arguments)
    with Progress(quiet=arguments.quiet) as progress:
        async with _chat(settings) as chat:
            if chat is not None:
                # A cassette has the name of the model that it was recorded with.
                settings = settings.with_(model=settings.model or chat.name)
            together = settings.concurrency if settings.model else 1
            yield (
                settings,
                RunOptions(
                    listener=progress,
                    concurrency=together
                    if arguments.concurrency is None
                    else arguments.concurrency,
                    workers=arguments.workers,
                    caps=caps_of(settings),
                    chat=chat,
                ),
            )


@asynccontextmanager
async def _chat(settings: Settings) -> AsyncIterator[ChatModel | ChatModels | None]:
    """Yield a cassette that records or replays, or None: the run then opens the model itself."""
    if settings.replay:
        yield Replayer(Path(settings.replay))
    elif settings.record:
        async with ServerChatModel(settings) as chat:
            with Recorder(Path(settings.record), chat.name) as recorder:
                yield ChatModels(chat, recorder=recorder)
    else:
        yield None


async def _judge(arguments: Namespace) -> int:
    """Rate the answers of a run by a model; exit 1 if some have no rating."""
    async with _opened(arguments) as (settings, options):
        if not settings.model:
            raise MissingError("missing: a chat model as judge (--model and --base-url)")
        if options.workers > 1:
            raise UsageError("a judge rates in one process: leave --workers out")
        ratings = await judge(Path(arguments.run), settings, options)
    missing = sum(rating.rating is None for rating in ratings)
    message = f"{len(ratings) - missing} rated, {missing} without a rating (not zero: left out)"
    output.note(message, quiet=arguments.quiet)
    await _show_report(Path(arguments.run), arguments, in_short=True)
    return 1 if missing else 0


async def _build(arguments: Namespace) -> int:
    """Build the files of a data set."""
    out = Path(arguments.out)
    build_options = ((option, getattr(arguments, option)) for option in BUILT)
    pairs = (f"{option}={value}" for option, value in build_options if value is not None)
    build(arguments.kind, Path(arguments.data), out, (*arguments.options, *pairs))
    output.note(f"built {arguments.kind} in {out}: {_cases_in(out)}", quiet=arguments.quiet)
    return 0


def _cases_in(folder: Path) -> str:
    """Count the cases of each file; each line is one case."""
    sizes = {}
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            sizes[path.name] = sum(1 for _ in file)
    return ", ".join(f"{name} with {counted(size, 'cases')}" for name, size in sizes.items())


async def _report(arguments: Namespace) -> int:
    folders = [Path(run) for run in arguments.runs]
    if len(folders) == 1:
        await _show_report(folders[0], arguments)
        return 0
    if arguments.json:
        raise UsageError(
            "--json works for a single run; a comparison is written as Markdown and CSV"
        )
    output.show(write_comparison(folders, arguments.against).read_text(encoding="utf-8"))
    return 0


async def _show_report(folder: Path, arguments: Namespace, *, in_short: bool = False) -> None:
    """Write the report of a run and print it.

    Args:
        in_short: print only the scores; a preset's report is printed whole.
    """
    against = getattr(arguments, "against", "")
    if name := preset_in(folder):
        with written(folder / REPORT):
            path = await write_preset_report(preset_named(name), folder, against)
    else:
        results = read_results(folder)
        with written(folder / REPORT):
            path = write_report(results, against)
        if in_short:
            lines = [*_score_lines(results), f"all tables: qrmem eval report {folder}"]
            output.print_result(arguments, summaries(folder), lines)
            return
    text = path.read_text(encoding="utf-8")
    output.print_result(arguments, summaries(folder), [text])
    if find_spec("matplotlib") is None:
        output.note(f"plots need the extra `eval`: {install('eval')}", quiet=arguments.quiet)


_ERRORS = 3
"""Kinds of failures that are listed for each system."""


def _score_lines(results: Results) -> list[str]:
    """Return the scores of a run, in percent, without their intervals."""
    rows: list[list[str]] = [["system", "items", *results.metrics]]
    for name, result in results.systems.items():
        means = [result.mean(metric) for metric in results.metrics]
        n = max((len(scores) for scores in result.scores.values()), default=0)
        rows.append([name, str(n), *(percent(mean.value if mean else None) for mean in means)])
    lines = ["scores in %:", *(f"  {line}" for line in aligned(rows, left=1))]
    for name, result in results.systems.items():
        for error, count in Counter(result.errors.values()).most_common(_ERRORS):
            lines.append(f"failed and not scored: {name}, {counted(count, 'items')}: {error}")
    if note := passages_note(results):
        lines.append(note.replace("`", ""))
    return lines


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _corpus(word: str | None) -> Corpus:
    if word in (None, "own", "union"):
        return Corpus(word or "own")
    return Corpus("file", Path(word or ""))


ACTIONS: Mapping[str, Callable[[Namespace], Coroutine[Any, Any, int]]] = {
    "list": _list,
    "run": _run_named,
    "plan": _plan,
    "judge": _judge,
    "build": _build,
    "report": _report,
}
