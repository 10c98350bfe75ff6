"""A model none of whose replies can be read is not paid for a whole document: the run stops."""

from qrmem.errors import ModelUnusable
from qrmem.types import ChatReply

UNKNOWN = 20
"""Replies in a row that cannot be read, of a model that has never given one that could."""
PROVEN = 60
"""The same of a model that has: ten segments one after the other, each tried six times."""
_SHOWN = 80
"""Characters of a reply that an error shows."""
_OF_THE_TEXT = frozenset({"refusal", "content_filter"})
"""Ends of a reply that say more about what was read than about the model."""


class Trust:
    """Counts, for each model of a run, the replies in a row that cannot be read.

    A spoilt reply now and then is nothing: it is asked for again. A server that has come to the
    wrong template, or a model that is too small for the task, would be asked six times a segment.
    """

    def __init__(self) -> None:
        self._spoilt: dict[str, int] = {}
        self._proven: set[str] = set()
        self._is_known = False
        self._last = ""

    def prove(self) -> None:
        """Take it that the models have been of use before, in an earlier run."""
        self._is_known = True

    def hear(self, model: str, reply: ChatReply, outcome: str) -> None:
        """Take note of a reply that came from a server."""
        if outcome in {"ok", "repaired"}:
            self._proven.add(model)
            self._spoilt[model] = 0
        elif outcome == "unparsable" and reply.finish_reason not in _OF_THE_TEXT:
            self._spoilt[model] = self._spoilt.get(model, 0) + 1
            self._last = reply.text

    def check(self, model: str) -> None:
        """Stop before a model is asked once more for nothing.

        Raises:
            ModelUnusable: with what its last reply looks like.
        """
        spoilt = self._spoilt.get(model, 0)
        if spoilt < (PROVEN if self._is_known or model in self._proven else UNKNOWN):
            return
        text = " ".join(self._last.split())
        shown = f"begins {text[:_SHOWN]!r}" if text else "is empty"
        raise ModelUnusable(
            f"no reply of {model} can be read, {spoilt} in a row now (the last {shown}); "
            "`qrmem doctor --model` shows what it can do; what was read is kept, and the same "
            "command goes on from there, with this model or with another"
        )


__all__ = ["Trust"]
