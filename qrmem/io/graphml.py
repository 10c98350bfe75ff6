"""The graph of a memory as a GraphML file."""

from io import BytesIO
from pathlib import Path

from qrmem.graph.folding import fold
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import facts_of
from qrmem.io.place import write_whole

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
    for entity in listed:
        graph.add_node(
            entity.key, label=_xml(entity.name), type=_xml(entity.type), segments=entity.segments
        )
    for relation in fold(await facts_of(store, ns, [entity.key for entity in listed])):
        if relation.head in graph and relation.tail in graph:
            graph.add_edge(
                relation.head,
                relation.tail,
                label=_xml(relation.description),
                weight=len(relation.facts),
                segments=" ".join(relation.segments),
            )
    written = BytesIO()
    networkx.write_graphml(graph, written)
    write_whole(Path(path), written.getvalue(), b"<?xml", "GraphML")
    return len(listed)


def _xml(text: str) -> str:
    """Leave out what no XML file may hold; everything else is escaped by the writer."""
    return "".join(c for c in text if c >= " " and c not in "\ufffe\uffff")
