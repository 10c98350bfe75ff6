"""A circuit breaker: stops a build whose model gives only unreadable replies."""

from qrmem.errors import ModelUnusable
from qrmem.llm.structured import LONGER
from qrmem.types import ChatReply

UNKNOWN = 20
"""Limit of successive unreadable replies for a model that never gave a readable one."""
PROVEN = 60
"""The same limit for a model that did: ten successive segments with five tries each."""
_SHOWN = 80
"""Maximum number of characters of a reply in an error."""
_OF_THE_TEXT = frozenset({"refusal", "content_filter"})
"""Finish reasons that depend on the text rather than on the model."""


class CircuitBreaker:
    """Counts successive unreadable replies of each model of a run.

    An occasional unreadable reply is harmless: the request is repeated. A server with a wrong
    template, or a model that is too small, would get five requests per segment.
    """

    def __init__(self) -> None:
        self._spoilt: dict[str, int] = {}
        self._proven: set[str] = set()
        self._is_known = False
        self._last = ChatReply("")

    def prove(self) -> None:
        """Treat the models as proven by an earlier run."""
        self._is_known = True

    def hear(self, model: str, reply: ChatReply, outcome: str) -> None:
        """Count a reply from a server."""
        if outcome in {"ok", "repaired"}:
            self._proven.add(model)
            self._spoilt[model] = 0
        elif outcome == "unparsable" and reply.finish_reason not in _OF_THE_TEXT:
            self._spoilt[model] = self._spoilt.get(model, 0) + 1
            self._last = reply

    def check(self, model: str) -> None:
        """Check that a model may get another request.

        Raises:
            ModelUnusable: the limit is reached; the message shows the model's last reply.
        """
        spoilt = self._spoilt.get(model, 0)
        if spoilt < (PROVEN if self._is_known or model in self._proven else UNKNOWN):
            return
        text = " ".join(self._last.text.split())
        reply_in_words = f"begins {text[:_SHOWN]!r}" if text else "is empty"
        if not text and self._last.finish_reason == "length":
            reply_in_words = f"reached the token limit before its first word: {LONGER}"
        raise ModelUnusable(
            f"no reply of {model} can be read, {spoilt} in a row now (the last {reply_in_words}); "
            "`qrmem doctor --model` shows what it can do; what was read is kept, and the same "
            "command continues from there, with this model or another"
        )
