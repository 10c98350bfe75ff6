"""What an output designates in Ada-LEval's tasks, read strictly and as the released script does.

The released script has errors that move the papers' figures: `A1` is found inside of `A15`, of
several answers the highest counts, and an order that is too short is compared as far as it goes.
`official` keeps them, so that figures compare; `strict` takes nothing but one whole designation.
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
    """Return the order that the prompt shows as an example: [4, 1, 3, 2] for four parts."""
    halves = zip(range(n, 0, -1), range(1, n + 1), strict=True)
    return [number for pair in halves for number in pair][:n]


SAMPLE_ANSWER = 4
"""The answer that BestAnswer's prompt shows as an example."""


# --- BestAnswer ----------------------------------------------------------------------------------


def strict_answer(output: str, n: int) -> int | None:
    """Return the one answer of `n` that an output names as `A<k>`, from 1; else `None`.

    What stands right after the last `Answer:` counts; where nothing does, the text after it must
    name one answer only.
    """
    text = _after_last(output)
    if text != output and (found := _NEXT.match(text)):
        named = {int(found[1])}
    else:
        named = {int(number) for number in _DESIGNATION.findall(text)}
    return next(iter(named)) if len(named) == 1 and max(named) <= n else None


def official_answer(output: str, n: int) -> int | None:
    """Return the highest `A<k>`, k from 1 to n, that an output holds, else the highest number."""
    for mark in ("A", ""):
        for k in range(n, 0, -1):
            if f"{mark}{k}" in output:
                return k
    return None


def names_answer(output: str, n: int) -> bool:
    """Whether an output follows the instruction: it names an answer that there is."""
    return any(int(number) <= n for number in _DESIGNATION.findall(output))


# --- TSort ---------------------------------------------------------------------------------------


def strict_order(output: str, n: int) -> list[int] | None:
    """Return the permutation of 1 to n that an output gives, else `None`.

    After the last `Answer:`, if there is one, the text has either one list in brackets, or no
    numbers but those of the permutation.
    """
    text = _after_last(output)
    lists = {tuple(map(int, _NUMBER.findall(found))) for found in _LIST.findall(text)}
    if len(lists) > 1:
        return None
    order = list(next(iter(lists))) if lists else list(map(int, _NUMBER.findall(text)))
    return order if sorted(order) == list(range(1, n + 1)) else None


def official_order(output: str, n: int) -> object:
    """Return what the released script reads an order as: any JSON value, zeros where it fails.

    It takes what follows the first `Answer:` as JSON, else the one permutation whose digits stand
    in it in that order.
    """
    text = output.partition("Answer:")[2] if "Answer:" in output else output
    try:
        return json.loads(text)
    except ValueError:
        pass
    found = [
        list(order)
        for order in permutations(range(1, n + 1))
        if _is_within((str(k) for k in order), iter(text))
    ]
    return found[0] if len(found) == 1 else [0] * n


def official_is_right(output: str, right: Sequence[int]) -> bool | None:
    """Return whether the released script takes an order for right; `None` where it breaks off."""
    order = official_order(output, len(right))
    if not isinstance(order, list | dict | str):
        return None
    return all(ours == theirs for ours, theirs in zip(order, right, strict=False))


def holds_order(output: str, n: int) -> bool:
    """Whether an output follows the instruction: its numbers hold a permutation of 1 to n."""
    numbers = _NUMBER.findall(output)
    return any(
        _is_within((str(k) for k in order), iter(numbers))
        for order in permutations(range(1, n + 1))
    )


def _after_last(output: str) -> str:
    found = list(_ANSWER.finditer(output))
    return output[found[-1].end() :] if found else output


def _is_within(wanted: Iterator[str], found: Iterator[str]) -> bool:
    return all(one in found for one in wanted)
