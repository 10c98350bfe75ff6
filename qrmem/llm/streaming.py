"""A reply while it is being written: its pieces joined, and what a user may read of them."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from qrmem.llm.failures import StreamBroken

_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Fields:
    """Takes a reply's JSON piece by piece and gives what its text fields say, as it comes.

    Only the fields of the outermost object are read. What stands before it is passed over.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escape = ""
        self._is_name = False
        self._name = ""
        self._high = ""

    def feed(self, piece: str) -> Iterator[tuple[str, str]]:
        """Yield the name of a field and what it goes on with."""
        said: dict[str, str] = {}
        for char in piece:
            for field, text in self._take(char):
                said[field] = said.get(field, "") + text
        yield from ((field, text) for field, text in said.items() if text)

    def _take(self, char: str) -> Iterator[tuple[str, str]]:
        if not self._in_text:
            self._outside(char)
        elif self._escape or char == "\\":
            yield from self._said(self._unescaped(char))
        elif char == '"':
            self._in_text = False
        else:
            yield from self._said(char)

    def _outside(self, char: str) -> None:
        if char in "{[":
            self._depth += 1
            self._is_name = char == "{"
        elif char in "}]":
            self._depth -= 1
        elif char == ":":
            self._is_name = False
        elif char == ",":
            # Inside a list, which lies deeper, a text is no name either; it is never told.
            self._is_name = self._depth == 1
        elif char == '"' and self._depth:
            self._in_text = True
            if self._is_name and self._depth == 1:
                self._name = ""

    def _said(self, text: str) -> Iterator[tuple[str, str]]:
        if self._depth != 1 or not text:
            return
        if self._is_name:
            self._name += text
        else:
            yield self._name, text

    def _unescaped(self, char: str) -> str:
        """Return what an escape stands for once it is complete, "" before."""
        self._escape += char
        if self._escape == "\\":
            return ""
        kind = self._escape[1]
        if kind != "u":
            self._escape = ""
            return _PLAIN.get(kind, kind)
        if len(self._escape) < 6:
            return ""
        code, self._escape = self._escape[2:], ""
        try:
            text = self._high + chr(int(code, 16))
        except ValueError:
            return ""
        self._high = ""
        if len(text) == 1 and "\ud800" <= text <= "\udbff":
            self._high = text
            return ""
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
