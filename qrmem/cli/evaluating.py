"""`qrmem eval list|run|report`: the words, and what each does."""

import argparse
from argparse import Namespace
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from qrmem.cli import output
from qrmem.errors import UsageError


def add_eval(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command's words to the parser."""
    evaluate = commands.add_parser("eval", help="run and compare systems on benchmark data")
    actions = evaluate.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", parents=[common], help="tasks, systems, presets, and their data")
    _run(actions.add_parser("run", parents=[common], help="run systems on a task, or a preset"))
    report = actions.add_parser("report", parents=[common], help="tables and plots of a run")
    report.add_argument("runs", nargs="+", metavar="FOLDER")
    report.add_argument("--against", default="", metavar="SYSTEM", help="default: the first")


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("name", metavar="TASK|PRESET")
    run.add_argument("--data", required=True, metavar="PATH", help="its file, or a folder with it")
    run.add_argument("--system", metavar="S,S", help="systems: NAME[:KEY=VALUE]…, with commas")
    run.add_argument("--out", metavar="FOLDER", help="of the run (runs/TASK)")
    run.add_argument("--corpus", metavar="C", help="own, union, or a file of passages")
    run.add_argument("--sample", type=int, metavar="N", help="so many items, drawn by the seed")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="of the sample (0)")
    run.add_argument("--window", type=int, metavar="L", help="tokens of one call (4096)")
    run.add_argument("--mode", choices=("compact", "paper"), help="how memories are built")
    run.add_argument("--abstain", action="store_true", help="systems may say that they don't know")
    run.add_argument("--retrieve", action="store_true", help="rank only, answer nothing")
    run.add_argument("--concurrency", type=int, metavar="N", help="items at the same time")
    run.add_argument("--max-calls", type=int, metavar="N", help="cap on chat calls")
    run.add_argument("--max-tokens", type=int, metavar="N", help="cap on tokens")
    run.add_argument("--max-cost", type=float, metavar="X", help="cap on money")
    run.add_argument("--record", metavar="FILE", help="write all chat calls to a cassette")
    run.add_argument("--replay", metavar="FILE", help="answer them out of a cassette")


async def evaluate(arguments: Namespace) -> int:
    """Do what the action says."""
    return await _ACTIONS[arguments.action](arguments)


async def _list(arguments: Namespace) -> int:
    from qrmem.eval.listing import listing, listing_lines

    if arguments.json:
        output.print_json(listing())
    else:
        print("\n".join(listing_lines()))
    return 0


async def _run_task(arguments: Namespace) -> int:
    from qrmem.cli.commands import settings_of
    from qrmem.eval.progress import Progress
    from qrmem.eval.running import Wanted, run_task
    from qrmem.models.caps import Caps

    if not arguments.system:
        raise UsageError("name at least one system: --system reflection,bm25")
    settings = settings_of(arguments)
    wanted = Wanted(
        task=arguments.name,
        data=Path(arguments.data),
        systems=tuple(filter(None, arguments.system.split(","))),
        corpus=_corpus(arguments.corpus),
        size=arguments.sample,
        seed=arguments.seed,
        retrieve=arguments.retrieve,
        force=not arguments.abstain,
    )
    out = Path(arguments.out or Path("runs") / arguments.name)
    caps = Caps(calls=arguments.max_calls, tokens=arguments.max_tokens, cost=arguments.max_cost)
    with Progress(quiet=arguments.quiet) as progress:
        ran = await run_task(
            wanted,
            out,
            settings,
            listener=progress,
            concurrency=arguments.concurrency or (settings.concurrency if settings.model else 1),
            caps=caps,
        )
    output.note(
        f"{ran.done} results, {ran.failed} failed, {ran.reused} were there; in {out}",
        quiet=arguments.quiet,
    )
    return await _shown([out], arguments, failed=ran.failed)


async def _report(arguments: Namespace) -> int:
    return await _shown([Path(run) for run in arguments.runs], arguments, failed=0)


async def _shown(runs: list[Path], arguments: Namespace, *, failed: int) -> int:
    from qrmem.eval.report.results import read_results
    from qrmem.eval.report.writing import write_report

    for run in runs:
        path = write_report(read_results(run), getattr(arguments, "against", ""))
        print(path.read_text(encoding="utf-8"))
    return 1 if failed else 0


def _corpus(word: str | None) -> Any:
    from qrmem.eval.tasks import Corpus

    if word in (None, "own", "union"):
        return Corpus(word or "own")
    return Corpus("file", Path(word or ""))


_ACTIONS: Mapping[str, Callable[[Namespace], Coroutine[Any, Any, int]]] = {
    "list": _list,
    "run": _run_task,
    "report": _report,
}
