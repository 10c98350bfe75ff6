"""The base of an open memory: its session, its listeners, and closing."""

from pathlib import Path
from typing import Self

from qrmem.config import Settings
from qrmem.graphstore.protocol import GraphStore
from qrmem.memory import observability
from qrmem.memory.session import Session
from qrmem.types import Event, Listener
from qrmem.types.shown import table


class Handle:
    """The base class of all methods of a memory."""

    def __init__(
        self,
        store: GraphStore,
        settings: Settings,
        listener: Listener | None = None,
        *,
        made: Path | None = None,
    ) -> None:
        """Create a memory on an open store; use `open` instead.

        Args:
            made: the file that was created for it; it is deleted again if nothing was stored in it.
        """
        self._session = Session(store, settings, made)
        self._listener = listener
        self._is_watched = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        settings = self.settings
        state = ", closed" if self._session.is_closed else ""
        return f"<Memory {str(settings.memory)!r}, namespace {settings.namespace!r}{state}>"

    def _repr_html_(self) -> str:
        settings = self.settings
        model = settings.model or "none: built-in rules"
        rows = (("memory", settings.memory), ("namespace", settings.namespace), ("model", model))
        return table(rows)

    async def close(self) -> None:
        """Close the store and the model's connections; afterwards every call is refused."""
        await self._session.close()

    @property
    def settings(self) -> Settings:
        """The settings that it was opened with."""
        return self._session.settings

    @property
    def location(self) -> str:
        """Its file, or its server's address without a password."""
        return self._session.store.location

    def _emit(self, event: Event) -> None:
        """Send an event to logging, spans and the listener."""
        observability.observe(event)
        if self._listener is not None:
            self._listener(event)
