"""Summary trees: clustering, storage and retrieval of nodes (RAPTOR; ILM-TR, section 3)."""
