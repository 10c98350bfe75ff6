"""The commands: each opens the memory, calls the facade and prints the result."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from qrmem.cli import costing, fact_commands, lines, output, serving, settings_file
from qrmem.cli.chatting import chat
from qrmem.cli.costing import AGAIN, AGAIN_AFTER_REBUILD, go_on
from qrmem.cli.parsed_arguments import (
    agreed,
    ask_options,
    given_settings,
    narrowed,
    opened,
    question_of,
    settings_of,
    sources_of,
)
from qrmem.cli.progress import Progress, Warnings, Writing
from qrmem.cli.tree_commands import tree, tree_report_lines
from qrmem.config import Settings, find
from qrmem.errors import NotFound, UsageError, place
from qrmem.memory import Memory
from qrmem.text.numbers import counted
from qrmem.types import AddReport, Answer, Step, Words

DONE, PARTLY, BAD_INPUT = 0, 1, 2
_NAME_WORDS = 5
"""Words of a name at most: a longer question is not looked up as one."""


async def add(arguments: Namespace) -> int:
    """Read documents; exit 1 if a segment failed."""
    if arguments.tree:
        from qrmem.retrieval.trees.clustering import require_tree_extra

        require_tree_extra()
    with Progress(quiet=arguments.quiet, first=_reasoner(arguments)) as progress:
        async with opened(arguments, create=True, listener=progress) as memory:
            try:
                report = await memory.add(
                    await sources_of(arguments),
                    update=arguments.update,
                    rebuild=arguments.rebuild,
                    glob=arguments.glob,
                    follow_links=arguments.follow_links,
                    question=arguments.question or "",
                )
                ids = [*report.added, *report.updated, *report.resumed, *report.unchanged]
                is_wanted = arguments.tree and ids and not report.stopped
                caps = _remaining_caps(memory.settings, report)
                tree_report = await memory.build_tree(*ids, **caps) if is_wanted else None
            except BaseException:
                if progress.done:
                    read = f"{progress.done} of {progress.total} segments were read and are kept"
                    output.note(read, quiet=arguments.quiet)
                if arguments.rebuild and progress.total:
                    output.note(f"to continue, {AGAIN_AFTER_REBUILD}", quiet=arguments.quiet)
                raise
    if report.unchanged and (arguments.meta or arguments.title) and not arguments.update:
        output.note(
            "title and metadata of an existing document change only with --update",
            quiet=arguments.quiet,
        )
    quiet = arguments.quiet and report.is_complete
    shown = lines.report_lines(report, place(arguments.memory, arguments.namespace))
    output.print_result(arguments, report, shown, quiet=quiet)
    stopped = report.stopped
    if tree_report is not None:
        stopped = tree_report.stopped
        if stopped and report.usage.calls:
            stopped += ", of which reading had used a part"
        for line in tree_report_lines(tree_report):
            output.note(line, quiet=arguments.quiet)
    if stopped:
        again = AGAIN_AFTER_REBUILD if arguments.rebuild else AGAIN
        output.note(f"stopped: {stopped}; {go_on(again)}")
    if report.is_complete:
        return PARTLY if tree_report is not None and tree_report.stopped else DONE
    return PARTLY if report.states or report.stopped else BAD_INPUT


def _remaining_caps(settings: Settings, report: AddReport) -> dict[str, Any]:
    """Return what reading left of the caps: they apply to the whole command, with its trees."""
    stages = report.usage.construction.values()
    caps: Sequence[tuple[str, float | None, float]] = (
        ("max_calls", settings.max_calls, report.usage.calls),
        ("max_tokens", settings.max_tokens, report.usage.tokens_in + report.usage.tokens_out),
        ("max_cost", settings.max_cost, sum(stage.cost or 0.0 for stage in stages)),
        ("max_seconds", settings.max_seconds, report.seconds),
    )
    return {name: max(0, cap - n) for name, cap, n in caps if cap is not None}


def _reasoner(arguments: Namespace) -> str:
    """Return a note if no chat model reads; else ""."""
    settings = settings_of(arguments)
    is_read_by_rules = not (settings.model or settings.replay or arguments.json)
    return "no model set: built-in rules read the text" if is_read_by_rules else ""


async def search(arguments: Namespace) -> int:
    """Rank segments."""
    async with opened(arguments, listener=Warnings(quiet=arguments.quiet)) as memory:
        question = question_of(arguments)
        hits = await memory.search(question, k=arguments.k, **narrowed(arguments))
        is_miss = not hits and _is_of_all(arguments)
        near = await _names_near(memory, question) if is_miss else []
    if arguments.json:
        output.print_json(hits)
    else:
        for number, hit in enumerate(hits, 1):
            output.show("\n".join(output.hit_lines(number, hit)))
        if not hits:
            output.show("nothing found")
            _note_near(arguments, near)
    return DONE


async def ask(arguments: Namespace) -> int:
    """Answer a question; `unanswerable` counts as an answer (exit 0)."""
    async with opened(arguments, listener=Warnings(quiet=arguments.quiet)) as memory:
        options = {**ask_options(arguments), "keep_trail": False if arguments.no_trail else None}
        if arguments.stream:
            answer = await _streamed(memory, arguments, options)
        else:
            answer = await memory.ask(question_of(arguments), **options)
        is_of_all = _is_of_all(arguments)
        name = await _name_alone(memory, answer.trail.question) if is_of_all else ""
        is_miss = answer.status == "unanswerable" and is_of_all
        near = await _names_near(memory, answer.trail.question) if is_miss else []
    if arguments.json and arguments.stream:
        output.print_json_line({"answer": output.plain(answer)})
    elif arguments.json:
        output.print_json(answer)
    else:
        at = place(arguments.memory, arguments.namespace)
        lines = output.answer_lines(answer, trail=arguments.trail, quiet=arguments.quiet, place=at)
        output.show("\n".join(lines))
        if name:
            hint = f"`qrmem show{at} {shlex.quote(name)}` shows what the memory has about {name}"
            output.note(hint, quiet=arguments.quiet)
        _note_near(arguments, near)
    return DONE


def _is_of_all(arguments: Namespace) -> bool:
    """Return whether names may be looked up in the whole memory and shown to a person."""
    return not (arguments.json or any(narrowed(arguments).values()))


async def _names_near(memory: Memory, question: str) -> list[str]:
    """Return names of entities that resemble unknown names in a question."""
    from qrmem.extraction.rules_tagger import tagged
    from qrmem.graph.name_parents import NUMERIC

    names = [one.name for one in tagged(question).mentions if one.type not in NUMERIC]
    if not names and len(question.split()) <= _NAME_WORDS:
        names = [question]
    near: dict[str, None] = {}
    for name in names[:_NAME_WORDS]:
        try:
            await memory.entity(name, limit=1)
        except NotFound as exc:
            near |= dict.fromkeys(exc.near)
    return list(near)


def _note_near(arguments: Namespace, names: Sequence[str]) -> None:
    if names:
        output.note(f"names like those in the question: {', '.join(names)}", quiet=arguments.quiet)


async def _name_alone(memory: Memory, question: str) -> str:
    """Return the entity's name if a question is only that name; "" if it asks something."""
    if len(question.split()) > _NAME_WORDS or question.rstrip().endswith("?"):
        return ""
    try:
        return (await memory.entity(question, limit=1)).entity.name
    except NotFound:
        return ""


async def _streamed(memory: Memory, arguments: Namespace, options: dict[str, Any]) -> Answer:
    sees = sys.stderr.isatty() and not (arguments.json or arguments.quiet)
    items = memory.stream(question_of(arguments), words=sees, **options)
    with Writing() as writing:
        async with aclosing(items):
            async for item in items:
                if isinstance(item, Answer):
                    return item
                if isinstance(item, Words):
                    writing.show(item)
                else:
                    writing.end()
                    _stream(item, as_json=arguments.json)
    raise AssertionError("a stream ends with its answer")


def _stream(step: Step, *, as_json: bool) -> None:
    if as_json:
        output.print_json_line({"step": output.plain(step)})
    else:
        output.show("\n".join(output.step_lines(step)))


async def show(arguments: Namespace) -> int:
    """Show the memory in figures, its merges, or one entity."""
    async with opened(arguments) as memory:
        if arguments.merges:
            merges = await memory.merges()
            return output.print_result(arguments, merges, lines.merge_lines(merges))
        if arguments.neo4j:
            queries = await memory.neo4j_queries(arguments.entity or "")
            return output.print_result(arguments, queries, lines.neo4j_lines(queries))
        if arguments.entity:
            entity = await memory.entity(arguments.entity, as_of=arguments.as_of or "")
            return output.print_result(
                arguments, entity, lines.entity_lines(entity, arguments.limit)
            )
        status, entities = await memory.status(), await memory.entities(arguments.limit)
    output_data = {"status": status, "entities": entities}
    return output.print_result(arguments, output_data, lines.memory_lines(status, entities))


async def trail(arguments: Namespace) -> int:
    """Show a recorded run step by step."""
    async with opened(arguments) as memory:
        if arguments.list:
            if not (trails := await memory.trails()):
                await memory.status()  # raises if there is no such namespace
            return output.print_result(arguments, trails, lines.trail_list(trails))
        trail_stored = await memory.trail(arguments.id)
        if arguments.html:
            return await serving.write_trail(memory, trail_stored, arguments.html)
        segments = {} if arguments.json else await serving.segments_of(memory, trail_stored)
    return output.print_result(arguments, trail_stored, output.trail_lines(trail_stored, segments))


async def status(arguments: Namespace) -> int:
    """Show the progress of reading; exit 1 if it is not complete."""
    async with opened(arguments) as memory:
        memory_status = await memory.status()
    output.print_result(arguments, memory_status, lines.status_lines(memory_status))
    return PARTLY if memory_status.problems else DONE


async def list_(arguments: Namespace) -> int:
    """List documents and namespaces."""
    async with opened(arguments) as memory:
        namespaces, documents = await memory.namespaces(), await memory.documents()
    output_data = {"namespaces": namespaces, "documents": documents}
    listed = lines.list_lines(namespaces, documents, turns=arguments.turns)
    return output.print_result(arguments, output_data, listed)


async def delete(arguments: Namespace) -> int:
    """Delete documents, after asking."""
    if bool(arguments.documents) == arguments.all:
        raise UsageError("name documents to delete or give --all, and not both")
    async with opened(arguments) as memory:
        there, missing = await _there(memory, arguments.documents)
        what = f"namespace {memory.settings.namespace!r}" if arguments.all else ", ".join(there)
        at = memory.settings.memory
        if not arguments.yes and not agreed(f"delete {what} from {at}?"):
            output.note("nothing was deleted", quiet=arguments.quiet)
            return DONE
        await (memory.delete_all() if arguments.all else memory.delete(*there))
    for error in missing:
        output.note(str(error))
    message = f"deleted {what} from {at}" if arguments.all else f"deleted {what}"
    output.print_done(arguments, {"deleted": there or "all"}, [message])
    return PARTLY if missing else DONE


async def _there(memory: Memory, document_ids: Sequence[str]) -> tuple[list[str], list[NotFound]]:
    """Return the documents that exist, and the errors of the others.

    Repeating a command thus finishes a deletion that was killed.

    Raises:
        NotFound: none of them exists.
    """
    there: list[str] = []
    missing: list[NotFound] = []
    for document_id in document_ids:
        try:
            await memory.document(document_id)
        except NotFound as exc:
            missing.append(exc)
        else:
            there.append(document_id)
    if missing and not there:
        raise missing[0]
    return there, missing


async def merge(arguments: Namespace) -> int:
    """Merge two names by hand, and keep the decision."""
    async with opened(arguments) as memory:
        await memory.merge(arguments.first, arguments.second)
        await _note_unknown(memory, arguments)
    names = [arguments.first, arguments.second]
    return output.print_done(
        arguments, {"merged": names}, [f"kept: {_quoted(names)} are one entity"]
    )


async def separate(arguments: Namespace) -> int:
    """Separate two names by hand, and keep the decision."""
    async with opened(arguments) as memory:
        await memory.separate(arguments.first, arguments.second)
        await _note_unknown(memory, arguments)
    names = [arguments.first, arguments.second]
    return output.print_done(
        arguments, {"separated": names}, [f"kept: {_quoted(names)} are two entities"]
    )


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(f'"{output.shortened(name, 60)}"' for name in names)


async def _note_unknown(memory: Memory, arguments: Namespace) -> None:
    """Warn of unknown names: the decision is kept for later, but a name may be misspelt."""
    for name in (arguments.first, arguments.second):
        try:
            await memory.entity(name)
        except NotFound as exc:
            message = f"{exc}; the decision is kept and applies once the name occurs"
            output.note(message, quiet=arguments.quiet)


async def reembed(arguments: Namespace) -> int:
    """Embed all segments again; the same command continues an interrupted run."""
    if not arguments.embedder:
        raise UsageError(
            "missing: --embedder none|light|local|sentence-transformers:NAME|openai:NAME"
        )
    embedder = arguments.embedder
    # Elsewhere an embedder other than the recorded one is refused; this command changes it.
    arguments.embedder = ""
    with Progress(quiet=arguments.quiet) as progress:
        async with opened(arguments, listener=progress) as memory:
            count = await memory.reembed(embedder)
    message = f"{counted(count, 'segments')} embedded by {embedder}"
    if embedder == "none":
        message = "the vectors are deleted: search uses words and the graph"
    return output.print_done(arguments, {"embedded": count}, [message])


async def export(arguments: Namespace) -> int:
    """Write the namespace to a file, or its graph for other programs."""
    async with opened(arguments) as memory:
        if arguments.markdown:
            count = await memory.markdown(arguments.path)
            return output.print_done(
                arguments, {"notes": count}, [f"{count} notes written to {arguments.path}"]
            )
        if not arguments.graphml:
            archived = await memory.export(
                arguments.path, runs=arguments.all, overwrite=arguments.force
            )
            return output.print_done(
                arguments, archived, lines.archived_lines(archived, "written to")
            )
        count = await memory.graphml(arguments.path, overwrite=arguments.force)
    return output.print_done(
        arguments, {"entities": count}, [f"{count} entities written to {arguments.path}"]
    )


async def import_(arguments: Namespace) -> int:
    """Read an archive, or extractions that another program made."""
    with Progress(quiet=arguments.quiet) as progress:
        async with opened(arguments, create=True, listener=progress) as memory:
            if arguments.openie:
                report = await memory.load_openie(arguments.path)
                output.print_result(arguments, report, lines.extraction_lines(report))
                return PARTLY if report.left_out else DONE
            archived = await memory.load(arguments.path)
    return output.print_done(arguments, archived, lines.archived_lines(archived, "read from"))


async def evaluate(arguments: Namespace) -> int:
    """List, run, plan, judge, build or report an evaluation."""
    from qrmem.cli.evaluating import ACTIONS  # loads all of `qrmem.eval`

    return await ACTIONS[arguments.action](arguments)


async def completion(arguments: Namespace) -> int:
    """Print a script that has a shell complete commands and options."""
    from argcomplete.shell_integration import shellcode

    output.show(shellcode(["qrmem"], shell=arguments.shell))
    return DONE


async def doctor(arguments: Namespace) -> int:
    """Report what is installed, which servers answer and what is missing."""
    from qrmem.cli.doctor import examine, finding_lines, found_settings

    if arguments.repair or arguments.compare:
        return await _repair(arguments)
    arguments.has_told = True  # a finding reports the error
    settings = settings_of(arguments).with_(model=arguments.probe or None)
    given_options = given_settings(arguments) | {"model": arguments.probe or None}
    findings = [
        *found_settings(settings, find(**given_options)),
        *await examine(settings, with_probe=arguments.probe is not None),
    ]
    output.print_result(arguments, findings, finding_lines(findings))
    return max(finding.exit_code for finding in findings)


async def _repair(arguments: Namespace) -> int:
    from qrmem.cli.doctor import repair_lines

    async with opened(arguments) as memory:
        report = await memory.repair(compare_only=arguments.compare)
    lines = repair_lines(report, compared=arguments.compare)
    output.print_result(arguments, report, lines)
    is_left = arguments.compare and report.differences
    return PARTLY if report.damaged or is_left else DONE


COMMANDS: Mapping[str, Callable[[Namespace], Coroutine[Any, Any, int]]] = {
    "add": add,
    "ask": ask,
    "search": search,
    "show": show,
    "trail": trail,
    "status": status,
    "list": list_,
    "delete": delete,
    "merge": merge,
    "separate": separate,
    "reembed": reembed,
    "export": export,
    "tree": tree,
    "import": import_,
    "completion": completion,
    "doctor": doctor,
    "chat": chat,
    "mcp": serving.mcp,
    "serve": serving.serve,
    "view": serving.view,
    "eval": evaluate,
    "plan": costing.plan,
    "usage": costing.usage,
    **fact_commands.COMMANDS,
    "prune": costing.prune,
    "init": settings_file.init,
    "trust": settings_file.trust,
}
