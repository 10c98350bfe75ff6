"""One request to a model server: a complete reply within the time limit, or an error of qrmem.

The `openai` client sends it, with three rules added: a reply has at most `LARGEST_ANSWER` bytes;
redirects are not followed, so that every request is counted and none goes elsewhere; errors contain
no secrets.
"""

import asyncio
import json
import os
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from pydantic_core import from_json

from qrmem.config import Secret, Settings, provider_keys
from qrmem.errors import MissingError, ModelUnavailable, require_extra
from qrmem.llm.servers import Endpoint, StreamBroken, Transient, in_words, translated

if TYPE_CHECKING:
    from openai import AsyncOpenAI


Hear = Callable[[Mapping[str, str]], None]
"""Gets the headers of a reply."""

CONNECT_SECONDS = 4.0
"""Time limit in seconds for a connection; a command without a route ends within 5 s."""
LARGEST_ANSWER = 8 * 1024 * 1024
"""Maximum size of a reply in bytes, decompressed; 64 embeddings of 4,096 numbers are smaller."""
AT_ONCE = 16
"""Requests of one client of the library, which looks at all its connections for each request.

One client for 256 requests in flight takes a quarter more processor time; why `aiohttp` does not
send them is in docs/scaling.md.
"""
_GZIP = 31
"""`wbits` of zlib for gzip data."""


class Client:
    """Posts requests to one address of a server, for one model; `aclose` closes it.

    The first request imports the `openai` package and opens the connection. It raises
    `MissingError` if proxies or certificates from the environment do not work.

    Every request raises:
        AccessRefused: the server rejects the key or the model's name.
        ContextExceeded: the prompt is longer than the model's context.
        Transient: a retry may help.
        Rejected: the server rejects the form of the request.
        ModelUnavailable: any other failure.
    """

    def __init__(self, endpoint: Endpoint, path: str, model: str, seconds: float) -> None:
        """Take an address.

        Args:
            path: path below the base URL.
            model: name of the model, for errors.
            seconds: time limit of a whole request.
        """
        base = urlsplit(endpoint.url)
        # The whole URL, so that the client need not build it for each request.
        self._url = urlunsplit(base._replace(path=f"{base.path.rstrip('/')}{path}"))
        self._endpoint = endpoint
        self._model = model
        self._seconds = seconds
        self._opening = asyncio.Lock()
        self._clients: list[AsyncOpenAI] = []
        self._free: list[AsyncOpenAI] = []

    async def post(
        self,
        body: Mapping[str, Any],
        *,
        hear: Hear = lambda headers: None,
        take: Callable[[str], None] | None = None,
    ) -> str:
        """Return the body of a reply; the pieces of a streamed reply are joined.

        Args:
            body: the request.
            hear: gets the headers.
            take: gets each piece of a streamed reply; `None` requests no stream. A server may
                ignore the request and reply in one piece.
        """
        client = await self._free_client()
        try:
            async with asyncio.timeout(self._seconds):
                if take is None:
                    whole = _library(client).Response
                    answer: Any = await client.post(self._url, cast_to=whole, body=body)
                    hear(answer.headers)
                    return str(answer.text)
                events = await client.post(
                    self._url, cast_to=object, body=body, stream=True, stream_cls=_stream()
                )
                async with events:
                    answer = events.response
                    hear(answer.headers)
                    if "event-stream" in answer.headers.get("content-type", ""):
                        return await joined(events, take)
                    await answer.aread()
                    return str(answer.text)
        except Exception as exc:
            error = translated(exc, self._endpoint, self._model, self._seconds)
            if error is None:
                raise
            cause = in_words(exc, self._endpoint)
        finally:
            if client in self._clients:  # not closed meanwhile
                self._free.append(client)
        # Outside of the handler: the exception of the library contains keys and the whole reply.
        raise error from cause

    async def _free_client(self) -> "AsyncOpenAI":
        """Return a client for one request; each client is listed once for each that it may take."""
        async with self._opening:
            if not self._free:
                client = await _open(self._endpoint, self._seconds)
                self._clients.append(client)
                self._free = [client] * AT_ONCE
            return self._free.pop()

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients, self._free = self._clients, [], []
        for client in clients:
            await client.close()


async def _open(endpoint: Endpoint, seconds: float) -> "AsyncOpenAI":
    """Return a client that never retries by itself."""
    # The first import takes more than a second; meanwhile no other call may time out.
    await asyncio.to_thread(import_module, "openai")
    import openai

    try:
        return openai.AsyncOpenAI(
            api_key=endpoint.key.reveal() or "none",
            base_url=endpoint.url,
            default_headers=_login(endpoint),
            # After connecting, the time limit of the whole request applies.
            timeout=openai.Timeout(None, connect=min(seconds, CONNECT_SECONDS)),
            max_retries=0,
            http_client=_http_client(endpoint),
        )
    except (ImportError, OSError, ValueError) as exc:
        # Proxies or certificates in the environment do not work here.
        reason, cause = endpoint.clean(str(exc)), in_words(exc, endpoint)
    raise MissingError(f"{endpoint.host} cannot be called from here: {reason}") from cause


def _library(client: Any) -> Any:
    """Return the HTTP library of `openai`: httpx2 or httpx, depending on its version."""
    return import_module(type(client.base_url).__module__)


def _http_client(endpoint: Endpoint) -> Any:
    """Return the HTTP library's client; it reads no more of a reply than the size limit."""
    import openai

    client: Any = openai.DefaultAsyncHttpxClient(
        headers={"Accept-Encoding": "gzip"}, follow_redirects=False
    )

    class BoundedStream(_library(client).AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, packing: str) -> None:
            self._pieces = _pieces(stream, packing)
            self._stream = stream

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._pieces

        async def aclose(self) -> None:
            await self._pieces.aclose()
            await self._stream.aclose()

    async def bound(answer: Any) -> None:
        if there := answer.headers.get("location") if 300 <= answer.status_code < 400 else None:
            raise ModelUnavailable(
                f"{endpoint.host} redirects to {endpoint.clean(_target(answer, there))}: "
                "set the base URL to the address that answers"
            )
        packing = answer.headers.pop("content-encoding", "identity")
        answer.stream = BoundedStream(answer.stream, packing.strip().lower())

    client.event_hooks = {"response": [bound]}
    return client


@cache
def _stream() -> Any:
    """Return the library's stream of events; it records whether the server sent its end."""
    import openai

    class Stream(openai.AsyncStream[object]):
        is_done = False

        async def _iter_events(self) -> AsyncGenerator[Any, None]:
            async for event in super()._iter_events():
                self.is_done = event.data.startswith("[DONE]")
                yield event

    return Stream


def _target(answer: Any, location: str) -> str:
    """Return the target of a redirect without its query, which may be secret."""
    try:
        address = urlsplit(urljoin(str(answer.request.url), location))
        return f"{address.scheme}://{address.netloc}{address.path}"
    except ValueError:
        return "no address"


async def _pieces(stream: Any, packing: str) -> AsyncGenerator[bytes, None]:
    """Yield the unpacked bytes of a reply; stop if there are too many."""
    if packing not in {"identity", "gzip"}:
        raise ModelUnavailable(f"the answer has a compression that was not requested: {packing!r}")
    unpacker = zlib.decompressobj(_GZIP) if packing == "gzip" else None
    size = 0
    async with aclosing(aiter(stream)) as pieces:
        async for piece in pieces:
            if unpacker is not None:
                try:
                    piece = unpacker.decompress(piece, LARGEST_ANSWER + 1)
                except zlib.error as exc:
                    raise Transient(
                        f"the answer cannot be decompressed: {exc}", cause="body"
                    ) from None
            size += len(piece)
            if size > LARGEST_ANSWER:
                limit = LARGEST_ANSWER // 1024 // 1024
                raise ModelUnavailable(
                    f"the server's answer is longer than {limit} MB; it was not read"
                )
            yield piece


def _login(endpoint: Endpoint) -> dict[str, str]:
    """Return the header for a user name and password, instead of that for a key."""
    return {"Authorization": f"Basic {endpoint.token.reveal()}"} if endpoint.token else {}


# --- streamed replies --------------------------------------------------------------


_OBJECT = re.compile(r"\{\s*\"")
_CONTROLS = dict.fromkeys(range(32), " ")
"""Control characters such as line ends, which JSON forbids in texts and some models write there."""


class Fields:
    """Reads a reply's JSON piece by piece and yields the text of its text fields.

    It reads only the fields of the outermost object, and skips text before it. It parses again
    where a text may end, and when the reply has grown by 1 %; parsing at each piece would take
    quadratic time.
    """

    def __init__(self) -> None:
        self._text = ""
        self._told: dict[str, str] = {}
        self._due = 0.0

    def feed(self, piece: str) -> Iterator[tuple[str, str]]:
        """Add a piece; yield the names of fields with their next text."""
        self._text += piece.translate(_CONTROLS)
        if len(self._text) < self._due and '"' not in piece.replace('\\"', ""):
            return
        self._due = 1.01 * len(self._text)
        for name, value in self._fields().items():
            told_before = self._told.get(name, "")
            if isinstance(value, str) and len(value) > len(told_before):
                self._told[name] = value
                yield name, value[len(told_before) :]

    def _fields(self) -> dict[str, Any]:
        """Return the object as far as it has arrived."""
        start = _OBJECT.search(self._text)
        whole = self._text[start.start() :] if start else ""
        for text in (whole, whole[: whole.rfind("}") + 1]):  # more text may follow it
            try:
                fields = from_json(text, allow_partial="trailing-strings")
            except ValueError:
                continue
            return fields if isinstance(fields, dict) else {}
        return {}


def text_of(content: Any) -> str:
    """Return the text of a message; some servers send parts, reasoning models may send none."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "".join(str(part.get("text") or "") for part in parts)
    return str(content or "")


def thoughts_of(message: Mapping[str, Any]) -> str:
    """Return the reasoning of a model, if the server sends it separately."""
    return text_of(message.get("reasoning_content") or message.get("reasoning"))


async def joined(events: AsyncIterator[Any], take: Callable[[str], None]) -> str:
    """Join the events of a streamed completion into the body of an unstreamed one.

    Args:
        events: the events of the stream.
        take: gets each piece of the reply.

    Raises:
        StreamBroken: the events are malformed, or end before the reply is complete.
    """
    reply = _Joined(take)
    try:
        async for event in events:
            reply.add(event)
    except (ValueError, TypeError, AttributeError, RecursionError) as exc:
        raise StreamBroken(f"{type(exc).__name__}: {exc}") from None
    # Some servers send the end without a finish reason.
    return reply.body("stop" if getattr(events, "is_done", False) else "")


class _Joined:
    """The content of a stream's events so far."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._refusal = self._end = ""
        self._others: dict[str, Any] = {}
        self._log_probs: list[Any] = []

    def add(self, event: Any) -> None:
        """Add one event."""
        self._others |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        for part in event.get("choices") or ():
            delta = part.get("delta") or {}
            if piece := text_of(delta.get("content")):
                self._text.append(piece)
                self._take(piece)
            self._thoughts.append(thoughts_of(delta))
            self._refusal += delta.get("refusal") or ""
            self._end = part.get("finish_reason") or self._end
            self._log_probs += (part.get("logprobs") or {}).get("content") or ()

    def body(self, end: str) -> str:
        """Return the body of an unstreamed reply; `end` is used if no event has a finish reason."""
        end = self._end or end
        if not end:
            raise StreamBroken("the stream ended before the reply was complete")
        choice = {
            "message": {
                "content": "".join(self._text),
                "reasoning_content": "".join(self._thoughts),
                "refusal": self._refusal or None,
            },
            "finish_reason": end,
            "logprobs": {"content": self._log_probs},
        }
        return json.dumps({**self._others, "choices": [choice]})


# Chat models of other providers through LiteLLM: `anthropic/…`, `gemini/…`, `bedrock/…`.
#
# Names of this form are called by LiteLLM if `base_url` is empty. LiteLLM
# takes keys and addresses from each provider's own variables, such as ANTHROPIC_API_KEY.

_MILLION = 1_000_000


def is_elsewhere(settings: Settings) -> bool:
    """Return whether LiteLLM sends the requests to the chat model."""
    return "/" in settings.model and not settings.base_url


def provider_endpoint(model: str) -> Endpoint:
    """Return the provider's name for messages, and the keys that messages must not show."""
    provider = model.partition("/")[0]
    return Endpoint("", f"litellm:{provider}", provider, Secret(""), None, provider_keys())


class ProviderClient:
    """A `Client` that sends by LiteLLM; it raises the errors of `Client`."""

    def __init__(self, endpoint: Endpoint, model: str, seconds: float) -> None:
        require_extra("litellm", f"the model {model!r}, of another provider,", "litellm")
        self._endpoint = endpoint
        self._model = model
        self._seconds = seconds

    async def post(
        self,
        body: Mapping[str, Any],
        *,
        hear: Callable[[Mapping[str, str]], None] = lambda headers: None,
        take: Callable[[str], None] | None = None,
    ) -> str:
        """Return a reply in OpenAI's form, for every provider; see `Client.post`."""
        litellm = await asyncio.to_thread(_litellm)
        options = {**body, "timeout": self._seconds, "max_retries": 0}
        try:
            async with asyncio.timeout(self._seconds):
                answer = await litellm.acompletion(**options)
                if take is None:
                    return str(answer.model_dump_json())
                return await joined((piece.model_dump() async for piece in answer), take)
        except Exception as exc:
            error = translated(exc, self._endpoint, self._model, self._seconds)
            if error is None:
                raise
            cause = in_words(exc, self._endpoint)
        # Outside of the handler: the exception of the library contains keys and the whole reply.
        raise error from cause

    async def aclose(self) -> None:
        """Do nothing; no connection stays open between requests."""


def listed_price(model: str) -> tuple[float, float, float | None] | None:
    """Return a model's prices per million tokens from LiteLLM's list: input, output, cached input.

    It reads the list without an import of the library.
    """
    prices = _litellm_prices()
    row = prices.get(model) or prices.get(model.partition("/")[2])
    if row is None or "input_cost_per_token" not in row or "output_cost_per_token" not in row:
        return None
    cached = row.get("cache_read_input_token_cost")
    return (
        float(row["input_cost_per_token"]) * _MILLION,
        float(row["output_cost_per_token"]) * _MILLION,
        None if cached is None else float(cached) * _MILLION,
    )


@cache
def _litellm_prices() -> Mapping[str, Mapping[str, Any]]:
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    prices: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return prices


def _litellm() -> Any:
    """Return LiteLLM; at its import it would fetch a list of prices from the network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm
