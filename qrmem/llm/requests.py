"""One request to an OpenAI-compatible server: the whole answer in time, or one of our errors."""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies

from qrmem.errors import MissingError, QrmemError, UsageError
from qrmem.llm.endpoint import Endpoint
from qrmem.llm.exchange import Transient
from qrmem.llm.refusals import from_connection, from_status
from qrmem.llm.streaming import joined

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from qrmem.llm.connections import Connections

Hear = Callable[[Mapping[str, str]], None]

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
"""Writes a body as the client does."""
CONNECT_SECONDS = 4.0
"""Time to get a connection; a command with no route to its server ends within 5 seconds."""


class Client:
    """Posts to one address of a server, for one model; an async context manager.

    A request raises:
        AccessRefused: key or model name refused.
        ContextExceeded: the prompt is longer than the model's context.
        Transient: trying again may help.
        Rejected: the request's form is refused.
        ModelUnavailable: anything else.
    """

    def __init__(
        self,
        client: "AsyncOpenAI",
        streaming: "AsyncOpenAI",
        connections: "Connections | None",
        http: ModuleType,
        url: str,
        endpoint: Endpoint,
        model: str,
        seconds: float,
    ) -> None:
        """Make one.

        Args:
            client: for whole answers.
            connections: which that client goes over, if it does.
            http: the library below the client.
            endpoint: named in errors, as the model.
        """
        self._client = client
        self._connections = connections
        self._logs = [logging.getLogger(name) for name in ("openai", http.__name__)]
        self._streaming = streaming
        self._url = url
        self._answer = http.Response
        self._endpoint = endpoint
        self._model = model
        self._seconds = seconds

    async def post(self, body: Mapping[str, Any], *, hear: Hear = lambda headers: None) -> str:
        """Return the body of an answer.

        Args:
            hear: takes the headers.
        """
        async with self._translated(), asyncio.timeout(self._seconds):
            answer = await self._repeated(body)
            if answer is None:
                answer = await self._client.post(self._url, cast_to=self._answer, body=body)
            hear(answer.headers)
            return str(answer.text)

    async def _repeated(self, body: Mapping[str, Any]) -> Any:
        """Send a request as the client made it before; `None` where the client has to make it.

        Whoever has the client log its requests sees all of them.
        """
        direct = self._connections
        if direct is None or not direct.may_repeat or any(map(_is_heard, self._logs)):
            return None
        answer = await direct.repeat(_ENCODER.encode(body).encode())
        if answer.is_plain:
            return answer
        response = direct.response(answer)
        if response.is_error:
            raise self._refused(response)
        return None if response.has_redirect_location else response

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
        from openai import AsyncStream

        async with self._translated(), asyncio.timeout(self._seconds):
            answer = await self._streaming.post(
                self._url,
                cast_to=self._answer,
                body=body,
                stream=True,
                stream_cls=AsyncStream[Any],
            )
            async with aclosing(answer):
                return await self._joined(answer, take, hear)

    async def _joined(self, answer: Any, take: Callable[[str], None], hear: Hear) -> str:
        hear(answer.headers)
        if "event-stream" not in answer.headers.get("content-type", ""):
            await answer.aread()
            return str(answer.text)
        try:
            return await joined(answer.aiter_lines(), take)
        except (ValueError, TypeError, AttributeError) as exc:
            said = self._endpoint.clean(str(exc))
            text = f"{self._endpoint.host} sent no whole reply: {said}"
            raise Transient(text, cause="body") from exc

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()
        await self._streaming.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        """Raise what fails in a request as one of our errors."""
        import openai

        try:
            yield
        except openai.APIStatusError as exc:
            raise self._refused(exc.response) from exc
        except (openai.APIConnectionError, TimeoutError) as exc:
            if "Illegal header" in str(exc.__cause__):
                raise self._unsendable() from exc
            raise from_connection(exc, self._endpoint, self._seconds) from exc
        except UnicodeEncodeError as exc:
            raise self._unsendable() from exc
        except (openai.OpenAIError, UnicodeError) as exc:
            said = self._endpoint.clean(str(exc)) or type(exc).__name__
            raise Transient(f"{self._endpoint.host}: {said}", cause="body") from exc
        except Exception as exc:
            # In the middle of a stream the client's own transport speaks, whichever it is.
            if isinstance(exc, QrmemError) or not type(exc).__module__.startswith("http"):
                raise
            raise from_connection(exc, self._endpoint, self._seconds) from exc

    def _refused(self, answer: Any) -> QrmemError:
        status, headers = answer.status_code, answer.headers
        return from_status(status, answer.text, headers, self._endpoint, self._model)

    def _unsendable(self) -> UsageError:
        """Return the error for what no retry makes sendable; a variable's value is not shown."""
        return UsageError(
            f"the model's name {self._model!r}, OPENAI_ORG_ID or OPENAI_PROJECT_ID holds "
            "characters that cannot be sent"
        )


async def open_client(endpoint: Endpoint, path: str, model: str, seconds: float) -> Client:
    """Return a client that never retries by itself and reads neither key nor URL on its own.

    Args:
        path: below the base URL.
        seconds: time-out of a whole request.

    Raises:
        MissingError: proxies or certificates that the environment names do not work here.
    """
    # The first import takes more than a second, during which no other call may time out.
    await asyncio.to_thread(import_module, "openai")
    import openai

    try:
        client = openai.AsyncOpenAI(
            api_key=endpoint.key.reveal() or "none",
            base_url=endpoint.url,
            default_headers=_login(endpoint),
            # Whatever comes after the connection is within the time-out of the whole request.
            timeout=openai.Timeout(None, connect=min(seconds, CONNECT_SECONDS)),
            max_retries=0,
        )
    except (ImportError, OSError, ValueError) as exc:
        # The environment names proxies or certificates that do not work here.
        raise MissingError(f"{endpoint.host} cannot be asked from here: {exc}") from exc
    # The HTTP library below: httpx2, or httpx, by the client's version.
    http = import_module(type(client.base_url).__module__)
    base = urlsplit(endpoint.url)
    # Whole, so that the client need not put it together for each request.
    url = urlunsplit(base._replace(path=f"{base.path.rstrip('/')}{path}"))
    connections = _direct(http)
    over_them = _over(connections, client) if connections else client
    return Client(over_them, client, connections, http, url, endpoint, model, seconds)


def _direct(http: ModuleType) -> "Connections | None":
    """Return connections of our own, unless the environment names a proxy."""
    from qrmem.llm.connections import Connections

    is_direct = getproxies().keys().isdisjoint(("http", "https", "all"))
    return Connections(http) if is_direct else None


def _over(connections: Any, client: "AsyncOpenAI") -> "AsyncOpenAI":
    """Return the client over connections, whose type depends on the library."""
    import openai

    return client.with_options(http_client=openai.DefaultAsyncHttpxClient(transport=connections))


def _is_heard(log: logging.Logger) -> bool:
    return log.isEnabledFor(logging.INFO)


def _login(endpoint: Endpoint) -> dict[str, str]:
    """Return the header of a name and password, which stands in for that of a key."""
    if endpoint.login is None:
        return {}
    name, password = endpoint.login
    pair = f"{name}:{password.reveal()}".encode()
    return {"Authorization": f"Basic {b64encode(pair).decode()}"}


__all__ = ["CONNECT_SECONDS", "Client", "open_client"]
