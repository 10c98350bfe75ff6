"""A graph memory for LLM agents."""
