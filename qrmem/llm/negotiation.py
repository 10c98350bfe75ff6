"""Output forms and parameters that a server accepts, found out once per client."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from qrmem.errors import ModelUnavailable
from qrmem.llm.found_json import is_clean
from qrmem.llm.servers import Rejected
from qrmem.types import ChatReply, ChatRequest

Form = Literal["json_schema", "json_object+schema", "json_object", "text"]
"""Ways to request a structured reply; the second one is the dialect of llama.cpp."""

FORMS: tuple[Form, ...] = get_args(Form)
"""Output forms, strictest first."""
_WEAKER: Mapping[Form, Form] = dict(pairwise(FORMS))
_IGNORED = 2
"""A form counts as ignored after this many replies in another form, and none in it."""
_OF_ROLES = re.compile(r"system role|roles must alternate|roles are supported")
"""Errors of chat templates that allow no system message, or only alternating turns."""
_OF_FORMS = ("response_format", "json_schema", "json_object", "schema", "grammar", "structured")


SAMPLING = ("top_k", "min_p", "repeat_penalty", "repeat_last_n", "frequency_penalty")
"""Sampling parameters that not every server accepts."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The dialect that a server and a model speak.

    Attributes:
        form: the strictest output form that is known to be accepted.
        limit: the parameter that bounds the reply.
        system: whether to send a system message; else its text begins the user's message.
        temperature: whether to send a temperature.
        top_p: whether to send `top_p`.
        sampling: whether to send other sampling parameters.
        effort: whether to say how much to reason.
        log_probs: whether to request log-probabilities.
        stream: stream with usage at the end, stream without usage, or no stream.
    """

    form: Form = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    system: bool = True
    temperature: bool = True
    top_p: bool = True
    sampling: bool = True
    effort: bool = True
    log_probs: bool = True
    stream: Literal["usage", "plain", ""] = "usage"


class Negotiation:
    """The dialect that one client has found out for its model.

    Attributes:
        dialect: the strictest dialect that is known to be accepted.
    """

    def __init__(self) -> None:
        self.dialect = Dialect()
        self._confirmed: set[Form] = set()
        self._strikes = 0

    def after_refusal(
        self, used: Dialect, refusal: Rejected, tried: set[Dialect], *, is_structured: bool
    ) -> Dialect:
        """Return the next dialect to try; a refusal with a known reason is remembered.

        Raises:
            ModelUnavailable: every dialect was tried.
        """
        changed, is_named = adapt(used, refusal.complaint, is_structured=is_structured)
        if self.dialect != used and self.dialect not in tried:
            return self.dialect
        if changed is None or changed in tried:
            raise ModelUnavailable(str(refusal)) from refusal
        if is_named and self.dialect == used:
            self.dialect = changed
        return changed

    def learn(self, used: Dialect, request: ChatRequest, reply: ChatReply) -> Form | None:
        """Remember a dialect that was accepted, and whether the reply has the requested form.

        Returns:
            The stricter form that was used so far and is now refused, or `None`.
        """
        is_structured = request.schema is not None
        if not is_structured:
            # A plain request says nothing about output forms.
            used = replace(used, form=self.dialect.form)
        form = used.form
        if FORMS.index(form) > FORMS.index(self.dialect.form):
            self.dialect = used
        forms_lost = [
            stricter for stricter in FORMS[: FORMS.index(form)] if stricter in self._confirmed
        ]
        self._confirmed.difference_update(forms_lost)
        says_something = is_structured and reply.finish_reason == "stop" and bool(reply.text)
        if says_something and form not in self._confirmed:
            self._observe(form, is_kept=is_clean(reply.text))
        return forms_lost[0] if forms_lost else None

    def _observe(self, form: Form, *, is_kept: bool) -> None:
        """Learn from a reply whether the server keeps to the form or ignores it."""
        if is_kept:
            self._confirmed.add(form)
        elif form == self.dialect.form and form in _WEAKER:
            self._strikes += 1
            if self._strikes >= _IGNORED:
                self.dialect = replace(self.dialect, form=_WEAKER[form])
                self._strikes = 0


def adapt(used: Dialect, complaint: str, *, is_structured: bool) -> tuple[Dialect | None, bool]:
    """Return the dialect to try after a refusal, and whether the refusal named its reason.

    Args:
        used: the refused dialect.
        complaint: the server's message, in lower case.
        is_structured: whether the refused request asked for an output form.
    """
    words = frozenset(re.findall(r"\w+", complaint))  # "upstream" is not about `stream`
    if "max_tokens" in words and used.limit == "max_tokens":
        return replace(used, limit="max_completion_tokens"), True
    if "max_completion_tokens" in words:
        is_old = used.limit == "max_tokens"
        return replace(used, limit="max_completion_tokens" if is_old else "max_tokens"), True
    if _OF_ROLES.search(complaint) and used.system:
        return replace(used, system=False), True
    if "temperature" in words and used.temperature:
        return replace(used, temperature=False), True
    if used.sampling and not words.isdisjoint(SAMPLING):
        return replace(used, sampling=False), True
    if words & {"reasoning_effort", "reasoning"} and used.effort:
        return replace(used, effort=False), True
    if "top_p" in words and used.top_p:
        return replace(used, top_p=False), True
    if "logprobs" in words and used.log_probs:
        return replace(used, log_probs=False), True
    if "stream_options" in words and used.stream == "usage":
        return replace(used, stream="plain"), True
    if words & {"stream", "streaming"} and used.stream:
        return replace(used, stream=""), True
    if is_structured and used.form in _WEAKER:
        return replace(used, form=_WEAKER[used.form]), not words.isdisjoint(_OF_FORMS)
    return None, False
