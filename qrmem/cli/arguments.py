"""Arguments that several commands share, and how `--help` looks."""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from qrmem.config import Settings

# How `--help` looks: examples, commands in groups, defaults.

_DEFAULTS = {field.name: field.default for field in fields(Settings)}
DESCRIPTION = """Read long documents once, then ask: answers cite the segments that were read.

  qrmem add book.txt                      read a file, or a folder, into qrmem.db
  qrmem ask "Who rang the bell?"          answer a question, with citations
  qrmem plan add book.txt -M gpt-4o-mini  estimate what reading with a model costs
"""
GROUPS = {
    "read and ask": ("add", "ask", "search", "chat", "tree"),
    "look": ("show", "list", "status", "trail", "view"),
    "costs": ("plan", "usage", "prune"),
    "statements": (
        "facts",
        "edit-fact",
        "end-fact",
        "delete-fact",
        "restore-fact",
        "judge-facts",
    ),
    "change and move": ("delete", "merge", "separate", "reembed", "export", "import"),
    "serve": ("mcp", "serve"),
    "set up": ("init", "trust", "doctor", "completion", "help"),
    "measure": ("eval",),
}
"""The groups of commands in `--help`."""


class Help(argparse.HelpFormatter):
    """Shows commands in groups, and each option's default: its own, else that of the setting."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Show the required arguments; the options follow below, in groups."""
        actions_shown = [a for a in actions if not a.option_strings or a.required]
        if len(actions_shown) < len(list(actions)):
            self._prog += " [OPTIONS]"
        super().add_usage(usage, actions_shown, [], prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Keep the lines of examples as they are."""
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _format_action(self, action: argparse.Action) -> str:
        """Format the commands in groups."""
        if action.dest != "command" or not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        subactions = {one.dest: one for one in action._get_subactions()}
        text = ""
        for title, names in GROUPS.items():
            text += f"{'':{self._current_indent}}{title}:\n"
            self._indent()
            text += "".join(self._format_action(subactions[name]) for name in names)
            self._dedent()
        return text

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return help_of(action)


def help_of(action: argparse.Action) -> str | None:
    """Return the help of an option, with its default."""
    if not action.option_strings or not action.help or "default" in action.help:
        return action.help
    default = action.default
    if default in (None, argparse.SUPPRESS):
        default = _DEFAULTS.get(action.dest)
    is_told = isinstance(default, str | int | float) and not isinstance(default, bool) and default
    return f"{action.help} (default: {default})" if is_told else action.help


class Once(argparse.Action):
    """An option that may be given only once; argparse would take the last one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value, or report a second one as an error."""
        if getattr(namespace, self.dest, None) is not None:
            parser.error(f"{option_string} is given twice; it is for one document")
        setattr(namespace, self.dest, values)


# Command line arguments about calls, money and model replies.

Common = Callable[..., Iterable[argparse.ArgumentParser]]
"""Returns the parent parsers of a command, by the names of the shared options that it needs:
`memory`, `model`, `embedder`. Options about output are always among them."""


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


def add_schema(group: Any) -> None:
    """Add the option that names a file of own types."""
    group.add_argument(
        "--schema",
        metavar="FILE",
        help="own types of entities and relations, in TOML (an example: qrmem init --schema)",
    )


def add_prompts(parser: argparse.ArgumentParser) -> Any:
    """Add the options about prompts; returns their group."""
    group = parser.add_argument_group("prompts")
    group.add_argument(
        "--prompts",
        metavar="paper|FOLDER",
        help="prompt templates: the set `paper`, or a folder of files NAME.md (default: our own)",
    )
    add_schema(group)
    group.add_argument(
        "--paper-exact",
        action="store_const",
        const=True,
        help="read and search as in QRMeM's paper, without our own changes",
    )
    return group


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the options about models by stage, and about prompts."""
    add_prompts(parser).add_argument(
        "--stage-model",
        action="append",
        dest="stage_models",
        metavar="STAGE=M",
        help="use another model for a stage, or for all of `reading` or `answering` (repeatable)",
    )


def add_tapes(parser: argparse.ArgumentParser) -> None:
    """Add the options about caching, recording and replaying replies."""
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
    """Add the commands `plan`, `usage` and `prune`.

    Args:
        options: adds the options of each run that can be planned, by command.
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


# `qrmem eval list|run|plan|judge|build|report`: the words of a command line.


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
    judge.add_argument("run", metavar="FOLDER", help="folder of a run")
    _add_options(judge)
    build = actions.add_parser(
        "build", parents=common("model", "embedder"), help="make a data set out of texts"
    )
    build.add_argument("kind", metavar="KIND", help="a builder of `qrmem eval list`")
    build.add_argument("options", nargs="*", metavar="KEY=VALUE", help="options of the builder")
    build.add_argument(
        "--data", "--source", required=True, metavar="PATH", help="file or folder with the texts"
    )
    for option, what in BUILT.items():
        build.add_argument(f"--{option}", metavar=option[0].upper(), help=what)
    build.add_argument("--out", required=True, metavar="FOLDER", help="new or empty")
    report = actions.add_parser("report", parents=common(), help="make tables and plots of a run")
    report.add_argument(
        "runs", nargs="+", metavar="FOLDER", help="folder of a run; several runs are compared"
    )
    report.add_argument("--against", default="", metavar="SYSTEM", help="default: the first")


BUILT = {
    "length": "tokens of a case: 8k, 3000, or several: 1k,2k,4k",
    "seed": "seed of the random choices",
    "count": "maximum number of cases",
    "manifest": "rebuild the data set of this manifest",
}
"""Options that many builders have; each can also be given as KEY=VALUE."""


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("name", metavar="TASK|PRESET", help="a task or preset of `qrmem eval list`")
    run.add_argument(
        "--data", required=True, metavar="PATH", help="the data file, or a folder that contains it"
    )
    run.add_argument("--system", metavar="S,S", help="systems: NAME[:KEY=VALUE]…, with commas")
    run.add_argument("--out", metavar="FOLDER", help="folder of the run (default: runs/NAME)")
    run.add_argument("--corpus", metavar="C", help="own, union, or a file of passages")
    run.add_argument("--sample", type=int, metavar="N", help="number of items to draw by the seed")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the sample")
    run.add_argument(
        "--first", type=int, metavar="N", help="use only the first N items of the file"
    )
    run.add_argument("--skip", type=int, default=0, metavar="N", help="leave the first N items out")
    run.add_argument(
        "--window",
        type=int,
        metavar="L",
        help="token limit of each call (default: the model's own)",
    )
    run.add_argument("--abstain", action="store_true", help="let systems say that they do not know")
    run.add_argument("--retrieve", action="store_true", help="only rank, do not answer")
    _add_options(run)


def _add_options(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--concurrency", type=int, metavar="N", help="number of items at the same time"
    )
    add_prompts(run)
    run.add_argument("--workers", type=int, default=1, metavar="N", help="processes")
    run.add_argument("--max-calls", type=int, metavar="N", help="cap on chat calls")
    run.add_argument("--max-tokens", type=int, metavar="N", help="cap on tokens")
    run.add_argument("--max-cost", type=float, metavar="X", help="cap on money")
    tape = run.add_mutually_exclusive_group()
    tape.add_argument("--record", metavar="FILE", help="write all chat calls to a cassette")
    tape.add_argument("--replay", metavar="FILE", help="answer chat calls from a cassette")
