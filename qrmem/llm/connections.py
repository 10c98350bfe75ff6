"""Connections to a server, each for one request and its whole answer at a time (ADR 0015).

The client's own transport can do all that HTTP can, and took a fifth of the processor time of a
build with a chat model. This one is given to the client in its place. Answers that are read as they
come, and whatever goes through a proxy, stay with the client's own.
"""

import asyncio
import selectors
import ssl
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from types import ModuleType
from typing import Any, Self

import h11

IDLE_SECONDS = 5.0
"""Idle for longer, a connection may be closed by the server just as it is used again."""
LARGEST_HEAD = 100 * 1024
"""Bytes of an answer's headers."""
NEXT_ADDRESS_SECONDS = 0.25
"""Wait before a server's next address is tried beside the one that does not answer yet."""

Headers = list[tuple[bytes, bytes]]
Server = tuple[str, str, int]
"""Scheme, host and port."""

_Selector: type[selectors.BaseSelector] = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)
"""Looks once without what the default would have to open for it."""
_PARTS = (h11.InformationalResponse, h11.Response, h11.Data, h11.EndOfMessage)


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body and the length of that.

    Attributes:
        target: path and query.
        connect: seconds to get a connection.
    """

    method: str
    server: Server
    target: bytes
    headers: Headers
    connect: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer as it came.

    Attributes:
        headers: by their names in lower case; of several the last.
    """

    said: h11.Response
    content: bytes
    headers: Mapping[str, str]

    @property
    def is_plain(self) -> bool:
        """Whether it is a success whose content is its text, in UTF-8."""
        kind = self.headers.get("content-type", "").lower()
        is_utf8 = "charset" not in kind or "utf-8" in kind
        return self.said.status_code == 200 and "content-encoding" not in self.headers and is_utf8

    @property
    def text(self) -> str:
        """The text of a plain one."""
        return self.content.decode("utf-8", "replace")


class Connection(asyncio.Protocol):
    """A connection to a server, for one request at a time.

    Attributes:
        idle_since: when the last answer was complete, in the event loop's time.
    """

    def __init__(self, http: ModuleType) -> None:
        """Make one that raises the errors of an HTTP library, and returns its responses."""
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._http = http
        self._transport: asyncio.Transport
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
        self._parts: deque[h11.Event] = deque()
        self._failure: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    # --- called by the event loop -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to write."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what the server sends, up to an answer's end."""
        try:
            if self._state.our_state is h11.IDLE:
                raise h11.RemoteProtocolError("the server sent what nobody asked for")
            self._state.receive_data(data)
            while isinstance(part := self._state.next_event(), _PARTS):
                self._parts.append(part)
        except h11.RemoteProtocolError as exc:
            self._fail(self._http.RemoteProtocolError(str(exc)))
        self._wake()

    def eof_received(self) -> None:
        """Take the end, which ends an answer without a length; the event loop closes then."""
        if self._state.their_state is h11.SEND_RESPONSE:
            text = "Server disconnected without sending a response."
            self._fail(self._http.RemoteProtocolError(text))
        self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits for an answer."""
        self._fail(self._http.ReadError(str(exc or "the connection was closed")))
        self._wake()

    # --- one request ------------------------------------------------------------------------------

    async def ask(self, head: Head, headers: Headers, content: bytes) -> Answer:
        """Send a request and return its whole answer.

        Args:
            headers: those of the head, and what the content needs.
        """
        self._send(head, headers, content)
        while isinstance(said := await self._part(), h11.InformationalResponse):
            pass
        assert isinstance(said, h11.Response)
        body = bytearray()
        while isinstance(part := await self._part(), h11.Data):
            body += part.data
        named = {key.decode("latin-1"): value.decode("latin-1") for key, value in said.headers}
        return Answer(said, bytes(body), named)

    def _send(self, head: Head, headers: Headers, content: bytes) -> None:
        """Send a request, in one piece."""
        try:
            begin = h11.Request(method=head.method, target=head.target, headers=headers)
            parts = (begin, h11.Data(content), h11.EndOfMessage())
            self._transport.write(b"".join(self._state.send(part) or b"" for part in parts))
        except h11.LocalProtocolError as exc:
            raise self._http.LocalProtocolError(str(exc)) from exc

    async def _part(self) -> h11.Event:
        while not self._parts:
            if self._failure is not None:
                raise self._failure
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._parts.popleft()

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # --- between two requests ---------------------------------------------------------------------

    def rest(self) -> bool:
        """Make ready for another request; whether the server allows one."""
        if self._failure or self._transport.is_closing() or any(self._state.trailing_data):
            return False
        try:
            self._state.start_next_cycle()
        except h11.LocalProtocolError:
            return False
        self.idle_since = asyncio.get_running_loop().time()
        return True

    def is_quiet(self) -> bool:
        """Whether the server has said nothing since, not even that it closes."""
        if self._failure or self._transport.is_closing():
            return False
        if self._loop is not asyncio.get_running_loop():
            return False  # an answer would be heard by nobody
        # The event loop may not have come to look yet.
        with _Selector() as selector:
            selector.register(self._transport.get_extra_info("socket"), selectors.EVENT_READ)
            return not selector.select(0)

    def close(self) -> None:
        """Close at once."""
        with suppress(RuntimeError):  # its event loop is closed
            self._transport.abort()


class Connections:
    """A transport for the client: its connections are kept, and opened where none is free.

    Of thousands of requests all that changes is the body. What the client has made twice in a row
    it need not make again: `repeat` sends another body under the same head.
    """

    def __init__(self, http: ModuleType) -> None:
        """Make one for the HTTP library that the client stands on."""
        self._http = http
        self._idle: defaultdict[Server, list[Connection]] = defaultdict(list)
        self._busy: set[Connection] = set()
        self._is_closed = False
        self._last: Head | None = None
        self._usual: Head | None = None

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request and return its whole answer, or raise an error of the HTTP library."""
        content = await request.aread()
        head = _head(request)
        self._usual = head if head == self._last else None
        self._last = head
        return self.response(await self._answer(head, request.headers.raw, content))

    @property
    def may_repeat(self) -> bool:
        """Whether the client's last two requests had one head, and no cookie was set since."""
        return self._usual is not None

    async def repeat(self, content: bytes) -> Answer:
        """Send another body under the last request's head, if that may be repeated."""
        assert self._usual is not None
        length = b"content-length", str(len(content)).encode()
        return await self._answer(self._usual, [*self._usual.headers, length], content)

    def response(self, answer: Answer) -> Any:
        """Return an answer as the HTTP library has it."""
        said = answer.said
        return self._http.Response(
            said.status_code,
            headers=said.headers.raw_items(),
            content=answer.content,
            extensions={"http_version": b"HTTP/" + said.http_version, "reason_phrase": said.reason},
        )

    async def _answer(self, head: Head, headers: Headers, content: bytes) -> Answer:
        connection = self._free(head.server) or await self._opened(head)
        self._busy.add(connection)
        try:
            answer = await connection.ask(head, headers, content)
        except BaseException:
            connection.close()
            raise
        finally:
            self._busy.remove(connection)
        if not self._is_closed and connection.rest():
            self._idle[head.server].append(connection)
        else:
            connection.close()
        if "set-cookie" in answer.headers:
            self._last = self._usual = None
        return answer

    def _free(self, server: Server) -> Connection | None:
        idle = self._idle[server]
        now = asyncio.get_running_loop().time()
        while idle:
            connection = idle.pop()
            if now - connection.idle_since <= IDLE_SECONDS and connection.is_quiet():
                return connection
            connection.close()
        return None

    async def _opened(self, head: Head) -> Connection:
        scheme, host, port = head.server
        try:
            async with asyncio.timeout(head.connect):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(self._http),
                    host,
                    port,
                    ssl=self._secure if scheme == "https" else None,
                    happy_eyeballs_delay=None if _is_address(host) else NEXT_ADDRESS_SECONDS,
                )
        except TimeoutError as exc:
            raise self._http.ConnectTimeout(str(exc)) from exc
        except (OSError, UnicodeError) as exc:  # no name of a host is one of the latter
            raise self._http.ConnectError(str(exc)) from exc
        return connection

    @cached_property
    def _secure(self) -> ssl.SSLContext:
        """What certificates are trusted: as the HTTP library has it."""
        context: ssl.SSLContext = self._http.create_ssl_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def aclose(self) -> None:
        """Close all connections; a request that waits for its answer fails."""
        self._is_closed = True
        for connection in self._busy:
            connection.close()
        for idle in self._idle.values():
            while idle:
                idle.pop().close()
        await asyncio.sleep(0)  # the event loop closes them now

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _head(request: Any) -> Head:
    url = request.url
    port = url.port or (443 if url.scheme == "https" else 80)
    return Head(
        request.method,
        (url.scheme, url.raw_host.decode(), port),
        url.raw_path,
        [pair for pair in request.headers.raw if pair[0].lower() != b"content-length"],
        request.extensions["timeout"]["connect"],
    )


def _is_address(host: str) -> bool:
    """Whether a host is one address; a race, given up, would leave its socket to the collector."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


__all__ = ["Connection", "Connections"]
