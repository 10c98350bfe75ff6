"""A store in plain Python that the real stores are compared with."""

from contract.reference.store import ReferenceStore

__all__ = ["ReferenceStore"]
