"""Registries of data sets, systems, metrics and builders; a decorator registers each.

The first look-up imports the modules of this package, which register their entries. Another
package adds its own by an entry point of the group `qrmem.eval`, which names a module to import:

    [project.entry-points."qrmem.eval"]
    mine = "my_package.evaluation"
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from shutil import rmtree
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from qrmem.errors import StoreUnavailable, UsageError
from qrmem.eval.builders.writing import MANIFEST, BuiltSet, read_manifest, write_manifest
from qrmem.eval.items import Context, Corpus, Dataset, Item, Prediction, Row, Rule

if TYPE_CHECKING:
    from qrmem.eval.harness import Harness

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
GROUP = "qrmem.eval"
_MODULES = (
    "qrmem.eval.datasets",
    "qrmem.eval.systems.strategy_systems",  # our own come first in every list
    "qrmem.eval.systems",
    "qrmem.eval.metrics",
    "qrmem.eval.builders",
)


class Registry(Generic[T]):
    """Entries of one kind by name, in the order of registration."""

    def __init__(self, kind: str, shown_by: str = "`qrmem eval list` shows them") -> None:
        self._kind = kind
        self._shown_by = shown_by
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> None:
        """Register an entry.

        Raises:
            UsageError: the name is taken.
        """
        if name in self._entries:
            raise UsageError(f"two {self._kind}s are called {name!r}; rename one")
        self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        """Return an entry.

        Raises:
            UsageError: there is no entry of that name.
        """
        load_all()
        if name not in self._entries:
            alike = get_close_matches(name, self._entries, 1)
            hint = f"did you mean {alike[0]}?" if alike else self._shown_by
            raise UsageError(f"no {self._kind} is called {name!r}; {hint}")
        return self._entries[name]

    def items(self) -> Iterator[tuple[str, T]]:
        """Yield names and entries."""
        load_all()
        yield from self._entries.items()


@cache
def load_all() -> None:
    """Import every module with entries, of this package and of others.

    Raises:
        UsageError: the module of an entry point cannot be imported.
    """
    for name in _MODULES:
        package = import_module(name)
        for module_info in iter_modules(getattr(package, "__path__", ())):
            import_module(f"{name}.{module_info.name}")
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except ImportError as exc:
            raise UsageError(f"the plug-in {point.name} cannot be loaded: {exc}") from exc


# --- data sets -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A data set, and the scoring of answers to its questions.

    Attributes:
        load: loads it from its file or folder.
        files: possible names in a data folder; the first that exists is used. If a name with a `*`
            matches, the whole folder is used.
        inside: a file that a whole folder must have; "" for a single file.
        where: where to get the data; nothing is ever downloaded.
        metrics: the main metrics, in the order of the report.
        rule: the script that defines F1.
        has_corpora: whether questions can use a union or a corpus file.
    """

    load: Callable[..., Dataset]
    what: str
    files: tuple[str, ...] = ()
    inside: str = ""
    where: str = "your own"
    licence: str = "your own"
    metrics: tuple[str, ...] = ("em", "f1")
    rule: Rule = "musique"
    has_corpora: bool = False

    def read(self, path: Path, corpus: Corpus) -> Dataset:
        """Load the data set of a file or folder."""
        return self.load(path, corpus) if self.has_corpora else self.load(path)


DATASETS: Registry[Task] = Registry("task")


def dataset(name: str, what: str, **about: Any) -> Callable[[F], F]:
    """Register a function from a path (with `has_corpora` also a `Corpus`) to a `Dataset`.

    Args:
        name: name of the task.
        what: one line for `qrmem eval list`.
        about: other fields of `Task`.
    """

    def register(load: F) -> F:
        DATASETS.add(name, Task(load=load, what=what, **about))
        return load

    return register


# --- systems -------------------------------------------------------------------------------------


class System(Protocol):
    """Answers items; it is a frozen dataclass whose fields are its parameters.

    It may have two properties: `needs`, its requirements (`model`, `embedder`, `llmlingua`),
    and `ranks`, whether it can rank without answering.
    """

    async def __call__(self, item: Item, context: Context, harness: "Harness") -> Prediction:
        """Answer one item."""
        ...


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A system of the list, with its default parameters and its source."""

    system: Any
    what: str
    source: str


SYSTEMS: Registry[SystemEntry] = Registry("system")
C = TypeVar("C", bound=type)


def system(name: str, what: str, source: str = "", **defaults: Any) -> Callable[[C], C]:
    """Register a class as a system; a class may have several names.

    Args:
        name: name of the system.
        what: one line for `qrmem eval list`.
        source: the paper of the system.
        defaults: parameters for this name that differ from the class's defaults.
    """

    def register(made: C) -> C:
        SYSTEMS.add(name, SystemEntry(made(**defaults), what, source))
        return made

    return register


def parse(word: str) -> System:
    """Return the system of a name with parameters: `NAME[:KEY=VALUE]…`.

    Raises:
        UsageError: the system or a parameter is unknown, or a value is wrong.
    """
    name, *pairs = word.split(":")
    system_found = SYSTEMS[name].system
    field_names = {one.name for one in fields(system_found)}
    parameters_given = _cast_all(
        pairs, get_type_hints(type(system_found)), field_names, f"the system {name}", word
    )
    system_made: System = replace(system_found, **parameters_given)
    return system_made


def needs(found: System) -> frozenset[str]:
    """Return the requirements of a system: `model`, `embedder`, `llmlingua`."""
    return getattr(found, "needs", frozenset())


def ranks(found: System) -> bool:
    """Return whether a system can rank without answering."""
    return bool(getattr(found, "ranks", False))


def parameters(word: str) -> dict[str, Any]:
    """Return the parameters of a system, with defaults."""
    system_parsed: Any = parse(word)
    return {one.name: getattr(system_parsed, one.name) for one in fields(system_parsed)}


# --- metrics -------------------------------------------------------------------------------------

Score = Callable[[Item, Row, Rule], float | None]
"""A metric; `None` means that the item cannot be scored, which is not zero."""

METRICS: Registry[Score] = Registry("metric")


def metric(name: str) -> Callable[[F], F]:
    """Register a function from an item, its result and the data set's rule to a value in [0, 1]."""

    def register(score: F) -> F:
        METRICS.add(name, score)
        return score

    return register


# --- builders ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds the files of a data set from texts.

    Attributes:
        options: its options with their defaults.
    """

    build: Callable[..., BuiltSet | None]
    what: str
    options: Mapping[str, Any] = field(default_factory=dict)


BUILDERS: Registry[Builder] = Registry("builder", "`qrmem eval list` shows those that there are")


def builder(name: str, what: str, *, is_repeatable: bool = False) -> Callable[[F], F]:
    """Register a function `(data, out, *, option=…)`; options are numbers, texts or switches.

    It reads `data`, a file or folder, and writes into the folder `out`, which exists and is empty.

    Args:
        name: name of the builder.
        what: one line for `qrmem eval list`.
        is_repeatable: whether it returns the content of a manifest (`BuiltSet`) and has the option
            `manifest`, to build the same set again.
    """

    def register(build: F) -> F:
        options = {
            one.name: one.default
            for one in signature(build).parameters.values()
            if one.kind is one.KEYWORD_ONLY
        }
        if is_repeatable:
            options["manifest"] = ""
        BUILDERS.add(name, Builder(build, what, options))
        return build

    return register


_NOT_WRITTEN = ("manifest", "tokenizer")
"""Options that a manifest does not have; it has the counter that was used instead."""


def build(kind: str, data: Path, out: Path, pairs: tuple[str, ...]) -> None:
    """Build a data set in an empty folder; `pairs` are options `KEY=VALUE`.

    Raises:
        UsageError: the builder or an option is unknown, the data do not exist, or the folder is not
            empty.
        StoreUnavailable: the disk is full, or a file cannot be read or written.
    """
    builder = BUILDERS[kind]
    hints = {**get_type_hints(builder.build), "manifest": str}
    options_given = _cast_all(pairs, hints, set(builder.options), f"the builder {kind}", kind)
    manifest = None
    if name := options_given.pop("manifest", ""):
        manifest = read_manifest(Path(name), kind)
        again = tuple(f"{key}={value}" for key, value in manifest.merged(options_given).items())
        options_given = _cast_all(again, hints, set(builder.options), f"the builder {kind}", name)
    if not data.exists():
        raise UsageError(f"no such file or folder: {data}")
    if not os.access(data, os.R_OK):
        raise UsageError(f"{data} cannot be read: you have no permission")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; choose an empty folder")
    partial = out.parent / f".{out.name}.partial"
    rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        result = builder.build(data, partial, **options_given)
        if isinstance(result, BuiltSet):
            options = {**builder.options, **options_given}
            options_written = {key: options[key] for key in options if key not in _NOT_WRITTEN}
            write_manifest(partial, kind, options_written, result)
        if manifest:
            manifest.check(read_manifest(partial / MANIFEST, kind))
        if out.exists():
            out.rmdir()
        partial.rename(out)
    except (OSError, sqlite3.OperationalError) as exc:
        reason = f"{exc.strerror}: {exc.filename}" if isinstance(exc, OSError) else exc
        raise StoreUnavailable(f"{out} is not built, and nothing of it is left ({reason})") from exc
    finally:  # no partial file stays
        rmtree(partial, ignore_errors=True)


# --- parameters ----------------------------------------------------------------------------------


def _cast_all(
    pairs: list[str] | tuple[str, ...],
    hints: Mapping[str, Any],
    known: set[str],
    who: str,
    word: str,
) -> dict[str, Any]:
    values = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not mark or key not in known:
            there = ", ".join(sorted(known)) or "none"
            raise UsageError(f"{word!r}: {who} has no parameter {key!r}; it has {there}")
        values[key] = _cast(value, hints[key], f"{word!r}, {key}")
    return values


def _cast(value: str, kind: Any, what: str) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise UsageError(f"{what}: choose one of {', '.join(map(str, get_args(kind)))}")
        return value
    if kind is bool:
        if value not in {"true", "false"}:
            raise UsageError(f"{what}: {value!r} is not true or false")
        return value == "true"
    if kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            raise UsageError(f"{what}: {value!r} is not a number") from None
        if not number >= 0:
            raise UsageError(f"{what}: {value} is not 0 or more")
        return number
    return value
