"""Walks over the graph: the parts of Algorithm 1 and of Graph Expansion Search.

QRMeM, section 2.2. Algorithm 1 as printed never initialises E, and updates it where nothing reads
it. It takes the arg-max over edges for a node, and it may weigh an edge again forever. Here E
starts as E_s, and each step starts from E. A frontier edge has exactly one end in E and was not
taken before. It leads to its end outside E.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import sqrt

from qrmem.types import Relation, ScoredEdge, Tokenizer

SEPARATOR = " [SEP] "

STEP_WIDTH = 3
"""Edges that Graph Expansion Search takes per step."""

QUERY_TOKENS = 512
"""Maximum tokens of a query that the paper's encoder reads."""

TRAIL_EDGES = 20
"""Maximum number of a step's edges in a trail."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The state of a walk.

    Attributes:
        entities: E, entity keys in order of arrival.
        taken: keys of the relations that were followed.
    """

    entities: tuple[str, ...]
    taken: frozenset[str] = field(default_factory=frozenset)

    def along(self, edge: Relation) -> "Walk":
        """Return the walk after an edge; its end is visited even if it brings no new segment."""
        ends = (end for end in (edge.head, edge.tail) if end not in self.entities)
        return Walk((*self.entities, *dict.fromkeys(ends)), self.taken | {edge.key})


def frontier(relations: Iterable[Relation], walk: Walk) -> list[Relation]:
    """Return the edges between E and its neighbours that were not taken yet, by key.

    Args:
        relations: at least all relations of E; others are ignored.
        walk: the walk.
    """
    inside = set(walk.entities)
    edges = {
        edge.key: edge
        for edge in relations
        if ((edge.head in inside) != (edge.tail in inside)) and edge.key not in walk.taken
    }
    return [edges[key] for key in sorted(edges)]


def outer_end(edge: Relation, walk: Walk) -> str:
    """Return the key of the entity that a frontier edge leads to."""
    return edge.tail if edge.head in walk.entities else edge.head


def ranked(edges: Iterable[Relation], scores: Mapping[str, float]) -> list[Relation]:
    """Return edges best first; scores compare after rounding to 1e-4, ties by key.

    Args:
        scores: relation key to score; an edge without a score comes last.
    """
    return sorted(edges, key=lambda edge: (-round(scores.get(edge.key, -1.0), 4), edge.key))


def best_edge(edges: Iterable[Relation], scores: Mapping[str, float]) -> Relation | None:
    """Return the arg-max edge of Algorithm 1, or `None` if the frontier is empty."""
    return next(iter(ranked(edges, scores)), None)


def worthy_edges(
    edges: Sequence[Relation],
    scores: Mapping[str, float],
    *,
    threshold: float | None = None,
    width: int = STEP_WIDTH,
) -> list[Relation]:
    """Return the edges of one step of Graph Expansion Search: the best ones above a threshold.

    Args:
        threshold: least score; `None` is the frontier's mean plus one
            standard deviation, for scores of any scale.

    Returns:
        At most `width`, best first; none with a score of 0 or less.
    """
    if threshold is None:
        threshold = usual_threshold([scores.get(edge.key, 0.0) for edge in edges])
    least = round(threshold, 4)
    return [
        edge
        for edge in ranked(edges, scores)[:width]
        if round(scores.get(edge.key, 0.0), 4) >= least and scores.get(edge.key, 0.0) > 0
    ]


def usual_threshold(scores: Sequence[float]) -> float:
    """Return mean plus one standard deviation, bounded by the best score.

    Without the bound several equally good edges could all fail: 1, 1, 0 gives 1.14.
    """
    if not scores:
        return 0.0
    mean = sum(scores) / len(scores)
    deviation = sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
    return min(mean + deviation, max(scores))


def lead_to(add: dict[str, float], found: Mapping[str, float], read: Set[str]) -> None:
    """Put the segments of a new entity that are not read yet into S_add.

    Args:
        add: S_add, segment id to score; a segment keeps the best score that led to it.
        found: segments of the new entity, segment id to score.
        read: ids in S_mix.
    """
    for id, score in found.items():
        if id not in read:
            add[id] = max(score, add.get(id, score))


def edge_text(edge: Relation, names: Mapping[str, str]) -> str:
    """Return `head - description - tail`, the text to compare with a query.

    Args:
        names: entity key to canonical name.
    """
    head, tail = names.get(edge.head, edge.head), names.get(edge.tail, edge.tail)
    return f"{head} - {edge.description} - {tail}"


def query_text(
    question: str,
    reason: str,
    entities: Sequence[str],
    tokenizer: Tokenizer,
    limit: int = QUERY_TOKENS,
) -> str:
    """Return `Q [SEP] R [SEP] e1, e2, …` within the limit of the encoder.

    The question comes first and is cut last. Entities get at most half of the rest; the last
    ones are left out. The reason is cut to the remaining room. Empty parts are left out.
    """
    query = tokenizer.cut(question, limit)
    names = _names_within(entities, tokenizer, (limit - tokenizer.count(query)) // 2)
    if reason.strip():
        tail = SEPARATOR + names if names else ""
        free = limit - tokenizer.count(query + SEPARATOR + tail)
        reason = tokenizer.cut(reason.strip(), max(0, free)).strip()
        while reason and tokenizer.count(query + SEPARATOR + reason + tail) > limit:
            # The token counts of parts need not add up to that of the whole.
            reason = reason[: len(reason) * 9 // 10].rstrip()
    return SEPARATOR.join(part for part in (query, reason.strip(), names) if part)


def _names_within(entities: Sequence[str], tokenizer: Tokenizer, limit: int) -> str:
    text = ""
    for name in entities:
        longer = f"{text}, {name}" if text else name
        if tokenizer.count(SEPARATOR + longer) > limit:
            break
        text = longer
    return text


def weighed_edges(
    edges: Iterable[Relation],
    scores: Mapping[str, float],
    names: Mapping[str, str],
    taken: Set[str],
) -> tuple[ScoredEdge, ...]:
    """Return a step's frontier for its trail: the best `TRAIL_EDGES`, and all taken edges."""
    edges_scored = [
        ScoredEdge(
            relation=edge.key,
            head=names.get(edge.head, edge.head),
            tail=names.get(edge.tail, edge.tail),
            description=edge.description,
            score=round(scores.get(edge.key, 0.0), 4),
            taken=edge.key in taken,
        )
        for edge in ranked(edges, scores)
    ]
    return tuple(edge for n, edge in enumerate(edges_scored) if n < TRAIL_EDGES or edge.taken)
