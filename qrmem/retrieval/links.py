"""Links from segments that were read: a sentence names something, and that leads elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.direct import Direct
    from qrmem.retrieval.graph import Graph
    from qrmem.retrieval.reading import Sentence

_AS_IT_IS = 0.25
"""What a link is worth whose sentence, or whose target, has nothing of the question."""


@dataclass(frozen=True, slots=True)
class Links:
    """Links as columns, all of one length.

    Attributes:
        sources: rows of the segments that were read.
        targets: rows of the segments that they lead to.
        names: numbers of the names that lead there.
        sentences: which sentence of the source has the name.
        worth: the sentence's share of the question, times how surely the name leads there.
        entitled: whether the name is the target's title, not only in its text.
    """

    sources: "NDArray[np.int64]"
    targets: "NDArray[np.int64]"
    names: "NDArray[np.int64]"
    sentences: "NDArray[np.int64]"
    worth: "NDArray[np.float64]"
    entitled: "NDArray[np.bool_]"

    def __len__(self) -> int:
        return int(self.sources.size)

    def chosen(self, places: "NDArray[np.int64] | NDArray[np.bool_]") -> "Links":
        """Return some of the links."""
        return Links(
            self.sources[places],
            self.targets[places],
            self.names[places],
            self.sentences[places],
            self.worth[places],
            self.entitled[places],
        )

    def then(self, other: "Links") -> "Links":
        """Return these and others."""
        return Links(
            np.concatenate([self.sources, other.sources]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.names, other.names]),
            np.concatenate([self.sentences, other.sentences]),
            np.concatenate([self.worth, other.worth]),
            np.concatenate([self.entitled, other.entitled]),
        )


def follow(
    columns: "Columns",
    graph: "Graph",
    direct: "Direct",
    readings: "Mapping[int, Sequence[Sentence]]",
    allowed: "NDArray[np.bool_]",
) -> Links:
    """Return the links out of segments that were read.

    Names that the question gives itself lead nowhere new and are left out, and so are links within
    a document by its own title.

    Args:
        columns: the namespace.
        graph: its names.
        direct: the question.
        readings: row of a segment to its sentences.
        allowed: `(n,)`, which segments may be reached.
    """
    parts: list[tuple[int, int, int, float]] = []
    for row, reading in readings.items():
        for number, sentence in enumerate(reading):
            worth = _AS_IT_IS + direct.share(sentence.terms)
            parts += [
                (row, name, number, worth) for name in sentence.names if name not in direct.names
            ]
    reached = [graph.reached(name) for _, name, _, _ in parts]
    sizes = np.array([found.rows.size for found in reached], dtype=np.int64)
    if not sizes.sum():
        return _NONE
    sources, names, sentences = (
        np.repeat(np.array([part[field] for part in parts], dtype=np.int64), sizes)
        for field in (0, 1, 2)
    )
    targets = np.concatenate([found.rows for found in reached])
    entitled = np.concatenate([found.entitled for found in reached])
    sure = np.concatenate([found.sure for found in reached])
    worth = np.repeat(np.array([part[3] for part in parts]), sizes) * sure
    everything = Links(sources, targets, names, sentences, worth, entitled)
    own = columns.document_of[sources] == columns.document_of[targets]
    return everything.chosen(allowed[targets] & (sources != targets) & ~(entitled & own))


_NO_ROWS = np.zeros(0, dtype=np.int64)
_NONE = Links(_NO_ROWS, _NO_ROWS, _NO_ROWS, _NO_ROWS, np.zeros(0), np.zeros(0, dtype=bool))


@dataclass(frozen=True, slots=True)
class Reached:
    """Segments that links lead to, each with its best link; `links` are aligned with `scores`."""

    links: Links
    scores: "NDArray[np.float64]"

    def by_target(self) -> dict[int, float]:
        """Return row to score."""
        return dict(zip(self.links.targets.tolist(), self.scores.tolist(), strict=True))

    def best(self, limit: int) -> "Reached":
        """Return the best ones; ties by row."""
        order = np.lexsort((self.links.targets, -np.round(self.scores, 6)))[:limit]
        return Reached(self.links.chosen(order), self.scores[order])

    def only(self, chosen: "NDArray[np.bool_]") -> "Reached":
        """Return some of them."""
        return Reached(self.links.chosen(chosen), self.scores[chosen])


def weigh(
    direct: "Direct",
    links: Links,
    weight: Mapping[int, float],
    covered: "Mapping[int, NDArray[np.float64]]",
) -> Reached:
    """Score links and keep the best one to each target, apart for titles and for names in texts.

    A link is worth its source, times its sentence, times what its target has of the question's
    words that the way there lacks.

    Args:
        direct: the question.
        links: all links out of the sources.
        weight: row of a source to its worth.
        covered: row of a source to the question's terms that the way to it covers, `(t,)`.
    """
    sources, by_source = np.unique(links.sources, return_inverse=True)
    targets, by_target = np.unique(links.targets, return_inverse=True)
    if not len(links):
        return Reached(links, np.zeros(0))
    missing = 1 - np.minimum([covered[int(row)] for row in sources], 1)
    rest = (direct.profiles(targets) * direct.term_weights()) @ missing.T / (direct.top or 1.0)
    needed = _AS_IT_IS + rest[by_target, by_source] + 0.5 * direct.dense[links.targets]
    start = np.array([weight[int(row)] for row in sources])[by_source]
    scores = start * links.worth * needed
    order = np.lexsort((links.sources, -scores, links.targets, links.entitled))
    first = np.ones(order.size, dtype=bool)
    first[1:] = (links.targets[order][1:] != links.targets[order][:-1]) | (
        links.entitled[order][1:] != links.entitled[order][:-1]
    )
    kept = order[first]
    return Reached(links.chosen(kept), scores[kept])
