"""Plain JSON values to records, every one looked at: what `codec.from_plain` does, without trust.

A store reads what it wrote itself; an archive may have been written by anybody.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Check = Callable[[Any, str], Any]

LARGEST = 2**63 - 1
"""Whole numbers beyond it are kept by no store."""

_DEEPEST = 100


class Wrong(ValueError):
    """A value is not what its place asks for; the message names the place."""


def checked(value: Any, kind: type[T], at: str) -> T:
    """Return the record of a class from plain JSON values.

    Args:
        at: the place, for messages.

    Raises:
        Wrong: a field is missing or unknown, or a value has another type or is out of range.
    """
    return cast(T, _check(cast(Any, kind))(value, at))


@cache
def _check(kind: Any) -> _Check:
    if is_dataclass(kind):
        return _record(cast(type, kind))
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple(args)
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(_check(args[1]))
    if origin is Literal:
        return _one_of(args)
    if origin in (Union, UnionType):
        return _any_of(args)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    raise TypeError(f"no check for {kind!r}")


def _record(kind: type) -> _Check:
    hints = get_type_hints(kind)
    checks = {field.name: _check(hints[field.name]) for field in fields(kind)}
    required = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def check(value: Any, at: str) -> Any:
        if type(value) is not dict:
            raise Wrong(f"{at} is no object")
        if unknown := value.keys() - checks.keys():
            raise Wrong(f"{at} has a field {_shown(min(unknown))} that this qrmem does not know")
        if missing := required - value.keys():
            raise Wrong(f"{at} has no {min(missing)}")
        return kind(**{name: checks[name](found, f"{at}.{name}") for name, found in value.items()})

    return check


def _tuple(args: tuple[Any, ...]) -> _Check:
    if args[1:] == (...,):
        every = _check(args[0])

        def check(value: Any, at: str) -> Any:
            if type(value) is not list:
                raise Wrong(f"{at} is no list")
            return tuple([every(item, at) for item in value])

        return check
    each = [_check(arg) for arg in args]

    def check_each(value: Any, at: str) -> Any:
        if type(value) is not list or len(value) != len(each):
            raise Wrong(f"{at} is no list of {len(each)}")
        return tuple([check(item, at) for check, item in zip(each, value, strict=True)])

    return check_each


def _mapping(inner: _Check) -> _Check:
    def check(value: Any, at: str) -> Any:
        if type(value) is not dict:
            raise Wrong(f"{at} is no object")
        return {key: inner(item, at) for key, item in value.items()}

    return check


def _one_of(allowed: tuple[Any, ...]) -> _Check:
    def check(value: Any, at: str) -> Any:
        if type(value) is not str or value not in allowed:
            raise Wrong(f"{at} is none of {', '.join(allowed)}")
        return value

    return check


def _any_of(kinds: tuple[Any, ...]) -> _Check:
    simple = {kind: _check(kind) for kind in kinds if kind is not NoneType}

    def check(value: Any, at: str) -> Any:
        if value is None and NoneType in kinds:
            return None
        # A whole number may stand where a number with a part may.
        kind = float if type(value) is int and int not in simple else type(value)
        if kind not in simple:
            raise Wrong(f"{at} is a {type(value).__name__}")
        return simple[kind](value, at)

    return check


def _text(value: Any, at: str) -> str:
    if type(value) is not str:
        raise Wrong(f"{at} is no text")
    return value


def _whole(value: Any, at: str) -> int:
    if type(value) is not int or not -LARGEST <= value <= LARGEST:
        raise Wrong(f"{at} is no whole number that can be kept")
    return value


def _number(value: Any, at: str) -> int | float:
    if type(value) is int:
        return _whole(value, at)
    if type(value) is not float or not isfinite(value):
        raise Wrong(f"{at} is no number")
    return value


def _truth(value: Any, at: str) -> bool:
    if type(value) is not bool:
        raise Wrong(f"{at} is neither true nor false")
    return value


def _anything(value: Any, at: str, depth: int = 0) -> Any:
    """Look at numbers and depth only: what is kept under a key may have any form."""
    if depth > _DEEPEST:
        raise Wrong(f"{at} is nested too deeply")
    if isinstance(value, float):
        _number(value, at)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _anything(item, at, depth + 1)
    return value


def _shown(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:40] + "…")


_SIMPLE: Mapping[Any, _Check] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _truth,
    Any: _anything,
}
