"""The partial selection of the nearest segments finds what sorting all rows finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graphstore.sqlite.vectors import best_of

ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([-np.inf, -1, 0, 0.25, 0.5, 1])), min_size=1
)


@given(ROWS, st.integers(1, 12))
def test_the_best_segments_are_those_of_a_full_sort(
    rows: list[tuple[int, float]], limit: int
) -> None:
    segments = np.array([segment for segment, _ in rows])
    scores = np.array([score for _, score in rows], np.float32)
    expected: dict[int, float] = {}
    for at in sorted(range(len(rows)), key=lambda at: -scores[at]):
        if scores[at] > -np.inf:
            expected.setdefault(rows[at][0], float(scores[at]))
    found, best = best_of(segments, scores, limit)
    assert list(zip(found, best, strict=True)) == list(expected.items())[:limit]
