"""Sends typed prompts to a chat model, packs again where the server counts more than we do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from qrmem.errors import ContextExceeded, PromptError, WindowTooSmall
from qrmem.llm.structured import Structured, ask
from qrmem.llm.token_budget import Draft, TokenBudget, draft
from qrmem.prompts import Prompt, PromptSet, load_prompts
from qrmem.types import ChatModel, Event, Listener, Loss

Out = TypeVar("Out", bound=BaseModel)
Value = TypeVar("Value")
Render = Callable[[Sequence[Sequence[str]]], Mapping[str, object]]
"""Makes a prompt's slots of the lists of pieces, as far as these fit."""

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
        """Send a prompt; see `qrmem.llm.token_budget.draft` for what is left out to fit.

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
