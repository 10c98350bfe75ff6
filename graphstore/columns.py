"""All names and vectors of a namespace by the ordinals of its catalog, out of what a store gives.

For stores that have no shorter way to them.
"""

from typing import TYPE_CHECKING

from qrmem.graphstore.protocol import NameColumns, NumberedVectors

if TYPE_CHECKING:
    from qrmem.graphstore.protocol import GraphStore


async def name_columns(store: "GraphStore", ns: str) -> NameColumns:
    """Return what `GraphStore.name_columns` promises."""
    import numpy as np

    catalog, names = await store.catalog(ns), await store.names(ns)
    places: dict[str, int] = {}
    entity_of = [places.setdefault(row.entity, len(places)) for row in names]
    found = await store.entities_in(ns, catalog.segment_ids)
    pairs = [
        (number, places[key])
        for number, id_ in zip(catalog.numbers.tolist(), catalog.segment_ids, strict=True)
        for key in found.get(id_, ())
        if key in places
    ]
    numbers, entities = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    surfaces = [row.surface for row in names]
    return NameColumns(surfaces, np.array(entity_of, dtype=np.int64), numbers, entities)


async def numbered_vectors(store: "GraphStore", ns: str) -> NumberedVectors:
    """Return what `GraphStore.numbered_vectors` promises."""
    import numpy as np

    catalog, found = await store.catalog(ns), await store.vectors(ns, "segment")
    number_of = dict(zip(catalog.segment_ids, catalog.numbers.tolist(), strict=True))
    numbers = np.array([number_of.get(owner, -1) for owner in found.owners], dtype=np.int64)
    known = numbers >= 0
    return NumberedVectors(numbers[known], found.matrix[known])
