"""The commands that plan, sum up and prune."""

from argparse import Namespace
from typing import Any

from qrmem.cli import cost_lines, output
from qrmem.cli.options import ask_options, opened, question_of, settings_of, sources_of
from qrmem.errors import NotFound


async def plan(arguments: Namespace) -> int:
    """Say what a run would use; no call is made and nothing is written."""
    settings = settings_of(arguments)
    if arguments.run == "add":
        chosen: dict[str, Any] = {
            "source": sources_of(arguments),
            "update": arguments.update,
            "rebuild": arguments.rebuild,
            "glob": arguments.glob,
            "follow_links": arguments.follow_links,
            "question": arguments.question or "",
            "tree": arguments.tree,
        }
    elif arguments.run == "tree":
        how = {"kind": arguments.kind, "preset": arguments.preset}
        chosen = {"tree": arguments.documents or True, **how}
    else:
        chosen = {"ask": question_of(arguments), **ask_options(arguments)}
    async with await _memory(settings, may_be_new=arguments.run == "add") as memory:
        found = await memory.plan(**chosen)
    output.print_result(arguments, found, cost_lines.plan_lines(found))
    return 1 if found.problems else 0


async def _memory(settings: Any, *, may_be_new: bool) -> Any:
    """Open the memory; where there is none yet, an empty one that is never written."""
    from qrmem.memory import open

    try:
        return await open(settings=settings, create=False)
    except NotFound:
        if not may_be_new:
            raise
        return await open(settings=settings, memory="memory://")


async def usage(arguments: Namespace) -> int:
    """Sum up what all runs used."""
    async with opened(arguments) as memory:
        rows = await memory.usage(arguments.by)
    lines = cost_lines.usage_lines(rows, arguments.by)
    return output.print_result(arguments, rows, lines)


async def prune(arguments: Namespace) -> int:
    """Delete cached model replies."""
    async with opened(arguments) as memory:
        count = await memory.prune()
    lines = [f"{count:,} cached replies deleted; what was extracted from them is kept"]
    return output.print_done(arguments, {"forgotten": count}, lines)
