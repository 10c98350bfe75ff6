"""Compares a namespace's view with its facts, and builds the view again.

A person may have deleted or edited nodes in Neo4j Browser. The view of the facts is computed in
memory. Names that were merged, moved or renamed by hand are kept as the user's decisions. Every
other difference is reverted to the view of the facts, as the texts have not changed.
"""

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qrmem.errors import StoreConflict, StoreUnavailable
from qrmem.graph.merging import Similar, merge_documents
from qrmem.graphstore import scratch_store
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import copy_document, entities_in, every_trail, facts_of
from qrmem.llm.parallel import in_batches
from qrmem.text.numbers import counted
from qrmem.types import DocumentInfo, Fact, MergeDecision, Relation, Repair

_ALL = 2**31 - 1
_DOCUMENTS = 64
"""Number of documents per batch."""


@dataclass(frozen=True, slots=True)
class View:
    """The data to compare.

    Attributes:
        entity_of: name key to entity key.
        surfaces: name key to its most frequent form.
        names: entity key to its name.
        facts: all facts.
        relations: the merged relations, as the store shows them.
        mentions: segment id to the keys of its entities.
        unnamed: number of entities without a mention or a name.
        dangling: number of facts without one of their ends.
        misdrawn: number of displayed edges that differ from the facts.
    """

    entity_of: Mapping[str, str]
    surfaces: Mapping[str, str]
    names: Mapping[str, str]
    facts: Collection[Fact]
    relations: Collection[Relation]
    mentions: Mapping[str, Sequence[str]]
    unnamed: int
    dangling: int
    misdrawn: int


async def repair(
    store: GraphStore, ns: str, *, similar: Similar | None = None, compare_only: bool = False
) -> Repair:
    """Report the differences between view and facts, and build the view again if there are any.

    Args:
        store: the store.
        ns: the namespace.
        similar: the comparison of names that the memory is merged with.
        compare_only: change nothing.

    Raises:
        StoreConflict: another writer changed the namespace meanwhile.
    """
    infos = await store.documents(ns)
    documents = [info.id for info in infos]
    for info in infos:
        await _check_readable(store, ns, info)
    damaged = [info.id for info in infos if await _is_damaged(store, ns, info)]
    view = await _view(store, ns, documents)
    expected = await _expected(store, ns, documents, similar)
    differences = list(dict.fromkeys(_differences(view, expected)))
    if compare_only or not differences:
        return Repair(tuple(text for text, _ in differences), (), tuple(damaged))
    decisions = [decision for _, decision in differences if decision is not None]
    for decision in decisions:
        await store.override_merge(ns, decision)
    await store.clear_view(ns)
    await merge_documents(store, ns, documents, similar=similar)
    async for trail in every_trail(store, ns):
        await store.put_trail(ns, trail)  # draws it on the new nodes
    await _check(store, ns, documents, similar)
    return Repair(tuple(text for text, _ in differences), tuple(decisions), tuple(damaged))


async def _check(
    store: GraphStore, ns: str, documents: Sequence[str], similar: Similar | None
) -> None:
    view = await _view(store, ns, documents)
    expected = await _expected(store, ns, documents, similar)
    if list(_differences(view, expected)):
        raise StoreConflict(f"namespace {ns!r} changed while it was repaired; repair it again")


async def _check_readable(store: GraphStore, ns: str, info: DocumentInfo) -> None:
    """Raise an error that names the document if an extraction from it cannot be decoded."""
    try:
        await store.contributions(ns, info.id)
    except StoreUnavailable as exc:
        if not isinstance(exc.__cause__, ValueError | zlib.error):
            raise
        raise StoreUnavailable(
            f"{store.location} is damaged: what was extracted from {info.id!r} cannot be "
            "understood;"
            " delete it and add it again, then repair again"
        ) from exc


async def _is_damaged(store: GraphStore, ns: str, info: DocumentInfo) -> bool:
    """Say whether a text is no longer what it was, or segments are gone or not at their place."""
    document = await store.document(ns, info.id)
    if document is None or document.digest != info.digest:
        return True
    segments = await store.segments(ns, documents=[info.id])
    return any(
        segment.index != n or document.text[segment.start : segment.end] != segment.text
        for n, segment in enumerate(segments)
    )


async def _expected(
    store: GraphStore, ns: str, documents: Sequence[str], similar: Similar | None
) -> View:
    """Return the view of a store in memory that holds the same facts."""
    async with scratch_store() as scratch:
        info = await store.namespace(ns)
        if info is not None:
            await scratch.create_namespace(ns, info)
            for id_ in documents:
                await copy_document(store, scratch, ns, id_)
            for decision in (await store.unmerged(ns)).decisions:
                await scratch.override_merge(ns, decision)
            await merge_documents(scratch, ns, documents, similar=similar)
            for fold_entry in await store.cache_entries(
                ns, "fold", await store.cache_keys(ns, "fold")
            ):
                await scratch.put_cache_entry(
                    ns, "fold", fold_entry.key, fold_entry.value, segments=fold_entry.segments
                )
        return await _view(scratch, ns, documents)


async def _view(store: GraphStore, ns: str, documents: Sequence[str]) -> View:
    names = await store.names(ns)
    entities = {row.key: row.name for row in await store.list_entities(ns, _ALL)}
    entity_keys = {*entities, *(row.entity for row in names)}
    facts = await facts_of(store, ns, sorted(entity_keys))
    mentions: dict[str, Sequence[str]] = {}
    for together in in_batches(documents, _DOCUMENTS):
        some = await store.segments(ns, documents=together)
        mentions |= await entities_in(store, ns, [segment.id for segment in some])
    counts = await store.counts(ns)
    return View(
        entity_of={row.key: row.entity for row in names},
        surfaces={row.key: row.surface for row in names},
        names=entities,
        facts=facts,
        relations=await store.relations(ns, sorted(entity_keys)),
        mentions=mentions,
        unnamed=counts["entities"] - len(entity_keys),
        dangling=counts["facts"] - len(facts),
        misdrawn=await store.misdrawn(ns),
    )


def _differences(found: View, expected: View) -> Iterator[tuple[str, MergeDecision | None]]:
    """Yield what differs, in words, and the user's decision that it shows, if it shows one."""
    yield from _of_names(found, expected)
    yield from _of_entities(found, expected)
    unnamed = found.unnamed - expected.unnamed
    if unnamed > 0:
        yield f"{counted(unnamed, 'entities')} made by hand, in no text: not kept", None
    facts_lost = len(set(expected.facts) - set(found.facts))
    if facts_lost:
        yield f"{counted(facts_lost, 'relations')} missing or edited: made again", None
    added = len(set(found.facts) - set(expected.facts))
    if added:
        yield f"{counted(added, 'relations')} not in the texts: not kept", None
    dangling = found.dangling - expected.dangling
    if dangling > 0:
        yield f"{counted(dangling, 'relations')} without both ends: not kept", None
    relations_wrong = (
        len(set(expected.relations) - set(found.relations)) if not facts_lost and not added else 0
    )
    if relations_wrong:
        yield f"{counted(relations_wrong, 'merged relations')} missing or edited: made again", None
    elif found.misdrawn and not facts_lost and not added:
        yield f"{counted(found.misdrawn, 'edges')} missing or edited: drawn again", None
    moved = sum(
        sorted(keys) != sorted(found.mentions.get(segment, ()))
        for segment, keys in expected.mentions.items()
    )
    if moved:
        yield (
            f"{counted(moved, 'segments')} with other entities than the text names: made again",
            None,
        )


def _of_names(found: View, expected: View) -> Iterator[tuple[str, MergeDecision | None]]:
    for key, entity in expected.entity_of.items():
        surface, own_names = expected.surfaces[key], expected.names[entity]
        now = found.entity_of.get(key)
        if now is None:
            yield f"the name {surface!r} is missing: it is made again", None
        elif now != entity and now in expected.names and surface != expected.names[now]:
            target = expected.names[now]
            yield (
                f"{surface!r} was made a name of {target!r}: kept",
                _decision(surface, target, same=True),
            )
        elif now != entity and now not in expected.names and surface != own_names:
            yield (
                f"{surface!r} was taken from {own_names!r}: kept",
                _decision(surface, own_names, same=False),
            )
        elif now != entity:
            yield f"{surface!r} stands for another entity: this cannot be kept", None
    names_gone = len(found.entity_of.keys() - expected.entity_of.keys())
    if names_gone:
        yield f"{counted(names_gone, 'names')} in no text: not kept", None


def _of_entities(found: View, expected: View) -> Iterator[tuple[str, MergeDecision | None]]:
    forms = {surface.casefold(): key for key, surface in expected.surfaces.items()}
    for key, name in expected.names.items():
        now = found.names.get(key)
        if now is None:
            if key not in set(found.entity_of.values()):
                yield f"the entity {name!r} is missing: it is made again", None
        elif now != name:
            other = forms.get(now.casefold())
            if other is not None and expected.entity_of[other] != key:
                yield (
                    f"{name!r} was renamed to {now!r}, which is a name too: kept as one entity",
                    _decision(name, now, same=True),
                )
            else:
                yield (
                    f"{name!r} was renamed to {now!r}: no text uses this name, so it is not kept",
                    None,
                )


def _decision(first: str, second: str, *, same: bool) -> MergeDecision:
    one, other = sorted((first, second))
    return MergeDecision(one, other, same=same)
