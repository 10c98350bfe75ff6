"""Typed replies: parse; on failure ask again with the error, then at a higher temperature.

A prompt may describe its reply in words, such as QRMeM's Reasoning and Action (Appendix E). That
form is tried first, then JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from qrmem.errors import ModelOutputError
from qrmem.llm.found_json import without_reasoning
from qrmem.llm.replies import Parsed, parse_model, strict_schema
from qrmem.types import ChatModel, ChatReply, ChatRequest, Message

M = TypeVar("M", bound=BaseModel)

LADDER = 0.7
"""Temperature of the later retries."""
LONGER = "QRMEM_RESERVE and QRMEM_WINDOW allow longer ones"
_SHOWN = 2_000
"""Maximum length in characters of a bad reply in the repeated request."""


@dataclass(frozen=True, slots=True)
class Structured(Generic[M]):
    """A typed reply with the replies that it took.

    Attributes:
        value: the value.
        raw: text of the reply.
        repaired: whether the reply was repaired.
        problems: descriptions of the parts that were lost; empty if none were.
        left_out: why items of its lists could not be used.
        replies: all replies in order, one per request.
    """

    value: M
    raw: str
    repaired: bool
    problems: tuple[str, ...]
    replies: tuple[ChatReply, ...]
    left_out: tuple[str, ...] = ()


async def ask(
    chat: ChatModel,
    request: ChatRequest,
    model: type[M],
    *,
    retries: int = 4,
    fits: Callable[[ChatRequest], bool] | None = None,
    form: Literal["json", "text"] = "json",
    heard: Callable[[ChatReply], None] = lambda reply: None,
) -> Structured[M]:
    """Send a request until a reply can be parsed as `model`.

    If a part of a reply was lost, it asks once more and uses the better reply. Items that cannot be
    used are left out without another request.

    Args:
        chat: the chat model.
        request: the request; its schema and attempt are set here.
        model: Pydantic model of the reply.
        retries: tries after the first one, at temperature 0.7 (QRMeM, section 3.2). For JSON the
            first retry shows the error, at the temperature of the request.
        fits: whether a request is within the window; a retry with the error that is not is skipped.
        form: `text` sends no schema, as the prompt describes the reply in words.
        heard: gets each reply.

    Raises:
        ModelOutputError: no reply could be parsed; it contains the last one.
    """
    first = replace(
        request,
        schema=strict_schema(model) if form == "json" else None,
        schema_name=request.schema_name or model.__name__,
        reply_model=model,
    )
    tries = _Tries[M]()
    for n in range(retries + 1):
        turn = _turn(first, n, tries, fits)
        if turn is None:
            if is_used_up(tries.replies[-1]):
                break  # it would be cut again
            continue
        reply = await chat.complete(replace(turn, attempt=request.attempt + n) if n else turn)
        heard(reply)
        if tries.take(with_reading(reply, first)):
            break
    return tries.result()


def is_used_up(reply: ChatReply) -> bool:
    """Return whether a model's reasoning used up the whole reply."""
    return reply.finish_reason == "length" and not without_reasoning(reply.text).strip()


class _Tries(Generic[M]):
    """The replies to a request so far, the best of them, and the last error."""

    def __init__(self) -> None:
        self.replies: list[ChatReply] = []
        self.error = ModelOutputError("nothing was asked", raw="")
        self._best: tuple[Parsed[M], str] | None = None

    def take(self, reply: ChatReply) -> bool:
        """Take a reply; return whether another try would not help."""
        self.replies.append(reply)
        parsed = reply.parsed
        if isinstance(parsed, ModelOutputError):
            self.error = parsed
            return parsed.is_refusal
        is_second = self._best is not None
        if self._best is None or len(parsed.problems) <= len(self._best[0].problems):
            self._best = parsed, reply.text
        # A reply that was cut at the token limit would be cut again.
        if is_second or not parsed.problems or reply.finish_reason == "length":
            return True
        self.error = ModelOutputError("; ".join(parsed.problems), raw=reply.text)
        return False

    def result(self) -> Structured[M]:
        """Return the best reply.

        Raises:
            ModelOutputError: no reply could be parsed.
        """
        if self._best is not None:
            parsed, text = self._best
            replies = tuple(self.replies)
            problems, left_out = parsed.problems, parsed.left_out
            return Structured(parsed.value, text, parsed.repaired, problems, replies, left_out)
        if self.error.is_refusal:
            raise self.error
        count = len(self.replies)
        raise ModelOutputError(
            f"no usable reply in {count} tries; the last: {self.error}", raw=self.error.raw
        ) from self.error


Outcome = Literal["ok", "repaired", "unparsable"]


def outcome_of(reply: ChatReply) -> Outcome:
    """Return the outcome of a reply: parsed, repaired or unreadable."""
    if reply.finish_reason == "refusal" or isinstance(reply.parsed, ModelOutputError):
        return "unparsable"
    if reply.parsed is None:
        return "ok" if reply.text.strip() else "unparsable"
    return "repaired" if reply.parsed.repaired else "ok"


def with_reading(reply: ChatReply, request: ChatRequest) -> ChatReply:
    """Return a reply with its parsed value, or with the error; parse it only once."""
    if reply.parsed is not None or request.reply_model is None:
        return reply
    parsed: Parsed[Any] | ModelOutputError
    try:
        parsed = _read(reply, request)
    except ModelOutputError as exc:
        parsed = exc
    return replace(reply, parsed=parsed)


def _read(reply: ChatReply, request: ChatRequest) -> Parsed[Any]:
    """Parse a reply, in view of its finish reason.

    Raises:
        ModelOutputError: it is a refusal, or cannot be parsed.
    """
    if reply.finish_reason == "refusal":
        said = f"the model refuses: {reply.text[:200]}"
        raise ModelOutputError(said, raw=reply.text, is_refusal=True)
    ends = {"length": "cut off at the token limit", "content_filter": "cut by a content filter"}
    end = ends.get(reply.finish_reason, "")
    model = request.reply_model
    try:
        parsed = _in_words(reply.text, request) or parse_model(reply.text, model)
    except ModelOutputError as exc:
        if end:
            is_refusal = reply.finish_reason == "content_filter"
            hint = f" ({LONGER})" if reply.finish_reason == "length" else ""
            message = f"the reply was {end}{hint}: {exc}"
            raise ModelOutputError(message, raw=reply.text, is_refusal=is_refusal) from exc
        raise
    # A reply that is cut after the end of its JSON has lost nothing.
    if not end or (parsed.is_whole and not parsed.problems):
        return parsed
    return replace(parsed, repaired=True, problems=(*parsed.problems, f"the reply was {end}"))


def _in_words(text: str, request: ChatRequest) -> Parsed[Any] | None:
    """Return a reply in the form that its prompt describes, if its model can parse that."""
    read = getattr(request.reply_model, "from_words", None)
    said = without_reasoning(text)
    if read is None or said[:1] in ("{", "["):
        return None
    value = read(said, is_asked=request.schema is None)
    return None if value is None else Parsed(value, repaired=False, problems=())


def _turn(
    first: ChatRequest,
    n: int,
    tries: "_Tries[Any]",
    fits: Callable[[ChatRequest], bool] | None,
) -> ChatRequest | None:
    """Return the n-th request: plain, with the error, then warmer; `None` if it would not fit.

    A model whose reasoning used up the whole reply may use more tokens.
    """
    if n == 0:
        return first
    replies = tries.replies
    if is_used_up(replies[-1]):
        longer = replace(first, max_tokens=first.max_tokens * 2**n)
        return longer if fits is None or fits(longer) else None
    if n > 1 or first.schema is None:
        return replace(first, temperature=LADDER)
    correction = Message(
        "user",
        f"That reply cannot be used: {str(tries.error)[:200]}. Reply again with the JSON only.",
    )
    reply_shown = Message("assistant", replies[-1].text[:_SHOWN] or "(empty)")
    for added in ((reply_shown, correction), (correction,)):
        turn = replace(first, messages=(*first.messages, *added), prompt_tokens=0)
        if fits is None or fits(turn):
            return turn
    return None
