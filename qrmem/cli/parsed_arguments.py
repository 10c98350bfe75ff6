"""Turn parsed arguments into settings, an open memory, sources and search options."""

import os
import re
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrmem.cli.output import note
from qrmem.config import Settings, misspelt
from qrmem.errors import UsageError
from qrmem.types import Document, Listener
from qrmem.types.documents import OPERATORS

if TYPE_CHECKING:
    from qrmem.memory import Opening


def settings_of(arguments: Namespace) -> Settings:
    """Return the settings of a command line; options override environment and files.

    An option that has the name of a setting sets it.
    """

    def tell(line: str) -> None:
        if not getattr(arguments, "has_told", False):  # settings are read several times
            arguments.has_told = True
            note(line, quiet=arguments.quiet)

    return Settings.from_env(tell=tell, **given_settings(arguments))


def given_settings(arguments: Namespace) -> dict[str, Any]:
    """Return the settings that have options; `None` means that the option was not given."""
    values = {one.name: getattr(arguments, one.name, None) for one in fields(Settings)}
    if values["stage_models"]:
        values["stage_models"] = ",".join(values["stage_models"])
    return values


def tell_misspelt(arguments: Namespace) -> None:
    """Warn, once, of variables whose names nearly match a setting's variable."""
    for name, suggestion in misspelt(os.environ).items():
        note(f"no setting is called {name}; did you mean {suggestion}?", quiet=arguments.quiet)


def opened(
    arguments: Namespace, *, create: bool = False, listener: Listener | None = None
) -> "Opening":
    """Open the memory of a command line; use the result in an `async with` block.

    Args:
        create: make the memory if there is none.
    """
    from qrmem.memory import open  # `--help` does not load it

    return open(settings=settings_of(arguments), create=create, listener=listener)


def user_name(text: str) -> str:
    """Return the name of a user; an empty one may come from a variable that is not set.

    Raises:
        ArgumentTypeError: it is empty.
    """
    if not text.strip():
        raise ArgumentTypeError("the name is empty; leave the option out for all users")
    return text


def agreed(question: str, command: str = "delete") -> bool:
    """Ask the user whether a command may delete something.

    Raises:
        UsageError: there is no terminal to ask on.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"without a terminal, {command} needs --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


async def sources_of(arguments: Namespace) -> Any:
    """Return what to add: paths, or one document with its id, title and metadata."""
    from qrmem.io.sources import file_document
    from qrmem.io.web_fetch import fetched, is_address
    from qrmem.text import files

    has_labels = arguments.id or arguments.title or arguments.meta
    if has_labels and len(arguments.sources) > 1:
        raise UsageError("--id, --title and --meta describe a single document; give one FILE")
    if arguments.sources.count("-") > 1:
        raise UsageError("- means standard input, which can be read only once")
    if len(arguments.sources) == 1 and arguments.sources[0] != "-" and not has_labels:
        return arguments.sources[0]
    sources = [_piped() if name == "-" else name for name in arguments.sources]
    if not has_labels:
        return sources
    (one,) = sources
    if isinstance(one, Document):
        read = one
    else:
        read = await fetched(one) if is_address(one) else files.read(one)
    if arguments.id or isinstance(one, Document) or is_address(one):
        document = replace(read, id=arguments.id or read.id)
    else:
        document = file_document(read, Path(one).name)
    return replace(
        document,
        title=arguments.title or document.title,
        metadata={**document.metadata, **pairs(arguments.meta, "--meta")},
    )


def question_of(arguments: Namespace) -> str:
    """Return the question; `-` reads it from standard input."""
    if arguments.question != "-":
        return str(arguments.question)
    return _piped().text.strip()


def _piped() -> Document:
    from qrmem.text import files

    return files.from_bytes(sys.stdin.buffer.read(), "standard input")


def ask_options(arguments: Namespace) -> dict[str, Any]:
    """Return the options of `ask` from the parsed arguments."""
    return {
        "strategy": arguments.strategy,
        "choices": arguments.choice,
        "max_trials": arguments.trials if arguments.trials is not None else 5,
        "start": arguments.start or "search",
        "on_exhausted": "force" if arguments.force else "abstain",
        **narrowed(arguments),
    }


def narrowed(arguments: Namespace) -> Mapping[str, Any]:
    """Return the selection of documents that a question may use."""
    return {
        "documents": arguments.document,
        "where": _where(arguments.where) or None,
        "types": arguments.types,
        "as_of": arguments.as_of or "",
    }


def pairs(values: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Turn `KEY=VALUE` words into metadata; numbers, `true` and `false` get their types.

    A key that is given several times has a list of texts.

    Raises:
        UsageError: one of them has no `=`.
    """
    values_by_key: dict[str, list[str]] = {}
    for value in values or ():
        key, mark, text = value.partition("=")
        if not mark or not key:
            raise UsageError(f"{option} takes KEY=VALUE, not {value!r}")
        values_by_key.setdefault(key, []).append(text)
    return {
        key: _scalar(key_values[0]) if len(key_values) == 1 else key_values
        for key, key_values in values_by_key.items()
    }


_CONDITION = re.compile(r"(?P<key>.+?)(?P<operator>>=|<=|[=<>]| in | has )(?P<value>.*)", re.DOTALL)
"""The first operator counts: `title=war in peace` selects by title."""


def _where(values: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Turn `year>=1851`, `tag in a,b` and the like into conditions.

    Raises:
        UsageError: a word is no condition, or two words give the same key and operator.
    """
    conditions: dict[str, dict[str, Any]] = {}
    for word in values or ():
        match = _CONDITION.fullmatch(word)
        if match is None or word.startswith("{"):
            raise UsageError(
                "--where takes KEY=VALUE, KEY>=VALUE, 'KEY in A,B' or 'KEY has VALUE', as in"
                f" year=1851, not {word!r}"
            )
        key, operator, text = match["key"], match["operator"].strip(), match["value"]
        if operator[0] in "<>=" and text.startswith(("<", ">", "=")):
            raise UsageError(
                f"--where {word!r}: no operator is called {operator + text[0]!r}; use"
                f" {' '.join(OPERATORS)}"
            )
        if operator in conditions.setdefault(key, {}):
            raise UsageError(f"--where has '{key} {operator}' twice; '{key} in A,B' takes several")
        several = [_scalar(one.strip()) for one in text.split(",")]
        conditions[key][operator] = several if operator == "in" else _scalar(text)
    return conditions


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
