"""The graph of a memory as a GraphML file."""

from io import BytesIO
from pathlib import Path
from typing import Any

from qrmem.graphstore.protocol import GraphStore
from qrmem.io.place import write_whole
from qrmem.types import Entity, Relation, Scalar

_ALL = 2**31 - 1


async def write_graphml(store: GraphStore, ns: str, path: str) -> int:
    """Write entities and merged relations as GraphML; returns how many entities were written.

    There is an edge for each pair, direction and type, with its description, the questions that a
    chat model settled, the number of its statements and the segments that state it.

    Raises:
        UsageError: at the path is something else than XML.
        StoreUnavailable: the file cannot be written.
    """
    import networkx

    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=ns)
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
    for relation in await store.relations(ns, [entity.key for entity in listed]):
        if relation.head in graph and relation.tail in graph:
            graph.add_edge(
                relation.head,
                relation.tail,
                key=relation.key,
                label=_xml(relation.description),
                weight=len(relation.facts),
                segments=" ".join(relation.segments),
                **_told(relation),
            )
    written = BytesIO()
    networkx.write_graphml(graph, written)
    write_whole(Path(path), written.getvalue(), b"<?xml", "GraphML")
    return len(listed)


def _latest(entity: Entity) -> dict[str, Any]:
    """Return an entity's properties, of several values the one said last."""
    return {f"property_{one.name}": _plain(one.value) for one in entity.properties}


def _told(relation: Relation) -> dict[str, Any]:
    """Return a relation's type, questions and properties, where it has any."""
    said = {f"property_{k}": _plain(v) for fact in relation.facts for k, v in fact.properties}
    type_ = {"type": relation.type} if relation.type else {}
    asked = {"questions": _xml(" ".join(relation.questions))} if relation.questions else {}
    return type_ | asked | said


def _plain(value: Scalar) -> str:
    return _xml(str(value))


def _xml(text: str) -> str:
    """Leave out what no XML file may hold; everything else is escaped by the writer."""
    return "".join(c for c in text if c >= " " and c not in "\ufffe\uffff")
