"""Prompts as typed entries; the words are in `templates/`, the entries in `catalogue`."""

from qrmem.prompts.base import Prompt, fenced

__all__ = ["Prompt", "fenced"]
