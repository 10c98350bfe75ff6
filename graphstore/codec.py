"""Conversion of records to JSON and back, with validation on the way back.

Fields with their default value are left out: stored records stay small, and a new field with a
default needs no migration. An archive is untrusted input: unknown fields, wrong types and numbers
that no store can keep are refused.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from qrmem.types.documents import LARGEST

T = TypeVar("T")
_Convert = Callable[[Any], Any]

_DEEPEST = 100


class DecodeError(ValueError):
    """A value has a wrong type or range; the message names its path."""

    def __init__(self, why: str, *path: str) -> None:
        """Create an error from a reason and a path, outermost name first."""
        super().__init__(f"{'.'.join(path)} {why}" if path else why)
        self.why, self.path = why, path

    def within(self, name: str) -> "DecodeError":
        """Return the same error with a name in front of its path."""
        return DecodeError(self.why, name, *self.path)


def dumps(value: Any) -> str:
    """Return JSON for a record, or for a list or mapping of records and plain values.

    Non-ASCII characters are escaped, so that an unpaired surrogate can be written.
    """
    return json.dumps(value, default=_plain, separators=(",", ":"))


def canonical(value: Any) -> bytes:
    """Return canonical JSON in UTF-8: equal values give equal bytes; keys are sorted.

    Non-ASCII characters are escaped only if a text has an unpaired surrogate.

    Raises:
        ValueError: a number is not finite.
    """

    def written(*, is_ascii: bool) -> bytes:
        return json.dumps(
            value,
            default=_plain,
            separators=(",", ":"),
            sort_keys=True,
            allow_nan=False,
            ensure_ascii=is_ascii,
        ).encode()

    try:
        return written(is_ascii=False)
    except UnicodeEncodeError:
        return written(is_ascii=True)


def loads(text: str, kind: type[T]) -> T:
    """Return the record that `dumps` wrote, as an instance of the given class."""
    return from_plain(json.loads(text), kind)


def to_plain(record: Any) -> Any:
    """Return a record as plain JSON values, without fields that have their default value."""
    return json.loads(dumps(record))


def from_plain(value: Any, kind: type[T], at: str = "") -> T:
    """Return the record of the given class from plain JSON values.

    Args:
        at: name of the value, for messages.

    Raises:
        Wrong: a field is missing or unknown, or a value has a wrong type or is out of range.
    """
    try:
        return cast(T, _converter(cast(Any, kind))(value))
    except DecodeError as exc:
        raise (exc.within(at) if at else exc) from None


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        plain_fields = {}
        for name, default in _defaults(cast(Any, type(value))):
            field_value = getattr(value, name)
            if default is MISSING or field_value != default:
                plain_fields[name] = field_value
        return plain_fields
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be kept as JSON")


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, _default(f)) for f in fields(kind))


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


@cache
def _converter(kind: Any) -> _Convert:
    """Return the function that converts plain JSON to a type."""
    if is_dataclass(kind):
        return _record(cast(type, kind))
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple(args)
    if origin is list:
        return _list(_converter(args[0]))
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(_converter(args[1]))
    if origin is Literal:
        return _one_of(args)
    if origin in (Union, UnionType):
        return _any_of(args)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    raise TypeError(f"no JSON form for {kind!r}")


def _record(kind: type) -> _Convert:
    hints = get_type_hints(kind)
    converters = {f.name: _converter(hints[f.name]) for f in fields(kind)}
    required = {name for name, default in _defaults(kind) if default is MISSING}

    def make(value: Any) -> Any:
        if type(value) is not dict:
            raise DecodeError("is not an object")
        if unknown := value.keys() - converters.keys():
            raise DecodeError(f"has a field {min(unknown)[:40]!r} that this qrmem does not know")
        if missing := required - value.keys():
            raise DecodeError(f"has no {min(missing)}")
        values, name = {}, ""
        try:
            for name, field_value in value.items():
                values[name] = converters[name](field_value)
        except DecodeError as exc:
            raise exc.within(name) from None
        return kind(**values)

    return make


def _tuple(args: tuple[Any, ...]) -> _Convert:
    is_even = args[1:] == (...,)
    inners = [_converter(arg) for arg in args if arg is not ...]

    def make(value: Any) -> Any:
        if type(value) not in (list, tuple) or not (is_even or len(value) == len(inners)):
            raise DecodeError("is not a list" if is_even else f"is not a list of {len(inners)}")
        each = inners * len(value) if is_even else inners
        return tuple([inner(item) for inner, item in zip(each, value, strict=True)])

    return make


def _list(inner: _Convert) -> _Convert:
    def make(value: Any) -> Any:
        if type(value) is not list:
            raise DecodeError("is not a list")
        return [inner(item) for item in value]

    return make


def _mapping(inner: _Convert) -> _Convert:
    def make(value: Any) -> Any:
        if type(value) is not dict:
            raise DecodeError("is not an object")
        return {key: inner(item) for key, item in value.items()}

    return make


def _one_of(allowed: tuple[Any, ...]) -> _Convert:
    def make(value: Any) -> Any:
        if type(value) is not str or value not in allowed:
            raise DecodeError(f"is not one of {', '.join(allowed)}")
        return value

    return make


def _any_of(kinds: tuple[Any, ...]) -> _Convert:
    # A record is written as an object.
    plain = {
        dict if is_dataclass(kind) else get_origin(kind) or kind: kind
        for kind in kinds
        if kind is not NoneType
    }
    inners = {plain_type: _converter(kind) for plain_type, kind in plain.items()}

    def make(value: Any) -> Any:
        if value is None and NoneType in kinds:
            return None
        # An integer is allowed for a float.
        kind = float if type(value) is int and int not in inners else type(value)
        if kind not in inners:
            raise DecodeError(f"is a {type(value).__name__}")
        return inners[kind](value)

    return make


def _text(value: Any) -> Any:
    if type(value) is not str:
        raise DecodeError("is not text")
    return value


def _whole(value: Any) -> Any:
    if type(value) is not int or not -LARGEST <= value <= LARGEST:
        raise DecodeError("is not a whole number that can be stored")
    return value


def _number(value: Any) -> Any:
    if type(value) is int:
        return _whole(value)
    if type(value) is not float or not isfinite(value):
        raise DecodeError("is not a number")
    return value


def _truth(value: Any) -> Any:
    if type(value) is not bool:
        raise DecodeError("is neither true nor false")
    return value


def _anything(value: Any, depth: int = 0) -> Any:
    """Check only numbers and depth: a cached value may have any form."""
    if depth > _DEEPEST:
        raise DecodeError("is nested too deeply")
    if isinstance(value, float):
        _number(value)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _anything(item, depth + 1)
    return value


_SIMPLE: Mapping[Any, _Convert] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _truth,
    Any: _anything,
}

__all__ = ["DecodeError", "canonical", "dumps", "from_plain", "loads", "to_plain"]
