"""Formats the options of a multiple-choice question, and finds the option that a reply means."""

import re
from collections.abc import Sequence
from string import ascii_uppercase

from qrmem.text.names import normalise_name

# Options of a multiple-choice question: their form, and the one that a reply means.

_LETTER = re.compile(
    r"\W*(?:answer|option|choice)?\W*\(?([A-Za-z])\)?(?:[\W_].*)?", re.DOTALL | re.I
)
_IN_BRACKETS = re.compile(r"\(([A-Za-z]|\d{1,3})\)")
_DIGIT = re.compile(r"\W*(?:answer|option|choice)?\W*\(?(\d{1,3})\)?(?:[\W_].*)?", re.DOTALL | re.I)


def shown(question: str, choices: Sequence[str]) -> str:
    """Return a question with its options: (A), (B), … or, if they are many, (1), (2), …."""
    if not choices:
        return f"Question: {question}"
    lines = [f"({_label(n, len(choices))}) {choice}" for n, choice in enumerate(choices)]
    return "\n".join([f"Question: {question}", "Options:", *lines])


def chosen(reply: str, choices: Sequence[str]) -> int | None:
    """Return the option that a reply means: (A), A, a digit from 1, or the option's own text.

    The text is compared first, because an option may itself be a letter or a number.
    """
    plain = reply.strip()
    if not plain:
        return None
    texts = [choice.strip().casefold() for choice in choices]
    if texts.count(plain.casefold()) == 1:
        return texts.index(plain.casefold())
    norms = [normalise_name(choice) for choice in choices]
    norm = normalise_name(plain)
    if norm and norms.count(norm) == 1:
        return norms.index(norm)
    return _labelled(plain, choices)


def _labelled(reply: str, choices: Sequence[str]) -> int | None:
    labels = {label.upper() for label in _IN_BRACKETS.findall(reply)}
    if len(labels) > 1:
        return None
    reply = labels.pop() if labels else reply
    if letter := _LETTER.fullmatch(reply):
        n = ascii_uppercase.index(letter.group(1).upper())
        # "A dog" is no label; "A", "(A) a dog" and "A. a dog" are.
        rest = reply[letter.end(1) :]
        if n < len(choices) <= len(ascii_uppercase) and not re.match(r"\s+\w", rest):
            return n
    if digit := _DIGIT.fullmatch(reply):
        n = int(digit.group(1)) - 1
        if 0 <= n < len(choices) and not re.match(r"\s+\w|[.,]\d", reply[digit.end(1) :]):
            return n
    return None


def _label(n: int, of: int) -> str:
    return ascii_uppercase[n] if of <= len(ascii_uppercase) else str(n + 1)
