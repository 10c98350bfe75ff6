"""Keeps every request within the window L: what is counted, and what is left out to fit."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from qrmem.errors import WindowTooSmall
from qrmem.llm.schemas import strict_schema
from qrmem.types import ChatRequest, Message, Tokenizer

if TYPE_CHECKING:
    from qrmem.prompts import Prompt

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
    prompt: "Prompt",
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
