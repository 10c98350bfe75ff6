"""Command line arguments about calls, money and model replies."""

import argparse
from collections.abc import Callable, Iterable
from typing import Any

Common = Callable[..., Iterable[argparse.ArgumentParser]]
"""Gives the parents of a command's parser, by the names of what it shares with other commands:
`memory`, `model`, `embedder`; what shapes the output is always among them."""


def add_caps(parser: argparse.ArgumentParser) -> None:
    """Add the caps of one run."""
    group = parser.add_argument_group(
        "caps: the run stops before it exceeds one, with exit code 1 (none: no such cap)"
    )
    group.add_argument("--max-calls", metavar="N|none", help="maximum number of requests")
    group.add_argument(
        "--max-tokens",
        metavar="N|none",
        help="maximum number of tokens, prompts and replies together",
    )
    group.add_argument(
        "--max-cost",
        metavar="M|none",
        help="stop before the run costs more than this (in the currency of the price list)",
    )
    group.add_argument("--max-seconds", metavar="S|none", help="maximum run time")
    group.add_argument(
        "--prices", metavar="FILE", help="price list that overrides the built-in one"
    )


def add_prompts(parser: argparse.ArgumentParser) -> Any:
    """Add by which prompts a model is asked; returns the group."""
    group = parser.add_argument_group("prompts")
    group.add_argument(
        "--prompts",
        metavar="paper|FOLDER",
        help="prompt templates: the set `paper`, or a folder of files NAME.md (default: our own)",
    )
    group.add_argument(
        "--schema",
        metavar="FILE",
        help="own types of entities and relations, in TOML (an example: qrmem init --schema)",
    )
    group.add_argument(
        "--paper-exact",
        action="store_const",
        const=True,
        help="read and search as in QRMeM's paper, without our own changes",
    )
    return group


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add which model is asked in which stage, and by which prompts."""
    add_prompts(parser).add_argument(
        "--stage-model",
        action="append",
        dest="stage_models",
        metavar="STAGE=M",
        help="use another model for a stage, or for all of `reading` or `answering` (repeatable)",
    )


def add_tapes(parser: argparse.ArgumentParser) -> None:
    """Add what is done with replies."""
    group = parser.add_argument_group("replies")
    group.add_argument(
        "--no-cache",
        action="store_const",
        const=False,
        dest="cache",
        help="neither use nor store cached model replies",
    )
    tape = group.add_mutually_exclusive_group()
    tape.add_argument(
        "--record", metavar="FILE", help="record all model requests and replies to a file"
    )
    tape.add_argument(
        "--replay", metavar="FILE", help="answer from a recorded file, without network"
    )


def add_cost_commands(
    commands: Any,
    common: Common,
    options: dict[str, Callable[[argparse.ArgumentParser], None]],
) -> None:
    """Add the commands that plan, sum up and prune.

    Args:
        options: of the runs that can be planned.
    """
    plan = commands.add_parser(
        "plan", help="estimate what an add, an ask or trees would cost, without calling a model"
    )
    runs = plan.add_subparsers(dest="run", required=True, metavar="ACTION")
    for name, add_options in options.items():
        run = runs.add_parser(
            name,
            parents=common("memory", "model", "embedder", *(["reranker"] if name == "ask" else [])),
            help=f"estimate what `qrmem {'tree build' if name == 'tree' else name} …` would cost",
        )
        add_options(run)
        add_models(run)
        add_caps(run)
    usage = commands.add_parser("usage", parents=common("memory"), help="show what all runs cost")
    usage.add_argument("--by", choices=("stage", "run", "day"), default="stage")
    commands.add_parser("prune", parents=common("memory"), help="delete cached model replies")
