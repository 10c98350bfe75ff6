"""What a server can do, found out once for an endpoint and model and remembered in the process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from qrmem.errors import ModelUnavailable
from qrmem.llm.exchange import FORMS, Exchange, Form, Options, Sender
from qrmem.llm.failures import Rejected
from qrmem.llm.replies import is_clean
from qrmem.types import ChatReply, Event

_WEAKER: Mapping[Form, Form] = dict(pairwise(FORMS))
_IGNORED = 2
"""Replies in another form, and none in the right one, after which the form counts as ignored."""


@dataclass(slots=True)
class Abilities:
    """What is known of one model on one server.

    Attributes:
        confirmed: forms in which a reply has come back as asked for.
        strikes: replies of the current form that were no JSON at all.
    """

    options: Options = field(default_factory=Options)
    confirmed: set[Form] = field(default_factory=set)
    strikes: int = 0

    def weaken(self, form: Form) -> None:
        """Give up a form, unless another call has done so already."""
        if self.options.form == form and form in _WEAKER:
            self.options = replace(self.options, form=_WEAKER[form])
            self.strikes = 0

    def observe(self, form: Form, *, is_kept: bool) -> None:
        """Learn from a reply whether the server keeps to the form or ignores it."""
        if is_kept:
            self.confirmed.add(form)
        elif form not in self.confirmed and form == self.options.form:
            self.strikes += 1
            if self.strikes >= _IGNORED:
                self.weaken(form)


_KNOWN: dict[tuple[str, str], Abilities] = {}


def abilities(url: str, model: str) -> Abilities:
    """Return what this process knows of a model on a server."""
    return _KNOWN.setdefault((url, model), Abilities())


def forget() -> None:
    """Forget what all servers can do; for tests and for a probe that starts afresh."""
    _KNOWN.clear()


class Negotiation:
    """Sends a request in the strictest form that the server takes."""

    def __init__(self, inner: Sender, known: Abilities) -> None:
        self._inner = inner
        self._known = known

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send; on a refusal of the form, send in the next one.

        Raises:
            ModelUnavailable: the server refuses every form.
        """
        tried: set[Options] = set()
        refusal: Rejected | None = None
        exchange.options = self._known.options
        while True:
            tried.add(exchange.options)
            try:
                reply = await self._inner.send(exchange)
            except Rejected as exc:
                refusal = exc
                exchange.options = self._next(exchange, exc, tried)
                continue
            self._accepted(exchange, reply, refusal)
            return reply

    def _next(self, exchange: Exchange, refusal: Rejected, tried: set[Options]) -> Options:
        """Return another dialect; a refusal that names its reason is remembered at once."""
        used, is_structured = exchange.options, exchange.request.schema is not None
        changed, is_named = adapt(used, refusal.complaint, is_structured=is_structured)
        if self._known.options != used and self._known.options not in tried:
            return self._known.options
        if changed is None or changed in tried:
            raise ModelUnavailable(str(refusal)) from refusal
        if is_named and self._known.options == used:
            self._known.options = changed
        return changed

    def _accepted(self, exchange: Exchange, reply: ChatReply, refusal: Rejected | None) -> None:
        used, known = exchange.options, self._known
        if exchange.request.schema is None:
            # A plain request says nothing about output forms.
            used = replace(used, form=known.options.form)
        if used != known.options and _is_weaker(used, known.options):
            known.options = used
        if refusal is not None:
            self._tell(exchange, refusal)
        if exchange.request.schema is None or used.form in known.confirmed:
            return  # nothing to learn
        if reply.finish_reason == "stop" and reply.text:
            known.observe(used.form, is_kept=is_clean(reply.text))

    def _tell(self, exchange: Exchange, refusal: Rejected) -> None:
        """Say once that a server took a stricter form so far, and no longer does."""
        used = exchange.options.form
        lost = [f for f in FORMS[: FORMS.index(used)] if f in self._known.confirmed]
        self._known.confirmed.difference_update(lost)
        if lost and exchange.listener:
            message = f"no replies in the form {lost[0]} any more, {used} from here on ({refusal})"
            exchange.listener(Event("warning", {"what": "form", "message": message, "form": used}))


def adapt(used: Options, complaint: str, *, is_structured: bool) -> tuple[Options | None, bool]:
    """Return the dialect to try after a refusal, and whether the refusal named what it refuses.

    Args:
        complaint: the server's words, in lower case.
        is_structured: whether the refused request asked for an output form.
    """
    if "max_completion_tokens" in complaint and used.limit == "max_tokens":
        return replace(used, limit="max_completion_tokens"), True
    if "max_tokens" in complaint and used.limit == "max_tokens":
        return replace(used, limit="max_completion_tokens"), True
    if "max_completion_tokens" in complaint and used.limit == "max_completion_tokens":
        return replace(used, limit="max_tokens"), True
    if "temperature" in complaint and used.temperature:
        return replace(used, temperature=False), True
    if "top_p" in complaint and used.top_p:
        return replace(used, top_p=False), True
    if "logprobs" in complaint and used.log_probs:
        return replace(used, log_probs=False), True
    if "stream_options" in complaint and used.stream == "usage":
        return replace(used, stream="plain"), True
    if "stream" in complaint and used.stream:
        return replace(used, stream=""), True
    if is_structured and used.form in _WEAKER:
        words = ("response_format", "json_schema", "json_object", "schema", "grammar", "structured")
        is_named = any(word in complaint for word in words)
        return replace(used, form=_WEAKER[used.form]), is_named
    return None, False


def _is_weaker(used: Options, known: Options) -> bool:
    return FORMS.index(used.form) > FORMS.index(known.form)


__all__ = [
    "Abilities",
    "Negotiation",
    "abilities",
    "adapt",
    "forget",
]
