"""`qrmem tree`: build and show trees of summaries."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from qrmem.cli import output
from qrmem.cli.arguments import Common, add_caps, add_models
from qrmem.cli.costing import AGAIN, go_on
from qrmem.cli.parsed_arguments import opened
from qrmem.cli.progress import Warnings
from qrmem.errors import NotFound, UsageError
from qrmem.text.numbers import counted
from qrmem.types.documents import Grouping, Tree, TreeNode, TreeReport

_SHOWN = 160
NO_TREE = "no tree was built yet, or its document has changed since: qrmem tree build"
LEGEND = "! marks a surprise: a statement that does not follow from the rest of the text"


def add_tree(commands: Any, common: Common) -> None:
    """Add the command and its two actions."""
    tree = commands.add_parser("tree", help="build or show trees of summaries")
    actions = tree.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser(
        "build",
        parents=common("memory", "model", "embedder"),
        help="build a tree over each document (needs the extra `tree`)",
    )
    show = actions.add_parser("show", parents=common("memory"), help="show trees as an outline")
    add_build_options(build)
    _add_documents(show)
    show.add_argument(
        "--depth", type=int, default=2, metavar="N", help="levels to show, from the top"
    )
    for more in (add_models, add_caps):
        more(build)


def add_build_options(build: ArgumentParser) -> None:
    """Add the options of building trees, except for models and caps."""
    _add_documents(build)
    build.add_argument(
        "--preset",
        choices=("default", "paper"),
        default="default",
        help="paper: cluster whole levels, not chapters first, and sample replies as ILM-TR does",
    )


def _add_documents(action: ArgumentParser) -> None:
    action.add_argument("documents", nargs="*", metavar="ID", help="default: all documents")
    action.add_argument(
        "--kind",
        choices=("ilm", "raptor"),
        default="ilm",
        help="ilm: summary and surprises of every segment; raptor: plain summaries of clusters",
    )


async def tree(arguments: Namespace) -> int:
    """Build or show trees; exit 1 if a cap was reached or a reply lacked the form."""
    return await (_build(arguments) if arguments.action == "build" else _show(arguments))


async def _build(arguments: Namespace) -> int:
    async with opened(arguments, listener=Warnings(quiet=arguments.quiet)) as memory:
        report = await memory.build_tree(
            *arguments.documents, kind=arguments.kind, preset=arguments.preset
        )
    quiet = arguments.quiet and not report.stopped
    lines = tree_report_lines(report)
    output.print_result(arguments, report, lines, quiet=quiet)
    if report.stopped:
        output.note(f"stopped: {report.stopped}; {go_on(AGAIN)}")
    return 1 if report.stopped else 0


async def _show(arguments: Namespace) -> int:
    if arguments.depth < 1:
        raise UsageError(f"depth must be at least 1, not {arguments.depth}")
    async with opened(arguments) as memory:
        trees = await memory.trees(*arguments.documents, kind=arguments.kind)
    if not trees:
        raise NotFound(NO_TREE)
    lines = [line for one in trees for line in outline(one, arguments.depth)]
    if any(node.surprises for one in trees for node in one.nodes):
        lines.append(LEGEND)
    return output.print_result(arguments, trees, lines)


def tree_report_lines(report: TreeReport) -> list[str]:
    """Show what building trees did."""
    lines = [
        f"trees of {counted(len(report.documents), 'documents')}: "
        f"{counted(report.made, 'nodes')} made, {report.reused} kept, "
        f"{counted(report.levels, 'levels')}, {report.seconds:.1f} s"
    ]
    if report.malformed:
        lines.append(f"{report.malformed} replies of the model lacked the two labels")
    return [*lines, f"cost:   {output.usage_line(report.usage)}"]


def outline(tree: Tree, depth: int) -> Iterator[str]:
    """Yield a tree from its roots down, with surprises.

    Args:
        depth: levels to show.
    """
    nodes = {node.key: node for node in tree.nodes}
    yield f"{output.safe(tree.document_id)}: {counted(len(nodes), 'nodes')}"
    if tree.grouping.groups:
        yield f"  {_grouped(tree.grouping)}"
    if not tree.is_current:
        yield "  the document has changed since: run `qrmem tree build` again"
    for root in tree.roots:
        yield from _below(nodes, root, 1, depth)


def _grouped(done: Grouping) -> str:
    """Describe how nodes were grouped: by reduction and clusters, or by the order of the text."""
    reduction = " and ".join(done.reduction.upper().split("+"))
    how = "not reduced" if done.reduction == "none" else f"reduced by {reduction}"
    return (
        f"{counted(done.groups, 'groups')}, vectors {how}; "
        f"consecutive pieces of the text: {done.runs}"
    )


def _below(nodes: Mapping[str, TreeNode], key: str, at: int, depth: int) -> Iterator[str]:
    node = nodes.get(key)
    if node is None or at > depth:
        return
    space = "  " * at
    size = counted(len(node.segments), "segments")
    yield f"{space}level {node.level}, {size}: {_on_one_line(node.summary)}"
    for surprise in node.surprises:
        yield f"{space}  ! {_on_one_line(surprise)}"
    for child in node.covers:
        yield from _below(nodes, child, at + 1, depth)


def _on_one_line(text: str) -> str:
    """Return a text on one line, without unpaired quotation marks.

    A sentence from a speech may have only one of the two.
    """
    opened: list[int] = []
    alone: set[int] = set()
    for at, char in enumerate(text):
        if char == "“":
            opened.append(at)
        elif char == "”" and opened:
            opened.pop()
        elif char == "”":
            alone.add(at)
    alone.update(opened)
    text_kept = "".join(char for at, char in enumerate(text) if at not in alone).strip()
    if text_kept.count('"') % 2:
        text_kept = text_kept[1:] if text_kept.startswith('"') else text_kept.removesuffix('"')
    return output.shortened(text_kept, _SHOWN)
