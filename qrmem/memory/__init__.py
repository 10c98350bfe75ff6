"""An open memory: its facade, and the code behind its methods."""

from qrmem.graphstore.protocol import EntityCount
from qrmem.memory.facade import BlockingMemory, Memory, Opening, open

__all__ = ["BlockingMemory", "EntityCount", "Memory", "Opening", "open"]
