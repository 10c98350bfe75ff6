"""Reasoning by prompts to a chat model."""

from qrmem.language.prompted.reasoner import PromptedReasoner

__all__ = ["PromptedReasoner"]
