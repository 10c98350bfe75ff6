"""Reads a model's reply: finds the JSON in it, repairs it where safe, and fits it to a schema.

For any text at all the outcome is a value or `ModelOutputError`, never another exception.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from qrmem.errors import ModelOutputError
from qrmem.llm.cutoff import DEEPEST, completed
from qrmem.llm.fitting import Fit, Misfit, fit
from qrmem.llm.schemas import inlined

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_LONGEST = 200_000
"""Characters of a reply that are read; the rest of a longer one is left out."""
_REPAIRED = 8_000
"""Characters up to which the repairer is tried; its time grows with the square of them."""
_STARTS = 40
"""Places in a reply where a JSON value is looked for."""
_REASONING = r"think|thinking|thought|reasoning|reflection|scratchpad"
_TAG = re.compile(rf"<(/?)(?:{_REASONING})>", re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_TRAILING = re.compile(r",\s*+([}\]])")
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A reply that could be read.

    Attributes:
        repaired: whether it took more than reading plain JSON of the right shape.
        problems: what had to be left out; empty if nothing was.
        is_whole: whether its JSON stands in the reply from beginning to end.
    """

    value: T
    repaired: bool
    problems: tuple[str, ...]
    is_whole: bool = True


def parse(text: str, schema: Mapping[str, Any]) -> Parsed[Any]:
    """Return the value in a reply that fits a schema.

    Args:
        schema: the subset of JSON schema that `strict_schema` gives; `default` is heeded.

    Raises:
        ModelOutputError: there is none; the message says what is wrong, for a re-ask.
    """
    reason = "the reply is empty" if not text.strip() else "there is no JSON in the reply"
    best: Parsed[Any] | None = None
    for candidate in _candidates(text):
        for shape, is_same in _shapes(candidate.value, schema):
            done = Fit()
            try:
                fitted = fit(shape, schema, done)
            except (Misfit, RecursionError) as exc:
                reason = str(exc) if isinstance(exc, Misfit) else "the reply is nested too deeply"
                continue
            problems = (*done.problems, *filter(None, [candidate.loss]))
            is_as_sent = candidate.is_plain and is_same and not done.changed
            repaired = bool(problems) or not is_as_sent
            found = Parsed(fitted, repaired, problems, candidate.is_whole)
            if not found.problems:
                return found
            if best is None or len(found.problems) < len(best.problems):
                best = found
    if best is None:
        raise ModelOutputError(reason, raw=text)
    return best


def parse_model(text: str, model: type[M]) -> Parsed[M]:
    """Return a reply as a pydantic model; fields with a default may be missing.

    Raises:
        ModelOutputError: it does not fit, or a validator of the model refuses it.
    """
    parsed = parse(text, inlined(model))
    problems = list(parsed.problems)
    value = parsed.value
    while True:
        try:
            read = model.model_validate(value)
            repaired = parsed.repaired or bool(problems)
            return Parsed(read, repaired, tuple(problems), parsed.is_whole)
        except ValidationError as exc:
            said = "; ".join(_said(error) for error in exc.errors()[:3])
            kept = _without_bad_items(value, exc)
            if kept is None:
                raise ModelOutputError(said, raw=text) from exc
            problems.append(said)
            value = kept


def is_clean(text: str) -> bool:
    """Whether a reply is one JSON object or list and nothing else."""
    found = _loaded(text.strip())
    return isinstance(found, dict | list)


def without_reasoning(text: str) -> str:
    """Return a reply without the blocks in which a model thinks aloud."""
    kept: list[str] = []
    position, is_inside = 0, False
    for tag in _TAG.finditer(text[:_LONGEST]):
        if tag.group(1):
            if not is_inside:
                kept.clear()  # some chat templates swallow the opening tag
            position, is_inside = tag.end(), False
        elif not is_inside:
            kept.append(text[position : tag.start()])
            is_inside = True
    if not is_inside:
        kept.append(text[position:_LONGEST])
    return "".join(kept).strip()


# --- finding JSON --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A JSON value found in a reply, whether it was all of it, and what is known to be lost."""

    value: Any
    is_plain: bool = False
    is_whole: bool = True
    loss: str = ""


def _candidates(text: str) -> Iterator[_Candidate]:
    """Yield the JSON values in a reply, the most trustworthy first."""
    stripped = text[:_LONGEST].strip().lstrip("\ufeff").strip()
    if (value := _loaded(stripped)) is not _NOTHING:
        yield _Candidate(value, is_plain=True)
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
        yield _Candidate(value)
    for piece in [*reversed(fenced), answer]:
        closed, is_cut = completed(piece)
        if (value := _repaired(closed)) is not _NOTHING:
            loss = "the reply breaks off" if is_cut else ""
            yield _Candidate(value, is_whole=False, loss=loss)
    for value in reversed(inner):
        yield _Candidate(value, is_whole=False, loss="only a part of the reply is JSON")


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


# --- shapes --------------------------------------------------------------------------------------


def _shapes(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield a value and what it may have been wrapped in, and whether it is the value itself."""
    properties = schema.get("properties", {})
    if _is_schema(value, properties):
        if not _is_echo(value):
            yield value["properties"], False
        return
    yield value, True
    if isinstance(value, dict) and len(value) == 1:
        (name, inner), *_ = value.items()
        if name not in properties and isinstance(inner, dict | list):
            yield inner, False
    if isinstance(value, list) and schema.get("type") == "object":
        if len(value) == 1 and isinstance(value[0], dict):
            yield value[0], False
        lists = [name for name, inner in properties.items() if inner.get("type") == "array"]
        if len(lists) == 1 and len(properties) == 1:
            yield {lists[0]: value}, False


def _is_schema(value: Any, properties: Mapping[str, Any]) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("properties"), dict)
        and "properties" not in properties
    )


def _is_echo(value: Mapping[str, Any]) -> bool:
    """Whether a schema came back as it was sent, with no answer in its fields."""
    inner = value["properties"].values()
    return all(isinstance(v, dict) and ("type" in v or "anyOf" in v or "enum" in v) for v in inner)


# --- pydantic ------------------------------------------------------------------------------------


def _said(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "reply"
    return f"{place}: {error['msg']}"


def _without_bad_items(value: Any, error: ValidationError) -> Any:
    """Return a copy without the list items that were refused, or `None` where that cannot help."""
    bad: dict[tuple[Any, ...], set[int]] = {}
    for found in error.errors():
        place = found["loc"]
        at = next((i for i, part in enumerate(place) if isinstance(part, int)), None)
        if at is None:
            return None
        bad.setdefault(place[:at], set()).add(int(place[at]))
    result = copy.deepcopy(value)
    for path, indices in bad.items():
        holder: Any = result
        try:
            for part in path[:-1]:
                holder = holder[part]
            kept = [item for i, item in enumerate(holder[path[-1]]) if i not in indices]
        except (LookupError, TypeError):  # the place runs through a union
            return None
        if not kept or len(kept) == len(holder[path[-1]]):
            return None
        holder[path[-1]] = kept
    return result


__all__ = ["Parsed", "is_clean", "parse", "parse_model", "without_reasoning"]
