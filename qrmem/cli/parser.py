"""The arguments of every command."""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NoReturn, get_args

from qrmem.cli.arguments import (
    DESCRIPTION,
    Common,
    Help,
    Once,
    add_caps,
    add_cost_commands,
    add_eval,
    add_models,
    add_schema,
    add_tapes,
)
from qrmem.cli.chatting import add_chat
from qrmem.cli.fact_commands import add_as_of, add_facts, add_types
from qrmem.cli.serving import add_serving
from qrmem.cli.settings_file import add_settings
from qrmem.cli.tree_commands import add_build_options, add_tree
from qrmem.errors import UsageError
from qrmem.types import Strategy

TAGGER = "entity tagger: auto, none, rules, corenlp[:URL] or stanza[:FOLDER]"
NO_COMMAND = 'missing: a command; qrmem add FILE reads a text, qrmem ask "…" asks about it'

_Group = argparse._ArgumentGroup


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors as qrmem does: in one line, with exit code 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False, **options})

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command line; unknown words are an error of the command that they belong to."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            _command_of(self, parsed).refuse(unknown)
        return parsed

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Report unknown words as an error, with a similar option."""
        options = [option for action in self._actions for option in action.option_strings]
        alike = get_close_matches(words[0].partition("=")[0], options, n=1)
        hint = f"; did you mean {alike[0]}?" if alike else ""
        if re.match(r"\w+=", words[0]) and any(one.dest == "options" for one in self._actions):
            hint = "; write KEY=VALUE right after the kind"
        if not hint and not words[0].startswith("-") and _takes_a_sentence(self):
            hint = '; put the words between quotation marks: "…"'
        self.error(f"not understood: {' '.join(words)}{hint}")

    def error(self, message: str) -> NoReturn:
        text = _plainer(message)
        choices = [action.choices for action in self._actions if action.metavar == "ACTION"]
        if text == "missing: ACTION" and choices:
            *others, last = choices[0] or ("",)
            verb = "plan" if self.prog.endswith(" plan") else "do"
            text = f"missing: what to {verb} ({', '.join(others)} or {last})"
        text = re.sub(r"\AACTION(?= takes )", self.prog, text)
        raise UsageError(f"{text} (see {self.prog} --help)")


def _takes_a_sentence(parser: argparse.ArgumentParser) -> bool:
    last = [action.dest for action in parser._actions if not action.option_strings][-1:]
    return last in (["question"], ["query"], ["prompt"], ["text"])


def _command_of(parser: _Parser, found: argparse.Namespace) -> _Parser:
    """Return the parser of the command, and of its action, that were given."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            subparser = action.choices.get(getattr(found, action.dest, ""))
            return _command_of(subparser, found) if subparser else parser
    return parser


class _Version(argparse.Action):
    """Prints the version, which is slow to find and so found only here."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any, **more: Any) -> NoReturn:
        import qrmem

        print(f"qrmem {qrmem.__version__}")
        parser.exit()


def _plainer(message: str) -> str:
    """Return an error of argparse in plain words, with a similar known word."""
    missing = re.match(r"the following arguments are required: (.*)", message)
    if missing:
        return NO_COMMAND if missing[1] == "COMMAND" else f"missing: {missing[1]}"
    number = re.match(r"argument (.*?): invalid (int|float) value: (.*)", message)
    if number:
        kind = "a whole number" if number[2] == "int" else "a number"
        return f"{number[1].rpartition('/')[2]} takes {kind}, not {number[3]}"
    empty = re.match(r"argument (.*?): expected (?:at least )?one argument", message)
    if empty:
        return f"{empty[1].rpartition('/')[2]} takes a value"
    both = re.match(r"argument (.*?): not allowed with argument (.*)", message)
    if both:
        return f"give {both[2]} or {both[1]}, not both"
    wrong = re.match(r"argument (.*?): invalid choice: '(.*?)' \(choose from (.*)\)", message)
    if not wrong:
        return message
    words = re.findall(r"[\w-]+", wrong[3])
    alike = get_close_matches(wrong[2], words, n=1)
    text = f"there is no command {wrong[2]!r}"
    if wrong[1] != "COMMAND":
        text = f"{wrong[1]} takes {', '.join(words)}, not {wrong[2]!r}"
    return text + (f"; did you mean {alike[0]!r}?" if alike else "")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; `namespace.command` names the sub-command."""
    parser = _Parser(
        prog="qrmem",
        description=DESCRIPTION,
        parents=_common(None)("memory", "model", "embedder"),
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _common(argparse.SUPPRESS)
    looks = (_add, _ask, _search, _looks, add_facts)
    for add in (*looks, _changes, add_tree, add_chat, add_serving, add_eval):
        add(commands, common)
    add_cost_commands(
        commands, common, {"add": _add_options, "ask": _ask_options, "tree": add_build_options}
    )
    add_settings(commands, common)
    complete = commands.add_parser("completion", help="print the completion script for a shell")
    complete.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")
    help = commands.add_parser("help", help="show the options of a command")
    help.add_argument(
        "of",
        nargs="?",
        metavar="COMMAND",
        choices=[*commands.choices],
        help="default: all commands",
    )
    help.add_argument("its", nargs="?", metavar="ACTION", help="of a command that has several")
    _describe(parser)
    parser._positionals.title = "commands"
    return parser


def _describe(parser: argparse.ArgumentParser) -> None:
    """Begin the help of each command with its description."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice_action in action._choices_actions:
                command = action.choices[choice_action.dest]
                command.description = (
                    f"{str(choice_action.help)[:1].upper()}{str(choice_action.help)[1:]}."
                )
                _describe(command)


def _common(default: str | None) -> Common:
    """Return a function that makes parsers of shared options; these may precede the command, too.

    Args:
        default: value of options that are not given; `SUPPRESS` keeps one from before the command.
    """

    @cache
    def one(name: str) -> argparse.ArgumentParser:
        parser = _Parser(add_help=False, argument_default=default)
        title, add_options = _SHARED[name]
        add_options(parser.add_argument_group(title))
        return parser

    def parents(*names: str) -> Iterable[argparse.ArgumentParser]:
        return [one(name) for name in (*names, "output")]

    return parents


def _memory_options(group: _Group) -> None:
    group.add_argument(
        "-m", "--memory", metavar="PATH|URI", help="default: $QRMEM_MEMORY or qrmem.db"
    )
    group.add_argument(
        "-n", "--namespace", metavar="N", help="default: $QRMEM_NAMESPACE or default"
    )


def _model_options(group: _Group) -> None:
    group.add_argument(
        "-M",
        "--model",
        metavar="M",
        help="default: $QRMEM_MODEL; if none is set, built-in rules read",
    )
    group.add_argument(
        "--base-url",
        metavar="U",
        help="address of an OpenAI-compatible server (default: $OPENAI_BASE_URL or OpenAI's own)",
    )


def _embedder_options(group: _Group) -> None:
    group.add_argument(
        "--embedder",
        metavar="E",
        help="none, light, light:NAME|FOLDER, local, contriever, "
        "sentence-transformers:NAME|FOLDER, openai:NAME (default: the memory's own; for a new "
        "one $QRMEM_EMBEDDER, else local or light, whichever extra is installed, else none)",
    )


def _reranker_options(group: _Group) -> None:
    group.add_argument(
        "--reranker",
        metavar="R",
        help="rerank the first 50 candidates by a cross-encoder's NAME or FOLDER, or by the "
        "URL of a rerank endpoint; none: do not (default: $QRMEM_RERANKER or none)",
    )


def _output_options(group: _Group) -> None:
    group.add_argument(
        "--json", action="store_true", help="print one JSON document; errors are JSON, too"
    )
    group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print results and errors only: no progress, no notes, and nothing where all went "
        "well and there is no result",
    )
    group.add_argument("--debug", action="store_true", help="show tracebacks")


_SHARED: dict[str, tuple[str, Callable[[_Group], None]]] = {
    "memory": ("memory", _memory_options),
    "model": ("chat model", _model_options),
    "embedder": ("embeddings", _embedder_options),
    "reranker": ("reranker", _reranker_options),
    "output": ("output", _output_options),
}
"""Shared options by name: the title of their group, and the function that adds them."""


def _narrowing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("documents")
    group.add_argument(
        "--document", action="append", metavar="ID", help="use only this document (repeatable)"
    )
    group.add_argument(
        "--where",
        action="append",
        metavar="KEY=VALUE",
        help="use only documents with this metadata: year=1851, 'year>=1851', 'by in Ann,Ben',"
        " 'tag has sea' (repeatable; all must hold)",
    )
    add_as_of(group)
    add_types(group)


def _add(commands: Any, common: Common) -> None:
    add = commands.add_parser(
        "add", parents=common("memory", "model", "embedder"), help="read documents into the memory"
    )
    _add_options(add)
    for more in (add_models, add_caps, add_tapes):
        more(add)


def _add_options(add: argparse.ArgumentParser) -> None:
    add.add_argument(
        "sources",
        nargs="+",
        metavar="FILE|FOLDER|URL|-",
        help="what to read; a URL is one page or file; - is standard input",
    )
    which = add.add_argument_group("documents")
    which.add_argument("--glob", metavar="PATTERN", help="read only files of a folder that match")
    which.add_argument(
        "--follow-links", action="store_true", help="follow links that lead out of the folder"
    )
    which.add_argument(
        "--id",
        action=Once,
        help="id of the document (one FILE only; default: the name of the file, with its folder if"
        " another file has that name)",
    )
    which.add_argument("--title", action=Once, help="title of the document (one FILE only)")
    which.add_argument(
        "--meta",
        action="append",
        metavar="KEY=VALUE",
        help="metadata of the document (repeatable; repeat a key for a list)",
    )
    how = add.add_argument_group("reading")
    how.add_argument(
        "--update", action="store_true", help="replace documents whose text has changed"
    )
    how.add_argument("--rebuild", action="store_true", help="read all segments again")
    how.add_argument(
        "--mode",
        choices=("compact", "paper"),
        help="prompts that read segments: few calls, or one call per step as in the paper",
    )
    how.add_argument("--tagger", metavar="T", help=TAGGER)
    how.add_argument("--tokenizer", help="for a new namespace: builtin, tiktoken:NAME or hf:PATH")
    how.add_argument(
        "--segment-tokens", type=int, metavar="N", help="for a new namespace: tokens of a segment"
    )
    how.add_argument("--concurrency", type=int, metavar="N", help="chat calls at the same time")
    how.add_argument(
        "--executor",
        metavar="E",
        help="where to parse files, and to read without a chat model: inline, processes "
        "or ray; processes:N and ray:N use N workers",
    )
    _window(how)
    how.add_argument(
        "--tree",
        action="store_true",
        help="build a tree of summaries over each document, too (needs the extra `tree`)",
    )
    how.add_argument(
        "--question", metavar="Q", help="extract with this question in mind, as in the paper"
    )


def _window(group: _Group) -> None:
    group.add_argument(
        "--window",
        type=int,
        metavar="L",
        help="token limit of each call, at least 64 (default, and 0: the model's, at most 16384; "
        "4096 if unknown)",
    )


def _ask(commands: Any, common: Common) -> None:
    ask = commands.add_parser(
        "ask",
        parents=common("memory", "model", "embedder", "reranker"),
        help="answer a question, with citations",
    )
    _ask_options(ask)
    trail = ask.add_argument_group("trail")
    trail.add_argument("--trail", action="store_true", help="show every step, and what it cost")
    trail.add_argument("--stream", action="store_true", help="print each step as it happens")
    trail.add_argument("--no-trail", action="store_true", help="do not record this run")
    for more in (add_models, add_caps, add_tapes):
        more(ask)


def _ask_options(ask: argparse.ArgumentParser) -> None:
    ask.add_argument("question", help="`-` reads it from standard input")
    how = ask.add_argument_group("answering")
    how.add_argument(
        "--strategy",
        choices=get_args(Strategy),
        metavar="S",
        help=f"{', '.join(get_args(Strategy))}; default: read everything if it fits the "
        "window, else overview for a summary, else reflection; passages without a chat model",
    )
    _window(how)
    how.add_argument(
        "--choice",
        action="append",
        metavar="TEXT",
        help="one of several possible answers (repeatable)",
    )
    how.add_argument(
        "--trials", type=int, metavar="N", help="maximum number of reading steps (default: 5)"
    )
    how.add_argument(
        "--start",
        choices=("search", "entities"),
        help="begin at search results, or at the entities of the question (default: search)",
    )
    how.add_argument("--force", action="store_true", help="answer even when unsure")
    how.add_argument(
        "--orientation",
        choices=("none", "local"),
        help="first extract again from segments near the question",
    )
    how.add_argument("--tagger", metavar="T", help=f"{TAGGER} (with --orientation local)")
    _narrowing(ask)


def _search(commands: Any, common: Common) -> None:
    search = commands.add_parser(
        "search",
        parents=common("memory", "embedder", "reranker"),
        help="rank segments, without a chat model",
    )
    search.add_argument("question", metavar="query", help="`-` reads it from standard input")
    search.add_argument("-k", type=int, default=10, metavar="N", help="number of segments")
    _narrowing(search)
    add_schema(search)


def _looks(commands: Any, common: Common) -> None:
    show = commands.add_parser(
        "show", parents=common("memory"), help="show the memory, or one entity"
    )
    show.add_argument("entity", nargs="?", help="name of an entity")
    add_as_of(show)
    add_schema(show)
    show.add_argument("--merges", action="store_true", help="show which names are merged, and why")
    show.add_argument("--neo4j", action="store_true", help="print queries for Neo4j Browser")
    show.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number of rows")
    trail = commands.add_parser(
        "trail", parents=common("memory"), help="show a recorded run step by step"
    )
    trail.add_argument("id", nargs="?", help="default: the last run")
    trail.add_argument("--list", action="store_true", help="list recorded runs, newest first")
    trail.add_argument("--html", metavar="FILE", help="write it as one page without scripts")
    status = commands.add_parser(
        "status", parents=common("memory"), help="show reading progress and costs"
    )
    add_schema(status)
    documents = commands.add_parser(
        "list", parents=common("memory"), help="list documents and namespaces"
    )
    documents.add_argument(
        "--turns", action="store_true", help="list each turn; default: a line for each conversation"
    )
    # `--model` is no shared option here: without a value it means the model of the settings.
    doctor = commands.add_parser(
        "doctor",
        parents=_common(argparse.SUPPRESS)("memory", "model", "embedder", "reranker"),
        conflict_handler="resolve",
        help="check what is installed and which servers answer",
    )
    doctor.add_argument(
        "--model",
        dest="probe",
        nargs="?",
        const="",
        metavar="M",
        help="test what a chat model can do by a few short calls; default: the settings' model",
    )
    graph = doctor.add_mutually_exclusive_group()
    graph.add_argument("--compare", action="store_true", help="only compare; exit 1 if they differ")
    text = (
        "compare the graph with the extractions, and rebuild it if they differ (after edits in "
        "Neo4j Browser); an SQLite file is written again, without the remains of what was deleted"
    )
    graph.add_argument("--repair", action="store_true", help=text)
    doctor.add_argument("--tagger", metavar="T", help=TAGGER)


def _changes(commands: Any, common: Common) -> None:
    delete = commands.add_parser("delete", parents=common("memory"), help="delete documents")
    delete.add_argument(
        "documents", nargs="*", metavar="ID", help="id of a document, as `qrmem list` shows it"
    )
    delete.add_argument("--all", action="store_true", help="delete the whole namespace")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for name, text in (("merge", "merge two names"), ("separate", "keep two names apart")):
        help = f"{text} by hand; your decision overrides the rules and is kept"
        names = commands.add_parser(name, parents=common("memory"), help=help)
        names.add_argument("first", help="a name")
        names.add_argument("second", help="another name")
    reembed = commands.add_parser(
        "reembed",
        parents=common("memory", "model", "embedder"),
        help="embed all segments again, with --embedder",
    )
    add_caps(reembed)
    export = commands.add_parser(
        "export", parents=common("memory"), help="write the namespace to a file"
    )
    export.add_argument("path", metavar="PATH", help="file to write")
    what = export.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help="include trails, calls and cached replies")
    what.add_argument(
        "--graphml", action="store_true", help="write the graph, for Gephi and Cytoscape"
    )
    what.add_argument(
        "--markdown", action="store_true", help="write a folder of linked notes (Obsidian, git)"
    )
    add_schema(export)
    export.add_argument(
        "--force", action="store_true", help="replace an earlier archive or graph at PATH"
    )
    load = commands.add_parser(
        "import", parents=common("memory", "embedder"), help="read a file that `export` wrote"
    )
    load.add_argument("path", metavar="PATH", help="file to read")
    load.add_argument(
        "--openie",
        action="store_true",
        help="import extractions instead: HippoRAG's OpenIE results, or plain triples",
    )
