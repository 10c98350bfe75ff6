"""Sends typed prompts to a chat model, within its window.

A prompt that is too long is shortened, also if only the server's count is above the window.
"""

import asyncio
import math
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from qrmem.errors import ContextExceeded, PromptError, WindowTooSmall
from qrmem.llm.found_json import without_reasoning
from qrmem.llm.replies import strict_schema
from qrmem.llm.structured import Structured, ask, is_used_up
from qrmem.types import ChatModel, ChatReply, ChatRequest, Event, Listener, Loss, Message, Tokenizer

if TYPE_CHECKING:
    from qrmem.prompts import PromptSet

Out = TypeVar("Out", bound=BaseModel)
Value = TypeVar("Value")
Kept = Sequence[Sequence[str]]
"""Lists of pieces; pieces at the end that do not fit into a prompt are left out."""
Render = Callable[[Kept], Mapping[str, object]]
"""Makes the slots of a prompt from the kept pieces."""

MESSAGE_TOKENS = 4
"""Tokens that a chat template adds to each message."""
REQUEST_TOKENS = 3
"""Tokens that it adds to a request."""


class TokenBudget:
    """Counts tokens with the configured counter, corrected by the counts of the server."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._scale = 1.0

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return math.ceil(self._tokenizer.count(text) * self._scale)

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of a text of at most `limit` tokens."""
        return self._tokenizer.cut(text, int(limit / self._scale))

    def request(self, request: ChatRequest) -> int:
        """Return the number of tokens of a prompt: messages, schema and chat template."""
        tokens = sum(self.count(m.content) + MESSAGE_TOKENS for m in request.messages)
        schema = self.count(str(request.schema)) if request.schema else 0
        return tokens + schema + REQUEST_TOKENS

    def fits(self, request: ChatRequest, window: int) -> bool:
        """Return whether a prompt and its reply limit fit the window."""
        return self.request(request) + request.max_tokens <= window

    def learn(self, request: ChatRequest, counted: int) -> bool:
        """Raise the scale if the server counted more tokens; return whether it was raised."""
        ours = self.request(request)
        if counted <= ours:
            return False
        self._scale *= 1.02 * counted / ours
        return True

    def stretch(self, factor: float) -> None:
        """Multiply the scale by a factor, after a prompt was too long for the server's context."""
        self._scale *= factor


def _shortened(groups: Kept, fits: Callable[[Kept], bool]) -> Kept:
    """Shorten the groups one after the other, each as little as possible, until they fit."""
    for at in range(len(groups)):
        if fits(groups):
            break
        groups = _shortened_one(groups, at, fits)
    return groups


def _shortened_one(groups: Kept, at: int, fits: Callable[[Kept], bool]) -> Kept:
    """Drop as few pieces from the end of one group as needed, at most all."""

    def first(n: int) -> Kept:
        return [*groups[:at], groups[at][:n], *groups[at + 1 :]]

    too_many = bisect_left(range(len(groups[at])), True, key=lambda n: not fits(first(n)))
    return first(max(0, too_many - 1))


# --- prompts -------------------------------------------------------------------------------------


PARSE_RETRIES = 4
"""Number of retries at a higher temperature (QRMeM, section 3.2)."""
PACKED_AGAIN = 3
"""Maximum number of times that a prompt is shortened for a server's smaller context."""
SHORTER = 1.25
"""Least factor of the shortening."""
LEAST_HIDDEN = 2_000
"""Least room for a model's reasoning, once a reply has shown that it counts against the limit."""
SHOWN_SLACK = 64
"""Tokens of a reply beyond twice our count of its text that are no sign of reasoning."""


@dataclass(frozen=True, slots=True)
class Called(Generic[Value]):
    """A typed or plain reply.

    Attributes:
        tokens: number of tokens of the prompt, counted before the call.
        kept: the pieces of each group that fit.
        losses: one loss if a part of the reply was lost, else none.
        left_out: why items of the reply could not be used.
    """

    value: Value
    tokens: int
    kept: Kept
    losses: tuple[Loss, ...] = ()
    left_out: tuple[str, ...] = ()


class Caller:
    """A chat model, a counter, a window and a set of prompts.

    Attributes:
        budget: the token counter.
        prompts: the set of prompts.
        effort_of: returns the reasoning effort of a stage; "" is the server's default.
        packed_again: maximum number of times that a prompt is shortened for a server's context.
    """

    def __init__(
        self,
        chat: ChatModel,
        budget: TokenBudget,
        prompts: "PromptSet",
        listener: Listener | None = None,
        effort_of: Callable[[str], str] = lambda stage: "",
    ) -> None:
        self.budget = budget
        self.effort_of = effort_of
        self.prompts = prompts
        self._chat = chat
        self._listener = listener
        self._exceeded: ContextExceeded | None = None
        self._hidden = 0
        self._first = asyncio.Lock()
        self._is_known = False
        self.packed_again = PACKED_AGAIN

    def reply_limit(self, reply: int, window: int) -> int:
        """Return the limit of a reply, with room for reasoning that counts against it.

        A model is known to reason if it did so in an earlier reply of this run. The room comes out
        of the prompt: at most half of the window.
        """
        return max(reply, min(reply + self._hidden, window // 2)) if self._hidden else reply

    async def call(
        self,
        prompt: str,
        model: type[Out],
        render: Render,
        groups: Kept = (),
        *,
        window: int,
        reply: int,
        segments: Sequence[str] = (),
        attempt: int = 0,
        retries: int = PARSE_RETRIES,
        is_watched: bool = False,
        standing: str = "",
    ) -> Called[Out]:
        """Send a prompt and return its typed reply; `draft` says what is left out to fit.

        Args:
            prompt: name of a prompt of the set.
            model: Pydantic model of the reply.
            segments: ids of the segments that the prompt is about.
            attempt: number of the first try.
            retries: number of tries after the first one.
            is_watched: see `ChatRequest`.
            standing: text after the constant part of the prompt that is constant, too.

        Raises:
            WindowTooSmall: the prompt cannot be shortened to fit.
            ContextExceeded: it cannot be shortened to fit the server's smaller context.
            ModelOutputError: no reply could be parsed.
        """
        template = self.prompts[prompt]
        if template.output is not model:
            raise PromptError(
                f"{template.label} is answered by {template.reply}, not {model.__name__}"
            )
        async with self._first_alone(bool(segments)):
            for tries_left in reversed(range(self.packed_again + 1)):
                request, groups_kept = self._packed(
                    prompt, render, groups, window, reply, segments, standing
                )
                request = replace(request, attempt=attempt, is_watched=is_watched)
                try:
                    answered = await ask(
                        self._chat,
                        request,
                        model,
                        retries=retries,
                        form=template.form,
                        fits=lambda request: self.budget.fits(request, window),
                        heard=self._learn_hidden,
                    )
                except ContextExceeded as exc:
                    self._stretch(exc, tries_left, request, window)
                    continue
                self._learn(request, answered.replies[0].tokens_in)
                losses = _losses(attempt + retries, answered)
                tokens = request.prompt_tokens
                return Called(answered.value, tokens, groups_kept, losses, answered.left_out)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _first_alone(self, is_one_of_many: bool) -> AsyncIterator[None]:
        """Let the first call about segments go alone: its reply says whether the model reasons."""
        if self._is_known or not is_one_of_many:
            yield
            return
        async with self._first:
            is_first = not self._is_known
            try:
                if is_first:
                    yield
            finally:
                self._is_known = True
        if not is_first:
            yield

    def _learn_hidden(self, reply: ChatReply) -> None:
        """Keep the most tokens that a reply of the model used for reasoning."""
        shown = 2 * self.budget.count(reply.text) + SHOWN_SLACK
        hidden = reply.hidden_tokens or max(0, reply.tokens_out - shown)
        if is_used_up(reply):
            hidden = max(hidden, reply.tokens_out)
        if hidden:
            self._hidden = max(self._hidden, LEAST_HIDDEN, hidden * 3 // 2)

    async def say(
        self,
        prompt: str,
        render: Render,
        groups: Kept = (),
        *,
        window: int,
        reply: int,
        segments: Sequence[str] = (),
        temperature: float | None = 0.0,
        attempt: int = 0,
        top_p: float = 1.0,
        sampling: Mapping[str, float] | None = None,
    ) -> Called[str]:
        """Send a prompt and return its reply as plain text, which may be truncated; see `call`.

        Raises:
            WindowTooSmall: the prompt cannot be shortened to fit.
            ContextExceeded: it cannot be shortened to fit the server's smaller context.
        """
        for tries_left in reversed(range(self.packed_again + 1)):
            request, groups_kept = self._packed(prompt, render, groups, window, reply, segments)
            request = replace(
                request,
                temperature=temperature,
                attempt=attempt,
                top_p=top_p,
                sampling=tuple((sampling or {}).items()),
            )
            try:
                replied = await self._chat.complete(request)
            except ContextExceeded as exc:
                self._stretch(exc, tries_left, request, window)
                continue
            self._learn(request, replied.tokens_in)
            is_refused = replied.finish_reason == "refusal"
            text = "" if is_refused else without_reasoning(replied.text)
            return Called(text, request.prompt_tokens, groups_kept)
        raise AssertionError("unreachable")

    def draft(
        self,
        prompt: str,
        render: Render,
        groups: Kept = (),
        *,
        window: int,
        reply: int,
        standing: str = "",
    ) -> tuple[ChatRequest, Kept]:
        """Return a request within the window, and the kept pieces of each group.

        Args:
            prompt: name of a prompt of the set.
            render: makes the slots of the prompt from the kept pieces.
            groups: lists of pieces to shorten from their ends; the first list is shortened first.
            window: L in tokens.
            reply: tokens reserved for the reply.
            standing: see `call`.

        Raises:
            WindowTooSmall: the prompt does not fit even without any piece.
        """
        template = self.prompts[prompt]
        model = template.output if template.form == "json" else None
        schema = strict_schema(model) if model else None
        system_text = "\n\n".join(part for part in (template.system, standing) if part)

        def request(kept: Kept) -> ChatRequest:
            user = Message("user", template.user(render(kept)))
            system = (Message("system", system_text),) if system_text else ()
            return ChatRequest(
                messages=(*system, user),
                schema=schema,
                schema_name=template.name,
                max_tokens=reply,
                stage=template.stage,
                prompt=template.label,
                effort=self.effort_of(template.stage),
            )

        groups_kept, request_made = groups, request(groups)
        tokens = self.budget.request(request_made) + reply
        if tokens > window:
            groups_kept = _shortened(groups, lambda k: self.budget.fits(request(k), window))
            request_made = request(groups_kept)
            tokens = self.budget.request(request_made) + reply
            if tokens > window:
                raise WindowTooSmall(
                    f"the window of {window} tokens is too small: {template.label} needs {tokens}, "
                    f"{reply} for the reply included; widen it (--window, QRMEM_WINDOW), or "
                    "shorten the question or, in a new namespace, the segments (--segment-tokens)"
                )
        prompt_tokens = tokens - reply
        # Room for reasoning comes out of what is free: it displaces no piece.
        limit = max(reply, min(self.reply_limit(reply, window), window - prompt_tokens))
        return replace(request_made, prompt_tokens=prompt_tokens, max_tokens=limit), groups_kept

    def _packed(
        self,
        prompt: str,
        render: Render,
        groups: Kept,
        window: int,
        reply: int,
        segments: Sequence[str],
        standing: str = "",
    ) -> tuple[ChatRequest, Kept]:
        try:
            request, groups_kept = self.draft(
                prompt, render, groups, window=window, reply=reply, standing=standing
            )
        except WindowTooSmall:
            # The prompt is too long only by the stretched count: a larger window would not help.
            if self._exceeded is not None:
                raise self._exceeded from None
            raise
        segment_id = next(iter(segments), "")
        return replace(request, segment_id=segment_id, shared_with=tuple(segments[1:])), groups_kept

    def _stretch(self, exc: ContextExceeded, left: int, request: ChatRequest, window: int) -> None:
        """Raise the scale of counts after a server found a prompt too long, if it may be shortened.

        After that the sent prompt no longer fits the window, so that the next prompt is shorter.
        """
        message = f"the prompt is too long (QRMEM_WINDOW or --window makes it shorter): {exc}"
        self._exceeded = ContextExceeded(message, limit=exc.limit)
        if not left:
            raise self._exceeded from exc
        tokens = request.prompt_tokens + request.max_tokens
        self.budget.stretch(SHORTER * max(1.0, window / tokens))
        self._warn(f"{message}; the next one is shorter by a fifth")

    def _learn(self, request: ChatRequest, counted: int) -> None:
        # Other calls may have raised the scale meanwhile: it only rises.
        ours = request.prompt_tokens
        if counted > ours and self.budget.learn(request, counted):
            self._warn(f"the server counts {counted} tokens where we count {ours}; corrected")

    def _warn(self, message: str) -> None:
        if self._listener is not None:
            self._listener(Event("warning", {"message": message}))


def _losses(last: int, answered: Structured[Any]) -> tuple[Loss, ...]:
    if not answered.problems:
        return ()
    return (Loss("; ".join(answered.problems), answered.raw, last),)
