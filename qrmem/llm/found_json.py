"""Finds the JSON in a model's reply: among thoughts, prose and fences, damaged, or broken off."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST = 200_000
"""Characters of a reply that are read; the rest of a longer one is left out."""
DEEPEST = 12
"""Nesting beyond which a text is no reply to any prompt, and costs a repairer its time."""
_REPAIRED = 8_000
"""Characters up to which the repairer is tried; its time grows with the square of them."""
_STARTS = 40
"""Places in a reply where a JSON value is looked for."""
_REASONING = r"think|thinking|thought|reasoning|reflection|scratchpad"
_TAG = re.compile(rf"<(/?)(?:{_REASONING})>", re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_TRAILING = re.compile(r",\s*+([}\]])")
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)", re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A JSON value found in a reply.

    Attributes:
        is_plain: whether it is all of the reply.
        is_whole: whether it stands there from beginning to end.
        loss: what is known to be lost, in words.
    """

    value: Any
    is_plain: bool = False
    is_whole: bool = True
    loss: str = ""


def candidates(text: str) -> Iterator[Candidate]:
    """Yield the JSON values in a reply, the most trustworthy first."""
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
    # Models that think aloud without tags put the answer last: what they quote before it, in a
    # fence or not, is none.
    for _, value in sorted(whole, key=lambda found: found[0], reverse=True):
        yield Candidate(value)
    for piece in [*reversed(fenced), answer]:
        closed, is_cut = _completed(piece)
        if (value := _repaired(closed)) is not _NOTHING:
            loss = "the reply breaks off" if is_cut else ""
            yield Candidate(value, is_whole=False, loss=loss)
    for value in reversed(inner):
        yield Candidate(value, is_whole=False, loss="only a part of the reply is JSON")


def _embedded(text: str) -> tuple[list[tuple[int, Any]], list[Any]]:
    """Return the JSON objects and lists in a text with their places, and those after a broken one.

    What comes after a bracket that opens no JSON may be a part of what was meant.
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


def _repaired(text: str) -> Any:
    """Return what the repairer makes of a text from its first bracket on."""
    match = _OPENING.search(text)
    if match is None:
        return _NOTHING
    text = text[match.start() :]
    if isinstance(value := _loaded(_TRAILING.sub(r"\1", text)), dict | list):
        return value
    if len(text) > _REPAIRED or _openings(text) > DEEPEST:
        return _NOTHING
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except Exception:  # whatever it stumbles over, the reply is just not JSON
        return _NOTHING
    return value if isinstance(value, dict | list) and value else _NOTHING


def _openings(text: str) -> int:
    """Return how many brackets are never closed, in quotes or out of them."""
    return sum(map(text.count, "{[")) - sum(map(text.count, "}]"))


_NOTHING = object()


_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def _loaded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _NOTHING


def is_clean(text: str) -> bool:
    """Whether a reply is one JSON object or list and nothing else."""
    found = _loaded(text.strip())
    return isinstance(found, dict | list)


def without_reasoning(text: str) -> str:
    """Return a reply without the blocks in which a model thinks aloud."""
    kept: list[str] = []
    position, is_inside = 0, False
    for tag in _TAG.finditer(text[:LONGEST]):
        if tag.group(1):
            if not is_inside:
                kept.clear()  # some chat templates swallow the opening tag
            position, is_inside = tag.end(), False
        elif not is_inside:
            kept.append(text[position : tag.start()])
            is_inside = True
    if not is_inside:
        kept.append(text[position:LONGEST])
    return "".join(kept).strip()


# --- what breaks off ------------------------------------------------------------------------------


def _completed(text: str) -> tuple[str, bool]:
    """Return a text cut after its last whole item and closed, and whether a piece was cut off.

    A text that does not break off stays as it is; one that is nested too deeply becomes "".

    A name or sentence that was cut in half would look like a name or a sentence of the document.
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return text, False
    stack: list[str] = []
    last: tuple[int, str] | None = None
    at = start
    while at < len(text):
        char = text[at]
        if char in "\"'" and (char == '"' or _may_open(text, at)):
            at = _end_of_string(text, at)
            continue
        if char in "{[":
            stack.append(_CLOSERS[char])
            if len(stack) > DEEPEST:
                return "", False
        elif char in "}]" and stack and stack[-1] == char:
            stack.pop()
            last = (at + 1, "".join(reversed(stack)))
            if not stack:
                return text, False
        elif char == "," and stack:
            last = (at, "".join(reversed(stack)))
        at += 1
    if not stack or last is None:
        return text, False
    # Only the very last bracket is missing: everything that was begun had been ended.
    is_whole = last[1] == "}" and not text[last[0] :].strip(" \t\r\n`")
    return text[: last[0]] + last[1], not is_whole


def _may_open(text: str, at: int) -> bool:
    """Whether a single quote stands where a text begins, and not in the middle of a word."""
    before = text[max(0, at - 20) : at].rstrip()
    return before[-1:] in {"{", "[", ",", ":"}


def _end_of_string(text: str, at: int) -> int:
    """Return the position after a text's closing quote, or the text's end."""
    quote = text[at]
    at += 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] == quote and (quote == '"' or _may_close(text, at)):
            return at + 1
        at += 1
    return len(text)


def _may_close(text: str, at: int) -> bool:
    return text[at + 1 : at + 21].lstrip()[:1] in {"", ",", ":", "}", "]"}


__all__ = ["Candidate", "candidates", "is_clean", "without_reasoning"]
