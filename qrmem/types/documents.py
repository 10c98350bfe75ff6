"""Documents, their metadata, the conditions that select them, their segments and their trees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.types.shown import Short
from qrmem.types.usage import Usage

# Values of metadata and properties.

Scalar = str | int | float | bool
"""A primitive value."""
MetaValue = Scalar | list[str]
"""A metadata value: a primitive value, or a list of texts."""
Properties = tuple[tuple[str, Scalar], ...]
"""Properties of an entity or a statement: pairs of name and value, sorted by name."""


# Conditions on metadata: `where=` of a memory's methods.

Where = Mapping[str, Scalar | Mapping[str, Any]]
"""Metadata names, each with a value or with conditions: `{"year": {">=": 1851}}`.

`=`, `in` and `has` compare values as text. A range compares numbers with numbers, and texts with
texts in alphabetical order. A list matches if one of its items does; `has` matches lists only.
"""
Conditions = Mapping[str, Mapping[str, Any]]
"""The normalised form: names, each with one or more operators and their operands."""

RANGES = ("<", "<=", ">", ">=")
OPERATORS = ("=", *RANGES, "in", "has")
MOST_WHERE, MOST_VALUES = 100, 1000
"""Limits on the names of a `where`, and on the values of one `in`."""
_LAST = "\ud7ff"
"""Up to this character UTF-16 and UTF-8 have the same order, so all stores compare alike."""
LARGEST = 2**63 - 1
"""The largest whole number that a store keeps."""


def conditions(where: object) -> dict[str, dict[str, Any]]:
    """Return a `where` in its normalised form; `{}` for `None`.

    Raises:
        UsageError: it is not valid; the message says in one line what is wrong.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise UsageError(f"where maps names to values; it is not {type(where).__name__}")
    if not all(isinstance(name, str) for name in where):
        raise UsageError("the names in where must be text")
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
            operators = " ".join(OPERATORS)
            raise UsageError(
                f"{place}: no operator is called {str(operator)[:40]!r}; use {operators}"
            )
    operands = {name: _operand(f"{place} {name}", name, of) for name, of in value.items()}
    bounds = {isinstance(operands[name], str) for name in RANGES if name in operands}
    if len(bounds) > 1:
        raise UsageError(f"{place}: a range lies between two numbers or two texts, not one of each")
    return operands


def _operand(place: str, operator: str, value: object) -> Any:
    if operator != "in":
        scalar = _scalar(place, value)
        if operator in RANGES and isinstance(scalar, bool):
            raise UsageError(f"{place}: true and false cannot be bounds; use a number or a text")
        if operator in RANGES and isinstance(scalar, str) and max(scalar, default="") > _LAST:
            raise UsageError(
                f"{place}: a bound must not have emoji or full-width letters, which databases order"
                " differently"
            )
        return scalar
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise UsageError(f"{place} takes a list of values, not {type(value).__name__}")
    if not value:
        raise UsageError(f"{place} has an empty list, which matches no document")
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
        raise UsageError(f"{place} is {value}, which is not a number to compare with")
    return value


def written(where: Conditions) -> str:
    """Return conditions in the form of the command line."""
    return ", ".join(
        f"{name}{operator}{_word(value)}"
        if operator in ("=", *RANGES)
        else f"{name} {operator} {_word(value)}"
        for name, condition in where.items()
        for operator, value in condition.items()
    )


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_word, value[:5])) + (",…" if len(value) > 5 else "")
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Part:
    """A page or chapter of a document."""

    start: int
    label: str


@dataclass(frozen=True, slots=True, repr=False)
class Document(Short):
    """A text to read.

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
        """The sha256 of the text, in hexadecimal."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Segment(Short):
    """A sentence-aligned piece of a document, immutable, in order.

    Attributes:
        id: hash of document id, text, and the number of the occurrence of that text.
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


# --- Trees of summaries over a document (RAPTOR; ILM-TR, section 3)


TreeKind = Literal["ilm", "raptor"]
"""`ilm`: each segment has a node with summary and surprises. `raptor`: plain summaries of
clusters of segments."""


@dataclass(frozen=True, slots=True, repr=False)
class TreeNode(Short):
    """A summary of segments, or of the nodes below it.

    Attributes:
        key: a hash of its settings and of the nodes that it covers; equal trees have equal keys.
        level: 1 above segments; one more than the highest node below.
        surprises: sentences that do not follow from the rest of the text.
        covers: keys of the nodes below; ids of segments for a node that has no nodes below.
        segments: ids of all segments below, in order.
        is_well_formed: whether the model's reply had the two labels; `True` without a model.
    """

    key: str
    document_id: str
    level: int
    summary: str
    surprises: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    is_well_formed: bool = True


@dataclass(frozen=True, slots=True)
class Grouping:
    """The grouping of a tree's nodes.

    Attributes:
        reduction: the reduction of their vectors: `umap`, `pca` or `pca+umap`; `none`: they were
            not reduced, or nothing was clustered.
        groups: number of groups on all levels.
        runs: number of groups that are consecutive pieces of the text, because their rows are
            equal.
    """

    reduction: str = "none"
    groups: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Tree(Short):
    """The tree of one document.

    Attributes:
        nodes: those below before those above.
        roots: keys of the nodes that no other node covers.
        is_current: whether it covers every segment of its document.
        grouping: what was really done to group its nodes.
    """

    document_id: str
    kind: TreeKind
    nodes: tuple[TreeNode, ...]
    roots: tuple[str, ...]
    is_current: bool = True
    grouping: Grouping = field(default_factory=Grouping)


@dataclass(frozen=True, slots=True)
class TreeTop:
    """A tree without its nodes.

    Attributes:
        nodes: how many it has.
        roots: keys of the nodes that no other node covers.
        is_current: whether it covers every segment of its document.
        grouping: what was really done to group its nodes.
    """

    document_id: str
    kind: TreeKind
    nodes: int
    roots: tuple[str, ...]
    is_current: bool = True
    grouping: Grouping = field(default_factory=Grouping)


@dataclass(frozen=True, slots=True, repr=False)
class TreeReport(Short):
    """The report of building trees.

    Attributes:
        documents: ids of the documents that have a complete tree now.
        made: nodes that were made in this run.
        reused: nodes that existed already.
        levels: the highest level.
        malformed: nodes of this run whose reply lacked the two labels, twice.
        seconds: wall time.
        stopped: which cap ended the run early; "" if none did.
    """

    documents: tuple[str, ...] = ()
    made: int = 0
    reused: int = 0
    levels: int = 0
    malformed: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    stopped: str = ""
