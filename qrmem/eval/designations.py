"""Parsing of outputs in Ada-LEval's tasks, strictly and like the released script.

The released script has errors that affect the paper's figures: `A1` is found within `A15`, of
several answers the highest counts, and only the beginning of an order that is too short is
compared. `official` has the same errors, so that figures are comparable; `strict` accepts only one
whole answer.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import permutations

_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
_DESIGNATION = re.compile(r"\bA([1-9]\d*)\b", re.ASCII)
_NEXT = re.compile(r"[\s*_\"'`(\[]*A([1-9]\d*)\b", re.ASCII)
_NUMBER = re.compile(r"(?<![\w.])\d+(?!\w|\.\d)", re.ASCII)
_LIST = re.compile(r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]", re.ASCII)


def sample_order(n: int) -> list[int]:
    """Return the example order in the prompt: [4, 1, 3, 2] for four parts."""
    halves = zip(range(n, 0, -1), range(1, n + 1), strict=True)
    return [number for pair in halves for number in pair][:n]


SAMPLE_ANSWER = 4
"""The example answer in BestAnswer's prompt."""


# --- BestAnswer ----------------------------------------------------------------------------------


def strict_answer(output: str, n: int) -> int | None:
    """Return the only answer k that an output names as `A<k>`, from 1 to `n`; else `None`.

    The answer directly after the last `Answer:` counts; without one the text after it must name
    exactly one answer.
    """
    text = _after_last(output)
    if text != output and (match := _NEXT.match(text)):
        numbers = {int(match[1])}
    else:
        numbers = {int(number) for number in _DESIGNATION.findall(text)}
    return next(iter(numbers)) if len(numbers) == 1 and max(numbers) <= n else None


def official_answer(output: str, n: int) -> int | None:
    """Return the highest k of `A<k>`, from 1 to n, in an output, else the highest number."""
    for mark in ("A", ""):
        for k in range(n, 0, -1):
            if f"{mark}{k}" in output:
                return k
    return None


def names_answer(output: str, n: int) -> bool:
    """Return whether an output follows the instruction: it names an existing answer."""
    return any(int(number) <= n for number in _DESIGNATION.findall(output))


# --- TSort ---------------------------------------------------------------------------------------


def strict_order(output: str, n: int) -> list[int] | None:
    """Return the permutation of 1 to n in an output, else `None`.

    After the last `Answer:`, if there is one, the text must have either one list in brackets, or
    only the numbers of the permutation.
    """
    text = _after_last(output)
    lists = {tuple(map(int, _NUMBER.findall(list_text))) for list_text in _LIST.findall(text)}
    if len(lists) > 1:
        return None
    order = list(next(iter(lists))) if lists else list(map(int, _NUMBER.findall(text)))
    return order if sorted(order) == list(range(1, n + 1)) else None


def official_order(output: str, n: int) -> object:
    """Parse an order like the released script: any JSON value, zeros if it fails.

    It reads the text after the first `Answer:` as JSON, or else finds the only permutation whose
    digits occur in it in that order.
    """
    text = output.partition("Answer:")[2] if "Answer:" in output else output
    try:
        return json.loads(text)
    except ValueError:
        pass
    orders = [
        list(order)
        for order in permutations(range(1, n + 1))
        if _is_within((str(k) for k in order), iter(text))
    ]
    return orders[0] if len(orders) == 1 else [0] * n


def official_is_right(output: str, right: Sequence[int]) -> bool | None:
    """Return whether the released script counts an order as right; `None` if the script fails."""
    order = official_order(output, len(right))
    if not isinstance(order, list | dict | str):
        return None
    return all(ours == theirs for ours, theirs in zip(order, right, strict=False))


def holds_order(output: str, n: int) -> bool:
    """Return whether an output follows the instruction: it contains a permutation of 1 to n."""
    numbers = _NUMBER.findall(output)
    return any(
        _is_within((str(k) for k in order), iter(numbers))
        for order in permutations(range(1, n + 1))
    )


def _after_last(output: str) -> str:
    matches = list(_ANSWER.finditer(output))
    return output[matches[-1].end() :] if matches else output


def _is_within(wanted: Iterator[str], found: Iterator[str]) -> bool:
    return all(one in found for one in wanted)
