"""Model servers: addresses, names for messages, and translation of failures into errors."""

import json
import re
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from qrmem.config import Secret, Settings, revealed
from qrmem.errors import (
    AccessRefused,
    ContextExceeded,
    MissingError,
    ModelUnavailable,
    QrmemError,
    UsageError,
)

DEFAULT_URL = "https://api.openai.com/v1"
_SHOWN = 300
"""Maximum length in characters of a server's text in a message."""
_SHORTEST = 4
"""Least length of a secret that is removed from messages; "x" is not a secret."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server with OpenAI's protocol.

    Attributes:
        url: base URL without user name and password; a caller may log it.
        address: `url` without its query.
        host: host and port, for messages.
        token: user name and password from the URL, encoded for a header; a proxy may need them.
        others: further secrets: the password, and values of the URL's query.
    """

    url: str
    address: str
    host: str
    key: Secret
    token: Secret | None = None
    others: tuple[Secret, ...] = ()

    def clean(self, text: str) -> str:
        """Return a foreign text on one line, at most 300 characters, without secrets.

        Unprintable characters are removed first, so that they cannot hide a secret.
        """
        words = " ".join(_without_markup(text).split())
        shown = "".join(char for char in words if char.isprintable())
        for secret in (self.key, self.token, *self.others):
            if secret and len(secret.reveal()) >= _SHORTEST:
                shown = shown.replace(secret.reveal(), "***")
        return shown[:_SHOWN]


def embedding_endpoint(settings: Settings) -> Endpoint:
    """Return the endpoint for embeddings; the chat model's key is sent to no other server.

    Raises:
        UsageError: the base URL is not a URL.
        MissingError: it is OpenAI's own service and there is no key.
    """
    if not settings.embed_base_url:
        key = settings.embed_api_key or settings.api_key
        return endpoint(settings.with_(api_key=key))
    embed_settings = settings.with_(
        base_url=settings.embed_base_url, api_key=settings.embed_api_key
    )
    return endpoint(embed_settings)


def endpoint(settings: Settings) -> Endpoint:
    """Return the endpoint for chat by the settings.

    Raises:
        UsageError: the base URL is not a URL.
        MissingError: it is OpenAI's own service and there is no key, or the key is malformed.
    """
    url = revealed(settings.base_url).strip() or DEFAULT_URL
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as exc:
        raise UsageError(f"the base URL is not valid: {exc}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or re.search(r"\s", url):
        raise UsageError("the base URL must look like http://localhost:8000/v1")
    key = settings.api_key.reveal().strip()
    if not key and parts.hostname == "api.openai.com":
        raise MissingError(
            "no key for api.openai.com: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"
        )
    host = parts.hostname + port
    # Refused here: a library that cannot send it would show it in its error, in another spelling.
    if not (key.isascii() and key.isprintable()):
        raise MissingError(f"the key for {host} holds characters that no key can: copy it again")
    open_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    address = f"{parts.scheme}://{host}{parts.path}"
    token, others = _login(parts)
    return Endpoint(open_url, address, host, Secret(key), token, others)


def _login(parts: SplitResult) -> tuple[Secret | None, tuple[Secret, ...]]:
    """Return the login of a URL, and all its secret parts."""
    others = [value for _, value in parse_qsl(parts.query)]
    if parts.username is None:
        return None, tuple(map(Secret, others))
    name, password = unquote(parts.username), unquote(parts.password or "")
    token = b64encode(f"{name}:{password}".encode()).decode()
    return Secret(token), tuple(map(Secret, (password, parts.password or "", *others)))


def _without_markup(text: str) -> str:
    if "<html" not in text[:500].lower() and "<!doctype" not in text[:500].lower():
        return text
    pieces = (piece.partition(">")[2] for piece in text[:20_000].split("<"))
    return " ".join(piece.strip() for piece in pieces if piece.strip())


# --- failures ------------------------------------------------------------------------------------


_PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_NO_MODEL = re.compile(
    r"model.{0,120}?(not (be )?(found|exist|available)|does ?n[o']t exist|unknown|invalid)"
    r"|model.{0,120}?not a valid|(unknown|invalid|no such|not find) model|model_not_found",
    re.DOTALL,
)
_VALIDATION = re.compile(
    r"response_format|validation error|json_schema|unsupported parameter|system role"
    r"|roles must alternate|roles are supported"
)
_CONTEXT = re.compile(
    r"context.{0,10}(length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|reduce the length|exceeds? the available context|too large to process|must have less than"
)
_LIMIT = re.compile(r"(?:context|n_ctx)\D{0,40}?(\d[\d,]{2,11})")
"""Patterns of a server's context size: "maximum context length is 8192 tokens"."""
_TOO_LARGE = re.compile(r"(request|entity|payload) too large|message size|tokens must be reduced")
"""Patterns for one request; "too many tokens" with status 429 may mean the tokens of a minute."""
_FILTERED = re.compile(
    r"content_filter|content management policy|content_?policy_?violation|input was flagged"
    r"|data_inspection_failed"
)
"""Patterns for a content filter's refusal, by Azure, OpenAI, LiteLLM, OpenRouter and Alibaba."""


Cause = Literal["connection", "timeout", "busy", "server", "body"]
"""No connection; timeout; 429 or 503; 5xx or a broken connection; no usable reply."""


class Transient(ModelUnavailable):
    """A request failed temporarily; the caller decides on a retry.

    Attributes:
        cause: kind of failure.
        retry_after: wait in seconds that the server asked for, or `None`.
        is_free: whether the server replied that it did no work, so the request costs no tokens.
    """

    def __init__(
        self, message: str, *, cause: Cause, retry_after: float | None = None, is_free: bool = False
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.retry_after = retry_after
        self.is_free = is_free


class Rejected(ModelUnavailable):
    """The server rejects the form of a request (400, 422); it may accept another form.

    Attributes:
        complaint: the server's message, in lower case.
    """

    def __init__(self, message: str, *, complaint: str) -> None:
        super().__init__(message)
        self.complaint = complaint


class PromptRefused(ModelUnavailable):
    """A content filter of the server refuses this prompt; it may accept others.

    Attributes:
        said: the server's message.
    """

    def __init__(self, message: str, *, said: str) -> None:
        super().__init__(message)
        self.said = said


class LibraryError(Exception):
    """A library's error as text; it replaces the original, which contains keys and bodies."""


def in_words(exc: BaseException, endpoint: Endpoint) -> LibraryError:
    """Return a safe cause for an error of qrmem.

    A server's reply is left out. The error of qrmem has its cleaned text; here it may be quoted in
    a form in which a secret would not be recognised.
    """
    if (answer := getattr(exc, "response", None)) is not None:
        return LibraryError(f"{type(exc).__name__}: status {answer.status_code}")
    message = ": ".join(dict.fromkeys(_words(link) for link in _causes(exc)))
    return LibraryError(f"{type(exc).__name__}: {endpoint.clean(message)}")


def translated(exc: Exception, endpoint: Endpoint, model: str, seconds: float) -> QrmemError | None:
    """Return the error for a failed request; `None` for a bug in qrmem.

    Args:
        exc: the library's error.
        endpoint: the server.
        model: name of the model.
        seconds: the time limit that was set.
    """
    import openai

    if (ours := next((e for e in _causes(exc) if isinstance(e, QrmemError)), None)) is not None:
        return ours
    if isinstance(exc, openai.APIStatusError):
        answer = exc.response
        # LiteLLM's errors have the message itself, and no body.
        body = answer.text or ("" if type(exc).__module__.startswith("openai") else str(exc))
        return from_status(answer.status_code, body, answer.headers, endpoint, model)
    if isinstance(exc, UnicodeEncodeError) or "Illegal header" in str(exc.__cause__):
        # A retry would not help; a variable's value is not shown.
        return UsageError(
            f"the model's name {model!r}, OPENAI_ORG_ID or OPENAI_PROJECT_ID holds characters "
            "that cannot be sent"
        )
    if isinstance(exc, openai.APIConnectionError | TimeoutError):
        return from_connection(exc, endpoint, seconds)
    # Within a reply the error comes from the HTTP library, whichever it is.
    if type(exc).__module__.startswith("http"):
        return from_connection(exc, endpoint, seconds)
    if isinstance(exc, openai.OpenAIError | UnicodeError | StreamBroken):
        message = endpoint.clean(str(exc)) or type(exc).__name__
        return Transient(f"{endpoint.host} sent an incomplete reply: {message}", cause="body")
    return None


class StreamBroken(ValueError):
    """A streamed reply is malformed, or ends before it is complete."""


def from_status(
    status: int, body: str, headers: Mapping[str, str], endpoint: Endpoint, model: str
) -> QrmemError:
    """Return the error for a reply with a failure status."""
    message = endpoint.clean(_message(body)) or "no reason given"
    low = message.lower()
    text = f"{endpoint.host} answers {status}: {message}"
    if status in {400, 403} and _FILTERED.search(body.lower()):
        return PromptRefused(text, said=message)
    if status in {401, 403}:
        return AccessRefused(f"{endpoint.host} refuses the key ({status}): {message}")
    # A quota per minute recovers: then the server says when to try again.
    is_of_a_minute = retry_after(headers) is not None or "retry" in low
    is_spent = "insufficient_quota" in body or ("quota" in low and not is_of_a_minute)
    if status == 402 or (status == 429 and is_spent):
        return AccessRefused(
            f"{endpoint.host} has no credit left for this key ({status}): {message}"
        )
    if status in {400, 404, 422} and _NO_MODEL.search(low) and "response_format" not in low:
        return AccessRefused(
            f"{endpoint.host} does not know the model {model!r} ({status}): {message}"
        )
    is_long = status in {400, 413, 422, 500} and _CONTEXT.search(low)
    if is_long or (status in {413, 429} and _TOO_LARGE.search(low)):
        limit = _LIMIT.search(low)
        return ContextExceeded(
            f"{endpoint.host} accepts no text of that length: {message}",
            limit=int(limit[1].replace(",", "")) if limit else 0,
        )
    if status == 500 and _VALIDATION.search(low):
        return Rejected(text, complaint=low)  # the wording of llama.cpp's servers
    if status in _PASSING:
        cause: Cause = "busy" if status in {429, 503, 529} else "server"
        return Transient(text, cause=cause, retry_after=retry_after(headers), is_free=True)
    if status in {400, 413, 415, 422, 501}:
        return Rejected(text, complaint=low)
    if status in {404, 405}:
        text += "; is the base URL right? It usually ends in /v1"
    return ModelUnavailable(text)


def from_body(body: str, what: str, endpoint: Endpoint, model: str) -> QrmemError:
    """Return the error for an unusable reply with a success status.

    Some servers state the error's status in the body; OpenRouter also does so instead of a message.
    LM Studio reports a wrong path in this way.

    Args:
        body: the reply.
        what: description of the request.
        endpoint: the server.
        model: name of the model.
    """
    try:
        data = json.loads(body)
        error = data.get("error") or data["choices"][0]["error"]
        is_lost = "unexpected endpoint" in str(error).lower()
        if 400 <= (status := 404 if is_lost else int(error["code"])) < 600:
            return from_status(status, json.dumps({"error": error}), {}, endpoint, model)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        pass
    message = endpoint.clean(body)[:120] or "an empty body"
    text = f"{endpoint.host} sent something that is no {what}: {message}"
    return Transient(text, cause="body")


def from_connection(exc: BaseException, endpoint: Endpoint, seconds: float) -> Transient:
    """Return the error for a request without a complete reply.

    Args:
        exc: the library's error.
        endpoint: the server.
        seconds: the time limit that was set.
    """
    chain = list(_causes(exc))
    if any("timeout" in type(link).__name__.lower() for link in chain):
        if any(type(link).__name__ == "ConnectTimeout" for link in chain):
            return Transient(
                f"{endpoint.host} cannot be reached: no connection in time",
                cause="connection",
                is_free=True,
            )
        text = f"{endpoint.host} did not answer within {seconds:g} s (QRMEM_TIMEOUT allows more)"
        return Transient(text, cause="timeout")
    words = endpoint.clean(": ".join(dict.fromkeys(_words(link) for link in chain)))
    if any(type(link).__name__ == "ConnectError" for link in chain):
        text = f"{endpoint.host} cannot be reached: {words}"
        return Transient(text, cause="connection", is_free=True)
    return Transient(f"{endpoint.host} broke the connection: {words}", cause="server")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return a server's requested wait in seconds, given as milliseconds, seconds or a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    header = headers.get("retry-after")
    seconds = _number(header)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        now = headers.get("date")
        reference = parsedate_to_datetime(now).timestamp() if now else time.time()
        return max(0.0, parsedate_to_datetime(header or "").timestamp() - reference)
    except (TypeError, ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def _message(body: str) -> str:
    """Return the message of an error body: `error.message`, another common field, or all."""
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body
    for _ in range(3):
        if not isinstance(data, dict):
            break
        data = next((data[k] for k in ("error", "message", "detail") if data.get(k)), None)
    return data if isinstance(data, str) else body


MOST = 2**40
"""A larger number from a server is ignored, as no store can keep it."""


def count(value: Any) -> int:
    """Return a server's number of tokens, 0 if it is missing or malformed."""
    return value if type(value) is int and 0 < value < MOST else 0


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__


def _words(exc: BaseException) -> str:
    return str(exc).rstrip(". ") or type(exc).__name__
