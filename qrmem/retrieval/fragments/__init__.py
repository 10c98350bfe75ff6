"""FragRel: a fragment's worth depends on the fragments around it (Yue, Zhu, Yang 2024)."""

from qrmem.retrieval.fragments.gathering import Fragments
from qrmem.retrieval.fragments.operators import Blend, Links, Semantic, Structure, WeightMatrix
from qrmem.retrieval.fragments.scorer import Assessed, FragmentScorer
from qrmem.types.options import CHAT, CODE, STORY, FragmentSettings

__all__ = [
    "CHAT",
    "CODE",
    "STORY",
    "Assessed",
    "Blend",
    "FragmentScorer",
    "FragmentSettings",
    "Fragments",
    "Links",
    "Semantic",
    "Structure",
    "WeightMatrix",
]
