"""Pydantic models of the replies; imported with the first prompt, as Pydantic is slow to import.

Lists have terse strings instead of objects: reply tokens are the most expensive ones, and a field
name per item would double them. `qrmem.extraction.reply_items` splits the strings at `|`.
"""

import re
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict


def _undescribed(schema: dict[str, Any]) -> None:
    """Drop the class's docstring: it is for readers of the code, and would cost tokens."""
    schema.pop("description", None)


class Reply(BaseModel):
    """Base of all replies: unknown fields are dropped, not an error."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra=_undescribed)

    @classmethod
    def from_words(cls, text: str, *, is_asked: bool) -> Self | None:
        """Parse a reply in the form that its prompt describes in words.

        Args:
            text: the reply.
            is_asked: whether the prompt asks for this form instead of JSON.

        Returns:
            `None` if the text is not in this form, or if the reply has no form but JSON.
        """
        return None


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
    """Further entities and relations of a segment, for some questions."""

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
    """Further entities and relations of one passage of several, for some questions."""

    n: int
    entities: list[str] = []
    relations: list[str] = []


class SupplementTogetherReply(Reply):
    """Further entities and relations of several segments, by number, for some questions."""

    passages: list[PassageSupplement]


class FactsReply(Reply):
    """`turn's number|sentence`."""

    facts: list[str]


class VerdictsReply(Reply):
    """`pair's number|replaces, agrees or beside`."""

    verdicts: list[str]


class SummaryReply(Reply):
    """A short paragraph."""

    summary: str

    @classmethod
    def from_words(cls, text: str, *, is_asked: bool) -> Self | None:
        """Return the whole reply as the summary."""
        return cls(summary=text) if is_asked and text.strip() else None


class FoldReply(Reply):
    """The questions to settle before two relations are merged, then the merged description."""

    questions: list[str] = []
    description: str


_VERDICT = re.compile(
    r"(?:Reasoning\s*:(?P<reason>.*?)|^[\s#*`]*)Action\s*:[\s*]*(?P<action>-?[12])\b(?!\s+or\b)"
    r"(?:[,.;*\s]*(?:(?:Final\s+)?Answer\s*:)?(?P<answer>(?:(?!Reasoning\s*:).)*))?",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile(
    r"(?:[\s#*`]*Reasoning\s*:(?P<reason>.*)\bAnswer\s*:|(?:.*\bAnswer\s*:)?)(?P<answer>.*)",
    re.DOTALL | re.IGNORECASE,
)
_RATING = re.compile(r"\[\[\s*(\d{1,3})\s*\]\]")
_AROUND = " \t\r\n#`*"


class JudgeReply(Reply):
    """The paper's Reasoning, Action (-2: answerable, -1: not) and Answer, with quotations.

    With -1, `keep` has what helps later, as `label|fact`, and `look_for` what to search for next.
    """

    reasoning: str
    action: Literal[-2, -1]
    answer: str = ""
    quotes: list[str] = []
    keep: list[str] = []
    look_for: list[str] = []

    @classmethod
    def from_words(cls, text: str, *, is_asked: bool) -> Self | None:
        """Parse `Reasoning: … Action: -1 or -2, …` (QRMeM, Appendix E); the last one counts.

        A line with only an action is enough.
        """
        verdicts = list(_VERDICT.finditer(text))
        if not verdicts:
            return None
        last = verdicts[-1]
        action: Literal[-2, -1] = -2 if last["action"].endswith("2") else -1
        answer = (last["answer"] or "").strip(_AROUND) if action == -2 else ""
        reason = " ".join((last["reason"] or "").split()).strip(_AROUND)
        return cls(reasoning=reason, action=action, answer=answer)


class AnswerReply(Reply):
    """A forced answer."""

    reasoning: str = ""
    answer: str
    quotes: list[str] = []

    @classmethod
    def from_words(cls, text: str, *, is_asked: bool) -> Self | None:
        """Return a plain answer, or the text after `Answer:` if the reply has it."""
        match = _ANSWER.fullmatch(text)
        if match is None or not is_asked or not (answer := match["answer"].strip(_AROUND)):
            return None
        reason = " ".join((match["reason"] or "").split()).strip(_AROUND)
        return cls(reasoning=reason, answer=answer)


class NamesReply(Reply):
    """Names, from the question or from a list."""

    entities: list[str]


class QueryReply(Reply):
    """An elaborated query."""

    query: str


class ShortReply(Reply):
    """An answer without words around it."""

    answer: str


class MemosReply(Reply):
    """`first-last|topic|summary` for each topic of a conversation's lines."""

    memos: list[str]


class NotesReply(Reply):
    """Numbers of the needed notes, from 1."""

    notes: list[int] = []


class RatingReply(Reply):
    """The rating of an answer, from 1 to 10; of a conversation's answer, from 1 to 100."""

    reasoning: str = ""
    rating: int

    @classmethod
    def from_words(cls, text: str, *, is_asked: bool) -> Self | None:
        """Parse a rating in double brackets, as the judge's prompt asks; the last one counts."""
        ratings = _RATING.findall(text)
        if not is_asked or not ratings:
            return None
        return cls(reasoning=" ".join(text.split()), rating=int(ratings[-1]))


class RubricReply(Reply):
    """Points of an answer for each criterion: 0 not met, 1 in part, 2 met."""

    reasoning: str = ""
    points: list[int]


class CodeReply(Reply):
    """The continuation of unfinished code."""

    code: str

    @classmethod
    def from_words(cls, text: str, *, is_asked: bool) -> Self | None:
        """Return the whole reply as code, without a fence, as base models write no JSON."""
        fence = re.search(r"```[\w+-]*\n(.*?)(?:```|\Z)", text, re.DOTALL)
        code = fence[1] if fence else text
        return cls(code=code) if is_asked and code.strip() else None


class TriageReply(Reply):
    """Number of the part to read next, from 0; -1: none."""

    reasoning: str = ""
    part: int


class PageBreakReply(Reply):
    """Number of the mark at which a page ends."""

    label: int


class GistReply(Reply):
    """A shortened page."""

    gist: str


class LookUpReply(Reply):
    """Numbers of the pages to read in full, from 0."""

    reasoning: str = ""
    pages: list[int] = []
