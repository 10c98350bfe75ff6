"""Uvicorn's HTTP protocol with time limits for requests and replies, and a limit on connections."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
else:  # a class that uses this one names the protocol, too; the extra `serve` has it
    H11Protocol = object


class Bounded(H11Protocol):
    """One connection with time limits, over uvicorn's protocol.

    uvicorn waits without limit for the first request of a connection and for the rest of a request.
    Its own limit on connections refuses every client while idle connections use it up.
    """

    def __init__(
        self,
        *args: Any,
        most: int,
        waiting: dict[Any, None],
        head_seconds: float,
        body_seconds: float,
        log: Callable[[str], None],
        **options: Any,
    ) -> None:
        """Make a connection.

        Args:
            args: those of uvicorn.
            most: maximum number of connections. A further connection closes the one that has waited
                longest for a request.
            waiting: the connections that wait for a request, in the order in which they began to.
                All connections of a server share it.
            head_seconds: time limit for a request's head; a client must also read on within it.
            body_seconds: time limit for a request's body.
            log: gets a line when a connection is closed for a further one.
            options: those of uvicorn.
        """
        super().__init__(*args, **options)
        self.most = most
        self.waiting = waiting
        self.head_seconds = head_seconds
        self.body_seconds = body_seconds
        self.log = log
        self.timer: asyncio.TimerHandle | None = None
        self.awaited: Any = None
        self.unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; close the one that has waited longest if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self.log(f"more than {self.most} connections: one that waits for its request is closed")
            longest = next(iter(self.waiting), self)
            self.waiting.pop(longest, None)  # else the next connection would close it again
            longest.transport.abort()
        self.watch()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self.watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self.watch()

    def pause_writing(self) -> None:
        """Limit the time in which the client must read on."""
        super().pause_writing()
        self.end_in(self.head_seconds)

    def resume_writing(self) -> None:
        """Write on: the client has read."""
        super().resume_writing()
        self.awaited = None
        self.watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self.rest()

    def watch(self) -> None:
        """Set a time limit for the current part, once; slow bytes do not extend it."""
        is_open = self.cycle is not None and not self.cycle.response_complete
        if is_open and not self.cycle.more_body:
            if not self.flow.write_paused:
                self.rest()  # the request is complete, and is being answered
        elif self.awaited != (now := (self.cycle, is_open)):
            self.awaited = now
            self.waiting.pop(self, None)
            self.waiting[self] = None
            self.end_in(self.body_seconds if is_open else self.head_seconds)

    def rest(self) -> None:
        """Set no time limit until the next part of a request."""
        self.waiting.pop(self, None)
        self.awaited = None
        if self.timer is not None:
            self.timer.cancel()

    def end_in(self, seconds: float) -> None:
        """End the connection after some time, unless another limit is set before."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.loop.call_later(seconds, self.end)

    def end(self) -> None:
        """Close the connection, unless the client reads on slowly."""
        unsent, self.unsent = self.unsent, self.transport.get_write_buffer_size()
        if self.unsent and self.unsent != unsent:
            self.end_in(self.head_seconds)
        else:
            self.transport.abort()
