"""What the lines of an archive hold; `docs/archive.md` describes them for other programs.

An archive is UTF-8 text, one JSON object a line, each with one key: the line's kind. The first line
is the head, the last the end; nothing in between depends on the store, the clock or the order of
arrival. Fields that hold their default are left out, so a record may gain a field with a default
and older archives stay readable; an older qrmem refuses a line with a field that it does not know,
rather than drop it. Anything else about the form that changes raises `VERSION`.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from qrmem.graphstore.codec import Wrong
from qrmem.graphstore.protocol import CacheEntry, CacheKind
from qrmem.types import (
    CallRecord,
    Contribution,
    MergeDecision,
    MetaValue,
    Part,
    SegmentState,
    Trail,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1

HEAD, END = "qrmem", "end"


@dataclass(frozen=True, slots=True)
class Head:
    """What the namespace was made with.

    Attributes:
        version: of the form.
        runs: whether trails, calls and cached replies are in (`--all`).
    """

    version: int
    tokenizer: str
    segment_tokens: int
    embedder: str = "none"
    dimension: int = 0
    runs: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """How many lines come before, and the SHA-256 of all their bytes, line ends included."""

    lines: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A document; its segments, what was read out of them and their vectors follow."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A segment of the document above, in order; its text is that of the document.

    Attributes:
        state: how far it is, with `reason` and `reasoner`, as the ledger has it.
        merged: digest of the contributions that the graph holds of it; "" if it holds none.
        questions: the accepted questions.
    """

    id: str
    start: int
    end: int
    tokens: int
    part: str = ""
    state: SegmentState = "pending"
    reason: str = ""
    reasoner: str = ""
    merged: str = ""
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorLine:
    """Vectors of a segment, or of a relation's text: float32, little-endian, in base64."""

    owner: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityLine:
    """A node of the graph, and the keys of the names that stand for it."""

    key: str
    name: str
    type: str
    names: tuple[str, ...]


KINDS: Mapping[str, type] = {
    "document": DocumentLine,
    "segment": SegmentLine,
    "contribution": Contribution,
    "vector": VectorLine,
    "decision": MergeDecision,
    "entity": EntityLine,
    "fold": CacheEntry,
    "tree": CacheEntry,
    "facts": CacheEntry,
    "judgement": CacheEntry,
    "trail": Trail,
    "call": CallRecord,
    "reply": CacheEntry,
    "relation": VectorLine,
}
"""Kinds in the order in which they come; the first four for one document after the other."""

OF_A_DOCUMENT: Sequence[str] = ("document", "segment", "contribution", "vector")
OF_RUNS: Sequence[str] = ("trail", "call", "reply", "relation")
"""Those that are there with `--all` only."""

STARTS: Mapping[CacheKind, str] = {
    "fold": "fold:",
    "tree": "tree:",
    "facts": "facts:",
    "judgement": "judged:",
    "code": "code:",
    "raw": "raw:",
}
"""What keys begin with; those of replies begin with none of these. What is cached of source code is
made anew, and no stranger's is ever unpacked, so it is in no archive."""


def cache_kind(line: str, key: str) -> CacheKind:
    """Return the kind of what a line has cached; archives had `facts` and `raw` among replies."""
    starts = (kind for kind, start in STARTS.items() if key.startswith(start))
    return next(starts, "reply") if line == "reply" else cast("CacheKind", line)


def encoded(row: "NDArray[np.float32]") -> str:
    """Return one vector as text."""
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def decoded(line: "VectorLine", dimension: int) -> "NDArray[np.float32]":
    """Return the vectors of a line, `(rows, dimension)`.

    Raises:
        Wrong: they are none, of another length, or contain something that is not a number.
    """
    import numpy as np

    try:
        data = [base64.b64decode(row, validate=True) for row in line.rows]
    except (binascii.Error, ValueError) as exc:
        raise Wrong(f"the vectors of {line.owner[:80]!r} are not base64") from exc
    if not data or not dimension or any(len(row) != 4 * dimension for row in data):
        raise Wrong(f"the vectors of {line.owner[:80]!r} do not have {dimension} numbers each")
    matrix = np.frombuffer(b"".join(data), dtype="<f4").reshape(len(data), dimension)
    if not np.isfinite(matrix).all():
        raise Wrong(f"the vectors of {line.owner[:80]!r} contain something that is not a number")
    return matrix.astype(np.float32)
