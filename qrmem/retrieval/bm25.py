"""Okapi BM25 over a namespace's own statistics (S05: k1 1.5, b 0.75).

The store returns where terms occur; everything else is computed here, so that scores don't depend
on the database nor on what other namespaces hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Catalog, Postings


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Where one term occurs: rows of the catalog, ascending, and how often in each."""

    rows: "NDArray[np.int64]"
    counts: "NDArray[np.int64]"


def occurrences(catalog: "Catalog", postings: "Mapping[str, Postings]") -> dict[str, Occurrences]:
    """Translate the store's ordinals into rows of the catalog.

    Ordinals that the catalog doesn't know (written since it was read) are left out.
    """
    return {term: _located(catalog.numbers, found) for term, found in postings.items()}


def _located(numbers: "NDArray[np.int64]", found: "Postings") -> Occurrences:
    if not numbers.size:
        return Occurrences(found.numbers[:0], found.counts[:0])
    if numbers[-1] - numbers[0] + 1 == numbers.size:  # nothing was ever deleted or read again
        rows = found.numbers - numbers[0]
        inside = (rows >= 0) & (rows < numbers.size)
    else:
        rows = np.searchsorted(numbers, found.numbers)
        inside = numbers[np.minimum(rows, numbers.size - 1)] == found.numbers
    return Occurrences(rows[inside], found.counts[inside])


def idf(frequency: int, total: int) -> float:
    """Return a term's rarity, never negative: it occurs in `frequency` of `total` segments."""
    return float(np.log1p((total - frequency + 0.5) / (frequency + 0.5)))


def weights(
    terms: Mapping[str, float], found: Mapping[str, Occurrences], total: int
) -> dict[str, float]:
    """Return each term's weight in a query: how often it stands there times its rarity.

    A term that occurs nowhere is as rare as can be: it may still occur in another text.
    """
    return {
        term: count * idf(found[term].rows.size if term in found else 0, total)
        for term, count in terms.items()
    }


def norms(lengths: "NDArray[np.int64]", k1: float = 1.5, b: float = 0.75) -> "NDArray[np.float64]":
    """Return `(n,)`: what a term's count is held against in a text of each length.

    Args:
        lengths: `(n,)`, each text's length in terms.
        k1: saturation of a term's count.
        b: how much length is held against a text, 0 to 1.
    """
    mean = max(float(lengths.mean()), 1.0) if lengths.size else 1.0
    result: NDArray[np.float64] = k1 * (1 - b + b * lengths.astype(np.float64) / mean)
    return result


def scores(
    weighted: Mapping[str, float],
    found: Mapping[str, Occurrences],
    normed: "NDArray[np.float64]",
    k1: float = 1.5,
) -> "NDArray[np.float64]":
    """Score every text against a query.

    Args:
        weighted: the query's terms with their weights.
        found: where the terms occur; a term that is missing here adds nothing.
        normed: `(n,)`, from `norms`.
        k1: saturation of a term's count, as given to `norms`.

    Returns:
        `(n,)`, at least 0; 0 exactly where no term occurs.
    """
    result = np.zeros(normed.size)
    for term, weight in weighted.items():
        where = found.get(term)
        if where is not None:
            result[where.rows] += (
                weight * where.counts * (k1 + 1) / (where.counts + normed[where.rows])
            )
    return result
