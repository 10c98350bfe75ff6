"""One request through the `openai` client: the whole answer in time, or one of our errors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qrmem.errors import QrmemError
from qrmem.models.endpoint import Endpoint
from qrmem.models.exchange import Transient
from qrmem.models.refusals import from_connection, from_status
from qrmem.models.streaming import joined

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Hear = Callable[[Mapping[str, str]], None]

CONNECT_SECONDS = 4.0
"""Time to get a connection; a command with no route to its server ends within 5 seconds."""


async def open_client(endpoint: Endpoint, seconds: float) -> "AsyncOpenAI":
    """Return a client that never retries by itself and reads neither key nor URL on its own.

    Args:
        seconds: time-out of a whole request.
    """
    # The first import takes more than a second, during which no other call may time out.
    await asyncio.to_thread(import_module, "openai")
    import openai

    limits = openai.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
    return openai.AsyncOpenAI(
        api_key=endpoint.key.reveal() or "none",
        base_url=endpoint.url,
        timeout=limits,
        max_retries=0,
    )


async def requested(
    create: Callable[[], Awaitable[Any]],
    endpoint: Endpoint,
    model: str,
    seconds: float,
    *,
    hear: Hear = lambda headers: None,
) -> str:
    """Return the body of an answer.

    Args:
        create: sends the request, by one of the client's `with_raw_response` methods.
        seconds: for the whole of it.
        hear: takes the headers.

    Raises:
        AccessRefused: key or model name refused.
        ContextExceeded: the prompt is longer than the model's context.
        Transient: trying again may help.
        Rejected: the request's form is refused.
        ModelUnavailable: anything else.
    """
    async with _translated(endpoint, model, seconds), asyncio.timeout(seconds):
        answer = await create()
        hear(answer.headers)
        return str(answer.text)


async def streamed(
    create: Callable[[], AbstractAsyncContextManager[Any]],
    endpoint: Endpoint,
    model: str,
    seconds: float,
    take: Callable[[str], None],
    *,
    hear: Hear = lambda headers: None,
) -> str:
    """Return the body of a streamed answer as if it had come in one piece.

    A server that answers in one piece all the same is taken at its word.

    Args:
        create: sends the request, by one of the client's `with_streaming_response` methods.
        seconds: for the whole of it.
        take: hears each piece of the reply as it comes.
        hear: takes the headers.

    Raises:
        QrmemError: as `requested`.
    """
    async with (
        _translated(endpoint, model, seconds),
        asyncio.timeout(seconds),
        create() as answer,
    ):
        hear(answer.headers)
        if "event-stream" not in answer.headers.get("content-type", ""):
            return str(await answer.text())
        try:
            return await joined(answer.iter_lines(), take)
        except (ValueError, TypeError, AttributeError) as exc:
            text = f"{endpoint.host} sent no whole reply: {endpoint.clean(str(exc))}"
            raise Transient(text, cause="body") from exc


@asynccontextmanager
async def _translated(endpoint: Endpoint, model: str, seconds: float) -> AsyncIterator[None]:
    """Raise what fails in a request as one of our errors."""
    import openai

    try:
        yield
    except openai.APIStatusError as exc:
        answer = exc.response
        raise from_status(answer.status_code, answer.text, answer.headers, endpoint, model) from exc
    except (openai.APIConnectionError, TimeoutError) as exc:
        raise from_connection(exc, endpoint, seconds) from exc
    except (openai.OpenAIError, UnicodeError) as exc:
        text = f"{endpoint.host}: {endpoint.clean(str(exc)) or type(exc).__name__}"
        raise Transient(text, cause="body") from exc
    except Exception as exc:
        # In the middle of a stream the client's own transport speaks, whichever it is.
        if isinstance(exc, QrmemError) or not type(exc).__module__.startswith("http"):
            raise
        raise from_connection(exc, endpoint, seconds) from exc


__all__ = ["CONNECT_SECONDS", "open_client", "requested", "streamed"]
