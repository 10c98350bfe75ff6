"""The documents that a `where=` selects, in plain Python."""

from collections.abc import Mapping
from operator import ge, gt, le, lt
from typing import Any

from qrmem.types import MetaValue, Where

_ORDER = {"<": lt, "<=": le, ">": gt, ">=": ge}


def fits(metadata: Mapping[str, MetaValue], where: Where | None) -> bool:
    """Whether a document of some metadata is meant."""
    return all(
        name in metadata and _fits(metadata[name], of if isinstance(of, Mapping) else {"=": of})
        for name, of in (where or {}).items()
    )


def _fits(value: MetaValue, wanted: Mapping[str, Any]) -> bool:
    items: list[Any] = value if isinstance(value, list) else [value]
    texts = list(map(str, items))
    bounds = {name: bound for name, bound in wanted.items() if name in _ORDER}
    return (
        ("=" not in wanted or str(wanted["="]) in texts)
        and ("in" not in wanted or any(str(one) in texts for one in wanted["in"]))
        and ("has" not in wanted or (isinstance(value, list) and str(wanted["has"]) in texts))
        and (not bounds or any(_is_within(item, bounds) for item in items))
    )


def _is_within(item: Any, bounds: Mapping[str, Any]) -> bool:
    return all(
        not isinstance(item, bool)
        and isinstance(item, str) == isinstance(bound, str)
        and _ORDER[name](item, bound)
        for name, bound in bounds.items()
    )
