"""The graph of a memory as a GraphML file."""

from io import BytesIO
from pathlib import Path
from typing import Any

from qrmem.graph.folding import fold
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import facts_of
from qrmem.io.place import write_whole
from qrmem.types import Entity, Relation, Scalar

_ALL = 2**31 - 1


async def write_graphml(store: GraphStore, ns: str, path: str) -> int:
    """Write entities and folded relations as GraphML; returns how many entities were written.

    Raises:
        UsageError: at the path is something else than XML.
        StoreUnavailable: the file cannot be written.
    """
    import networkx

    graph: networkx.Graph[str] = networkx.Graph(name=ns)
    listed = await store.list_entities(ns, _ALL)
    told = await store.entities(ns, [entity.key for entity in listed])
    properties = {entity.key: _latest(entity) for entity in told if entity.properties}
    for entity in listed:
        graph.add_node(
            entity.key,
            label=_xml(entity.name),
            type=_xml(entity.type),
            segments=entity.segments,
            **properties.get(entity.key, {}),
        )
    for relation in fold(await facts_of(store, ns, [entity.key for entity in listed])):
        if relation.head in graph and relation.tail in graph:
            graph.add_edge(
                relation.head,
                relation.tail,
                label=_xml(relation.description),
                weight=len(relation.facts),
                segments=" ".join(relation.segments),
                **_typed(relation),
            )
    written = BytesIO()
    networkx.write_graphml(graph, written)
    write_whole(Path(path), written.getvalue(), b"<?xml", "GraphML")
    return len(listed)


def _latest(entity: Entity) -> dict[str, Any]:
    """Return an entity's properties, of several values the one said last."""
    return {f"property_{one.name}": _plain(one.value) for one in entity.properties}


def _typed(relation: Relation) -> dict[str, Any]:
    """Return a relation's types and properties, where its statements have any."""
    types = dict.fromkeys(fact.type for fact in relation.facts if fact.type)
    said = {f"property_{k}": _plain(v) for fact in relation.facts for k, v in fact.properties}
    return ({"types": " ".join(types)} if types else {}) | said


def _plain(value: Scalar) -> str:
    return _xml(str(value))


def _xml(text: str) -> str:
    """Leave out what no XML file may hold; everything else is escaped by the writer."""
    return "".join(c for c in text if c >= " " and c not in "\ufffe\uffff")
