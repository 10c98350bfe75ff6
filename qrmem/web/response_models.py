"""Replies of the REST service that are no value of the library's, for its OpenAPI description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qrmem.types import AddReport, Page, Question, Segment, Turn

if TYPE_CHECKING:
    from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was not carried out, and the class of the error.

    Attributes:
        near: names of entities that look like an unknown one.
    """

    error: str
    kind: str = "UsageError"
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkedSegment(Segment):
    """A segment with the spans of its text in which the words of a query stand."""

    matches: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BriefTrail:
    """A recorded run without its steps."""

    id: str
    question: str
    strategy: str
    window: int
    status: str
    created: str
    steps: int


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: how many turns it has, when it began and when it ended, and who speaks."""

    session: str
    user: str
    turns: int
    first: str
    last: str
    speakers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaidTurn(Turn):
    """A turn, with what was noted of it and the later turns that seem to correct it."""

    facts: Sequence[str] = ()
    corrected_by: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True)
class SourcedFact:
    """A statement of a relation, its times, and the segment that states it, counted from 0."""

    id: str
    description: str
    said_at: str
    valid_from: str
    valid_until: str
    document_id: str
    index: int


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A relation, its description cut where it is long, with its first statements.

    Attributes:
        questions: those of its merging.
    """

    key: str
    head: str
    tail: str
    description: str
    statements: int
    type: str = ""
    questions: Sequence[str] = ()
    facts: Sequence[SourcedFact] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """How much there is of an entity, all parts together."""

    forms: int
    relations: int
    segments: int


@dataclass(frozen=True, slots=True)
class Around:
    """A part of what is near an entity.

    Attributes:
        forms: each with how often it occurs.
        neighbours: names by key.
    """

    key: str
    name: str
    type: str
    forms: Sequence[tuple[str, int]]
    relations: list[RelationRow]
    neighbours: Mapping[str, str]
    questions: Sequence[Question]
    segments: Sequence[Segment]
    totals: Totals


@dataclass(frozen=True, slots=True)
class RecalledTurns:
    """Turns as text for a prompt, the last ones as messages, tokens used and scores by turn."""

    text: str
    messages: Sequence[Mapping[str, str]]
    tokens: int
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted: an id."""

    deleted: str


@dataclass(frozen=True, slots=True)
class DeletedCount:
    """How many turns and documents were deleted."""

    deleted: int


@dataclass(frozen=True, slots=True)
class Added:
    """The id of what was kept."""

    added: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Two names and whether they count as one."""

    first: str
    second: str
    same: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A long add: how far it is, and what came of it.

    Attributes:
        state: `waiting`, `running`, `done`, `stopped` by a cap, `failed` or `cancelled`.
        user: whose token brought it; "": a token of the whole namespace.
        ended: when it ended, or "".
        documents: how many it brings.
        segments: to read since the service started, as far as is known; `read` of them are read.
        warnings: the last ones.
        error: why it failed.
        report: of the add, once it is done; a list of jobs has none.
    """

    id: str
    state: str
    user: str
    created: str
    ended: str
    documents: int
    segments: int
    read: int
    warnings: Sequence[str] = ()
    error: str = ""
    report: AddReport | None = None


TOTAL = "x-total-count"
"""The header that says how many rows there are, where a reply holds a part of them."""


def part(rows: Sequence[Any], offset: int, limit: int | None, response: "Response") -> Any:
    """Return a part of some rows, and say in the reply's head how many there are."""
    response.headers[TOTAL] = str(len(rows))
    return rows[offset:] if limit is None else rows[offset : offset + limit]


def counted(page: Page[Any], response: "Response") -> Page[Any]:
    """Return a page as it is, and say in the reply's head how many rows there are."""
    response.headers[TOTAL] = str(page.total)
    return page


def of(kind: Any) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of a reply's type. Values are written as they are, unchecked."""
    return {200: {"model": kind}}


def whole(text: str) -> str:
    """Escape halves of letters, which JSON can ask for and no reply can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
