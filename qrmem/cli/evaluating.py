"""`qrmem eval list|run|plan|judge|build|report`: the words, and what each does."""

import argparse
from argparse import Namespace
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrmem.cli import output
from qrmem.cli.cost_lines import aligned
from qrmem.cli.cost_options import Common, add_prompts
from qrmem.cli.options import settings_of
from qrmem.errors import UsageError
from qrmem.text.numbers import counted

if TYPE_CHECKING:
    from qrmem.config import Settings
    from qrmem.eval.console import Progress
    from qrmem.eval.preset import PresetOptions
    from qrmem.eval.report.results import Results
    from qrmem.eval.running import RunOptions, RunSpec
    from qrmem.llm.routing import ChatModels
    from qrmem.types import ChatModel


def add_eval(commands: Any, common: Common) -> None:
    """Add the command's words to the parser."""
    evaluate = commands.add_parser("eval", help="run and compare systems on benchmark data")
    actions = evaluate.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", parents=common(), help="tasks, systems, presets, and their data")
    _run(
        actions.add_parser(
            "run", parents=common("model", "embedder"), help="run systems on a task, or a preset"
        )
    )
    plan = actions.add_parser(
        "plan", parents=common("model", "embedder"), help="what a run would use, by system"
    )
    _run(plan)
    judge = actions.add_parser(
        "judge", parents=common("model", "embedder"), help="rate a run's answers by a model"
    )
    judge.add_argument("run", metavar="FOLDER")
    _add_options(judge)
    build = actions.add_parser(
        "build", parents=common("model", "embedder"), help="make a data set out of texts"
    )
    build.add_argument("kind", metavar="KIND", help="a builder of `qrmem eval list`")
    build.add_argument("options", nargs="*", metavar="KEY=VALUE", help="of the builder")
    build.add_argument("--data", "--source", required=True, metavar="PATH", help="the texts")
    for option, what in _BUILT.items():
        build.add_argument(f"--{option}", metavar=option[0].upper(), help=what)
    build.add_argument("--out", required=True, metavar="FOLDER", help="new or empty")
    report = actions.add_parser("report", parents=common(), help="tables and plots of a run")
    report.add_argument("runs", nargs="+", metavar="FOLDER")
    report.add_argument("--against", default="", metavar="SYSTEM", help="default: the first")


_BUILT = {
    "length": "tokens of a case: 8k, 3000, or several: 1k,2k,4k",
    "seed": "of what is drawn",
    "count": "cases at most",
    "manifest": "make the set of this manifest again",
}
"""Options that many builders have; each is the same as KEY=VALUE."""


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("name", metavar="TASK|PRESET")
    run.add_argument("--data", required=True, metavar="PATH", help="its file, or a folder with it")
    run.add_argument("--system", metavar="S,S", help="systems: NAME[:KEY=VALUE]…, with commas")
    run.add_argument("--out", metavar="FOLDER", help="of the run (default: runs/NAME)")
    run.add_argument("--corpus", metavar="C", help="own, union, or a file of passages")
    run.add_argument("--sample", type=int, metavar="N", help="so many items, drawn by the seed")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="of the sample")
    run.add_argument("--first", type=int, metavar="N", help="take the file's first N items only")
    run.add_argument("--skip", type=int, default=0, metavar="N", help="leave the first N items out")
    run.add_argument(
        "--window", type=int, metavar="L", help="tokens of one call (default: the model's own)"
    )
    run.add_argument("--abstain", action="store_true", help="systems may say that they don't know")
    run.add_argument("--retrieve", action="store_true", help="rank only, answer nothing")
    _add_options(run)


def _add_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--concurrency", type=int, metavar="N", help="items at the same time")
    add_prompts(run)
    run.add_argument("--workers", type=int, default=1, metavar="N", help="processes")
    run.add_argument("--max-calls", type=int, metavar="N", help="cap on chat calls")
    run.add_argument("--max-tokens", type=int, metavar="N", help="cap on tokens")
    run.add_argument("--max-cost", type=float, metavar="X", help="cap on money")
    tape = run.add_mutually_exclusive_group()
    tape.add_argument("--record", metavar="FILE", help="write all chat calls to a cassette")
    tape.add_argument("--replay", metavar="FILE", help="answer them out of a cassette")


async def evaluate(arguments: Namespace) -> int:
    """Do what the action says."""
    return await _ACTIONS[arguments.action](arguments)


async def _list(arguments: Namespace) -> int:
    from qrmem.eval.console import listing, listing_lines

    return output.print_result(arguments, listing(), listing_lines())


async def _run_named(arguments: Namespace) -> int:
    """Run a task or a preset, then report; exit 1 if anything failed or was left out."""
    from qrmem.eval.console import Progress
    from qrmem.eval.preset import preset_named, preset_names, run_preset
    from qrmem.eval.run_folder import RunFolder, runs_in
    from qrmem.eval.running import run_task

    settings = settings_of(arguments)
    out = Path(arguments.out or Path("runs") / arguments.name)
    tell = partial(output.note, quiet=arguments.quiet)
    left: list[Any] = []
    with Progress(quiet=arguments.quiet) as progress:
        async with _chat(settings) as chat:
            if chat is not None:
                # A cassette knows which model it was recorded with.
                settings = settings.with_(model=settings.model or chat.name)
            options = _options(arguments, settings, progress, chat)
            if arguments.name in preset_names():
                preset, chosen = preset_named(arguments.name), _chosen(arguments)
                ran, left = await run_preset(preset, chosen, out, settings, options, tell)
            else:
                ran = await run_task(_spec(arguments), out, settings, options)
    kept = f", {ran.reused} were there before" if ran.reused else ""
    tell(f"{ran.done} results, {ran.failed} failed{kept}; in {out}")
    await _shown(out, arguments, in_short=True)
    missing = sum(RunFolder(one).unread()[0] for one in runs_in(out))
    if missing:
        told = f"{counted(missing, 'segments')} of the memories: not read, or not wholly"
        why = "memories.jsonl has the reasons; they are read again at the next use"
        output.note(f"{told}; {why}", quiet=False)
    return 1 if ran.failed or left or missing else 0


def _spec(arguments: Namespace) -> "RunSpec":
    from qrmem.eval.running import RunSpec

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
        first=max(arguments.first or 0, 0),
        skip=max(arguments.skip, 0),
        retrieve=arguments.retrieve,
        force=not arguments.abstain,
    )


def _require_name(name: str) -> None:
    from qrmem.eval.preset import preset_names
    from qrmem.eval.registry import DATASETS

    known = [*(task for task, _ in DATASETS.items()), *preset_names()]
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "`qrmem eval list` shows them"
        raise UsageError(f"no task or preset is called {name!r}; {hint}")


def _chosen(arguments: Namespace) -> "PresetOptions":
    from qrmem.eval.preset import PresetOptions

    return PresetOptions(
        data=Path(arguments.data),
        size=arguments.sample,
        first=arguments.first,
        seed=arguments.seed,
        window=arguments.window,
        systems=_words(arguments.system or ""),
    )


async def _plan(arguments: Namespace) -> int:
    """Say what a run would use; a preset's parts are told one by one."""
    from dataclasses import asdict

    from qrmem.eval.planning import forecasts, plan_lines
    from qrmem.eval.preset import preset_named, preset_names, runs_of
    from qrmem.eval.running import prepared

    settings = settings_of(arguments)
    if not settings.model:
        raise UsageError("a run without a chat model costs nothing; name one with --model")
    if arguments.name in preset_names():
        runs, left = runs_of(preset_named(arguments.name), _chosen(arguments), settings)
    else:
        runs, left = [prepared(_spec(arguments), settings)], []
    plans = [(made, await forecasts(made)) for made in runs]
    value = [{"task": m.spec.task, "systems": [*map(asdict, f)]} for m, f in plans]
    lines = [line for made, found in plans for line in plan_lines(made, found)]
    output.print_result(arguments, value, lines)
    for one in left:
        output.note(f"not planned: {one.what}: {one.why}", quiet=arguments.quiet)
    return 1 if left else 0


def _options(
    arguments: Namespace,
    settings: "Settings",
    progress: "Progress",
    chat: "ChatModel | ChatModels | None",
) -> "RunOptions":
    from qrmem.eval.running import RunOptions
    from qrmem.models import caps_of

    together = settings.concurrency if settings.model else 1
    return RunOptions(
        listener=progress,
        concurrency=together if arguments.concurrency is None else arguments.concurrency,
        workers=arguments.workers,
        caps=caps_of(settings),
        chat=chat,
    )


@asynccontextmanager
async def _chat(settings: "Settings") -> "AsyncIterator[ChatModel | ChatModels | None]":
    """Yield a cassette that records or replays, or nothing: the run then opens the model itself."""
    if settings.replay:
        from qrmem.llm.recorder import Replayer

        yield Replayer(Path(settings.replay))
    elif settings.record:
        from qrmem.llm.chat import Chat
        from qrmem.llm.recorder import Recorder
        from qrmem.llm.routing import ChatModels

        async with Chat(settings) as chat:
            with Recorder(Path(settings.record), chat.name) as recorder:
                yield ChatModels(chat, recorder=recorder)
    else:
        yield None


async def _judge(arguments: Namespace) -> int:
    """Rate the answers of a run; exit 1 if some have no rating."""
    from qrmem.errors import MissingError
    from qrmem.eval.console import Progress
    from qrmem.eval.judging import judge

    settings = settings_of(arguments)
    with Progress(quiet=arguments.quiet) as progress:
        async with _chat(settings) as chat:
            if chat is not None:
                settings = settings.with_(model=settings.model or chat.name)
            if not settings.model:
                raise MissingError("a judge is a chat model: --model and --base-url")
            options = _options(arguments, settings, progress, chat)
            made = await judge(Path(arguments.run), settings, options)
    missing = sum(rating.rating is None for rating in made)
    told = f"{len(made) - missing} rated, {missing} without a rating (not zero: left out)"
    output.note(told, quiet=arguments.quiet)
    await _shown(Path(arguments.run), arguments, in_short=True)
    return 1 if missing else 0


async def _build(arguments: Namespace) -> int:
    """Make the files of a data set."""
    from qrmem.eval.registry import build

    out = Path(arguments.out)
    given = ((option, getattr(arguments, option)) for option in _BUILT)
    pairs = (f"{option}={value}" for option, value in given if value is not None)
    build(arguments.kind, Path(arguments.data), out, (*arguments.options, *pairs))
    output.note(f"built {arguments.kind} in {out}: {_cases_in(out)}", quiet=arguments.quiet)
    return 0


def _cases_in(folder: Path) -> str:
    """Say how many cases each file has; a line is a case."""
    sizes = {}
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            sizes[path.name] = sum(1 for _ in file)
    return ", ".join(f"{name} with {counted(size, 'cases')}" for name, size in sizes.items())


async def _report(arguments: Namespace) -> int:
    folders = [Path(run) for run in arguments.runs]
    if len(folders) == 1:
        await _shown(folders[0], arguments)
        return 0
    from qrmem.eval.report.tables import write_comparison

    if arguments.json:
        raise UsageError("a comparison is Markdown and CSV; one run alone is JSON too")
    output.show(write_comparison(folders, arguments.against).read_text(encoding="utf-8"))
    return 0


async def _shown(folder: Path, arguments: Namespace, *, in_short: bool = False) -> None:
    """Write the report of a run, and print it.

    Args:
        in_short: print the scores only; a preset, whose report is its tables, is printed whole.
    """
    from qrmem.eval.report.results import read_results
    from qrmem.eval.report.tables import summaries, write_report
    from qrmem.eval.run_folder import REPORT, preset_in, written

    name = preset_in(folder)
    if name:
        from qrmem.eval.preset import preset_named
        from qrmem.eval.report.preset_report import cases, write_preset_report

        preset = preset_named(name)
        single = await cases(preset, folder)
        with written(folder / REPORT):
            path = write_preset_report(preset, folder, single)
    else:
        results = read_results(folder)
        with written(folder / REPORT):
            path = write_report(results, getattr(arguments, "against", ""))
        if in_short:
            lines = [*_score_lines(results), f"all tables: qrmem eval report {folder}"]
            output.print_result(arguments, summaries(folder), lines)
            return
    text = path.read_text(encoding="utf-8")
    output.print_result(arguments, summaries(folder), [text])


_ERRORS = 3
"""Kinds of failures of a system that are told."""


def _score_lines(results: "Results") -> list[str]:
    """Return the scores of a run, in percent, without their intervals."""
    from qrmem.eval.report.tables import WITHOUT_A_MODEL, percent, shows_passages

    rows: list[list[str]] = [["system", "items", *results.metrics]]
    for name, result in results.systems.items():
        means = [result.mean(metric) for metric in results.metrics]
        n = max((len(found) for found in result.scores.values()), default=0)
        rows.append([name, str(n), *(percent(mean.value if mean else None) for mean in means)])
    lines = ["scores in %:", *(f"  {line}" for line in aligned(rows, left=1))]
    for name, result in results.systems.items():
        for error, count in Counter(result.errors.values()).most_common(_ERRORS):
            lines.append(f"failed, and in no score: {name}, {counted(count, 'items')}: {error}")
    if shows_passages(results) and "em" in results.metrics:
        lines.append(WITHOUT_A_MODEL.replace("`", ""))
    return lines


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _corpus(word: str | None) -> Any:
    from qrmem.eval.records import Corpus

    if word in (None, "own", "union"):
        return Corpus(word or "own")
    return Corpus("file", Path(word or ""))


_ACTIONS: Mapping[str, Callable[[Namespace], Coroutine[Any, Any, int]]] = {
    "list": _list,
    "run": _run_named,
    "plan": _plan,
    "judge": _judge,
    "build": _build,
    "report": _report,
}
