"""Clusters of nodes by a Gaussian mixture, as in RAPTOR (Sarthi et al., section 3).

The vectors are reduced by UMAP, or by PCA if umap-learn is not installed. The number of clusters
is the one with the lowest BIC. A node belongs to every cluster whose membership probability is
above 0.1. Everything is seeded: the same vectors give the same clusters. The result names the
methods that were used.
"""

import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from qrmem.errors import missing_extra, require_extra
from qrmem.types.usage import Course

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.floating[Any]]

SEED = 224
MOST_CLUSTERS = 50
ROWS_EACH = 3
PATIENCE = 5
"""Number of successive cluster counts without a lower BIC that ends the search for the lowest."""
_REGULAR = 1e-4
_ONE_CALLER = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Settings for clustering nodes; the defaults are RAPTOR's.

    Attributes:
        dimension: dimension of the reduced vectors.
        threshold: probability above which a node belongs to a cluster.
        few: at most so many nodes form one cluster, which ends the tree.
        tokens: a cluster with more tokens is clustered again.
        reduction: `umap`, `pca`, or `auto`: UMAP if umap-learn is installed.
    """

    dimension: int = 10
    threshold: float = 0.1
    few: int = 11
    tokens: int = 3500
    reduction: Literal["auto", "umap", "pca"] = "auto"


def require_tree_extra() -> None:
    """Raise `MissingError` if scikit-learn is not installed."""
    require_extra("tree", "a tree of summaries", "sklearn")


def reduction_of(settings: ClusterSettings) -> str:
    """Return `umap` or `pca`.

    Raises:
        MissingError: UMAP is chosen and umap-learn is not installed.
    """
    has_umap = find_spec("umap") is not None
    if settings.reduction == "umap" and not has_umap:
        raise missing_extra("tree", "UMAP")
    return "umap" if has_umap and settings.reduction != "pca" else "pca"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit NumPy and scikit-learn to one thread, and admit one caller at a time.

    The matrices are small: several threads wait for each other longer than they work, and on a
    busy machine many times longer. A fixed order of sums also gives the same result on every
    machine. The limit holds for the whole process, and numba's default threading layer ends a
    process with two callers at a time.
    """
    import sklearn.mixture  # noqa: F401 - loads what has threads
    from threadpoolctl import threadpool_limits

    with _ONE_CALLER, threadpool_limits(1):
        yield


@dataclass(frozen=True, slots=True)
class Clusters:
    """Groups of row numbers, and the methods that made them.

    Attributes:
        groups: each sorted; together they hold every row.
        reductions: methods that reduced the vectors, `umap` and `pca`; empty: not reduced.
        runs: groups of consecutive rows, made because no clusters were found.
    """

    groups: list[list[int]]
    reductions: tuple[str, ...] = ()
    runs: int = 0


def clusters(
    vectors: "Matrix", tokens: Sequence[int], settings: ClusterSettings | None = None
) -> Clusters:
    """Return the clusters of some rows.

    There are always fewer groups than rows, so that a tree of them is finite.

    Args:
        vectors: `(n, d)`, any length.
        tokens: size of each row's text.
    """
    settings, n = settings or ClusterSettings(), len(tokens)
    if n <= 2:
        return Clusters([list(range(n))] if n else [])
    clustering = _Clustering(vectors, tokens, settings)
    with one_thread():
        distinct = sorted({tuple(group) for group in clustering.split(list(range(n)))})
    runs = {tuple(run) for run in clustering.runs}
    if len(distinct) >= n - 1:
        distinct = [tuple(run) for run in _runs(list(range(n)), tokens, settings)]
        runs = set(distinct)
    groups = [list(group) for group in distinct]
    return Clusters(groups, tuple(sorted(clustering.reductions)), len(runs.intersection(distinct)))


def are_alike(vectors: "Matrix") -> bool:
    """Whether all rows are equal, so that no clusters can be found."""
    import numpy as np

    return len(vectors) < 2 or float(np.ptp(vectors, axis=0).max()) < 1e-6


def bounded(
    tokens: Sequence[int], course: Course, settings: ClusterSettings | None = None
) -> Clusters:
    """Return as few or as many groups as clustering could give, whatever the vectors are.

    A cluster holds at most as many rows as its tokens allow, and on average at least three.
    """
    settings, n = settings or ClusterSettings(), len(tokens)
    most_rows = n if course == "shortest" else ROWS_EACH
    return Clusters(_runs(list(range(n)), tokens, replace(settings, few=most_rows)) if n else [])


@dataclass(slots=True)
class _Clustering:
    """Clusters one level, and records the methods that were used."""

    vectors: "Matrix"
    tokens: Sequence[int]
    settings: ClusterSettings
    reductions: set[str] = field(default_factory=set)
    runs: list[list[int]] = field(default_factory=list)

    def split(self, rows: list[int]) -> Iterator[list[int]]:
        """Cluster rows globally, then locally; cluster too large groups again."""
        for group in self._global_and_local(rows):
            if self._fits(group):
                yield group
            elif len(group) < len(rows):
                yield from self.split(group)
            else:
                yield from self._divided(group)

    def _fits(self, group: Sequence[int]) -> bool:
        size = sum(self.tokens[row] for row in group)
        return len(group) == 1 or size <= self.settings.tokens

    def _divided(self, rows: list[int]) -> Iterator[list[int]]:
        """Divide a cluster that is too large into at least two, or by the order of its rows.

        Each row then belongs to only one of them, as its distances to all are equal.
        """
        groups = self._mixture(rows, self.settings.dimension, fewest=2)
        if all(len(group) < len(rows) for group in groups):
            for group in groups:
                yield from [group] if self._fits(group) else self.split(group)
        else:
            runs_found = _runs(rows, self.tokens, self.settings)
            self.runs += runs_found
            yield from runs_found

    def _global_and_local(self, rows: list[int]) -> Iterator[list[int]]:
        neighbours = max(2, int(math.sqrt(len(rows) - 1)))
        for group in self._mixture(rows, neighbours):
            if len(group) <= self.settings.few:
                yield group
            else:
                yield from self._mixture(group, self.settings.dimension)

    def _mixture(self, rows: list[int], near: int, fewest: int = 1) -> list[list[int]]:
        """Return the soft clusters of some rows; a row in none joins its most probable one."""
        import numpy as np

        own_vectors = np.asarray(self.vectors)[rows].astype(np.float64)
        if len(rows) < 2 * ROWS_EACH or are_alike(own_vectors):
            return [rows]
        shares = _shares(self._reduced(own_vectors, near), fewest)
        member = shares > (self.settings.threshold if fewest == 1 else 1)
        member[np.arange(len(rows)), shares.argmax(axis=1)] = True
        groups = [[rows[i] for i in np.flatnonzero(column)] for column in member.T]
        return [group for group in groups if group]

    def _reduced(self, own: "Matrix", near: int) -> "Matrix":
        dimension = min(self.settings.dimension, len(own) - 2)
        if own.shape[1] <= dimension:
            return own
        if reduction_of(self.settings) == "umap" and len(own) > dimension + 2:
            self.reductions.add("umap")
            return _by_umap(own, dimension, near)
        from sklearn.decomposition import PCA

        self.reductions.add("pca")
        reduced: Matrix = PCA(dimension, svd_solver="full").fit_transform(own)
        return reduced


def _by_umap(own: "Matrix", dimension: int, near: int) -> "Matrix":
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reducer = umap.UMAP(
            n_neighbors=min(near, len(own) - 1),
            n_components=dimension,
            metric="cosine",
            random_state=SEED,
            n_jobs=1,
        )
        reduced: Matrix = reducer.fit_transform(own)
    return reduced


def _shares(reduced: "Matrix", fewest: int = 1) -> "Matrix":
    """Return `(rows, clusters)` probabilities of the mixture with the lowest BIC.

    Deviation: the covariance is diagonal and regularised, so that few or equal rows do not fail;
    a cluster has three rows on average at least, as BIC falls without end where each row is one;
    the search ends after some counts without a lower BIC.
    """
    from sklearn.mixture import GaussianMixture

    best, least, since = None, math.inf, 0
    for count in range(fewest, min(MOST_CLUSTERS, len(reduced) // ROWS_EACH) + 1):
        mixture = GaussianMixture(
            count, covariance_type="diag", reg_covar=_REGULAR, random_state=SEED
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bic = mixture.fit(reduced).bic(reduced)
        if bic < least:
            best, least, since = mixture, bic, 0
        else:
            since += 1
            if since == PATIENCE:
                break
    assert best is not None
    probabilities: Matrix = best.predict_proba(reduced)
    return probabilities


def _runs(rows: list[int], tokens: Sequence[int], settings: ClusterSettings) -> list[list[int]]:
    """Return runs of two to `few` neighbours, within the token limit where possible."""
    runs: list[list[int]] = [[]]
    size = 0
    for row in rows:
        run = runs[-1]
        is_full = len(run) >= 2 and size + tokens[row] > settings.tokens
        if is_full or len(run) == settings.few:
            runs.append([])
            size = 0
        runs[-1].append(row)
        size += tokens[row]
    if len(runs) > 1 and len(runs[-1]) == 1:
        last = runs.pop()
        runs[-1] += last
    return runs
