"""Scoring and ranking with no chat model: search, and the similarities that strategies need."""

from qrmem.retrieval.scoring import embed_segments
from qrmem.retrieval.searcher import Searcher
from qrmem.retrieval.similarity import EdgeScorer

__all__ = ["EdgeScorer", "Searcher", "embed_segments"]
