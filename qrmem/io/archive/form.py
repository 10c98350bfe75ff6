"""The lines of an archive; `docs/archive.md` describes them for other programs.

An archive is UTF-8 text with one JSON object per line. Each object has one key, the line's kind.
The first line is the head, the last line is the end. No line depends on the store, the clock or the
order of writing. Fields with their default value are left out, so a record may get a new field with
a default, and older archives stay readable. An older qrmem refuses a line with an unknown field.
Any other change of the format raises `VERSION`.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from qrmem.graphstore.codec import DecodeError
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
    """The first line: the settings of the namespace.

    Attributes:
        version: version of the format.
        runs: whether trails, calls and cached replies are included (`--all`).
        single: relation types of which an entity has only one at a time.
        turns: the highest number of a deleted turn: new turns get higher ones.
    """

    version: int
    tokenizer: str
    segment_tokens: int
    embedder: str = "none"
    dimension: int = 0
    runs: bool = False
    single: tuple[str, ...] = ()
    turns: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """The last line: number of lines before it, and SHA-256 of their bytes with line ends."""

    lines: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A document; the lines of its segments, contributions and vectors follow."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A segment of the preceding document, in order; its text is a span of the document's.

    Attributes:
        start: start of the span, in characters.
        end: end of the span.
        tokens: size in tokens.
        state: state in the ledger, with `reason` and `reasoner`.
        merged: digest of its contributions that are in the graph; "" if none are.
        questions: its accepted questions.
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
    """The vectors of a segment or of a relation's text: float32, little-endian, in base64."""

    owner: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityLine:
    """An entity, with the keys of its names."""

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
"""Kinds in their order in the file; the first four repeat for each document."""

OF_A_DOCUMENT: Sequence[str] = ("document", "segment", "contribution", "vector")
OF_RUNS: Sequence[str] = ("trail", "call", "reply", "relation")
"""Kinds that only an export with `--all` has."""

STARTS: Mapping[CacheKind, str] = {
    "fold": "fold:",
    "tree": "tree:",
    "facts": "facts:",
    "judgement": "judged:",
    "code": "code:",
    "raw": "raw:",
}
"""Prefixes of cache keys; keys of replies have none of these. Cached data of source code is in no
archive: it can be computed again, and unpacking untrusted data would be a risk."""


def cache_kind(line: str, key: str) -> CacheKind:
    """Return the kind of a cached value; older archives have `facts` and `raw` among replies."""
    starts = (kind for kind, start in STARTS.items() if key.startswith(start))
    return next(starts, "reply") if line == "reply" else cast("CacheKind", line)


def encoded(row: "NDArray[np.float32]") -> str:
    """Return a vector as text."""
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
        raise DecodeError(f"the vectors of {line.owner[:80]!r} are not base64") from exc
    if not data or not dimension or any(len(row) != 4 * dimension for row in data):
        raise DecodeError(
            f"the vectors of {line.owner[:80]!r} do not have {dimension} numbers each"
        )
    matrix = np.frombuffer(b"".join(data), dtype="<f4").reshape(len(data), dimension)
    if not np.isfinite(matrix).all():
        raise DecodeError(
            f"the vectors of {line.owner[:80]!r} contain something that is not a number"
        )
    return matrix.astype(np.float32)
