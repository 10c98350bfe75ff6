"""Sends typed prompts to a chat model, within its window.

What is too long is packed again, also where the server counts more tokens than we do.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from qrmem.errors import ContextExceeded, PromptError, WindowTooSmall
from qrmem.llm.replies import strict_schema
from qrmem.llm.structured import Structured, ask
from qrmem.prompts import Prompt, PromptSet, load_prompts
from qrmem.types import ChatModel, ChatRequest, Event, Listener, Loss, Message, Tokenizer

Out = TypeVar("Out", bound=BaseModel)
Value = TypeVar("Value")
Render = Callable[[Sequence[Sequence[str]]], Mapping[str, object]]
"""Makes a prompt's slots of the lists of pieces, as far as these fit."""

MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""
REQUEST_TOKENS = 3
"""What it adds to a request."""


class TokenBudget:
    """Counts requests in the configured counter, corrected by what the server was seen to count."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._scale = 1.0

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return math.ceil(self._tokenizer.count(text) * self._scale)

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most `limit` tokens."""
        return self._tokenizer.cut(text, int(limit / self._scale))

    def request(self, request: ChatRequest) -> int:
        """Return the tokens of a prompt: messages, schema and what a chat template adds."""
        tokens = sum(self.count(m.content) + MESSAGE_TOKENS for m in request.messages)
        schema = self.count(str(request.schema)) if request.schema else 0
        return tokens + schema + REQUEST_TOKENS

    def fits(self, request: ChatRequest, window: int) -> bool:
        """Whether a prompt and the reply reserved for it are within the window."""
        return self.request(request) + request.max_tokens <= window

    def learn(self, request: ChatRequest, counted: int) -> bool:
        """Correct the scale if a server counted more than we do; say whether it was corrected."""
        ours = self.request(request)
        if counted <= ours:
            return False
        self._scale *= 1.02 * counted / ours
        return True

    def stretch(self) -> None:
        """Count a quarter more from now on: a server found a prompt too long for its context."""
        self._scale *= 1.25


@dataclass(frozen=True, slots=True)
class Draft:
    """A request that fits, its tokens, and what was kept of each group to make it fit.

    Attributes:
        form: of the reply; see `Prompt`.
    """

    request: ChatRequest
    tokens: int
    kept: tuple[Sequence[str], ...]
    form: Literal["json", "text"] = "json"


def draft(
    budget: TokenBudget,
    prompt: Prompt,
    groups: Sequence[Sequence[str]],
    render: Callable[[Sequence[Sequence[str]]], Mapping[str, object]],
    *,
    window: int,
    reply: int,
) -> Draft:
    """Return a request within the window, leaving pieces out where it must.

    Args:
        groups: lists of pieces that may be shortened from their end; the first list goes first.
        render: makes the prompt's inputs of the shortened lists.
        reply: tokens reserved for the reply.

    Raises:
        WindowTooSmall: even without all pieces it does not fit.
    """
    model = prompt.output if prompt.form == "json" else None
    schema = strict_schema(model) if model else None

    def request(kept: Sequence[Sequence[str]]) -> ChatRequest:
        user = Message("user", prompt.user(render(kept)))
        system = (Message("system", prompt.system),) if prompt.system else ()
        return ChatRequest(
            messages=(*system, user),
            schema=schema,
            schema_name=prompt.name,
            max_tokens=reply,
            stage=prompt.stage,
            prompt=prompt.label,
        )

    kept: Sequence[Sequence[str]] = groups
    made = request(kept)
    tokens = budget.request(made)
    if tokens + reply > window:
        kept = _shortened(groups, lambda k: budget.fits(request(k), window))
        made = request(kept)
        tokens = budget.request(made)
        if tokens + reply > window:
            needed = tokens + reply
            raise WindowTooSmall(
                f"the window of {window} tokens is too small: {prompt.label} needs {needed}, "
                f"{reply} for the reply included; widen the window or shorten the question"
            )
    return Draft(replace(made, prompt_tokens=tokens), tokens, tuple(kept), prompt.form)


def _shortened(
    groups: Sequence[Sequence[str]], fits: Callable[[Sequence[Sequence[str]]], bool]
) -> Sequence[Sequence[str]]:
    """Shorten the groups one after the other until they fit, each no further than it must."""
    for at in range(len(groups)):
        if fits(groups):
            break
        groups = _shortened_one(groups, at, fits)
    return groups


def _shortened_one(
    groups: Sequence[Sequence[str]], at: int, fits: Callable[[Sequence[Sequence[str]]], bool]
) -> Sequence[Sequence[str]]:
    """Leave out of one group, which does not fit whole, as little as is needed; at most all."""

    def first(n: int) -> list[Sequence[str]]:
        return [*groups[:at], groups[at][:n], *groups[at + 1 :]]

    too_many = bisect_left(range(len(groups[at])), True, key=lambda n: not fits(first(n)))
    return first(max(0, too_many - 1))


# --- prompts -------------------------------------------------------------------------------------


PARSE_RETRIES = 4
"""Tries at a higher temperature (QRMeM, section 3.2)."""
PACKED_AGAIN = 3
"""How often a prompt that a server finds too long is shortened."""


@dataclass(frozen=True, slots=True)
class Called(Generic[Value]):
    """A typed reply, or a plain one.

    Attributes:
        tokens: of the prompt, counted before the call.
        kept: what of the groups was kept to fit.
        losses: one if something of the reply had to be left out, else none.
    """

    value: Value
    tokens: int
    kept: tuple[Sequence[str], ...]
    losses: tuple[Loss, ...] = ()


class Caller:
    """A chat model, a counter, a window and a set of prompts.

    Attributes:
        budget: what counts.
        prompts: the default set where none is given.
    """

    def __init__(
        self,
        chat: ChatModel,
        budget: TokenBudget,
        listener: Listener | None = None,
        prompts: PromptSet | None = None,
    ) -> None:
        self.budget = budget
        self.prompts = load_prompts() if prompts is None else prompts
        self._chat = chat
        self._listener = listener
        self._exceeded: ContextExceeded | None = None

    async def call(
        self,
        prompt: str,
        model: type[Out],
        render: Render,
        groups: Sequence[Sequence[str]] = (),
        *,
        window: int,
        reply: int,
        segments: Sequence[str] = (),
        attempt: int = 0,
        retries: int = PARSE_RETRIES,
        is_watched: bool = False,
    ) -> Called[Out]:
        """Send a prompt; see `qrmem.llm.prompting.draft` for what is left out to fit.

        Args:
            prompt: name of one of the set.
            model: its reply's.
            segments: ids of those that it is about.
            attempt: number of the first try.
            retries: tries after the first one.
            is_watched: see `ChatRequest`.

        Raises:
            WindowTooSmall: it cannot be made to fit.
            ContextExceeded: nor for a server that takes less than the window.
            ModelOutputError: no reply could be read.
        """
        chosen = self.prompts[prompt]
        if chosen.output is not model:
            raise PromptError(f"{chosen.label} is answered by {chosen.reply}, not {model.__name__}")
        for left in reversed(range(PACKED_AGAIN + 1)):
            made = self._packed(chosen, render, groups, window, reply)
            request = replace(
                made.request,
                segment_id=next(iter(segments), ""),
                shared_with=tuple(segments[1:]),
                attempt=attempt,
                is_watched=is_watched,
            )
            try:
                answered = await ask(
                    self._chat,
                    request,
                    model,
                    retries=retries,
                    form=made.form,
                    fits=lambda request: self.budget.fits(request, window),
                )
            except ContextExceeded as exc:
                self._stretch(exc, left)
                continue
            self._learn(made, answered.replies[0].tokens_in)
            losses = _losses(attempt + retries, answered)
            return Called(answered.value, made.tokens, made.kept, losses)
        raise AssertionError("unreachable")

    async def say(
        self,
        prompt: str,
        render: Render,
        groups: Sequence[Sequence[str]] = (),
        *,
        window: int,
        reply: int,
        segments: Sequence[str] = (),
        temperature: float = 0.0,
        attempt: int = 0,
        top_p: float = 1.0,
        sampling: Mapping[str, float] | None = None,
    ) -> Called[str]:
        """Send a prompt whose reply is plain text, and may be cut at the end; see `call`.

        Raises:
            WindowTooSmall: it cannot be made to fit.
            ContextExceeded: nor for a server that takes less than the window.
        """
        for left in reversed(range(PACKED_AGAIN + 1)):
            made = self._packed(self.prompts[prompt], render, groups, window, reply)
            request = replace(
                made.request,
                segment_id=next(iter(segments), ""),
                shared_with=tuple(segments[1:]),
                temperature=temperature,
                attempt=attempt,
                top_p=top_p,
                sampling=tuple((sampling or {}).items()),
            )
            try:
                replied = await self._chat.complete(request)
            except ContextExceeded as exc:
                self._stretch(exc, left)
                continue
            self._learn(made, replied.tokens_in)
            return Called(replied.text.strip(), made.tokens, made.kept)
        raise AssertionError("unreachable")

    def _packed(
        self,
        prompt: Prompt,
        render: Render,
        groups: Sequence[Sequence[str]],
        window: int,
        reply: int,
    ) -> Draft:
        try:
            return draft(self.budget, prompt, groups, render, window=window, reply=reply)
        except WindowTooSmall:
            # It is so by the stretched count alone: a wider window would not help.
            if self._exceeded is not None:
                raise self._exceeded from None
            raise

    def _stretch(self, exc: ContextExceeded, left: int) -> None:
        """Count higher, as a server found a prompt too long, while it may be packed again."""
        if not left:
            raise exc
        self._exceeded = exc
        self.budget.stretch()
        self._warn(f"{exc}; tokens are counted a quarter higher from here on")

    def _learn(self, made: Draft, counted: int) -> None:
        # By now others may have corrected the scale: it rises only.
        if counted > made.tokens and self.budget.learn(made.request, counted):
            self._warn(
                f"the server counts {counted} tokens where we count {made.tokens}; corrected"
            )

    def _warn(self, message: str) -> None:
        if self._listener is not None:
            self._listener(Event("warning", {"message": message}))


def _losses(last: int, answered: Structured[Any]) -> tuple[Loss, ...]:
    if not answered.problems:
        return ()
    return (Loss("; ".join(answered.problems), answered.raw, last),)
