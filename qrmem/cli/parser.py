"""The arguments of every command."""

import argparse
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from qrmem.cli.chatting import add_chat
from qrmem.cli.cost_options import add_caps, add_cost_commands, add_models, add_tapes
from qrmem.cli.evaluating import add_eval
from qrmem.cli.serving import add_serving
from qrmem.cli.trees import add_tree
from qrmem.errors import UsageError

TAGGER = "entity tagger: rules, corenlp[:URL] or stanza[:FOLDER]"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ours: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{_plainer(message)} (see {self.prog} --help)")


def _plainer(message: str) -> str:
    """Return what argparse says of an unknown command in one line, with the one that comes near."""
    wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(choose from (.*)\)", message)
    if not wrong:
        return message
    near = get_close_matches(wrong[1], re.findall(r"[\w-]+", wrong[2]), n=1)
    return f"there is no command {wrong[1]!r}" + (f"; did you mean {near[0]!r}?" if near else "")


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
    adders = (_add, _ask, _search, _looks, _changes, add_tree, add_chat, add_serving, add_eval)
    for add in adders:
        add(commands, common)
    add_cost_commands(commands, common, {"add": _add_options, "ask": _ask_options})
    help = commands.add_parser("help", help="show the options of a command")
    help.add_argument("of", nargs="?", metavar="COMMAND", choices=[*commands.choices])
    return parser


def _common(default: str | None) -> argparse.ArgumentParser:
    """Return what every command takes, before its name or after it.

    Args:
        default: of what is not given; `SUPPRESS` keeps what was given before the name.
    """
    common = _Parser(add_help=False, argument_default=default)
    group = common.add_argument_group("common options")
    group.add_argument(
        "-m", "--memory", metavar="PATH|URI", help="default: $QRMEM_MEMORY or qrmem.db"
    )
    group.add_argument(
        "-n", "--namespace", metavar="N", help="default: $QRMEM_NAMESPACE or default"
    )
    group.add_argument(
        "-M", "--model", metavar="M", help="chat model; if none is set, built-in rules read"
    )
    group.add_argument("--base-url", metavar="U", help="address of an OpenAI-compatible server")
    group.add_argument(
        "--embedder",
        metavar="E",
        help="none, local, contriever, sentence-transformers:NAME|PATH, openai:NAME",
    )
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument("-q", "--quiet", action="store_true", help="print no progress and no notes")
    group.add_argument("--debug", action="store_true", help="show tracebacks")
    return common


def _narrowing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--document", action="append", metavar="ID", help="use only this document (repeatable)"
    )
    parser.add_argument(
        "--where",
        action="append",
        metavar="KEY=VALUE",
        help="use only documents with this metadata (repeatable)",
    )


def _add(commands: Any, common: argparse.ArgumentParser) -> None:
    add = commands.add_parser("add", parents=[common], help="read documents into the memory")
    _add_options(add)
    for more in (add_models, add_caps, add_tapes):
        more(add)


def _add_options(add: argparse.ArgumentParser) -> None:
    add.add_argument("sources", nargs="+", metavar="FILE|FOLDER|-")
    add.add_argument("--glob", metavar="PATTERN", help="read only files of a folder that match")
    add.add_argument(
        "--follow-links", action="store_true", help="follow links that lead out of the folder"
    )
    add.add_argument("--id", help="id of the document (one FILE only)")
    add.add_argument("--title", help="title of the document (one FILE only)")
    add.add_argument(
        "--meta", action="append", metavar="KEY=VALUE", help="metadata of the document (repeatable)"
    )
    add.add_argument(
        "--update", action="store_true", help="replace documents whose text has changed"
    )
    add.add_argument("--rebuild", action="store_true", help="read all segments again")
    add.add_argument(
        "--mode",
        choices=("compact", "paper"),
        help="prompts that read segments: few calls, or one call a step as in the paper",
    )
    add.add_argument("--tagger", metavar="T", help=TAGGER)
    add.add_argument("--tokenizer", help="for a new namespace: builtin, tiktoken:NAME or hf:PATH")
    add.add_argument(
        "--segment-tokens", type=int, metavar="N", help="for a new namespace: tokens of a segment"
    )
    add.add_argument("--concurrency", type=int, metavar="N", help="chat calls at the same time")
    add.add_argument(
        "--tree",
        action="store_true",
        help="build a tree of summaries over each document, too (needs the extra `tree`)",
    )
    add.add_argument(
        "--question", metavar="Q", help="extract with this question in mind, as in the paper"
    )


def _ask(commands: Any, common: argparse.ArgumentParser) -> None:
    ask = commands.add_parser("ask", parents=[common], help="answer a question, with citations")
    _ask_options(ask)
    ask.add_argument("--stream", action="store_true", help="print each step as it happens")
    ask.add_argument("--no-trail", action="store_true", help="do not record this run")
    for more in (add_models, add_caps, add_tapes):
        more(ask)


def _ask_options(ask: argparse.ArgumentParser) -> None:
    ask.add_argument("question", help="`-` reads it from standard input")
    ask.add_argument(
        "--strategy",
        help="reflection, graph-expansion, entity-trial, fragment, inner-loop, raptor, "
        "raptor-layered, temp-mem, overview or passages; default: read everything if it fits the "
        "window, else overview for a summary, else reflection; passages without a chat model",
    )
    ask.add_argument(
        "--window",
        type=int,
        metavar="L",
        help="token limit of each call (default: the model's, at most 16384; 4096 if unknown)",
    )
    ask.add_argument(
        "--choice",
        action="append",
        metavar="TEXT",
        help="one of several possible answers (repeatable)",
    )
    ask.add_argument("--trials", type=int, metavar="N", help="maximum number of reading steps (5)")
    ask.add_argument(
        "--start",
        choices=("search", "entities"),
        help="begin at search results, or at the entities of the question",
    )
    ask.add_argument("--force", action="store_true", help="answer even when unsure")
    ask.add_argument(
        "--orientation",
        choices=("none", "local"),
        help="first extract again from segments near the question",
    )
    ask.add_argument("--tagger", metavar="T", help=f"{TAGGER} (with --orientation local)")
    _narrowing(ask)


def _search(commands: Any, common: argparse.ArgumentParser) -> None:
    search = commands.add_parser(
        "search", parents=[common], help="rank segments, without a chat model"
    )
    search.add_argument("question")
    search.add_argument("-k", type=int, default=10, metavar="N", help="number of segments (10)")
    _narrowing(search)


def _looks(commands: Any, common: argparse.ArgumentParser) -> None:
    show = commands.add_parser("show", parents=[common], help="show the memory, or one entity")
    show.add_argument("entity", nargs="?", help="name of an entity")
    show.add_argument("--merges", action="store_true", help="which names are merged, and why")
    show.add_argument("--neo4j", action="store_true", help="ready queries for Neo4j Browser")
    show.add_argument(
        "--limit", type=int, default=20, metavar="N", help="maximum number of rows (20)"
    )
    trail = commands.add_parser("trail", parents=[common], help="show a recorded run step by step")
    trail.add_argument("id", nargs="?", help="default: the last run")
    trail.add_argument("--list", action="store_true", help="list recorded runs, newest first")
    trail.add_argument("--html", metavar="FILE", help="write it as one page without scripts")
    commands.add_parser(
        "status", parents=[common], help="show how far reading has come and what it cost"
    )
    commands.add_parser("list", parents=[common], help="list documents and namespaces")
    # Options of its own: `--model` alone asks the model of the settings, and is no common option.
    doctor = commands.add_parser(
        "doctor",
        parents=[_common(argparse.SUPPRESS)],
        conflict_handler="resolve",
        help="check what is installed and what answers",
    )
    doctor.add_argument(
        "--model",
        dest="probe",
        nargs="?",
        const="",
        metavar="M",
        help="test what a chat model can do by a few short calls; without M, the model of the "
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
    delete = commands.add_parser("delete", parents=[common], help="delete documents")
    delete.add_argument("documents", nargs="*", metavar="ID")
    delete.add_argument("--all", action="store_true", help="delete the whole namespace")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for name, text in (("merge", "merge two names"), ("separate", "keep two names apart")):
        help = f"{text} by hand; your decision overrides the rules and is kept"
        names = commands.add_parser(name, parents=[common], help=help)
        names.add_argument("first")
        names.add_argument("second")
    reembed = commands.add_parser(
        "reembed", parents=[common], help="embed all segments again, with --embedder"
    )
    add_caps(reembed)
    export = commands.add_parser("export", parents=[common], help="write the namespace to a file")
    export.add_argument("path", metavar="PATH")
    what = export.add_mutually_exclusive_group()
    what.add_argument(
        "--all", action="store_true", help="include trails, calls and cached model replies"
    )
    what.add_argument(
        "--graphml", action="store_true", help="write the graph, for Gephi and Cytoscape"
    )
    load = commands.add_parser("import", parents=[common], help="read a file that `export` wrote")
    load.add_argument("path", metavar="PATH")
    load.add_argument(
        "--openie",
        action="store_true",
        help="read extractions instead: HippoRAG's OpenIE results, or plain triples",
    )
