"""Language work without a chat model."""

from qrmem.language.local.reasoner import LocalReasoner

__all__ = ["LocalReasoner"]
