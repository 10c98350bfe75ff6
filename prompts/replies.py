"""What the prompts ask a model to reply; loaded when a prompt is first used, as pydantic is slow.

Lists hold terse strings instead of objects: reply tokens are the dearest, and a field name per item
would double them. What stands between the `|` is taken apart in `qrmem.answering.prompted`.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


def _undescribed(schema: dict[str, Any]) -> None:
    """Drop the class's docstring: it is for readers of the code, and would cost tokens per call."""
    schema.pop("description", None)


class Reply(BaseModel):
    """Base of all replies: unknown fields are dropped, not an error."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra=_undescribed)


class EntitiesReply(Reply):
    """`name|TYPE|other form|…`; asked with questions: `number|name|TYPE|…`."""

    entities: list[str]


class RelationsReply(Reply):
    """`name|what the text says|name`; asked with questions: `number|name|…|name`."""

    relations: list[str]


class QuestionsReply(Reply):
    """Generated questions."""

    questions: list[str]


class ReadReply(Reply):
    """Entities, relations and questions of one segment in one reply."""

    entities: list[str]
    relations: list[str] = []
    questions: list[str] = []


class SupplementReply(Reply):
    """What questions add to a segment's entities and relations."""

    entities: list[str] = []
    relations: list[str] = []


class PassageRead(Reply):
    """Entities, relations and questions of one passage of several."""

    n: int
    entities: list[str]
    relations: list[str] = []
    questions: list[str] = []


class ReadTogetherReply(Reply):
    """Entities, relations and questions of several segments, by number."""

    passages: list[PassageRead]


class PassageSupplement(Reply):
    """What questions add to one passage of several."""

    n: int
    entities: list[str] = []
    relations: list[str] = []


class SupplementTogetherReply(Reply):
    """What questions add to several segments, by number."""

    passages: list[PassageSupplement]


class SummaryReply(Reply):
    """A short paragraph."""

    summary: str


class FoldReply(Reply):
    """The questions to settle before two relations are merged, then the merged description."""

    questions: list[str] = []
    description: str


class JudgeReply(Reply):
    """The paper's Reasoning, Action (-2: answerable, -1: not) and Answer, with quotations."""

    reasoning: str
    action: Literal[-2, -1]
    answer: str = ""
    quotes: list[str] = []


class AnswerReply(Reply):
    """An answer that may not be refused."""

    reasoning: str = ""
    answer: str
    quotes: list[str] = []


class NamesReply(Reply):
    """Names, out of the question or out of a list."""

    entities: list[str]


class QueryReply(Reply):
    """An elaborated query."""

    query: str


class ShortReply(Reply):
    """An answer without what stands around it."""

    answer: str


class MemosReply(Reply):
    """`first-last|topic|summary` for each topic of a conversation's lines."""

    memos: list[str]


class NotesReply(Reply):
    """Which notes are needed, from 1."""

    notes: list[int] = []


class RatingReply(Reply):
    """What an answer is worth, from 1 to 10, or to 100 for a conversation's."""

    reasoning: str = ""
    rating: int


class CodeReply(Reply):
    """How unfinished code goes on."""

    code: str


class TriageReply(Reply):
    """Which part to read next, from 0; -1: none."""

    reasoning: str = ""
    part: int


class PageBreakReply(Reply):
    """At which mark a page ends."""

    label: int


class GistReply(Reply):
    """A shortened page."""

    gist: str


class LookUpReply(Reply):
    """Which pages to read in full, from 0."""

    reasoning: str = ""
    pages: list[int] = []
