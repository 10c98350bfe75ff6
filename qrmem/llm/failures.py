"""What a server's or a connection's failure means: the one place that translates them."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from qrmem.errors import (
    AccessRefused,
    ContextExceeded,
    ModelUnavailable,
    QrmemError,
    UsageError,
)
from qrmem.llm.endpoint import Endpoint

_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_NO_MODEL = re.compile(
    r"model.{0,120}?(not (be )?(found|exist|available)|does ?n[o']t exist|unknown|invalid)"
    r"|model.{0,120}?not a valid|(unknown|invalid|no such|not find) model|model_not_found",
    re.DOTALL,
)
_VALIDATION = re.compile(r"response_format|validation error|json_schema|unsupported parameter")
_CONTEXT = re.compile(
    r"context.{0,10}(length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|reduce the length|exceeds? the available context"
)


Cause = Literal["connection", "timeout", "busy", "server", "body"]
"""No connection; no answer in time; 429 or 503; 5xx or a broken connection; no usable answer."""


class Transient(ModelUnavailable):
    """A request failed in a way that may pass; whether to try again is decided above.

    Attributes:
        cause: what kind of failure it is.
        retry_after: seconds that the server asked for, or `None`.
        is_free: the server answered that it did not work, so no tokens are owed.
    """

    def __init__(
        self, message: str, *, cause: Cause, retry_after: float | None = None, is_free: bool = False
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.retry_after = retry_after
        self.is_free = is_free


class Rejected(ModelUnavailable):
    """The server refuses the form of a request (400, 422); another one may be taken.

    Attributes:
        complaint: the server's words, in lower case.
    """

    def __init__(self, message: str, *, complaint: str) -> None:
        super().__init__(message)
        self.complaint = complaint


class LibraryError(Exception):
    """What a library raised, in words: it stands for the original, which holds keys and bodies."""


def in_words(exc: BaseException, endpoint: Endpoint) -> LibraryError:
    """Return what may stand as the cause of our own error."""
    said = ": ".join(dict.fromkeys(_words(link) for link in _causes(exc)))
    return LibraryError(f"{type(exc).__name__}: {endpoint.clean(said)}")


def translated(exc: Exception, endpoint: Endpoint, model: str, seconds: float) -> QrmemError | None:
    """Return what a failed request is in our terms; `None` where it is a mistake of our own.

    Args:
        seconds: the time-out that was set.
    """
    import openai

    if (ours := next((e for e in _causes(exc) if isinstance(e, QrmemError)), None)) is not None:
        return ours
    if isinstance(exc, openai.APIStatusError):
        answer = exc.response
        return from_status(answer.status_code, answer.text, answer.headers, endpoint, model)
    if isinstance(exc, UnicodeEncodeError) or "Illegal header" in str(exc.__cause__):
        # No retry makes it sendable; a variable's value is not shown.
        return UsageError(
            f"the model's name {model!r}, OPENAI_ORG_ID or OPENAI_PROJECT_ID holds characters "
            "that cannot be sent"
        )
    if isinstance(exc, openai.APIConnectionError | TimeoutError):
        return from_connection(exc, endpoint, seconds)
    # In the middle of an answer the HTTP library speaks, whichever it is.
    if type(exc).__module__.startswith("http"):
        return from_connection(exc, endpoint, seconds)
    if isinstance(exc, openai.OpenAIError | UnicodeError | StreamBroken):
        said = endpoint.clean(str(exc)) or type(exc).__name__
        return Transient(f"{endpoint.host} sent no whole reply: {said}", cause="body")
    return None


class StreamBroken(ValueError):
    """A streamed reply is none, or breaks off before it has ended."""


def from_status(
    status: int, body: str, headers: Mapping[str, str], endpoint: Endpoint, model: str
) -> QrmemError:
    """Return the error that an answer with a failure status stands for."""
    said = endpoint.clean(_message(body)) or "no reason given"
    low = said.lower()
    text = f"{endpoint.host} answers {status}: {said}"
    if status in {401, 403}:
        return AccessRefused(f"{endpoint.host} refuses the key ({status}): {said}")
    if status == 402 or (status == 429 and ("insufficient_quota" in body or "quota" in low)):
        return AccessRefused(f"{endpoint.host} has no credit left for this key ({status}): {said}")
    if status in {400, 404, 422} and _NO_MODEL.search(low) and "response_format" not in low:
        return AccessRefused(
            f"{endpoint.host} does not know the model {model!r} ({status}): {said}"
        )
    if status in {400, 413, 422, 500} and _CONTEXT.search(low):
        return ContextExceeded(
            f"the prompt is longer than what {endpoint.host} takes; QRMEM_WINDOW or --window "
            f"makes it shorter: {said}"
        )
    if status == 500 and _VALIDATION.search(low):
        return Rejected(text, complaint=low)  # llama-cpp-python's server puts it so
    if status in _PASSING:
        cause: Cause = "busy" if status in {429, 503, 529} else "server"
        return Transient(text, cause=cause, retry_after=retry_after(headers), is_free=True)
    if status in {400, 415, 422, 501}:
        return Rejected(text, complaint=low)
    if status in {404, 405}:
        text += "; is the base URL right? It usually ends in /v1"
    return ModelUnavailable(text)


def from_connection(exc: BaseException, endpoint: Endpoint, seconds: float) -> Transient:
    """Return the error for a request that got no whole answer.

    Args:
        seconds: the time-out that was set.
    """
    chain = list(_causes(exc))
    if any("timeout" in type(link).__name__.lower() for link in chain):
        if any(type(link).__name__ == "ConnectTimeout" for link in chain):
            return Transient(
                f"{endpoint.host} cannot be reached: no connection in time",
                cause="connection",
                is_free=True,
            )
        text = f"{endpoint.host} gave no answer in {seconds:g} s (QRMEM_TIMEOUT allows more)"
        return Transient(text, cause="timeout")
    words = endpoint.clean(": ".join(dict.fromkeys(_words(link) for link in chain)))
    if any(type(link).__name__ == "ConnectError" for link in chain):
        text = f"{endpoint.host} cannot be reached: {words}"
        return Transient(text, cause="connection", is_free=True)
    return Transient(f"{endpoint.host} broke the connection: {words}", cause="server")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, given as milliseconds, seconds or a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        now = headers.get("date")
        reference = parsedate_to_datetime(now).timestamp() if now else time.time()
        return max(0.0, parsedate_to_datetime(given or "").timestamp() - reference)
    except (TypeError, ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def _message(body: str) -> str:
    """Return the words of an error body: OpenAI's `error.message`, other common places, or all."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body
    for _ in range(3):
        if not isinstance(found, dict):
            break
        found = next((found[k] for k in ("error", "message", "detail") if found.get(k)), None)
    return found if isinstance(found, str) else body


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__


def _words(exc: BaseException) -> str:
    return str(exc).rstrip(". ") or type(exc).__name__


__all__ = [
    "Cause",
    "LibraryError",
    "Rejected",
    "StreamBroken",
    "Transient",
    "in_words",
    "translated",
]
