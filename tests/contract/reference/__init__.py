"""A store in plain Python; tests compare the real stores with it."""

from contract.reference.store import ReferenceStore

__all__ = ["ReferenceStore"]
