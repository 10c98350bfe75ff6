"""What each sub-command does: open the memory, call the facade, print."""

import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import qrmem
from qrmem.cli import costing, output
from qrmem.cli.chatting import chat, correction_lines
from qrmem.cli.cost_lines import AGAIN, AGAIN_AFTER_REBUILD, go_on
from qrmem.cli.evaluating import evaluate
from qrmem.cli.parser import pairs
from qrmem.cli.progress import Progress
from qrmem.cli.warnings import Warnings
from qrmem.cli.writing import Writing
from qrmem.config import Settings
from qrmem.errors import NotFound, UsageError
from qrmem.memory import Memory, open
from qrmem.types import Answer, Document, Listener, Step, Words

DONE, PARTLY, BAD_INPUT = 0, 1, 2

OPTIONS = (
    "memory",
    "namespace",
    "model",
    "base_url",
    "embedder",
    "mode",
    "tokenizer",
    "tagger",
    "segment_tokens",
    "concurrency",
    "window",
    "orientation",
    "stage_models",
    "max_calls",
    "max_tokens",
    "max_cost",
    "max_seconds",
    "prices",
    "cache",
    "record",
    "replay",
)
"""Options that are settings of the same name."""


def settings_of(arguments: Namespace) -> Settings:
    """Return the settings of a command line: options beat environment beat file."""
    chosen = {name: getattr(arguments, name, None) for name in OPTIONS}
    if chosen["stage_models"]:
        chosen["stage_models"] = ",".join(chosen["stage_models"])
    return Settings.from_env(**chosen)


def _open(arguments: Namespace, *, create: bool = False, listener: Listener | None = None) -> Any:
    return open(settings=settings_of(arguments), create=create, listener=listener)


async def add(arguments: Namespace) -> int:
    """Read documents in; exit 1 if some segment failed."""
    settings = settings_of(arguments)
    _say_reasoner(settings, arguments)
    with Progress(quiet=arguments.quiet) as progress:
        async with _open(arguments, create=True, listener=progress) as memory:
            try:
                report = await memory.add(
                    sources_of(arguments),
                    update=arguments.update,
                    rebuild=arguments.rebuild,
                    glob=arguments.glob,
                    follow_links=arguments.follow_links,
                    question=arguments.question or "",
                )
            except BaseException:
                if progress.done:
                    output.note(f"{progress.done} of {progress.total} segments were read and kept")
                if arguments.rebuild and progress.total:
                    output.note(f"to go on from there, {AGAIN_AFTER_REBUILD}")
                raise
    if report.unchanged and (arguments.meta or arguments.title) and not arguments.update:
        output.note("title and metadata of a document that is there change with --update only")
    output.print_result(report, output.report_lines(report), as_json=arguments.json)
    if report.stopped:
        again = AGAIN_AFTER_REBUILD if arguments.rebuild else AGAIN
        output.note(f"stopped: {report.stopped}; {go_on(again)}")
    if report.is_complete:
        return DONE
    return PARTLY if report.states or report.stopped else BAD_INPUT


def sources_of(arguments: Namespace) -> Any:
    """Return what is to be added: paths, or one document with what was said of it."""
    from qrmem.text import files

    named = arguments.id or arguments.title or arguments.meta
    if named and len(arguments.sources) > 1:
        raise UsageError("--id, --title and --meta describe one document; give one FILE")
    if arguments.sources.count("-") > 1:
        raise UsageError("- stands for standard input, which can be read once")
    if len(arguments.sources) == 1 and arguments.sources[0] != "-" and not named:
        return arguments.sources[0]
    found = [_piped() if name == "-" else name for name in arguments.sources]
    if not named:
        return found
    document = found[0] if isinstance(found[0], Document) else files.read(found[0])
    return replace(
        document,
        id=arguments.id or document.id or _name_of(arguments.sources[0]),
        title=arguments.title or document.title,
        metadata={**document.metadata, **pairs(arguments.meta, "--meta")},
    )


def _name_of(source: str) -> str | None:
    return None if source == "-" else Path(source).name


def _piped() -> Document:
    from qrmem.text import files

    return files.from_bytes(sys.stdin.buffer.read(), "standard input")


def _say_reasoner(settings: Settings, arguments: Namespace) -> None:
    if not (settings.model or settings.replay):
        output.note("no model set: the local reasoner reads", quiet=arguments.quiet)


async def search(arguments: Namespace) -> int:
    """Rank segments."""
    async with _open(arguments) as memory:
        hits = await memory.search(arguments.question, k=arguments.k, **_narrowed(arguments))
    if arguments.json:
        output.print_json(hits)
    else:
        for number, hit in enumerate(hits, 1):
            output.show("\n".join(output.hit_lines(number, hit)))
        if not hits:
            output.show("nothing fits")
    return DONE


async def ask(arguments: Namespace) -> int:
    """Answer a question; `unanswerable` is an answer."""
    async with _open(arguments, listener=Warnings(quiet=arguments.quiet)) as memory:
        answer = await _answer(memory, arguments)
        cited = [citation.document_id for citation in answer.citations]
        corrected = await memory.corrections(cited)
    if arguments.json and arguments.stream:
        output.print_json_line({"answer": output.plain(answer)})
    elif arguments.json:
        output.print_json(answer)
    else:
        lines = [*output.answer_lines(answer), *correction_lines(corrected)]
        output.show("\n".join(lines))
    return DONE


async def _answer(memory: Memory, arguments: Namespace) -> Answer:
    options = {**ask_options(arguments), "keep_trail": False if arguments.no_trail else None}
    if not arguments.stream:
        return await memory.ask(arguments.question, **options)
    sees = sys.stderr.isatty() and not (arguments.json or arguments.quiet)
    with Writing() as writing:
        async for item in memory.stream(arguments.question, words=sees, **options):
            if isinstance(item, Answer):
                return item
            if isinstance(item, Words):
                writing.show(item)
            else:
                writing.end()
                _stream(item, as_json=arguments.json)
    raise AssertionError("a stream ends with its answer")


def ask_options(arguments: Namespace) -> dict[str, Any]:
    """Return how a question is to be answered."""
    return {
        "strategy": arguments.strategy,
        "choices": arguments.choice,
        "max_trials": arguments.trials if arguments.trials is not None else 5,
        "start": arguments.start or "search",
        "on_exhausted": "force" if arguments.force else "abstain",
        **_narrowed(arguments),
    }


def _stream(step: Step, *, as_json: bool) -> None:
    if as_json:
        output.print_json_line({"step": output.plain(step)})
    else:
        output.show("\n".join(output.step_lines(step)))


def _narrowed(arguments: Namespace) -> Mapping[str, Any]:
    return {"documents": arguments.document, "where": pairs(arguments.where, "--where") or None}


async def show(arguments: Namespace) -> int:
    """Show the memory in figures, its merges, or one entity."""
    from qrmem.cli import looking

    async with _open(arguments) as memory:
        if arguments.merges:
            found: Any = await memory.merges()
            lines = looking.merge_lines(found)
        elif arguments.neo4j:
            found = await memory.neo4j_queries(arguments.entity or "")
            lines = looking.neo4j_lines(found)
        elif arguments.entity:
            found = await memory.entity(arguments.entity)
            lines = looking.entity_lines(found, arguments.limit)
        else:
            found = {
                "status": await memory.status(),
                "entities": await memory.entities(arguments.limit),
            }
            lines = looking.memory_lines(found["status"], found["entities"])
    return _print(arguments, found, lines)


async def trail(arguments: Namespace) -> int:
    """Show a run step by step."""
    async with _open(arguments) as memory:
        if arguments.list:
            found: Any = await memory.trails()
            lines = [
                f"{t.id}  {t.created}  {t.status:12}  {output.shortened(t.question, 80)}"
                for t in found
            ]
        else:
            found = await memory.trail(arguments.id)
            lines = output.trail_lines(found)
    return _print(arguments, found, lines or ["no trail yet"])


async def status(arguments: Namespace) -> int:
    """Show how far documents are; exit 1 if something is not complete."""
    from qrmem.cli import looking

    async with _open(arguments) as memory:
        found = await memory.status()
    _print(arguments, found, looking.status_lines(found))
    return PARTLY if found.problems else DONE


async def list_(arguments: Namespace) -> int:
    """List documents and namespaces."""
    from qrmem.cli import looking

    async with _open(arguments) as memory:
        found = {"namespaces": await memory.namespaces(), "documents": await memory.documents()}
    return _print(arguments, found, looking.list_lines(**found))


async def delete(arguments: Namespace) -> int:
    """Forget documents, after asking."""
    if bool(arguments.documents) == arguments.all:
        raise UsageError("name documents to delete, or give --all")
    async with _open(arguments) as memory:
        what = "the whole namespace" if arguments.all else ", ".join(arguments.documents)
        if not arguments.yes and not _agreed(f"delete {what} from {memory.settings.memory}?"):
            output.note("nothing was deleted")
            return DONE
        await (memory.delete_all() if arguments.all else memory.delete(*arguments.documents))
    return _print(arguments, {"deleted": arguments.documents or "all"}, [f"deleted {what}"])


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("without a terminal, delete needs --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


async def merge(arguments: Namespace) -> int:
    """Count two names as one."""
    async with _open(arguments) as memory:
        await memory.merge(arguments.first, arguments.second)
        await _note_unknown(memory, arguments.first, arguments.second)
    return _print(arguments, {"merged": [arguments.first, arguments.second]}, ["done"])


async def separate(arguments: Namespace) -> int:
    """Keep two names apart."""
    async with _open(arguments) as memory:
        await memory.separate(arguments.first, arguments.second)
        await _note_unknown(memory, arguments.first, arguments.second)
    return _print(arguments, {"separated": [arguments.first, arguments.second]}, ["done"])


async def _note_unknown(memory: Memory, *names: str) -> None:
    """A word about names that are yet to come is kept; a slip of the pen should be seen."""
    for name in names:
        try:
            await memory.entity(name)
        except NotFound as exc:
            output.note(f"{exc}; the word is kept for when one is")


async def reembed(arguments: Namespace) -> int:
    """Embed everything again; resumable."""
    if not arguments.embedder:
        raise UsageError("say which: --embedder none|local|sentence-transformers:NAME|openai:NAME")
    chosen = arguments.embedder
    # Opening with another embedder than the recorded one is refused; here that is the point.
    arguments.embedder = None
    with Progress(quiet=arguments.quiet) as progress:
        settings = replace(settings_of(arguments), embedder="")
        async with qrmem.open(settings=settings, create=False, listener=progress) as memory:
            count = await memory.reembed(chosen)
    return _print(arguments, {"embedded": count}, [f"{count} segments embedded by {chosen}"])


async def export(arguments: Namespace) -> int:
    """Write the namespace to a file, or its graph for other programs."""
    from qrmem.cli.moving import archived_lines

    async with _open(arguments) as memory:
        if not arguments.graphml:
            archived = await memory.export(arguments.path, runs=arguments.all)
            return _print(arguments, archived, archived_lines(archived, "written to"))
        count = await memory.graphml(arguments.path)
    return _print(arguments, {"entities": count}, [f"{count} entities written to {arguments.path}"])


async def import_(arguments: Namespace) -> int:
    """Read an archive, or extractions that were made elsewhere."""
    from qrmem.cli.moving import archived_lines, extraction_lines

    with Progress(quiet=arguments.quiet) as progress:
        async with _open(arguments, create=True, listener=progress) as memory:
            if arguments.openie:
                found = await memory.load_openie(arguments.path)
                _print(arguments, found, extraction_lines(found))
                return PARTLY if found.left_out else DONE
            report = await memory.load(arguments.path)
    return _print(arguments, report, archived_lines(report, "read from"))


async def doctor(arguments: Namespace) -> int:
    """Say what is installed, what answers and what is missing."""
    from qrmem.cli.doctor import examine, finding_lines

    if arguments.repair:
        return await _repair(arguments)
    settings = settings_of(arguments).with_(model=arguments.probe or None)
    findings = await examine(settings, with_probe=arguments.probe is not None)
    _print(arguments, findings, finding_lines(findings))
    return max(finding.exit_code for finding in findings)


async def _repair(arguments: Namespace) -> int:
    from qrmem.cli.doctor import repair_lines

    async with _open(arguments) as memory:
        done = await memory.repair()
    _print(arguments, done, repair_lines(done))
    return PARTLY if done.damaged else DONE


def _print(arguments: Namespace, value: Any, lines: list[str]) -> int:
    output.print_result(value, lines, as_json=arguments.json)
    return DONE


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
    "import": import_,
    "doctor": doctor,
    "chat": chat,
    "eval": evaluate,
    "plan": costing.plan,
    "usage": costing.usage,
    "prune": costing.prune,
    "init": costing.init,
}
