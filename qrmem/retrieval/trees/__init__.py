"""Trees of summaries: how nodes are clustered, kept and found (RAPTOR; ILM-TR, section 3)."""
