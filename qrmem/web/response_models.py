"""Reply types of the REST service that the library does not have, for the OpenAPI description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qrmem.types import AddReport, Page, Question, Segment, Turn

if TYPE_CHECKING:
    from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error reply.

    Attributes:
        error: the message.
        kind: class of the error.
        near: names of entities that are similar to an unknown name.
    """

    error: str
    kind: str = "UsageError"
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkedSegment(Segment):
    """A segment with the spans of a query's words in its text."""

    matches: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BriefTrail:
    """A recorded run without its steps; `steps` is their number."""

    id: str
    question: str
    strategy: str
    window: int
    status: str
    created: str
    steps: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation: number of turns, times of the first and the last turn, speakers."""

    session: str
    user: str
    turns: int
    first: str
    last: str
    speakers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaidTurn(Turn):
    """A turn with the facts extracted from it."""

    facts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SourcedFact:
    """A statement of a relation, its times, and its segment's position in the document, from 0."""

    id: str
    description: str
    said_at: str
    valid_from: str
    valid_until: str
    document_id: str
    index: int


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A relation with its first statements; a long description is cut.

    Attributes:
        statements: number of all statements.
        questions: questions that a chat model resolved when it merged them.
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
class EntityTotals:
    """Numbers of an entity's forms, relations and segments, over all parts."""

    forms: int
    relations: int
    segments: int


@dataclass(frozen=True, slots=True)
class EntityNeighbourhood:
    """One part of an entity's surroundings.

    Attributes:
        forms: surface forms with their numbers of occurrences.
        properties: the last values of each property of its type, latest first.
        neighbours: entity key to name.
    """

    key: str
    name: str
    type: str
    forms: Sequence[tuple[str, int]]
    properties: Mapping[str, Sequence[str]]
    relations: list[RelationRow]
    neighbours: Mapping[str, str]
    questions: Sequence[Question]
    segments: Sequence[Segment]
    totals: EntityTotals


@dataclass(frozen=True, slots=True)
class RecalledTurns:
    """Turns as text for a prompt, the last turns as messages, tokens used, scores by turn id."""

    text: str
    messages: Sequence[Mapping[str, str]]
    tokens: int
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Deleted:
    """The id of the deleted item."""

    deleted: str


@dataclass(frozen=True, slots=True)
class DeletedCount:
    """The number of deleted turns and documents."""

    deleted: int


@dataclass(frozen=True, slots=True)
class Added:
    """The id of the new turn."""

    added: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Two names, and whether they are merged."""

    first: str
    second: str
    same: bool


@dataclass(frozen=True, slots=True)
class AddJob:
    """A long add: its progress and its result.

    Attributes:
        state: `waiting`, `running`, `done`, `stopped` by a cap, `failed` or `cancelled`.
        user: the user of the token that started it; "" for a token of the whole namespace.
        ended: time of its end, or "".
        documents: number of its documents.
        segments: number of segments to read that are known since the service started; `read` of
            them are read.
        warnings: the latest warnings.
        error: why it failed, or "".
        report: the report of the add if it is done; lists of jobs leave it out.
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
"""Header with the number of all rows, if the reply has a part of them."""


def part(rows: Sequence[Any], offset: int, limit: int | None, response: "Response") -> Any:
    """Return a part of the rows; set the header to the number of all rows."""
    response.headers[TOTAL] = str(len(rows))
    return rows[offset:] if limit is None else rows[offset : offset + limit]


def counted(page: Page[Any], response: "Response") -> Page[Any]:
    """Return the rows of a page; set the header to the number of all rows."""
    response.headers[TOTAL] = str(page.total)
    return page


def of(kind: Any) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of a reply's type; replies are not validated."""
    return {200: {"model": kind}}


def whole(text: str) -> str:
    """Escape unpaired surrogates, which JSON allows and a UTF-8 reply cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()
