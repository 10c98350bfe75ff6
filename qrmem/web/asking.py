"""Questions over HTTP, with a whole or a streamed reply; errors as HTTP replies."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import quote

from qrmem.errors import (
    CapReached,
    MissingError,
    NotFound,
    OutOfReach,
    QrmemError,
    StoreConflict,
    UsageError,
)
from qrmem.memory import Memory
from qrmem.memory.ask import answer_of
from qrmem.text.words import cut_note
from qrmem.types import Answer, Step, Strategy, Words
from qrmem.web.guard import log, own_where
from qrmem.web.response_models import Refusal, of, whole

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response
    from starlette.responses import StreamingResponse

_STATUS: tuple[tuple[type[QrmemError], int], ...] = (
    (NotFound, 404),
    (UsageError, 400),
    (MissingError, 424),
    (StoreConflict, 409),
    (CapReached, 429),
    (OutOfReach, 503),
)
"""HTTP status by class of error; the first match counts, any other error is 500."""

WARNING = "x-warning"
"""Header with a warning about the reply, as text."""
_IN_HEADERS = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")
_LEFT = 499
"""Status in the metrics if the client left before the reply."""
MOST = 2**31 - 1
"""Largest number of tokens that a request may name."""


def asking(app: "FastAPI", memory: Memory, user: str = "") -> None:
    """Add the route `POST /ask`.

    Args:
        app: the app to extend.
        memory: an open memory.
        user: limits answers to the documents and turns of this user; "" sets no limit.
    """
    from fastapi import Body, Request, Response

    several = Annotated[list[str] | None, Body()]

    @app.post(
        "/ask", summary="Answer a question, with citations and the trail", responses=of(Answer)
    )
    async def ask(
        request: Request,
        response: Response,
        question: Annotated[str, Body(min_length=1)],
        strategy: Annotated[str | None, Body()] = None,
        window: Annotated[int | None, Body(ge=1, le=MOST, strict=True)] = None,
        choices: several = None,
        documents: several = None,
        where: Annotated[dict[str, Any] | None, Body()] = None,
        types: Annotated[list[str] | None, Body()] = None,
        as_of: Annotated[str, Body()] = "",
        stream: Annotated[bool, Body(description="stream the steps as events")] = False,
    ) -> Any:
        note_length(question, response)
        items = memory.stream(
            question,
            words=stream,
            strategy=cast(Strategy | None, strategy),  # raises there if it is invalid
            window=window,
            choices=choices,
            documents=documents,
            where=own_where(user, where, documents),
            types=types,
            as_of=as_of,
        )
        return await _unless_left(request, _streamed(memory, items) if stream else answer_of(items))


async def _unless_left(request: "Request", work: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a run; the run ends, and costs nothing more, if the client leaves."""
    from starlette.responses import Response

    running: asyncio.Future[Any] = asyncio.ensure_future(work)
    disconnect: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((running, disconnect), return_when=asyncio.FIRST_COMPLETED)
        return await running if running.done() else Response(status_code=_LEFT)
    finally:
        disconnect.cancel()
        running.cancel()
        await asyncio.wait((running, disconnect))


_Items = AsyncGenerator[Step | Words | Answer, None]


async def _streamed(memory: Memory, items: _Items) -> "StreamingResponse":
    """Return a run as server-sent events: `step` and `words`, then `answer` or `error`.

    An error before the first event gives the same reply as without streaming. If the client
    disconnects, the run ends.
    """
    from starlette.responses import StreamingResponse

    first = await anext(items)

    async def events() -> AsyncIterator[str]:
        async with aclosing(items):
            yield _event(first)
            try:
                async for item in items:
                    yield _event(item)
            except QrmemError as exc:
                yield _event(error_of(memory, exc)[0])

    return StreamingResponse(events(), media_type="text/event-stream")


def _event(item: Step | Words | Answer | Refusal) -> str:
    kind = "error" if isinstance(item, Refusal) else type(item).__name__.lower()
    return f"event: {kind}\ndata: {json.dumps(asdict(item))}\n\n"


def error_of(memory: Memory, exc: QrmemError) -> tuple[Refusal, int]:
    """Return an error's reply body and its HTTP status; errors from 500 on are logged."""
    status = next((code for kind, code in _STATUS if isinstance(exc, kind)), 500)
    if status >= 500:
        log(str(exc))
    message = whole(exc.public(memory.location))
    suggestions = exc.near if isinstance(exc, NotFound) else ()
    return Refusal(message, type(exc).__name__, suggestions), status


def note_length(question: str, response: "Response", *, miss: str = "") -> None:
    """Set the warning header if a long question was cut, or else to `miss`.

    What a header cannot hold, such as a word in another script, is percent-encoded.
    """
    if note := cut_note(question) or miss:
        response.headers[WARNING] = quote(note, safe=_IN_HEADERS)
