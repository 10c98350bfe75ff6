"""The command line's words: one function per sub-command's arguments."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Any, NoReturn

from qrmem.cli.chatting import add_chat
from qrmem.cli.cost_options import add_caps, add_cost_commands, add_models, add_tapes
from qrmem.cli.evaluating import add_eval
from qrmem.errors import UsageError

TAGGER = "finds more entities: rules, corenlp[:URL] or stanza[:FOLDER]"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ours: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; `namespace.command` names the sub-command."""
    from importlib.metadata import version

    parser = _Parser(
        prog="qrmem",
        description="Read long documents once, then ask: answers cite the segments that were read.",
        parents=[_common(None)],
    )
    parser.add_argument("--version", action="version", version=f"qrmem {version('qrmem')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _common(argparse.SUPPRESS)
    for add in (_add, _ask, _search, _looks, _changes, add_chat, add_eval):
        add(commands, common)
    add_cost_commands(commands, common, {"add": _add_options, "ask": _ask_options})
    return parser


def _common(default: str | None) -> argparse.ArgumentParser:
    """Return what every sub-command takes, before its name or behind it.

    Args:
        default: of what is not given; `SUPPRESS` keeps what was given before the name.
    """
    common = _Parser(add_help=False, argument_default=default)
    group = common.add_argument_group("common options")
    group.add_argument("--memory", metavar="PATH|URI", help="default: $QRMEM_MEMORY or qrmem.db")
    group.add_argument("--namespace", metavar="N", help="default: $QRMEM_NAMESPACE or default")
    group.add_argument("--model", metavar="M", help="chat model; none set: the local reasoner")
    group.add_argument("--base-url", metavar="U", help="of any OpenAI-compatible server")
    group.add_argument(
        "--embedder",
        metavar="E",
        help="none, local, contriever, sentence-transformers:NAME|PATH, openai:NAME",
    )
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument("--quiet", action="store_true", help="no progress and no notes")
    group.add_argument("--debug", action="store_true", help="show tracebacks")
    return common


def _narrowing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--document", action="append", metavar="ID", help="only this document (repeatable)"
    )
    parser.add_argument(
        "--where", action="append", metavar="KEY=VALUE", help="only documents with this metadata"
    )


def _add(commands: Any, common: argparse.ArgumentParser) -> None:
    add = commands.add_parser("add", parents=[common], help="read documents into the memory")
    _add_options(add)
    add.add_argument(
        "--follow-links", action="store_true", help="follow links that lead out of a folder"
    )
    for more in (add_models, add_caps, add_tapes):
        more(add)


def _add_options(add: argparse.ArgumentParser) -> None:
    add.add_argument("sources", nargs="+", metavar="FILE|FOLDER|-")
    add.add_argument("--glob", metavar="PATTERN", help="only these files of a folder")
    add.add_argument("--id", help="of the one document that is given")
    add.add_argument("--title", help="of the one document that is given")
    add.add_argument("--meta", action="append", metavar="KEY=VALUE", help="metadata (repeatable)")
    add.add_argument("--update", action="store_true", help="replace documents that changed")
    add.add_argument("--rebuild", action="store_true", help="read all segments again")
    add.add_argument("--mode", choices=("compact", "paper"), help="how segments are read")
    add.add_argument("--tagger", metavar="T", help=TAGGER)
    add.add_argument("--tokenizer", help="builtin, tiktoken:NAME or hf:PATH (new namespace)")
    add.add_argument("--segment-tokens", type=int, metavar="N", help="size (new namespace)")
    add.add_argument("--concurrency", type=int, metavar="N", help="chat calls in flight")
    add.add_argument(
        "--question", metavar="Q", help="shape the graph by this question (orientation full)"
    )


def _ask(commands: Any, common: argparse.ArgumentParser) -> None:
    ask = commands.add_parser("ask", parents=[common], help="answer a question, with citations")
    _ask_options(ask)
    ask.add_argument("--stream", action="store_true", help="print steps as they happen")
    ask.add_argument("--no-trail", action="store_true", help="record nothing of this run")
    for more in (add_models, add_caps, add_tapes):
        more(ask)


def _ask_options(ask: argparse.ArgumentParser) -> None:
    ask.add_argument("question")
    ask.add_argument(
        "--strategy",
        help="reflection, graph-expansion, entity-trial, fragment, temp-mem or passages; unset: "
        "everything is read where it fits the window, else reflection; without a chat model "
        "passages",
    )
    ask.add_argument(
        "--window",
        type=int,
        metavar="L",
        help="tokens of one call (the model's, 16384 at most; 4096 where it is not known)",
    )
    ask.add_argument("--choice", action="append", metavar="TEXT", help="an option (repeatable)")
    ask.add_argument("--trials", type=int, metavar="N", help="reading steps at most (5)")
    ask.add_argument("--start", choices=("search", "entities"), help="where the walk begins")
    ask.add_argument("--force", action="store_true", help="answer even when unsure")
    ask.add_argument("--orientation", choices=("none", "local"), help="re-read near the question")
    ask.add_argument("--tagger", metavar="T", help=f"{TAGGER} (orientation local)")
    _narrowing(ask)


def _search(commands: Any, common: argparse.ArgumentParser) -> None:
    search = commands.add_parser("search", parents=[common], help="rank segments; no model call")
    search.add_argument("question")
    search.add_argument("-k", type=int, default=10, metavar="N", help="how many (10)")
    _narrowing(search)


def _looks(commands: Any, common: argparse.ArgumentParser) -> None:
    show = commands.add_parser("show", parents=[common], help="the memory, or one entity")
    show.add_argument("entity", nargs="?", help="name of an entity")
    show.add_argument("--merges", action="store_true", help="which names count as one, and why")
    show.add_argument("--neo4j", action="store_true", help="ready queries for Neo4j Browser")
    show.add_argument("--limit", type=int, default=20, metavar="N", help="rows at most (20)")
    trail = commands.add_parser("trail", parents=[common], help="a run, step by step")
    trail.add_argument("id", nargs="?", help="default: the last run")
    trail.add_argument("--list", action="store_true", help="list runs, newest first")
    commands.add_parser("status", parents=[common], help="how far documents are, what it cost")
    commands.add_parser("list", parents=[common], help="documents and namespaces")
    # Options of its own: `--model` alone asks the model of the settings, and is no common option.
    doctor = commands.add_parser(
        "doctor",
        parents=[_common(argparse.SUPPRESS)],
        conflict_handler="resolve",
        help="what is installed, what answers",
    )
    doctor.add_argument(
        "--model",
        dest="probe",
        nargs="?",
        const="",
        metavar="M",
        help="find out what a chat model can do, by a few short calls; none named: that of the "
        "settings",
    )
    doctor.add_argument(
        "--repair",
        action="store_true",
        help="compare the graph with what was read, and build it again where they differ "
        "(after edits in Neo4j Browser)",
    )
    doctor.add_argument("--tagger", metavar="T", help=TAGGER)


def _changes(commands: Any, common: argparse.ArgumentParser) -> None:
    delete = commands.add_parser("delete", parents=[common], help="forget documents")
    delete.add_argument("documents", nargs="*", metavar="ID")
    delete.add_argument("--all", action="store_true", help="the whole namespace")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for name, text in (("merge", "count two names as one"), ("separate", "keep two names apart")):
        names = commands.add_parser(name, parents=[common], help=f"{text}; the word stays")
        names.add_argument("first")
        names.add_argument("second")
    reembed = commands.add_parser(
        "reembed", parents=[common], help="embed all again with --embedder"
    )
    add_caps(reembed)
    export = commands.add_parser("export", parents=[common], help="write the namespace to a file")
    export.add_argument("path", metavar="PATH")
    what = export.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help="trails, calls and cached replies too")
    what.add_argument("--graphml", action="store_true", help="the graph, for Gephi and Cytoscape")
    load = commands.add_parser("import", parents=[common], help="read what `export` wrote")
    load.add_argument("path", metavar="PATH")
    load.add_argument(
        "--openie",
        action="store_true",
        help="PATH is a file of extractions: HippoRAG's OpenIE results, or plain triples",
    )


def pairs(values: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Turn `KEY=VALUE` words into metadata; numbers and true/false become such.

    Raises:
        UsageError: no `=` in one of them.
    """
    found: dict[str, Any] = {}
    for value in values or ():
        key, mark, text = value.partition("=")
        if not mark or not key:
            raise UsageError(f"{option} takes KEY=VALUE, not {value!r}")
        found[key] = _scalar(text)
    return found


def _scalar(text: str) -> str | int | float | bool:
    """Return a number only where it is written as one: `007`, `1_000` and `nan` are texts."""
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        with suppress(ValueError):
            number = kind(text)
            if str(number) == text and abs(number) < inf:
                return number
    return text
