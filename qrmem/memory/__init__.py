"""An open memory: its facade, and what its methods do."""

from qrmem.memory.facade import EntityCount, Memory, Opening, open

__all__ = ["EntityCount", "Memory", "Opening", "open"]
