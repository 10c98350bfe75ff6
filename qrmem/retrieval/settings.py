"""What a search can be told; one setting for every kind of text."""

from dataclasses import dataclass

from qrmem.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How a search weighs its parts.

    Attributes:
        k1: BM25's saturation (S05).
        b: BM25's length normalisation (S05).
        lexical: weight of BM25 in the direct score.
        dense: weight of the cosine in the direct score; without an embedder the others take over.
        names: weight of a title or an entity that the question names, in the direct score.
        graph: whether mentions and facts are followed; without it, the direct score is the score.
        seeds: segments that the graph is walked from.
        candidates: segments that are scored in full.
        max_terms: distinct words of a question that are looked up; a longer one is cut there.
    """

    k1: float = 1.5
    b: float = 0.75
    lexical: float = 0.4
    dense: float = 0.45
    names: float = 0.15
    graph: bool = True
    seeds: int = 12
    candidates: int = 120
    max_terms: int = 256

    def __post_init__(self) -> None:
        for name in ("k1", "b", "lexical", "dense", "names"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be negative")
        for name in ("seeds", "candidates", "max_terms"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1")
