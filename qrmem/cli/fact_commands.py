"""`qrmem facts`: list statements with their times and sources, and edit them by hand."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qrmem.cli import output
from qrmem.cli.arguments import add_caps, add_schema
from qrmem.cli.parsed_arguments import opened
from qrmem.cli.progress import Warnings
from qrmem.text.numbers import counted
from qrmem.types import FactView

DONE, PARTLY = 0, 1
_CHANGES = {
    "edit-fact": "edit the words or the period of a statement",
    "end-fact": "end a statement: it is no longer true",
    "delete-fact": "delete a statement from the graph",
    "restore-fact": "undo an edit, an end or a deletion",
}


def add_facts(commands: Any, common: Callable[..., Iterable[Any]]) -> None:
    """Add the commands about statements to the parser."""
    facts = commands.add_parser(
        "facts", parents=common("memory"), help="list statements with their times and sources"
    )
    facts.add_argument("entity", nargs="?", metavar="NAME", help="name of an entity; default: all")
    facts.add_argument("--user", metavar="U", help="only of this user's turns and documents")
    add_as_of(facts)
    add_schema(facts)
    facts.add_argument(
        "--superseded",
        action="store_true",
        help="also statements that are no longer true, or not yet",
    )
    facts.add_argument(
        "--deleted",
        action="store_true",
        help="the statements that were deleted by hand; restore-fact undoes a deletion",
    )
    facts.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number of rows")
    judge = commands.add_parser(
        "judge-facts",
        parents=common("memory", "model", "embedder"),
        help="let the chat model find statements that later ones replace",
    )
    judge.add_argument("--plan", action="store_true", help="estimate the cost; send nothing")
    add_caps(judge)
    for name, text in _CHANGES.items():
        fact = commands.add_parser(name, parents=common("memory"), help=text)
        fact.add_argument("id", metavar="ID", help="id of a statement, as `qrmem facts` shows it")
        if name == "edit-fact":
            fact.add_argument("--text", help="what it says")
            fact.add_argument(
                "--valid-from", metavar="DATE", help="2026-05-03, 2026-05, 2026 or ''"
            )
            fact.add_argument("--valid-until", metavar="DATE", help="the same")
        if name == "end-fact":
            fact.add_argument("--on", default="", metavar="DATE", help="default: today (UTC)")


def add_as_of(parser: Any) -> None:
    """Add the option that shows a memory as of a date."""
    parser.add_argument(
        "--as-of",
        metavar="DATE",
        help="look at the memory as of a date: 2026-05-03, 2026-05, 2026",
    )


def add_types(parser: Any) -> None:
    """Add the option that selects segments by types of the graph."""
    parser.add_argument(
        "--types",
        type=_names,
        metavar="A,B",
        help="use only segments that name an entity of these types, or state a relation of them:"
        " Person,WorksFor",
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


async def facts(arguments: Namespace) -> int:
    """List statements."""
    async with opened(arguments) as memory:
        result = await memory.facts(
            entity=arguments.entity or "",
            user=arguments.user or "",
            as_of=arguments.as_of or "",
            superseded=arguments.superseded,
            deleted=arguments.deleted,
        )
    return output.print_result(arguments, result, fact_lines(result, arguments.limit))


async def judge_facts(arguments: Namespace) -> int:
    """Let the chat model judge pairs of statements; exit 1 if some pairs were not judged."""
    async with opened(arguments, listener=Warnings(quiet=arguments.quiet)) as memory:
        report = await memory.judge_facts(plan=arguments.plan)
    calls_in_words = f"{counted(report.calls, 'calls')}, {report.tokens_in:,} tokens in"
    rest = f"; {counted(report.left, 'pairs')} left out" if report.left else ""
    if arguments.plan:
        message = f"would judge {counted(report.pairs, 'pairs')}: about {calls_in_words}{rest}"
    else:
        message = (
            f"{counted(report.pairs, 'pairs')} judged: {report.replaced} replaced,"
            f" {report.agreed} agree, {report.beside} may both be true; {calls_in_words}{rest}"
        )
    output.print_done(arguments, report, [message])
    if report.stopped:
        output.note(f"stopped: {report.stopped}")
    return PARTLY if report.problems or report.stopped else DONE


async def edit_fact(arguments: Namespace) -> int:
    """Change what a statement says, or when it holds."""
    async with opened(arguments) as memory:
        fact = await memory.edit_fact(
            arguments.id,
            arguments.text,
            valid_from=arguments.valid_from,
            valid_until=arguments.valid_until,
        )
    return _print_done(arguments, "edited", fact)


async def end_fact(arguments: Namespace) -> int:
    """End a statement: it is no longer true."""
    async with opened(arguments) as memory:
        fact = await memory.end_fact(arguments.id, arguments.on)
    return _print_done(arguments, "ended", fact)


async def delete_fact(arguments: Namespace) -> int:
    """Delete a statement from the graph."""
    async with opened(arguments) as memory:
        await memory.delete_fact(arguments.id)
    message = f"deleted: {output.safe(arguments.id)}; qrmem restore-fact {arguments.id} undoes this"
    return output.print_done(arguments, {"deleted": arguments.id}, [message])


async def restore_fact(arguments: Namespace) -> int:
    """Undo an edit, an end or a deletion."""
    async with opened(arguments) as memory:
        fact = await memory.restore_fact(arguments.id)
    return _print_done(arguments, "restored", fact)


def _print_done(arguments: Namespace, what: str, made: FactView) -> int:
    first, *rest = fact_lines([made], 1)
    return output.print_done(arguments, made, [f"{what}: {first}", *rest])


def fact_lines(found: Sequence[FactView], limit: int) -> list[str]:
    """Show statements, each with its times and the sentence that it comes from."""
    lines: list[str] = []
    for fact in found[:limit]:
        is_sentence = fact.description == fact.quotation
        parts = [fact.head, *([] if is_sentence else [fact.description]), fact.tail]
        sentence = " — ".join(output.shortened(part, 160) for part in parts)
        lines.append(f"{output.shortened(fact.id, 1000)}  {sentence}")
        if times := _times(fact):
            lines.append(f"    {times}")
        if fact.superseded_by:
            since = f" {fact.superseded_at[:10]}" if fact.superseded_at else ""
            lines.append("    " + output.shortened(f"superseded{since}: {fact.then}", 190))
        place = output.shortened(fact.document_id, 1000)
        lines.append(f"    {place}: {output.shortened(fact.quotation, 160)}")
    if len(found) > limit:
        lines.append(f"{counted(len(found), 'facts')}, the first {limit} (--limit N for more)")
    return lines or ["no fact found"]


def _times(fact: FactView) -> str:
    parts = (
        ("said", fact.said_at),
        ("not yet: from" if fact.is_ahead else "from", fact.valid_from),
        ("until", fact.valid_until),
    )
    return ", ".join(f"{word} {output.shortened(when, 40)}" for word, when in parts if when)


COMMANDS = {
    "facts": facts,
    "judge-facts": judge_facts,
    "edit-fact": edit_fact,
    "end-fact": end_fact,
    "delete-fact": delete_fact,
    "restore-fact": restore_fact,
}
