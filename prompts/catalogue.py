"""All prompts. `READ` and `SUPPLEMENT` build in mode `compact`, the paper's own in mode `paper`.

`READ_TOGETHER` and `SUPPLEMENT_TOGETHER` are the same for several short segments in one call.

Inputs that may be missing are whole sections (see `section`): nothing of an empty one is left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from qrmem.prompts.base import Prompt, fenced

if TYPE_CHECKING:
    from pydantic import BaseModel

    from qrmem.prompts import replies

    Out = TypeVar("Out", bound=BaseModel)


def section(heading: str, text: str, *, fence: bool = True) -> str:
    """Return a headed paragraph, or nothing for an empty text."""
    if not text:
        return ""
    return f"{heading}\n{fenced(text) if fence else text}\n\n"


# --- building ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInputs:
    """One segment to read.

    Attributes:
        background: section with the document's title and summary, or "".
        focus: section with the user's question, or "".
        segment: fenced text.
    """

    background: str
    focus: str
    segment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInputs(SegmentInputs):
    """One segment and how many questions are wanted."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationInputs(SegmentInputs):
    """One segment, its entities marked, and their names."""

    entities: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionInputs(SegmentInputs):
    """One segment, its sub-graph, and how many questions are wanted."""

    entities: str
    relations: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedInputs(SegmentInputs):
    """One segment, what is known of it, and numbered questions."""

    known: str
    questions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherInputs:
    """Several numbered segments, each with what is asked of it."""

    background: str
    focus: str
    passages: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextInputs:
    """A fenced text to summarise."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldInputs:
    """Two relations of one pair, each with the words of its segment, fenced."""

    background: str
    pair: str
    first: str
    second: str


# --- answering -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagesInputs:
    """Labelled passages and a question with its options."""

    passages: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedForInputs:
    """A question with its options."""

    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialInputs:
    """The state of an entity trial: passages read, why they do not do, names to choose from."""

    passages: str
    question: str
    reason: str
    current: str
    candidates: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ElaborateInputs:
    """A question and what the graph says around it."""

    question: str
    entities: str
    relations: str


# --- evaluation ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortAnswerInputs:
    """A question and the answer that some system gave, fenced."""

    question: str
    given: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateInputs:
    """A question, the answer that some system gave, and what it should say, both fenced."""

    question: str
    reference: str
    given: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChatInputs:
    """The rounds that a reply goes back to, what the user said last, and the reply, all fenced."""

    history: str
    question: str
    given: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInputs:
    """What was said earlier and may matter, the latest rounds, and what the user says now."""

    earlier: str
    latest: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoWriteInputs:
    """Numbered lines of a conversation, fenced."""

    lines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoPickInputs:
    """Numbered notes on a conversation, and what the user says now."""

    notes: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteInputs:
    """Fragments of a repository as comments, and the code that stops."""

    fragments: str
    path: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageInputs:
    """Numbered summaries to choose from, and what was learnt on the way to them."""

    known: str
    parts: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpInputs:
    """Numbered pages, shortened or in full, and how many more may be read."""

    pages: str
    count: int
    question: str


def _reply(name: str) -> "Callable[[], type[Out]]":
    def load() -> "type[Out]":
        from qrmem.prompts import replies

        model: type[Out] = getattr(replies, name)
        return model

    return load


ENTITIES: "Prompt[SegmentInputs, replies.EntitiesReply]" = Prompt(
    name="entities",
    version=1,
    stage="entities",
    inputs=SegmentInputs,
    output=_reply("EntitiesReply"),
)
RELATIONS: "Prompt[RelationInputs, replies.RelationsReply]" = Prompt(
    name="relations",
    version=1,
    stage="relations",
    inputs=RelationInputs,
    output=_reply("RelationsReply"),
)
QUESTIONS: "Prompt[QuestionInputs, replies.QuestionsReply]" = Prompt(
    name="questions",
    version=1,
    stage="questions",
    inputs=QuestionInputs,
    output=_reply("QuestionsReply"),
)
ENTITIES_ASKED: "Prompt[AskedInputs, replies.EntitiesReply]" = Prompt(
    name="entities-asked",
    version=1,
    stage="supplement",
    inputs=AskedInputs,
    output=_reply("EntitiesReply"),
)
RELATIONS_ASKED: "Prompt[AskedInputs, replies.RelationsReply]" = Prompt(
    name="relations-asked",
    version=1,
    stage="supplement",
    inputs=AskedInputs,
    output=_reply("RelationsReply"),
)
READ: "Prompt[ReadInputs, replies.ReadReply]" = Prompt(
    name="read", version=1, stage="extract", inputs=ReadInputs, output=_reply("ReadReply")
)
SUPPLEMENT: "Prompt[AskedInputs, replies.SupplementReply]" = Prompt(
    name="supplement",
    version=1,
    stage="supplement",
    inputs=AskedInputs,
    output=_reply("SupplementReply"),
)
READ_TOGETHER: "Prompt[TogetherInputs, replies.ReadTogetherReply]" = Prompt(
    name="read-together",
    version=1,
    stage="extract",
    inputs=TogetherInputs,
    output=_reply("ReadTogetherReply"),
)
SUPPLEMENT_TOGETHER: "Prompt[TogetherInputs, replies.SupplementTogetherReply]" = Prompt(
    name="supplement-together",
    version=1,
    stage="supplement",
    inputs=TogetherInputs,
    output=_reply("SupplementTogetherReply"),
)
SUMMARY: "Prompt[TextInputs, replies.SummaryReply]" = Prompt(
    name="summary", version=1, stage="summary", inputs=TextInputs, output=_reply("SummaryReply")
)
SUMMARY_JOIN: "Prompt[TextInputs, replies.SummaryReply]" = Prompt(
    name="summary-join",
    version=1,
    stage="summary",
    inputs=TextInputs,
    output=_reply("SummaryReply"),
)
FOLD: "Prompt[FoldInputs, replies.FoldReply]" = Prompt(
    name="fold", version=1, stage="fold", inputs=FoldInputs, output=_reply("FoldReply")
)
JUDGE: "Prompt[PassagesInputs, replies.JudgeReply]" = Prompt(
    name="judge", version=1, stage="judge", inputs=PassagesInputs, output=_reply("JudgeReply")
)
ANSWER: "Prompt[PassagesInputs, replies.AnswerReply]" = Prompt(
    name="answer", version=1, stage="answer", inputs=PassagesInputs, output=_reply("AnswerReply")
)
QUERY_ENTITIES: "Prompt[AskedForInputs, replies.NamesReply]" = Prompt(
    name="query-entities",
    version=1,
    stage="query",
    inputs=AskedForInputs,
    output=_reply("NamesReply"),
)
TRIAL: "Prompt[TrialInputs, replies.NamesReply]" = Prompt(
    name="trial", version=1, stage="trial", inputs=TrialInputs, output=_reply("NamesReply")
)
ELABORATE: "Prompt[ElaborateInputs, replies.QueryReply]" = Prompt(
    name="elaborate",
    version=1,
    stage="elaborate",
    inputs=ElaborateInputs,
    output=_reply("QueryReply"),
)
SHORT_ANSWER: "Prompt[ShortAnswerInputs, replies.ShortReply]" = Prompt(
    name="short-answer",
    version=1,
    stage="shorten",
    inputs=ShortAnswerInputs,
    output=_reply("ShortReply"),
)
RATE: "Prompt[RateInputs, replies.RatingReply]" = Prompt(
    name="rate", version=1, stage="rate", inputs=RateInputs, output=_reply("RatingReply")
)
RATE_CHAT: "Prompt[RateChatInputs, replies.RatingReply]" = Prompt(
    name="rate-chat",
    version=1,
    stage="rate",
    inputs=RateChatInputs,
    output=_reply("RatingReply"),
)
CHAT: "Prompt[ChatInputs, BaseModel]" = Prompt(
    name="chat", version=1, stage="reply", inputs=ChatInputs, output=None
)
MEMO_WRITE: "Prompt[MemoWriteInputs, replies.MemosReply]" = Prompt(
    name="memo-write",
    version=1,
    stage="memo",
    inputs=MemoWriteInputs,
    output=_reply("MemosReply"),
)
MEMO_PICK: "Prompt[MemoPickInputs, replies.NotesReply]" = Prompt(
    name="memo-pick",
    version=1,
    stage="pick",
    inputs=MemoPickInputs,
    output=_reply("NotesReply"),
)
COMPLETE: "Prompt[CompleteInputs, replies.CodeReply]" = Prompt(
    name="complete", version=1, stage="answer", inputs=CompleteInputs, output=_reply("CodeReply")
)
DECOMPOSE: "Prompt[AskedForInputs, replies.QuestionsReply]" = Prompt(
    name="decompose",
    version=1,
    stage="decompose",
    inputs=AskedForInputs,
    output=_reply("QuestionsReply"),
)
TRIAGE: "Prompt[TriageInputs, replies.TriageReply]" = Prompt(
    name="triage", version=1, stage="triage", inputs=TriageInputs, output=_reply("TriageReply")
)
PAGE_BREAK: "Prompt[TextInputs, replies.PageBreakReply]" = Prompt(
    name="page-break",
    version=1,
    stage="paginate",
    inputs=TextInputs,
    output=_reply("PageBreakReply"),
)
GIST: "Prompt[TextInputs, replies.GistReply]" = Prompt(
    name="gist", version=1, stage="gist", inputs=TextInputs, output=_reply("GistReply")
)
LOOK_UP: "Prompt[LookUpInputs, replies.LookUpReply]" = Prompt(
    name="look-up", version=1, stage="look-up", inputs=LookUpInputs, output=_reply("LookUpReply")
)
