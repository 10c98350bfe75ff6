"""The words of the command line that have to do with calls and money."""

import argparse
from collections.abc import Callable
from typing import Any


def add_caps(parser: argparse.ArgumentParser) -> None:
    """Add the caps of one run."""
    group = parser.add_argument_group("caps: the run stops before it exceeds one, exit 1")
    group.add_argument("--max-calls", type=int, metavar="N", help="requests to servers")
    group.add_argument("--max-tokens", type=int, metavar="N", help="prompts and replies together")
    group.add_argument("--max-cost", type=float, metavar="M", help="money, as the prices have it")
    group.add_argument("--max-seconds", type=float, metavar="S", help="wall time")
    group.add_argument("--prices", metavar="FILE", help="prices over those that are known")


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add which model is asked in which stage."""
    parser.add_argument(
        "--stage-model",
        action="append",
        dest="stage_models",
        metavar="STAGE=M",
        help="another model for a stage, for `reading` or for `answering` (repeatable)",
    )


def add_tapes(parser: argparse.ArgumentParser) -> None:
    """Add what is done with replies."""
    group = parser.add_argument_group("replies")
    group.add_argument(
        "--no-cache",
        action="store_const",
        const=False,
        dest="cache",
        help="neither use replies that are kept, nor keep any",
    )
    tape = group.add_mutually_exclusive_group()
    tape.add_argument("--record", metavar="FILE", help="write all exchanges to a cassette")
    tape.add_argument("--replay", metavar="FILE", help="answer out of a cassette; no network")


def add_cost_commands(
    commands: Any,
    common: argparse.ArgumentParser,
    options: dict[str, Callable[[argparse.ArgumentParser], None]],
) -> None:
    """Add the commands that plan, sum up and prune.

    Args:
        options: of the runs that can be planned.
    """
    plan = commands.add_parser("plan", help="what an add or an ask would cost; makes no call")
    runs = plan.add_subparsers(dest="run", required=True, metavar="add|ask")
    for name, add_options in options.items():
        run = runs.add_parser(name, parents=[common], help=f"what `qrmem {name} …` would cost")
        add_options(run)
        add_models(run)
        add_caps(run)
    usage = commands.add_parser("usage", parents=[common], help="what all runs cost")
    usage.add_argument("--by", choices=("stage", "run", "day"), default="stage")
    commands.add_parser("prune", parents=[common], help="forget the replies that are kept")
    init = commands.add_parser("init", parents=[common], help="write a settings file to fill in")
    init.add_argument("path", nargs="?", default="qrmem.toml", metavar="PATH")
    init.add_argument("--force", action="store_true", help="replace the file that is there")


__all__ = ["add_caps", "add_cost_commands", "add_models", "add_tapes"]
