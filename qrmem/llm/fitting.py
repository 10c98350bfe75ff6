"""Fits a JSON value to a schema: safe coercions, valid items of a partly bad list kept."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_UNSAFE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Misfit(Exception):
    """A value does not fit its schema and cannot be made to."""


@dataclass(slots=True)
class Fit:
    """What was done to a value so that it fits.

    Attributes:
        changed: whether anything was converted, renamed or filled in.
        problems: what was left out, with its path.
    """

    changed: bool = False
    problems: list[str] = field(default_factory=list)


def fit(value: Any, schema: Mapping[str, Any], done: Fit, path: str = "") -> Any:
    """Return the value in the schema's shape.

    Beside JSON schema's own keys, `join` on a text names the separator of what it packs: an object
    or list of plain values there is packed as the prompt asked for it.

    Raises:
        Misfit: it does not fit; nothing is invented to fill a gap.
    """
    if "anyOf" in schema:
        return _fit_any(value, schema["anyOf"], done, path)
    if isinstance(schema.get("type"), list):
        options = [{**schema, "type": kind} for kind in schema["type"]]
        return _fit_any(value, options, done, path)
    if "enum" in schema or "const" in schema:
        return _fit_choice(value, schema.get("enum") or [schema["const"]], done, path)
    convert = _CONVERTERS.get(str(schema.get("type")))
    return convert(value, schema, done, path) if convert else value


def _fit_any(value: Any, options: Sequence[Mapping[str, Any]], done: Fit, path: str) -> Any:
    """Prefer the option that takes the value with the least change."""
    best: tuple[tuple[int, bool], Any, Fit] | None = None
    for option in options:
        attempt = Fit()
        try:
            fitted = fit(value, option, attempt, path)
        except Misfit:
            continue
        rank = (len(attempt.problems), attempt.changed)
        if best is None or rank < best[0]:
            best = (rank, fitted, attempt)
    if best is None:
        raise Misfit(f"{path or 'reply'}: no allowed form fits {_shown(value)}")
    done.changed |= best[2].changed
    done.problems += best[2].problems
    return best[1]


def _fit_choice(value: Any, allowed: list[Any], done: Fit, path: str) -> Any:
    for choice in allowed:
        if type(choice) is type(value) and choice == value:
            return choice
    for choice in allowed:
        if str(choice).strip().casefold() == str(value).strip().casefold():
            done.changed = True
            return choice
    raise Misfit(f"{path or 'reply'}: {_shown(value)} is not one of {allowed}")


def _fit_object(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = set(schema.get("required", ()))
    if isinstance(value, str) and (only := _only_text(properties, required)):
        done.changed = True
        value = {only: value}
    if not isinstance(value, dict):
        raise Misfit(f"{path or 'reply'}: an object is needed, not {_shown(value)}")
    found = _by_name(value, properties, done)
    if properties and not found:
        raise Misfit(f"{path or 'reply'}: none of the fields {', '.join(properties)} is there")
    result: dict[str, Any] = {}
    for name, wanted in properties.items():
        inside = f"{path}.{name}" if path else name
        if name in found:
            result[name] = fit(found[name], wanted, done, inside)
        elif "default" in wanted:
            result[name] = wanted["default"]
        elif name in required:
            raise Misfit(f"{inside}: missing")
    return result


def _by_name(value: Mapping[Any, Any], properties: Mapping[str, Any], done: Fit) -> dict[str, Any]:
    """Return the known fields; names that differ in case, space or hyphen count as known."""
    found = {name: value[name] for name in properties if name in value}
    if len(found) < len(properties):
        loose = {_loose(str(key)): key for key in value if key not in found}
        for name in properties:
            if name not in found and (key := loose.get(_loose(name))) is not None:
                done.changed = True
                found[name] = value[key]
    return found


def _fit_array(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> list[Any]:
    items: Mapping[str, Any] = schema.get("items", {})
    if value is None:
        raise Misfit(f"{path or 'reply'}: a list is needed, not null")
    if not isinstance(value, list):
        done.changed = True
        return [fit(value, items, done, f"{path}[0]")]
    if _takes_any_text(items) and all(isinstance(i, str) and i.isprintable() for i in value):
        return list(value)
    kept: list[Any] = []
    lost: list[str] = []
    for index, item in enumerate(value):
        attempt = Fit()
        try:
            kept.append(fit(item, items, attempt, f"{path}[{index}]"))
        except Misfit as exc:
            lost.append(str(exc))
            continue
        done.changed |= attempt.changed
        done.problems += attempt.problems
    if lost and not kept:
        raise Misfit(lost[0])
    done.problems += lost
    return kept


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and schema.keys().isdisjoint(("anyOf", "enum", "const"))


def _fit_string(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> str:
    if isinstance(value, str):
        if value.isprintable():
            return value
        clean = _UNSAFE.sub(" ", value).encode("utf-8", "replace").decode("utf-8")
        done.changed |= clean != value
        return clean
    if isinstance(value, int | float) and not isinstance(value, bool):
        done.changed = True
        return str(value)
    if "join" in schema and isinstance(value, dict | list) and value:
        # A field that packs several values into one text, and a model that unpacked them.
        parts = list(value.values()) if isinstance(value, dict) else value
        done.changed = True
        return str(schema["join"]).join(_fit_string(p, {}, done, path) for p in parts)
    raise Misfit(f"{path or 'reply'}: a text is needed, not {_shown(value)}")


def _fit_integer(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        done.changed = True
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        done.changed = True
        return int(value)
    raise Misfit(f"{path or 'reply'}: a whole number is needed, not {_shown(value)}")


def _fit_number(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        done.changed = True
        return float(value)
    raise Misfit(f"{path or 'reply'}: a number is needed, not {_shown(value)}")


def _fit_boolean(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().casefold() in _WORDS:
        done.changed = True
        return _WORDS[value.strip().casefold()]
    raise Misfit(f"{path or 'reply'}: true or false is needed, not {_shown(value)}")


def _fit_null(value: Any, schema: Mapping[str, Any], done: Fit, path: str) -> None:
    if value is not None:
        raise Misfit(f"{path or 'reply'}: null is needed, not {_shown(value)}")


_CONVERTERS: Mapping[str, Callable[[Any, Mapping[str, Any], Fit, str], Any]] = {
    "object": _fit_object,
    "array": _fit_array,
    "string": _fit_string,
    "integer": _fit_integer,
    "number": _fit_number,
    "boolean": _fit_boolean,
    "null": _fit_null,
}


def _only_text(properties: Mapping[str, Any], required: set[str]) -> str:
    """Return the field that a bare text must mean: the only one needed, if it is a text."""
    names = [name for name in properties if name in required]
    if len(names) == 1 and properties[names[0]].get("type") == "string":
        return names[0]
    return ""


def _loose(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer too long to print
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


__all__ = ["Fit", "Misfit", "fit"]
