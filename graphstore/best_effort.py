"""Writes that an answer can do without: its trail, its calls, replies kept for a second time."""

from collections.abc import Awaitable, Callable

from qrmem.errors import StoreUnavailable
from qrmem.graphstore.protocol import GraphStore
from qrmem.types import Event, Listener


class BestEffortWriter:
    """Writes beside one answer; a store that refuses them does not cost the answer.

    After the first refusal the others are left out: each may wait half a minute for a lock.

    Attributes:
        is_open: whether the store took everything so far.
    """

    def __init__(self, store: GraphStore, listener: Listener | None = None) -> None:
        self.is_open = not store.is_read_only
        self._listener = listener

    async def write(self, work: Callable[[], Awaitable[None]]) -> None:
        """Write, unless the store is for reading only or has refused already."""
        if not self.is_open:
            return
        try:
            await work()
        except StoreUnavailable as exc:
            self.is_open = False
            message = f"of this answer nothing is recorded: {exc}"
            if self._listener is not None:
                self._listener(Event("warning", {"message": message}))
