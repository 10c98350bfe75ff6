"""What the user gives: documents, their metadata, which of them a run looks at, their segments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from qrmem.errors import UsageError
from qrmem.types.shown import Short

# The words that a value may be one of.

Scalar = str | int | float | bool
"""A primitive value."""
MetaValue = Scalar | list[str]
"""What a metadata value may be: stores keep primitive values, and lists of texts."""
Properties = tuple[tuple[str, Scalar], ...]
"""What a text says of an entity or in a statement, by the names of its type; sorted by name."""


# Which documents are looked at, by their metadata: `where=` of a memory's methods.

Where = Mapping[str, Scalar | Mapping[str, Any]]
"""Names of metadata, each with the value that it has, or with conditions: `{"year": {">=": 1851}}`.

`=`, `in` and `has` compare values as text. A range compares numbers with numbers and texts with
texts, letter by letter. Of a list one item fits; `has` is fulfilled by lists alone.
"""
Conditions = Mapping[str, Mapping[str, Any]]
"""The same in one form: names, each with one or more operators and what they compare with."""

RANGES = ("<", "<=", ">", ">=")
OPERATORS = ("=", *RANGES, "in", "has")
MOST_WHERE, MOST_VALUES = 100, 1000
"""Names of metadata, and values of one `in`, that a choice of documents may have."""
_LAST = "\ud7ff"
"""Up to it, UTF-16 and UTF-8 have one order; a bound without others is compared alike by both."""
LARGEST = 2**63 - 1
"""The largest whole number that is kept."""


def conditions(where: object) -> dict[str, dict[str, Any]]:
    """Return a choice of documents in one form; nothing for `None`.

    Raises:
        UsageError: it is none; the message says what is wrong in one line.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise UsageError(f"where is names with values, not {type(where).__name__}")
    if not all(isinstance(name, str) for name in where):
        raise UsageError("the names of where are text")
    if len(where) > MOST_WHERE:
        raise UsageError(f"where has {len(where):,} names; at most {MOST_WHERE} can be given")
    return {name: _of_name(f"where {name[:40]!r}", value) for name, value in where.items()}


def _of_name(place: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"=": _scalar(place, value)}
    if not value:
        raise UsageError(f"{place} has no condition; use one of {' '.join(OPERATORS)}")
    for operator in value:
        if operator not in OPERATORS:
            known = " ".join(OPERATORS)
            raise UsageError(f"{place}: no operator is called {str(operator)[:40]!r}; use {known}")
    found = {name: _operand(f"{place} {name}", name, of) for name, of in value.items()}
    bounds = {isinstance(found[name], str) for name in RANGES if name in found}
    if len(bounds) > 1:
        raise UsageError(f"{place}: a range lies between two numbers or two texts, not one of each")
    return found


def _operand(place: str, operator: str, value: object) -> Any:
    if operator != "in":
        found = _scalar(place, value)
        if operator in RANGES and isinstance(found, bool):
            raise UsageError(f"{place}: true and false are no bounds; use a number or a text")
        if operator in RANGES and isinstance(found, str) and max(found, default="") > _LAST:
            raise UsageError(
                f"{place}: a bound has no emoji or full-width letters, which databases order"
                " differently"
            )
        return found
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise UsageError(f"{place} takes a list of values, not {type(value).__name__}")
    if not value:
        raise UsageError(f"{place} has an empty list, which no document fits")
    if len(value) > MOST_VALUES:
        raise UsageError(f"{place} has {len(value):,} values; at most {MOST_VALUES:,} can be given")
    return [_scalar(place, one) for one in value]


def _scalar(place: str, value: object) -> Scalar:
    if not isinstance(value, str | int | float | bool):
        what = "nothing" if value is None else f"a {type(value).__name__}"
        raise UsageError(f"{place} is {what}; a value is a text, a number, true or false")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise UsageError(f"{place} is a whole number that is too large; give it as text")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise UsageError(f"{place} is {value}, which is no number to compare with")
    return value


def written(where: Conditions) -> str:
    """Return a choice as it is written on a command line."""
    return ", ".join(
        f"{name}{operator}{_word(value)}"
        if operator in ("=", *RANGES)
        else f"{name} {operator} {_word(value)}"
        for name, own in where.items()
        for operator, value in own.items()
    )


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_word, value[:5])) + (",…" if len(value) > 5 else "")
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Part:
    """A page or chapter of a document: where it starts and what it is called."""

    start: int
    label: str


@dataclass(frozen=True, slots=True, repr=False)
class Document(Short):
    """A text given by the user.

    Attributes:
        text: normalised text; every offset in the package counts its characters.
        title: shown with citations.
        id: unique in a namespace; `None` lets `add` derive it (the end of its file's path, else a
            hash of the text).
        metadata: primitive values, and lists of texts, to narrow `search` and `ask` by.
        parts: pages or chapters in order of `start`; empty if the format has none.
    """

    text: str
    title: str = ""
    id: str | None = None
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    @property
    def digest(self) -> str:
        """The text's sha256, which tells it from another text."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Segment(Short):
    """A sentence-aligned piece of a document, immutable, in order.

    Attributes:
        id: hash of document id, text, and which occurrence of that text it is.
        index: position in the document, from 0.
        start: first character in the document's text; `text == document.text[start:end]`.
        tokens: size by the counter recorded in the namespace.
        part: label of the page or chapter that it starts in, or "".
    """

    id: str
    document_id: str
    index: int
    start: int
    end: int
    text: str
    tokens: int
    part: str = ""
