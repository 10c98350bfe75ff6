"""Prompts: templates with front matter, in sets that are loaded by name or from a folder."""

from qrmem.prompts.base import Prompt, PromptSet, fenced_if, load_prompts, stage_names
from qrmem.types.shown import fenced

__all__ = ["Prompt", "PromptSet", "fenced", "fenced_if", "load_prompts", "stage_names"]
