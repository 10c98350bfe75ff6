"""One request to an OpenAI-compatible server: the whole answer in time, or one of our errors."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from qrmem.errors import MissingError, QrmemError, UsageError
from qrmem.models.endpoint import Endpoint
from qrmem.models.exchange import Transient
from qrmem.models.refusals import from_connection, from_status
from qrmem.models.streaming import joined

if TYPE_CHECKING:
    from httpx2 import URL, AsyncClient, Response

Hear = Callable[[Mapping[str, str]], None]

CONNECT_SECONDS = 4.0
"""Time to get a connection; a command with no route to its server ends within 5 seconds."""
_TRANSPORTS = ("httpx2", "httpcore2", "h11", "anyio", "ssl")
"""Packages whose errors mean that a request got no whole answer."""


class Client:
    """Posts to one path of a server, for one model; an async context manager.

    A request raises:
        AccessRefused: key or model name refused.
        ContextExceeded: the prompt is longer than the model's context.
        Transient: trying again may help.
        Rejected: the request's form is refused.
        ModelUnavailable: anything else.
    """

    def __init__(
        self, client: "AsyncClient", url: "URL", endpoint: Endpoint, model: str, seconds: float
    ) -> None:
        self._client = client
        self._url = url
        self._endpoint = endpoint
        self._model = model
        self._seconds = seconds

    async def post(self, body: Mapping[str, Any], *, hear: Hear = lambda headers: None) -> str:
        """Return the body of an answer.

        Args:
            hear: takes the headers.
        """
        async with self._translated(), asyncio.timeout(self._seconds):
            answer = await self._client.post(self._url, json=body)
            self._check(answer)
            hear(answer.headers)
            return answer.text

    async def stream(
        self,
        body: Mapping[str, Any],
        take: Callable[[str], None],
        *,
        hear: Hear = lambda headers: None,
    ) -> str:
        """Return the body of a streamed answer as if it had come in one piece.

        A server that answers in one piece all the same is taken at its word.

        Args:
            take: hears each piece of the reply as it comes.
            hear: takes the headers.
        """
        async with (
            self._translated(),
            asyncio.timeout(self._seconds),
            self._client.stream("POST", self._url, json=body) as answer,
        ):
            is_whole = "event-stream" not in answer.headers.get("content-type", "")
            if is_whole or not answer.is_success:
                await answer.aread()
            self._check(answer)
            hear(answer.headers)
            if is_whole:
                return answer.text
            try:
                return await joined(answer.aiter_lines(), take)
            except (ValueError, TypeError, AttributeError) as exc:
                said = self._endpoint.clean(str(exc))
                text = f"{self._endpoint.host} sent no whole reply: {said}"
                raise Transient(text, cause="body") from exc

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _check(self, answer: "Response") -> None:
        if not answer.is_success:
            raise from_status(
                answer.status_code, answer.text, answer.headers, self._endpoint, self._model
            )

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        """Raise what fails in a request as one of our errors."""
        try:
            yield
        except (QrmemError, asyncio.CancelledError):
            raise
        except UnicodeEncodeError as exc:
            raise UsageError(
                f"the model's name {self._model!r} holds characters that cannot be sent"
            ) from exc
        except UnicodeError as exc:
            text = f"{self._endpoint.host}: {self._endpoint.clean(str(exc))}"
            raise Transient(text, cause="body") from exc
        except Exception as exc:
            # What is below the client does not always speak in the client's own errors.
            is_lost = isinstance(exc, TimeoutError)
            if not is_lost and type(exc).__module__.partition(".")[0] not in _TRANSPORTS:
                raise
            raise from_connection(exc, self._endpoint, self._seconds) from exc


async def open_client(endpoint: Endpoint, path: str, model: str, seconds: float) -> Client:
    """Return a client that reads neither key nor URL on its own, and never retries.

    Args:
        path: below the base URL.
        seconds: time-out of a whole request.

    Raises:
        MissingError: proxies or certificates that the environment names do not work here.
    """
    # The import takes a tenth of a second, during which no other call may time out.
    await asyncio.to_thread(import_module, "httpx2")
    import httpx2

    key = endpoint.key.reveal() or "none"
    login = endpoint.login
    try:
        client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
            auth=(login[0], login[1].reveal()) if login else None,
            timeout=httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
            limits=httpx2.Limits(),  # whoever sends decides how many are in flight
            follow_redirects=True,
        )
    except (ImportError, OSError, ValueError) as exc:
        # The environment names proxies or certificates that do not work here.
        raise MissingError(f"{endpoint.host} cannot be asked from here: {exc}") from exc
    base = httpx2.URL(endpoint.url)
    url = base.copy_with(path=f"{base.path.rstrip('/')}/{path}")
    return Client(client, url, endpoint, model, seconds)


__all__ = ["CONNECT_SECONDS", "Client", "open_client"]
