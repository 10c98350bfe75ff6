"""Parses a model's reply as a Pydantic model, with safe repairs and without guesses.

For any text the outcome is a value or `ModelOutputError`, never another exception.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from qrmem.errors import ModelOutputError, PromptError
from qrmem.llm.found_json import candidates

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_ROUNDS = 20
"""Maximum number of repair rounds; a repair may uncover a further error."""
_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_UNSAFE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A parsed reply.

    Attributes:
        value: the value.
        repaired: whether the reply was not plain JSON of the right shape.
        problems: the parts that were lost, as the JSON is damaged; empty if none were.
        is_whole: whether the reply has the complete JSON.
        left_out: why items of its lists could not be used; all others are there.
    """

    value: T
    repaired: bool
    problems: tuple[str, ...]
    is_whole: bool = True
    left_out: tuple[str, ...] = ()


class Misfit(Exception):
    """A value does not fit its model and cannot be repaired."""


def parse_model(text: str, model: type[M]) -> Parsed[M]:
    """Parse a reply as a Pydantic model; fields with a default may be missing.

    Raises:
        ModelOutputError: the reply has no JSON that fits, or a validator rejects it; the message
            says what is wrong, to repeat the request with it.
    """
    reason = "the reply is empty" if not text.strip() else "there is no JSON in the reply"
    best: Parsed[M] | None = None
    for candidate in candidates(text):
        for shape, is_same in _shapes(candidate.value, inlined(model)):
            try:
                value, left_out, is_mended = mended(shape, model)
            except (Misfit, RecursionError) as exc:
                reason = str(exc) if isinstance(exc, Misfit) else "the reply is nested too deeply"
                continue
            problems = (candidate.loss,) if candidate.loss else ()
            is_damaged = bool(problems or left_out)
            repaired = is_damaged or is_mended or not (candidate.is_plain and is_same)
            parsed = Parsed(value, repaired, problems, candidate.is_whole, tuple(left_out))
            if not is_damaged:
                return parsed
            if best is None or _damage(parsed) < _damage(best):
                best = parsed
    if best is None:
        raise ModelOutputError(reason, raw=text)
    return best


def _damage(parsed: Parsed[Any]) -> tuple[int, int]:
    return len(parsed.problems), len(parsed.left_out)


# --- shapes --------------------------------------------------------------------------------------


def _shapes(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield the value, then values inside of it; each with whether it is the value itself."""
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
    """Return whether the reply is the schema itself, without an answer in its fields."""
    inner = value["properties"].values()
    return all(isinstance(v, dict) and ("type" in v or "anyOf" in v or "enum" in v) for v in inner)


# --- repair -------------------------------------------------------------------------------------


def mended(value: Any, model: type[M]) -> tuple[M, list[str], bool]:
    """Return a JSON value as a model, the problems of left-out parts, and whether it was repaired.

    A value that Pydantic rejects is converted if only one meaning is possible. Items of a list that
    cannot be repaired are left out, if at least one item is kept.

    Raises:
        Misfit: the value does not fit; missing values are never invented.
    """
    schema = inlined(model)
    root = {"": _prepared(value, schema)}
    is_mended, problems = root[""] != value, list[str]()
    for _ in range(_ROUNDS):
        try:
            return model.model_validate(root[""], strict=True), problems, is_mended
        except ValidationError as exc:
            errors = exc.errors(include_url=False)
        is_mended = True
        bad: dict[tuple[Any, ...], str] = {}
        for error in errors:
            place, why = error["loc"], _error_in_words(error)
            if _mend(root, place, _node(schema, place), error["type"]):
                continue
            if not (indices := [n for n, part in enumerate(place) if isinstance(part, int)]):
                raise Misfit(why)
            bad.setdefault(place[: indices[-1] + 1], why)
        problems += _left_out(root, bad)
    raise Misfit("it does not fit")


def _left_out(root: Any, bad: Mapping[tuple[Any, ...], str]) -> list[str]:
    """Leave items out, the last first; if a list would be empty, leave out the item around it.

    Raises:
        Misfit: a list would be empty, and it is not within another item.
    """
    problems: list[str] = []
    for place, why in reversed(list(bad.items())):
        problems.insert(0, why)
        depth = len(place)
        while not _without(root, place):
            indices = [n for n, part in enumerate(place[:-1]) if isinstance(part, int)]
            if not indices:
                raise Misfit(why)
            place = place[: indices[-1] + 1]
        if len(place) < depth:
            break  # the other positions have changed
    return problems


def _without(root: Any, place: Sequence[Any]) -> bool:
    """Leave an item out; return whether its list has others."""
    items = _at(root, place[:-1])
    del items[place[-1]]
    return bool(items)


def _prepared(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a copy with the schema's field names, without characters that no store keeps."""
    schema = _plain(schema)
    if isinstance(value, dict) and (properties := schema.get("properties", {})):
        loose = {_loose(str(key)): key for key in value if key not in properties}
        names = {name: name if name in value else loose.get(_loose(name)) for name in properties}
        # A null for a field with a default equals a missing field.
        field_of = {
            name: key
            for name, key in names.items()
            if key is not None
            and (value[key] is not None or properties[name].get("default") is None)
        }
        # Without any of its fields it is no such object, even if all have defaults.
        return {n: _prepared(value[k], properties[n]) for n, k in field_of.items()} or None
    if isinstance(value, list):
        return [_prepared(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and not value.isprintable():
        return _UNSAFE.sub(" ", value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _mend(root: Any, place: Sequence[Any], schema: Mapping[str, Any], kind: str) -> bool:
    """Convert one refused value if only one meaning is possible; return whether it was."""
    convert = _MENDS.get(kind)
    if convert is None:
        return False
    try:
        holder, at = _at(root, place[:-1]) if place else root, place[-1] if place else ""
        value = convert(holder[at], schema)
    except (LookupError, TypeError, ValueError, AttributeError):
        # The path goes through a union, or the value has a type without a meaning here.
        return False
    if value is None:
        return False
    holder[at] = value
    return True


def _text(value: Any, schema: Mapping[str, Any]) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def _integer(value: Any, schema: Mapping[str, Any]) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return int(value) if _INTEGER.fullmatch(value.strip()) else None


def _number(value: Any, schema: Mapping[str, Any]) -> float | None:
    return float(value) if _NUMBER.fullmatch(value.strip()) else None


def _boolean(value: Any, schema: Mapping[str, Any]) -> bool | None:
    return _WORDS.get(value.strip().casefold())


def _choice(value: Any, schema: Mapping[str, Any]) -> Any:
    folded = str(value).strip().casefold()
    allowed = schema.get("enum") or [schema["const"]]
    return next((one for one in allowed if str(one).strip().casefold() == folded), None)


def _list(value: Any, schema: Mapping[str, Any]) -> list[Any] | None:
    return None if value is None else [_prepared(value, schema.get("items", {}))]


def _object(value: Any, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the object for a bare text, if its only required field is a text."""
    properties = schema.get("properties", {})
    required = [name for name in properties if name in schema.get("required", ())]
    if not isinstance(value, str) or len(required) != 1:
        return None
    return {required[0]: value} if properties[required[0]].get("type") == "string" else None


_MENDS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "string_type": _text,
    "int_type": _integer,
    "float_type": _number,
    "bool_type": _boolean,
    "literal_error": _choice,
    "list_type": _list,
    "model_type": _object,
}
"""Repair function for each Pydantic error, by name; `None` if the value would be a guess."""


def _at(root: Any, place: Sequence[Any]) -> Any:
    holder = root[""]
    for part in place:
        holder = holder[part]
    return holder


def _node(schema: Mapping[str, Any], place: Sequence[Any]) -> Mapping[str, Any]:
    """Return the schema of a place in a value; empty in a union."""
    for part in place:
        schema = _plain(schema)
        if isinstance(part, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(part, {})
    return _plain(schema)


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a nullable schema without null."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    return options[0] if len(options) == 1 else schema


def _error_in_words(error: Any) -> str:
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error["loc"])
    return f"{place.lstrip('.') or 'reply'}: {error['msg']}"


def _loose(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


# --- schemas -------------------------------------------------------------------------------------


_KEPT = ("type", "enum", "const", "description")


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's strict schema: closed objects, every field required, no `$ref`, no default.

    All requests share it: do not change it.

    Raises:
        PromptError: the model contains itself or an open mapping.
    """
    return _closed(model)


@lru_cache(maxsize=256)
def _closed(model: type[BaseModel]) -> dict[str, Any]:
    schema: dict[str, Any] = _strict(inlined(model))
    return schema


@lru_cache(maxsize=256)
def inlined(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's schema with each `$ref` replaced by its definition; do not change it."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    inlined_schema: dict[str, Any] = _inline(schema, definitions, ())
    return inlined_schema


def _inline(node: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions, within) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in within:
            raise PromptError(f"a reply cannot contain itself: {name}")
        merged = {**definitions[name], **{k: v for k, v in node.items() if k != "$ref"}}
        return _inline(merged, definitions, (*within, name))
    return {key: _inline(value, definitions, within) for key, value in node.items()}


def _strict(node: Any) -> Any:
    strict_node: dict[str, Any] = {key: node[key] for key in _KEPT if key in node}
    if "anyOf" in node:
        strict_node["anyOf"] = [_strict(option) for option in node["anyOf"]]
    if "items" in node:
        strict_node["items"] = _strict(node["items"])
    if node.get("type") == "object":
        if "properties" not in node:
            raise PromptError("a reply's objects must name their fields")
        strict_node["properties"] = {k: _strict(v) for k, v in node["properties"].items()}
        strict_node["required"] = list(strict_node["properties"])
        strict_node["additionalProperties"] = False
    return strict_node
