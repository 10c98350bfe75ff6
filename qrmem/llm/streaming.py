"""A reply while it is being written: its pieces joined, and what a user may read of them."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from pydantic_core import from_json

from qrmem.llm.failures import StreamBroken

_OBJECT = re.compile(r"\{\s*\"")
_CONTROLS = dict.fromkeys(range(32), " ")
"""Line ends and the like, which JSON forbids inside of texts and some models write there."""


class Fields:
    """Takes a reply's JSON piece by piece and gives what its text fields say, as it comes.

    Only the fields of the outermost object are read. What stands before it is passed over.
    """

    def __init__(self) -> None:
        self._text = ""
        self._told: dict[str, str] = {}

    def feed(self, piece: str) -> Iterator[tuple[str, str]]:
        """Yield the name of a field and what it goes on with."""
        self._text += piece.translate(_CONTROLS)
        for name, value in self._fields().items():
            told = self._told.get(name, "")
            if isinstance(value, str) and len(value) > len(told):
                self._told[name] = value
                yield name, value[len(told) :]

    def _fields(self) -> dict[str, Any]:
        """Return the object as far as it is written."""
        start = _OBJECT.search(self._text)
        whole = self._text[start.start() :] if start else ""
        for text in (whole, whole[: whole.rfind("}") + 1]):  # something may stand behind it
            try:
                found = from_json(text, allow_partial="trailing-strings")
            except ValueError:
                continue
            return found if isinstance(found, dict) else {}
        return {}


async def joined(lines: AsyncIterator[str], take: Callable[[str], None]) -> str:
    """Join the events of a streamed completion into the body that an unstreamed one has.

    Args:
        lines: of the answer.
        take: hears each piece of the reply as it comes.

    Raises:
        StreamBroken: they are no such events, or break off before the reply has ended.
    """
    reply = _Joined(take)
    async for line in lines:
        if not line.startswith("data:") or line[5:].strip() in {"", "[DONE]"}:
            continue
        try:
            reply.add(json.loads(line[5:]))
        except (ValueError, TypeError, AttributeError, RecursionError) as exc:
            raise StreamBroken(f"{type(exc).__name__}: {exc}") from None
    return reply.body()


class _Joined:
    """What the events of a stream have said so far."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._text: list[str] = []
        self._refusal = self._end = ""
        self._others: dict[str, Any] = {}
        self._log_probs: list[Any] = []

    def add(self, event: Any) -> None:
        """Take one event."""
        if event.get("error"):
            raise StreamBroken(str(event["error"]))
        self._others |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        for part in event.get("choices") or ():
            delta = part.get("delta") or {}
            if piece := delta.get("content"):
                if not isinstance(piece, str):
                    raise TypeError("a piece of the reply is no text")
                self._text.append(piece)
                self._take(piece)
            self._refusal += delta.get("refusal") or ""
            self._end = part.get("finish_reason") or self._end
            self._log_probs += (part.get("logprobs") or {}).get("content") or ()

    def body(self) -> str:
        """Return the body that an answer in one piece has."""
        if not self._end:
            raise StreamBroken("the stream broke off before the reply had ended")
        choice = {
            "message": {"content": "".join(self._text), "refusal": self._refusal or None},
            "finish_reason": self._end,
            "logprobs": {"content": self._log_probs},
        }
        return json.dumps({**self._others, "choices": [choice]})


__all__ = ["Fields", "joined"]
