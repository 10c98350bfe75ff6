"""`qrmem eval list|run|plan|judge|build|report`: the words of a command line."""

import argparse
from typing import Any

from qrmem.cli.cost_options import Common, add_prompts


def add_eval(commands: Any, common: Common) -> None:
    """Add the command's words to the parser."""
    evaluate = commands.add_parser("eval", help="run and compare systems on benchmark data")
    actions = evaluate.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser(
        "list", parents=common(), help="list tasks, systems, presets, and their data"
    )
    _run(
        actions.add_parser(
            "run", parents=common("model", "embedder"), help="run systems on a task, or a preset"
        )
    )
    plan = actions.add_parser(
        "plan", parents=common("model", "embedder"), help="estimate what a run would use, by system"
    )
    _run(plan)
    judge = actions.add_parser(
        "judge", parents=common("model", "embedder"), help="rate a run's answers by a model"
    )
    judge.add_argument("run", metavar="FOLDER", help="of a run")
    _add_options(judge)
    build = actions.add_parser(
        "build", parents=common("model", "embedder"), help="make a data set out of texts"
    )
    build.add_argument("kind", metavar="KIND", help="a builder of `qrmem eval list`")
    build.add_argument("options", nargs="*", metavar="KEY=VALUE", help="of the builder")
    build.add_argument("--data", "--source", required=True, metavar="PATH", help="the texts")
    for option, what in BUILT.items():
        build.add_argument(f"--{option}", metavar=option[0].upper(), help=what)
    build.add_argument("--out", required=True, metavar="FOLDER", help="new or empty")
    report = actions.add_parser("report", parents=common(), help="make tables and plots of a run")
    report.add_argument("runs", nargs="+", metavar="FOLDER", help="of a run; several are compared")
    report.add_argument("--against", default="", metavar="SYSTEM", help="default: the first")


BUILT = {
    "length": "tokens of a case: 8k, 3000, or several: 1k,2k,4k",
    "seed": "of what is drawn",
    "count": "cases at most",
    "manifest": "make the set of this manifest again",
}
"""Options that many builders have; each is the same as KEY=VALUE."""


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("name", metavar="TASK|PRESET", help="one of `qrmem eval list`")
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
