"""`qrmem plan`, `qrmem usage` and `qrmem prune`, and what they print."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from qrmem.cli import output
from qrmem.cli.lines import already_read, problem_lines
from qrmem.cli.output import safe, shortened
from qrmem.cli.parsed_arguments import ask_options, opened, question_of, settings_of, sources_of
from qrmem.errors import NotFound
from qrmem.text.numbers import counted
from qrmem.types import UsageRow
from qrmem.types.usage import Plan, Range, StagePlan

# Lines for `plan`, `usage` and reached caps.

AGAIN = "run the same command again"
AGAIN_AFTER_REBUILD = f"{AGAIN} without --rebuild, which would start from the beginning"


def go_on(again: str) -> str:
    """Return how to continue after a cap was reached."""
    return f"what was paid for is kept: to continue, with a higher cap or none, {again}"


def plan_lines(plan: Plan) -> list[str]:
    """Show a plan: the work, and its cost by stage and model and in total."""
    if plan.run == "add":
        documents = counted(plan.documents, "documents")
        lines = [f"to read:   {counted(plan.segments, 'segments')} of {documents}"]
        if plan.stages and not plan.segments:
            lines = [f"to finish: {documents}; all segments are read"]
    elif plan.run == "tree":
        documents = counted(plan.documents, "documents")
        lines = [f"trees:     over {counted(plan.segments, 'segments')} of {documents}"]
    else:
        lines = [f"memory:    {counted(plan.segments, 'segments')}"]
        how = "whole (everything fits and is read)" if plan.strategy == "whole" else plan.strategy
        lines.append(f"strategy:  {how}, window of {plan.window:,} tokens (--window)")
    if plan.read_otherwise:
        from qrmem.memory.inspect import otherwise  # `--help` does not load it

        lines.append(f"not again: {otherwise(plan.read_otherwise, plan.reading_again)}")
    if 0 < plan.sampled < plan.segments:
        lines.append(f"measured:  on {plan.sampled:,} of them, evenly chosen")
    if not plan.stages:
        why = "no model is set"
        if plan.run == "tree":
            why = "no model is set, or all nodes exist"
        elif not plan.segments:
            is_add = plan.run == "add"
            why = already_read(plan.readers) if is_add else "the memory is empty"
        return [*lines, f"cost:      nothing: {why}", *_workers(plan), *_problems(plan)]
    lines += _table(plan)
    lines.append(f"tokens:    {_span(plan.tokens)}, prompts and replies together")
    lines.append(f"money:     {_money(plan)}")
    seconds = plan.seconds
    lines.append(
        f"time:      {_time(seconds.likely)} ({_time(seconds.low)} to {_time(seconds.high)}), "
        f"{counted(plan.concurrency, 'calls')} at once; {plan.basis}"
    )
    return [*lines, *_workers(plan), *_problems(plan)]


def _workers(plan: Plan) -> list[str]:
    return [f"workers:   {plan.workers}"] if plan.workers else []


def _table(plan: Plan) -> list[str]:
    rows: list[Sequence[str]] = [("stage", "model", "calls", "tokens in", "tokens out", "money")]
    rows += [_row(stage) for stage in plan.stages]
    calls, tokens_in, tokens_out = plan.calls, plan.tokens_in, plan.tokens_out
    money = _span(plan.cost, money=True) if plan.cost else "?"
    rows.append(("all", "", _span(calls), _span(tokens_in), _span(tokens_out), money))
    return aligned(rows, left=2)


def _row(stage: StagePlan) -> tuple[str, ...]:
    money = _span(stage.cost, money=True) if stage.cost else "?"
    figures = (_span(figure) for figure in (stage.calls, stage.tokens_in, stage.tokens_out))
    return (stage.stage, shortened(stage.model, 32), *figures, money)


def _span(figure: Range, *, money: bool = False) -> str:
    """Show an estimate with its range."""
    form = ",.4f" if money else ",.0f"
    likely = f"{figure.likely:{form}}"
    if figure.low == figure.high:
        return likely
    return f"{likely} ({figure.low:{form}}-{figure.high:{form}})"


def _money(plan: Plan) -> str:
    unpriced_models = ", ".join(shortened(model, 32) for model in plan.unpriced)
    cost_in_words = (
        f"{_span(plan.cost, money=True)} USD, prices of {plan.prices_date}" if plan.cost else ""
    )
    if not unpriced_models:
        return cost_in_words
    unknown = f"the price of {unpriced_models} is not known (--prices FILE)"
    return f"{cost_in_words}; without {unpriced_models}: {unknown}" if cost_in_words else unknown


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _problems(plan: Plan) -> list[str]:
    return problem_lines([(name, -1, reason) for name, reason in plan.problems])


_COLUMNS: Mapping[str, tuple[str, str]] = {
    "calls": ("calls", ","),
    "cached": ("from_cache", ","),
    "failed": ("failed", ","),
    "tokens in": ("tokens_in", ","),
    "out": ("tokens_out", ","),
    "money": ("cost", ",.4f"),
    "seconds": ("seconds", ",.1f"),
}
"""Columns of the usage table: each title with the field of a row and its format."""


def usage_lines(rows: Sequence[UsageRow], by: str) -> list[str]:
    """Show what all runs used, building and answering separately."""
    if not rows:
        return ["no chat model and no embedding server was called"]
    lines = []
    for phase in dict.fromkeys(row.phase for row in rows):
        rows_of_phase = [row for row in rows if row.phase == phase]
        heads = (by, "model", *_COLUMNS)
        lines.append(f"{'building' if phase == 'construction' else 'answering'}:")
        table = [heads, *(_usage_cells(row, by) for row in rows_of_phase), _summed(rows_of_phase)]
        lines += [f"  {line}" for line in aligned(table, left=2)]
    unpriced = sum(row.unpriced for row in rows)
    if unpriced:
        lines.append(f"the price of {unpriced:,} calls is not known and not in the money")
    return lines


def _usage_cells(row: UsageRow, by: str) -> tuple[str, ...]:
    cells = {head: _sum([row], *column) for head, column in _COLUMNS.items()}
    if row.cached_tokens:
        cells["tokens in"] += f" ({row.cached_tokens:,} cached)"
    key = safe(f"{row.key} {row.began[:16]}" if by == "run" else row.key)
    return key, shortened(", ".join(row.models), 32), *cells.values()


def _summed(rows: Sequence[UsageRow]) -> tuple[str, ...]:
    return "all", "", *(_sum(rows, *column) for column in _COLUMNS.values())


def _sum(rows: Sequence[UsageRow], name: str, form: str) -> str:
    values = [value for row in rows if (value := getattr(row, name)) is not None]
    return format(sum(values), form) if values else "?"


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return rows as a table: the first columns aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if n < left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


async def plan(arguments: Namespace) -> int:
    """Estimate what a run would use; it calls no model and writes nothing."""
    settings = settings_of(arguments)
    if arguments.run == "add":
        plan_options: dict[str, Any] = {
            "source": await sources_of(arguments),
            "update": arguments.update,
            "rebuild": arguments.rebuild,
            "glob": arguments.glob,
            "follow_links": arguments.follow_links,
            "question": arguments.question or "",
            "tree": arguments.tree,
        }
    elif arguments.run == "tree":
        how = {"kind": arguments.kind, "preset": arguments.preset}
        plan_options = {"tree": arguments.documents or True, **how}
    else:
        plan_options = {"ask": question_of(arguments), **ask_options(arguments)}
    async with await _memory(settings, may_be_new=arguments.run == "add") as memory:
        plans = await memory.plan(**plan_options)
    output.print_result(arguments, plans, plan_lines(plans))
    return 1 if plans.problems else 0


async def _memory(settings: Any, *, may_be_new: bool) -> Any:
    """Open the memory; if there is none yet, an empty one in RAM."""
    from qrmem.memory import open

    try:
        return await open(settings=settings, create=False)
    except NotFound:
        if not may_be_new:
            raise
        return await open(settings=settings, memory="memory://")


async def usage(arguments: Namespace) -> int:
    """Show what all runs used."""
    async with opened(arguments) as memory:
        rows = await memory.usage(arguments.by)
    lines = usage_lines(rows, arguments.by)
    return output.print_result(arguments, rows, lines)


async def prune(arguments: Namespace) -> int:
    """Delete cached model replies."""
    async with opened(arguments) as memory:
        count = await memory.prune()
    lines = [f"{count:,} cached replies deleted; what was extracted from them is kept"]
    return output.print_done(arguments, {"forgotten": count}, lines)
