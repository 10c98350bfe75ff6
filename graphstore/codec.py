"""Records to JSON and back.

Fields that hold their default are left out, so that what is kept stays small and a record may
gain a field with a default without a migration. Unknown fields are ignored for the same reason.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Convert = Callable[[Any], Any]


def dumps(value: Any) -> str:
    """Return JSON for a record, or for a list or mapping of records and plain values.

    Text outside ASCII is escaped, so that a lone surrogate does not stop a write.
    """
    return json.dumps(value, default=_plain, separators=(",", ":"))


def canonical(value: Any) -> bytes:
    """Return UTF-8 JSON that is the same for equal values: keys in order, text as it is.

    Where a text holds half of a surrogate pair, all texts are escaped.

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
    """Return the record of the given class that `dumps` wrote."""
    return from_plain(json.loads(text), kind)


def to_plain(record: Any) -> Any:
    """Return a record as plain JSON values, without fields that hold their default."""
    return json.loads(dumps(record))


def from_plain(value: Any, kind: type[T]) -> T:
    """Return the record of the given class from what `to_plain` made."""
    return cast(T, _converter(cast(Any, kind))(value))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        kept = {}
        for name, default in _defaults(cast(Any, type(value))):
            found = getattr(value, name)
            if default is MISSING or found != default:
                kept[name] = found
        return kept
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
    """Return the function that makes a value of a type out of plain JSON."""
    if is_dataclass(kind):
        return _record(cast(type, kind))
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple(args)
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        inner = _converter(args[1])
        return lambda value: {key: inner(item) for key, item in value.items()}
    if origin in (Union, UnionType, Literal) or kind in (str, int, float, bool, Any):
        return _same
    raise TypeError(f"no JSON form for {kind!r}")


def _record(kind: type) -> _Convert:
    hints = get_type_hints(kind)
    converters = {f.name: _converter(hints[f.name]) for f in fields(kind)}

    names = converters.keys()
    converted = [(name, convert) for name, convert in converters.items() if convert is not _same]

    def make(value: Mapping[str, Any]) -> Any:
        known = dict(value)
        for unknown in value.keys() - names:
            del known[unknown]
        for name, convert in converted:
            if name in known:
                known[name] = convert(known[name])
        return kind(**known)

    return make


def _tuple(args: tuple[Any, ...]) -> _Convert:
    if args[1:] == (...,):
        inner = _converter(args[0])
        return tuple if inner is _same else lambda value: tuple(map(inner, value))
    inners = [_converter(arg) for arg in args]
    return lambda value: tuple(f(v) for f, v in zip(inners, value, strict=True))


def _same(value: Any) -> Any:
    return value


__all__ = ["canonical", "dumps", "from_plain", "loads", "to_plain"]
