"""Scoring and ranking with no chat model: search, and the similarities that strategies need."""

from qrmem.retrieval.scoring import EdgeScorer, embed_segments
from qrmem.retrieval.searcher import Searcher

__all__ = ["EdgeScorer", "Searcher", "embed_segments"]
