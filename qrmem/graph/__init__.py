"""The papers' algorithms as functions over records and ports; no I/O of their own, no LangGraph."""
