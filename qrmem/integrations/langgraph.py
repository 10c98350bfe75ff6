"""LangGraph's long-term store over a memory: each item of the store is a document of the memory.

So `store.search` ranks by words, vectors and the graph. The same memory can be asked, inspected and
exported; `Memory.search` and `Memory.ask` find items of the store, too.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from qrmem.errors import NotFound, UsageError
from qrmem.memory import BlockingMemory, Memory
from qrmem.text.normalise import normalise
from qrmem.types import Document, MetaValue, Scalar
from qrmem.types.turns import READER_KEY, RULES

_ID = "langgraph/"
_KEY, _VALUE, _AT, _INDEXED = "store_key", "store_value", "store_at", "store_indexed"
_LEVEL = "store_{}"
"""Metadata key for the first n labels of an item's namespace, joined by dots."""
_NO_TEXT = "-"
"""Text of an item without text in its key and value."""
_MORE = 4
"""Number of segments to search per item, as an item may have several. If they belong to too few
items, the number is multiplied by this again."""

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, other: value == other,
    "$ne": lambda value, other: value != other,
    "$gt": lambda value, other: float(value) > float(other),
    "$gte": lambda value, other: float(value) >= float(other),
    "$lt": lambda value, other: float(value) < float(other),
    "$lte": lambda value, other: float(value) <= float(other),
}


class MemoryStore(BaseStore):
    """A LangGraph store in a memory.

    It behaves like LangGraph's `InMemoryStore` with three differences: a query always ranks, an
    update keeps `created_at`, and a namespace without items is not listed. Items do not expire.

    Args:
        memory: from `qrmem.open` (asynchronous methods only) or from `qrmem.sync.open` (both).
        read_by_model: whether the memory's chat model reads the indexed texts of items for entities
            and relations. This costs at least one call for each `put` of a new or changed text;
            without it the built-in rules read them, and a `put` costs nothing.
        fields: paths of the texts in a value to index, such as `text` or `facts[*].text`; `None`
            indexes all texts. `put(index=…)` overrides it for an item.

    Raises:
        UsageError: `memory` is not an open memory, or `fields` is a text.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        fields: Sequence[str] | None = None,
        read_by_model: bool = False,
    ) -> None:
        if isinstance(fields, str):
            raise UsageError(f"fields is a list of paths, not one text: [{fields!r}]")
        if not isinstance(memory, Memory | BlockingMemory):
            raise UsageError(f"a store needs an open memory, not {type(memory).__name__}")
        self._memory = memory
        self._fields = fields
        self._read_by_model = read_by_model

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads see the state before the batch.

        Raises:
            UsageError: the memory is asynchronous, or a value is not JSON.
        """
        if isinstance(self._memory, Memory):
            raise UsageError(
                "this memory is asynchronous: use abatch, or open it with qrmem.sync.open"
            )
        operations = list(ops)
        return self._memory.call(lambda memory: self._carry_out(memory, operations))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads see the state before the batch.

        Raises:
            UsageError: a value is not JSON.
        """
        operations = list(ops)
        if isinstance(self._memory, Memory):
            return await self._carry_out(self._memory, operations)
        return await self._memory.acall(lambda memory: self._carry_out(memory, operations))

    async def _carry_out(self, memory: Memory, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            _require_tuples(op)
            validate_op_namespace(op)
            if isinstance(op, GetOp):
                results.append(await _get(memory, _id(op.namespace, op.key)))
            elif isinstance(op, SearchOp):
                results.append(await _search(memory, op))
            elif isinstance(op, ListNamespacesOp):
                results.append(await _namespaces(memory, op))
            elif isinstance(op, PutOp):
                puts[_id(op.namespace, op.key)] = op
                results.append(None)
            else:
                raise ValueError(f"unknown operation: {type(op).__name__}")
        await self._put(memory, puts)
        return results

    async def _put(self, memory: Memory, puts: Mapping[str, PutOp]) -> None:
        before = {id: await _get(memory, id) for id in puts}
        documents = [
            self._document(id, op, op.value, before[id])
            for id, op in puts.items()
            if op.value is not None
        ]
        deleted_ids = [id for id, op in puts.items() if op.value is None and before[id]]
        if deleted_ids:
            await memory.delete(*deleted_ids)
        if documents:
            report = await memory.add(documents, update=True)
            reasons = [reason for _, index, reason in report.problems if index < 0]
            if reasons:
                raise UsageError(f"not kept: {'; '.join(reasons)}")

    def _document(
        self, id: str, op: PutOp, value: Mapping[str, Any], before: Item | None
    ) -> Document:
        as_text = _as_text(op.key, value)
        now = datetime.now(UTC).isoformat()
        created = before.created_at.isoformat() if before else now
        paths = self._fields if op.index is None else op.index
        texts = list(_texts(value) if paths is None else _at(value, paths or ()))
        levels = {_LEVEL.format(n): _level(op.namespace[:n]) for n in range(len(op.namespace) + 1)}
        metadata: dict[str, Scalar] = {
            **levels,
            _KEY: op.key,
            _VALUE: as_text,
            _AT: f"{created} {now}",
            _INDEXED: op.index is not False and bool(texts),
        }
        # A document is never empty: an unindexed item has its key as text, and queries skip it.
        if not (self._read_by_model and metadata[_INDEXED]):
            metadata[READER_KEY] = RULES
        text = "\n".join(texts) if metadata[_INDEXED] else op.key
        text = text if _has_text(text) else _NO_TEXT
        return Document(text, id=id, metadata=metadata)


def _id(namespace: Sequence[str], key: str) -> str:
    return _ID + _exact([*namespace, key])


def _exact(value: Any) -> str:
    """Return JSON that a document stores unchanged, in its id and in its metadata.

    Characters that a document would change are escaped: unpaired surrogates, combined letters.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    is_kept = unicodedata.normalize("NFC", normalise(text)) == text
    return text if is_kept else json.dumps(value)


def _require_tuples(op: Op) -> None:
    """Refuse a namespace that is a text: each of its letters would be a label.

    Raises:
        UsageError: it is a text.
    """
    conditions = getattr(op, "match_conditions", None) or ()
    names = [getattr(op, name, ()) for name in ("namespace", "namespace_prefix")]
    for given in (*names, *(one.path for one in conditions)):
        if isinstance(given, str):
            raise UsageError(f"a namespace is a tuple of texts: ({given!r},), not {given!r}")


def _as_text(key: str, value: Any) -> str:
    if not isinstance(value, Mapping):
        raise UsageError(f"the value of {key!r} must be a dict, not {type(value).__name__}")
    try:
        written = _exact(dict(value))
    except (TypeError, ValueError, RecursionError) as exc:  # a set, a date, a reference to itself
        raise UsageError(
            f"the value of {key!r} is no JSON ({exc}): take texts, finite numbers, lists and dicts"
        ) from None
    if wrong := _other_key(value):
        raise UsageError(
            f"the value of {key!r} has the key {wrong}, which would come back as a text: give it"
            " as a text"
        )
    return written


def _other_key(value: Any) -> str:
    """Return a key that is not a text, at any depth; "" if there is none."""
    inner = value if isinstance(value, list | tuple) else ()
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                return repr(key)
        inner = tuple(value.values())
    return next(filter(None, map(_other_key, inner)), "")


def _level(labels: Sequence[str]) -> str:
    text = ".".join(labels) or "."
    return text if normalise(text) == text else json.dumps(text)


def _path(id: str) -> tuple[str, ...]:
    return tuple(json.loads(id.removeprefix(_ID)))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, at any depth."""
    if isinstance(value, str):
        yield from [value] if _has_text(value) else []
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _at(value: Mapping[str, Any], paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        value_at = get_text_at_path(value, tokenize_path(path))
        yield from filter(_has_text, value_at)


def _has_text(text: str) -> bool:
    """Return whether a text is not empty in a document, which has no control characters."""
    return bool(normalise(text).strip())


# --- reading ------------------------------------------------------------------------------------


async def _get(memory: Memory, id: str) -> Item | None:
    try:
        stored_document = await memory.document(id)
    except NotFound:
        return None
    return _item(id, stored_document.metadata)


def _item(id: str, metadata: Mapping[str, MetaValue]) -> Item | None:
    """Return the item in a document; `None` if this store did not write it."""
    try:
        *namespace, key = _path(id)
        value = json.loads(str(metadata[_VALUE]))
        created, updated = map(datetime.fromisoformat, str(metadata[_AT]).split(" "))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    names = all(isinstance(name, str) for name in (*namespace, key))
    if not (names and isinstance(value, dict) and created.tzinfo and updated.tzinfo):
        return None
    return Item(
        value=value, key=key, namespace=tuple(namespace), created_at=created, updated_at=updated
    )


async def _search(memory: Memory, op: SearchOp) -> list[SearchItem]:
    """Return items: those that the query ranks, best first, then the others by time."""
    end = op.offset + op.limit
    if not op.filter and _has_text(op.query or ""):
        # If enough items are ranked, the others need not be read.
        where = {_LEVEL.format(len(op.namespace_prefix)): _level(op.namespace_prefix)}
        scores = await _scores(memory, op.query or "", where={**where, _INDEXED: True}, wanted=end)
        if len(scores) >= end:
            read = [(await _get(memory, id), scores[id]) for id in [*scores][:end]]
            prefix = op.namespace_prefix
            items_shown = [
                _search_item(one, score) for one, score in read if one and _begins(one, prefix)
            ]
            if len(items_shown) == len(read):
                return items_shown[op.offset :]
    items = await _below(memory, op.namespace_prefix)
    fitting = {
        id: item
        for id, (item, _) in sorted(items.items(), key=lambda pair: pair[1][0].created_at)
        if all(
            _fits(item.value.get(name), condition_value)
            for name, condition_value in (op.filter or {}).items()
        )
    }
    ranked = [id for id in fitting if items[id][1]]
    scores = {}
    if ranked and _has_text(op.query or ""):
        scores = await _scores(memory, op.query or "", documents=ranked, wanted=end)
    order = [*scores, *(id for id in fitting if id not in scores)]
    return [_search_item(fitting[id], scores.get(id)) for id in order[op.offset : end]]


def _search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


async def _scores(
    memory: Memory,
    query: str,
    *,
    wanted: int,
    documents: Sequence[str] | None = None,
    where: Mapping[str, Scalar] | None = None,
) -> dict[str, float]:
    """Return the best items with scores, best first, among some documents or by metadata."""
    scores: dict[str, float] = {}
    k = wanted * _MORE
    while k > 0:
        try:
            hits = await memory.search(query, k=k, documents=documents, where=where)
        except NotFound:  # nothing has that metadata
            break
        for hit in hits:
            if hit.document_id.startswith(_ID):
                scores.setdefault(hit.document_id, hit.score)
        if len(hits) < k or len(scores) >= min(wanted, len(documents or ()) or wanted):
            break
        k *= _MORE
    return scores


async def _below(memory: Memory, prefix: Sequence[str]) -> dict[str, tuple[Item, bool]]:
    """Return by id all items below a namespace, and whether each is indexed."""
    where = {_LEVEL.format(len(prefix)): _level(prefix)}
    infos = await memory.documents(where=where)
    items = ((info, _item(info.id, info.metadata)) for info in infos if info.id.startswith(_ID))
    return {
        info.id: (item, bool(info.metadata.get(_INDEXED)))
        for info, item in items
        if item is not None and _begins(item, prefix)
    }


def _begins(item: Item, prefix: Sequence[str]) -> bool:
    return item.namespace[: len(prefix)] == tuple(prefix)


def _fits(value: Any, wanted: Any) -> bool:
    """Return whether a value matches a filter: equal, part by part, or by `$gt` and so on."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compared(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(
            _fits(value.get(name), other) for name, other in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(map(_fits, value, wanted))
        )
    return bool(value == wanted)


def _compared(value: Any, operator: str, other: Any) -> bool:
    if operator not in _COMPARE:
        raise ValueError(f"unsupported operator: {operator}; there are {', '.join(_COMPARE)}")
    if value is None and operator not in ("$eq", "$ne"):
        return False
    return bool(_COMPARE[operator](value, other))


async def _namespaces(memory: Memory, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    namespaces = {item.namespace for item, _ in (await _below(memory, ())).values()}
    for condition in op.match_conditions or ():
        namespaces = {namespace for namespace in namespaces if _matches(namespace, condition)}
    if op.max_depth is not None:
        namespaces = {namespace[: op.max_depth] for namespace in namespaces}
    return sorted(namespaces)[op.offset : op.offset + op.limit]


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    is_prefix = condition.match_type == "prefix"
    labels = namespace[: len(path)] if is_prefix else namespace[len(namespace) - len(path) :]
    return all(
        label_wanted in ("*", label) for label, label_wanted in zip(labels, path, strict=True)
    )
