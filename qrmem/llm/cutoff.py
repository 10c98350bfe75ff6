"""JSON that breaks off in the middle: closed after its last whole item, so that no half is kept."""

_CLOSERS = {"{": "}", "[": "]"}
DEEPEST = 12
"""Nesting beyond which a text is no reply to any prompt, and costs a repairer its time."""


def completed(text: str) -> tuple[str, bool]:
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


__all__ = ["DEEPEST", "completed"]
