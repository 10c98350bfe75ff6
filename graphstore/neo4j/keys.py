"""Short keys for ids, so that the database can index them.

A range index takes values of up to about 8,000 bytes, and a name may be longer. A node's `key` is
therefore the id itself, or the beginning of a long id with a digest; `full` then holds the id.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

MAX_BYTES = 1500
"""Maximum length in bytes (UTF-8) of a key that is stored unchanged."""

_HEAD = 200

V = TypeVar("V")


def short(key: str) -> str:
    """Return the indexed key for an id."""
    if len(key) * 4 <= MAX_BYTES or len(key.encode()) <= MAX_BYTES:
        return key
    return f"{key[:_HEAD]}…{hashlib.sha256(key.encode()).hexdigest()}"


def full(key: str) -> str | None:
    """Return the value of `full`: the id if it is too long to be its own key."""
    return None if short(key) == key else key


def shortened(keys: Iterable[str]) -> dict[str, str]:
    """Return short key to id, to query by key and map the results back."""
    return {short(key): key for key in keys}


def numbered(ids: Iterable[str]) -> list[list[Any]]:
    """Return position and short key of each id, for rows in the order of the ids."""
    return [[place, short(id_)] for place, id_ in enumerate(ids)]


def joined(*parts: str) -> str:
    """Return one key for several parts, which may hold any character."""
    sizes = ",".join(str(len(part)) for part in parts)
    return short("|".join((*parts, sizes)))


def in_order(ids: Sequence[str], found: dict[str, V]) -> list[V]:
    """Return the found values in the order of the requested ids."""
    return [found[id_] for id_ in ids if id_ in found]
