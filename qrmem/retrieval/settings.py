"""What a search can be told; one setting for every kind of text."""

from collections.abc import Mapping
from dataclasses import dataclass

from qrmem.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How a search weighs its parts.

    Attributes:
        k1: BM25's saturation.
        b: BM25's length normalisation.
        lexical: weight of BM25 in the direct score.
        dense: weight of the cosine in the direct score; nothing without an embedder.
        names: weight of a document that the question names, in the direct score.
        graph: whether names are followed; without it, the direct score is the score.
        seeds: segments that the graph is walked from.
        onward: segments that a second hop starts from.
        asked_again: seeds from which what is lacking is asked for again.
        candidates: segments that the index gives by words, and as many by meaning.
        direct: segments that are candidates by their direct score.
        max_terms: distinct words of a question that are looked up; a longer one is cut there.
        features: weights of the features; `None` takes the fitted ones.
    """

    k1: float = 1.5
    b: float = 0.75
    lexical: float = 0.4
    dense: float = 0.45
    names: float = 0.3
    graph: bool = True
    seeds: int = 12
    onward: int = 10
    asked_again: int = 8
    candidates: int = 100
    direct: int = 40
    max_terms: int = 256
    features: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        for name in ("k1", "b", "lexical", "dense", "names"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be negative")
        for name in ("seeds", "onward", "asked_again", "candidates", "direct", "max_terms"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1")
