"""The graph as GraphML, for Gephi, Cytoscape and other programs."""

import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path

from qrmem.graph.superseding import kept_endings
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import entities_in_time
from qrmem.graphstore.relations import properties_of, times_of
from qrmem.io.place import write_whole
from qrmem.types import Entity, Relation, Scalar

_ALL = 2**31 - 1


async def write_graphml(
    store: GraphStore,
    ns: str,
    path: str | os.PathLike[str],
    *,
    single: Collection[str] = (),
    overwrite: bool = False,
) -> int:
    """Write entities and merged relations as GraphML; return the number of entities.

    Each pair, direction and type has one edge with its description, the questions that a chat model
    settled, the number of its statements, the ids of their segments, and its times.

    Args:
        single: relation types of which an entity has one at a time.
        overwrite: replace an earlier file.

    Raises:
        UsageError: the path exists and is not XML, or `overwrite` is not set.
        StoreUnavailable: the file cannot be written.
    """
    import networkx

    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=ns)
    entities_listed = await store.list_entities(ns, _ALL)
    keys = [entity.key for entity in entities_listed]
    properties = _typed({e.key: _latest(e) for e in await entities_in_time(store, ns, keys)})
    for entity in entities_listed:
        graph.add_node(
            entity.key,
            label=_xml(entity.name),
            type=_xml(entity.type),
            segments=entity.segments,
            **properties.get(entity.key, {}),
        )
    relations = await store.relations(ns, keys)
    facts = [fact for relation in relations for fact in relation.facts]
    endings = await kept_endings(store, ns, facts, single)
    since = {place: ending.since for place, ending in endings.items()}
    properties = _typed({one.key: _stated(one) for one in relations})
    for relation in relations:
        if relation.head in graph and relation.tail in graph:
            times = {name: when for name, when in times_of(relation, since).items() if when}
            graph.add_edge(
                relation.head,
                relation.tail,
                key=relation.key,
                label=_xml(relation.description),
                weight=len(relation.facts),
                segments=" ".join(relation.segments),
                **_edge_data(relation),
                **times,
                **properties[relation.key],
            )
    buffer = BytesIO()
    networkx.write_graphml(graph, buffer)
    data, what = buffer.getvalue(), "a GraphML file"
    begins = data[: data.index(b"<graphml") + len(b"<graphml")]
    write_whole(Path(path), data, begins, what, overwrite=overwrite)
    return len(entities_listed)


def _latest(entity: Entity) -> dict[str, Scalar]:
    """Return an entity's properties, each with its latest value."""
    return {f"property_{one.name}": one.value for one in entity.properties}


def _stated(relation: Relation) -> dict[str, Scalar]:
    """Return a relation's properties, each with its latest value."""
    return {f"property_{name}": value for name, value in properties_of(relation).items()}


def _edge_data(relation: Relation) -> dict[str, str]:
    """Return a relation's type and questions, if it has any."""
    type_ = {"type": relation.type} if relation.type else {}
    questions = {"questions": _xml(" ".join(relation.questions))} if relation.questions else {}
    return type_ | questions


def _typed(properties: Mapping[str, Mapping[str, Scalar]]) -> dict[str, dict[str, Scalar]]:
    """Return properties with one type for each name, as GraphML requires; text if types differ."""
    kinds: dict[str, set[type]] = defaultdict(set)
    for row in properties.values():
        for name, value in row.items():
            is_long = type(value) is not int or -(2**63) <= value < 2**63
            kinds[name].add(type(value) if is_long else str)
    of_name = {name: _kind(found) for name, found in kinds.items()}
    return {
        key: {name: _converted(value, of_name[name]) for name, value in row.items()}
        for key, row in properties.items()
    }


def _kind(found: set[type]) -> type:
    if found == {int, float}:
        return float
    return found.pop() if len(found) == 1 else str


def _converted(value: Scalar, kind: type) -> Scalar:
    if kind is float and not isinstance(value, str):
        return float(value)
    return value if kind in (int, bool) else _xml(str(value))


def _xml(text: str) -> str:
    """Remove characters that XML does not allow; the writer escapes all others."""
    return "".join(c for c in text if c >= " " and c not in "\ufffe\uffff")
