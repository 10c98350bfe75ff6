"""The base of all parts of the contract."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from qrmem.graphstore.protocol import GraphStore


class Contract(ABC):
    """A part of the contract; a backend says how an empty store is made, and changes no test."""

    def __init_subclass__(cls) -> None:
        """Refuse a subclass that changes a test of the contract.

        Raises:
            TypeError: it does.
        """
        inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
        edited = [name for name in vars(cls) if name.startswith("test_") and name in inherited]
        if edited:
            raise TypeError(f"{cls.__name__} overrides contract tests: {edited}")

    @abstractmethod
    async def make(self, folder: Path) -> GraphStore:
        """Return an empty store; the folder is empty and goes after the test."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[GraphStore]:
        """Yield an empty store."""
        store = await self.make(tmp_path)
        yield store
        await store.close()
