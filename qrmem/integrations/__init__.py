"""Adapters of qrmem for other frameworks."""
