"""`qrmem eval list|run|plan|judge|build|report`: what each does and shows."""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, fields
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from qrmem.cli import output
from qrmem.cli.arguments import BUILT
from qrmem.cli.costing import aligned
from qrmem.cli.parsed_arguments import settings_of
from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError, install, page
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
from qrmem.eval.registry import BUILDERS, DATASETS, SYSTEMS, build, needs
from qrmem.eval.report.preset_report import write_preset_report
from qrmem.eval.report.results import Results, read_results
from qrmem.eval.report.tables import (
    by_label,
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
from qrmem.types import ChatModel, Event


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
    for one in skipped:
        output.note(f"not run: {one.what}: {one.why}")
    results_in_words = f"{ran.done} results, {ran.failed} failed{reused_in_words}; in {out}"
    output.note(results_in_words, quiet=arguments.quiet and not ran.failed)
    await _show_report(out, arguments, in_short=True)
    missing = sum(RunFolder(one).unread()[0] for one in runs_in(out))
    if missing:
        missing_in_words = (
            f"{counted(missing, 'segments')} of the memories: not read, or only in part"
        )
        why = "memories.jsonl has the reasons; a system that is added to the run reads them again"
        output.note(f"{missing_in_words}; {why}")
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
    with RunProgress(quiet=arguments.quiet, is_rehearsal=True) as progress:
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
    with RunProgress(quiet=arguments.quiet) as progress:
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
    for table in by_label(results, results.metrics[:1]):
        cells = [["items" if n == 1 else c for n, c in enumerate(table.head)]]
        cells += [[cell.partition(" [")[0] for cell in row] for row in table.rows]
        lines.append(f"{table.title.replace(' (%)', '')}, in %:")
        lines += (f"  {line}" for line in aligned(cells, left=1))
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


# --- The list of tasks and systems, and the progress of a run


EVERY = 5.0
"""Seconds between two lines of progress."""


class RunProgress:
    """Prints a line of progress every few seconds, and always the last line of a run."""

    def __init__(self, *, quiet: bool, is_rehearsal: bool = False) -> None:
        """Start at zero.

        Args:
            is_rehearsal: whether this is a plan, which builds and pays for nothing.
        """
        self._quiet = quiet
        self._is_rehearsal = is_rehearsal
        self._first = self._said = time.monotonic()
        self._total = self._done = self._failed = 0
        self._before: tuple[float, ...] = (0, 0, 0.0)
        self._paid: tuple[float, ...] = self._before
        self._is_priced = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._total and not self._is_rehearsal:
            self._say()

    def __call__(self, event: Event) -> None:
        """Handle one event; never raises."""
        if event.kind == "items":
            self._total += int(event.data["total"])
            self._before = self._paid
        elif event.kind == "item":
            self._first = self._first if self._done else time.monotonic()
            self._done += 1
            self._failed += bool(event.data["error"])
        elif event.kind in ("paid", "memory", "warning") and self._is_rehearsal:
            pass  # a rehearsal costs nothing, and warnings about a stand-in's replies mean nothing
        elif event.kind == "paid":
            now = (int(event.data["calls"]), int(event.data["tokens"]), event.data["money"] or 0.0)
            self._paid = tuple(a + b for a, b in zip(self._before, now, strict=True))
            self._is_priced = event.data["money"] is not None
        elif event.kind == "memory" and event.data["seconds"] > EVERY:
            self._print(f"built {event.data['context']} in {event.data['seconds']:.0f} s")
        elif event.kind == "warning":
            self._print(str(event.data.get("message", "")))
        if time.monotonic() - self._said > EVERY:
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        what = "rehearsed" if self._is_rehearsal else "results"
        parts = [f"{self._done}/{self._total} {what}", self._time_left()]
        calls, tokens, money = self._paid
        if calls:
            parts.append(f"{calls:,} calls, {tokens:,} tokens")
        if self._is_priced:
            parts.append(f"{money:.4f} in money")
        if self._failed:
            parts.append(f"{self._failed} failed")
        self._print(", ".join(parts))

    def _time_left(self) -> str:
        """Return the time left; building before the first result does not count."""
        if self._done < 2:
            return "time left not known yet"
        pace = (time.monotonic() - self._first) / (self._done - 1)
        return f"{(self._total - self._done) * pace:,.0f} s left"

    def _print(self, text: str) -> None:
        if not self._quiet:
            print(f"qrmem: {text}", file=sys.stderr, flush=True)


def listing() -> Mapping[str, Any]:
    """Return all tasks, systems, presets and builders, as plain values."""
    return {
        "tasks": {
            name: {
                "what": task.what,
                "files": list(task.files) or [f"a folder with {task.inside}"],
                "where": task.where,
                "licence": task.licence,
                "metrics": list(task.metrics),
            }
            for name, task in DATASETS.items()
        },
        "presets": {
            name: {
                "title": preset.title,
                "tasks": [part.task for part in preset.parts],
                "systems": dict(preset.systems),
            }
            for name, preset in ((name, preset_named(name)) for name in preset_names())
        },
        "systems": {
            name: {
                "what": entry.what,
                "source": entry.source,
                "needs": sorted(needs(entry.system)),
                "parameters": {f.name: getattr(entry.system, f.name) for f in fields(entry.system)},
            }
            for name, entry in SYSTEMS.items()
        },
        "builders": {
            name: {"what": entry.what, "options": dict(entry.options)}
            for name, entry in BUILDERS.items()
        },
    }


_NEEDED = {"model": "a chat model", "embedder": "an embedder"}


def listing_lines() -> list[str]:
    """Return the list as lines of text."""
    listed_parts = listing()
    lines = [
        "tasks (--data names the file, or a folder that holds it)",
        f"  scores: {page('evaluation')}",
    ]
    for name, task in listed_parts["tasks"].items():
        licence = "" if task["licence"] == "your own" else f"; {task['licence']}"
        lines += [
            f"  {name:20} {task['what']}",
            f"  {'':20} {' or '.join(task['files'])}",
            f"  {'':20} {task['where']}{licence}",
            f"  {'':20} scored by {', '.join(task['metrics'])}",
        ]
    lines.append("presets (--data is a folder with what their tasks need)")
    for name, preset in listed_parts["presets"].items():
        lines.append(f"  {name:20} {preset['title']}")
    lines.append(
        "systems (in brackets the paper, or ours; below each its parameters with their "
        "defaults; set them by NAME:KEY=VALUE:KEY=VALUE)"
    )
    for name, system in listed_parts["systems"].items():
        needs_in_words = " and ".join(
            _NEEDED.get(what, f"the extra {what}") for what in system["needs"]
        )
        wants = f"; needs {needs_in_words}" if needs_in_words else ""
        source = f" ({system['source']})" if system["source"] else ""
        lines += [f"  {name:20} {system['what']}{source}{wants}", *_options(system["parameters"])]
    lines.append("builders (`qrmem eval build KIND KEY=VALUE … --data PATH --out FOLDER`)")
    for name, builder in listed_parts["builders"].items():
        lines += [f"  {name:20} {builder['what']}", *_options(builder["options"])]
    return lines


def _options(options: Mapping[str, Any]) -> list[str]:
    """Return a line of options with their defaults; empty defaults are not shown."""
    options_in_words = " ".join(f"{key}={value}" for key, value in options.items())
    return [f"  {'':20} {options_in_words}"] if options_in_words else []
