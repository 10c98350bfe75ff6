"""An open memory: its methods, and the code behind its methods."""

from qrmem.graphstore.protocol import EntityCount
from qrmem.memory.memory import BlockingMemory, Memory, Opening, open

__all__ = ["BlockingMemory", "EntityCount", "Memory", "Opening", "open"]
