"""Finds JSON in a model's reply: within reasoning, prose or fences, damaged or truncated."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

LONGEST = 200_000
"""Maximum number of characters of a reply that are read."""
DEEPEST = 12
"""Maximum nesting; no prompt asks for more, and the repair would take long."""
_REPAIRED = 8_000
"""Maximum number of characters for the repair, which takes quadratic time."""
_STARTS = 40
"""Maximum number of places in a reply where a JSON value is tried."""
_REASONING = r"think|thinking|thought|reasoning|reflection|scratchpad"
_TAG = re.compile(rf"<(/?)(?:{_REASONING})>", re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_TRAILING = re.compile(r",\s*+([}\]])")
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)", re.DOTALL)
_CONTROLS = dict.fromkeys(range(32), " ")
"""Control characters such as line ends, which JSON forbids in texts and some models write there."""
_END = "\uffff"
"""Marks the end of a truncated reply, so that the repaired value shows the cut."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A JSON value found in a reply.

    Attributes:
        is_plain: whether the reply has nothing else.
        is_whole: whether the reply has the complete value.
        loss: description of what is lost, or "".
    """

    value: Any
    is_plain: bool = False
    is_whole: bool = True
    loss: str = ""


def candidates(text: str) -> Iterator[Candidate]:
    """Yield the JSON values in a reply, most reliable first."""
    stripped = text[:LONGEST].strip().lstrip("\ufeff").strip()
    if (value := _loaded(stripped)) is not _NOTHING:
        yield Candidate(value, is_plain=True)
        if not isinstance(value, str):
            return
        stripped = value  # JSON inside a JSON string
    answer = without_reasoning(stripped)
    fences = list(_FENCE.finditer(answer))
    fenced = [match.group(1).strip() for match in fences]
    whole, inner = _embedded(answer)
    for match in fences:
        if (value := _loaded(match.group(1).strip())) is not _NOTHING:
            whole.append((match.start(), value))
    # Models that reason without tags put the answer last: earlier JSON, fenced or not, is no
    # answer.
    for _, value in sorted(whole, key=lambda found: found[0], reverse=True):
        yield Candidate(value)
    for piece in [*reversed(fenced), answer]:
        value, is_cut = _mended(piece)
        if value is not _NOTHING:
            loss = "the reply breaks off" if is_cut else ""
            yield Candidate(value, is_whole=False, loss=loss)
    for value in reversed(inner):
        yield Candidate(value, is_whole=False, loss="only a part of the reply is JSON")


def _embedded(text: str) -> tuple[list[tuple[int, Any]], list[Any]]:
    """Return the JSON objects and lists in a text with their places, and those after a broken one.

    After a bracket that opens no JSON, the rest may be a part of the intended value.
    """
    whole: list[tuple[int, Any]] = []
    inner: list[Any] = []
    position, is_broken = 0, False
    for _ in range(_STARTS):
        match = _OPENING.search(text, position)
        if match is None:
            break
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position, is_broken = match.end(), True
            continue
        if value and is_broken:
            inner.append(value)
        elif value:
            whole.append((match.start(), value))
    return whole, inner


def _mended(text: str) -> tuple[Any, bool]:
    """Return the repaired JSON at the beginning of a text, and whether a part was cut off.

    Of a truncated list only whole items are kept: half a name or sentence would look like one in
    the document.
    """
    match = _OPENING.search(text)
    if match is None:
        return _NOTHING, False
    text = text[match.start() :].rstrip(" \t\r\n`")
    # If only the very last bracket is missing, all items are complete.
    for whole in (_TRAILING.sub(r"\1", text), text + "}"):
        if isinstance(value := _loaded(whole), dict | list):
            return value, False
    is_cut = (openings := _openings(text)) > 0
    value = _NOTHING
    if is_cut:
        try:
            sendable = text.translate(_CONTROLS).encode("utf-8", "replace")
            value = _trimmed(from_json(sendable, allow_partial=True))
        except ValueError:
            value = _NOTHING
    if value is _NOTHING and len(text) <= _REPAIRED and openings <= DEEPEST:
        value = _trimmed(_repaired(text + _END)) if is_cut else _repaired(text)
    return value if isinstance(value, dict | list) and value else _NOTHING, is_cut


def _repaired(text: str) -> Any:
    import json_repair

    try:
        return json_repair.loads(text, skip_json_loads=True)
    except Exception:  # on any exception the reply is not JSON
        return _NOTHING


def _trimmed(value: Any) -> Any:
    """Return a value without an incomplete item at its end."""
    while isinstance(value, dict | list) and value:
        at = list(value)[-1] if isinstance(value, dict) else -1
        inner = _trimmed(value[at])
        if inner in ({}, []) or _END in f"{at}{inner if isinstance(inner, str) else ''}":
            del value[at]
            continue
        value[at] = inner
        break
    return value


def _openings(text: str) -> int:
    """Return the number of brackets that are never closed, in quotes or not."""
    return sum(map(text.count, "{[")) - sum(map(text.count, "}]"))


_NOTHING = object()


_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def _loaded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _NOTHING


def is_clean(text: str) -> bool:
    """Return whether a reply is one JSON object or list and nothing else."""
    loaded = _loaded(text.strip())
    return isinstance(loaded, dict | list)


def without_reasoning(text: str) -> str:
    """Return a reply without blocks of reasoning."""
    pieces: list[str] = []
    position, is_inside = 0, False
    for tag in _TAG.finditer(text[:LONGEST]):
        if tag.group(1):
            if not is_inside:
                pieces.clear()  # some chat templates swallow the opening tag
            position, is_inside = tag.end(), False
        elif not is_inside:
            pieces.append(text[position : tag.start()])
            is_inside = True
    if not is_inside:
        pieces.append(text[position:LONGEST])
    return "".join(pieces).strip()
