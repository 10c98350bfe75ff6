"""Where a model is served: address, how to name it in messages, and whether a key is needed."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from qrmem.config import Secret, Settings
from qrmem.errors import MissingError, UsageError

DEFAULT_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the OpenAI protocol.

    Attributes:
        url: base URL, without name and password, for whoever sends to it may log it.
        address: the same without query.
        host: host and port, for messages.
        login: name and password that stood in the URL, with which a proxy may guard a server.
    """

    url: str
    address: str
    host: str
    key: Secret
    login: tuple[str, Secret] | None = None

    def clean(self, text: str) -> str:
        """Return a server's words on one line, without keys and mark-up, at most 300 characters."""
        for secret in (self.key, self.login[1] if self.login else None):
            if secret:
                text = text.replace(secret.reveal(), "***")
        return " ".join(_without_markup(text).split())[:300]


def embedding_endpoint(settings: Settings) -> Endpoint:
    """Return the endpoint of embeddings; the chat model's key goes to no other server.

    Raises:
        UsageError: the base URL is none.
        MissingError: OpenAI's own service is named and there is no key.
    """
    if not settings.embed_base_url:
        key = settings.embed_api_key or settings.api_key
        return endpoint(settings.with_(api_key=key))
    chosen = settings.with_(base_url=settings.embed_base_url, api_key=settings.embed_api_key)
    return endpoint(chosen)


def endpoint(settings: Settings) -> Endpoint:
    """Return the endpoint that the settings name for chat.

    Raises:
        UsageError: the base URL is none.
        MissingError: OpenAI's own service is named and there is no key, or the key can be none.
    """
    url = settings.base_url.strip() or DEFAULT_URL
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
    # Refused here, for what cannot be sent is shown by those who try, and in another spelling.
    if not (key.isascii() and key.isprintable()):
        raise MissingError(f"the key for {host} holds characters that no key can: copy it again")
    open_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    address = f"{parts.scheme}://{host}{parts.path}"
    return Endpoint(open_url, address, host, Secret(key), _login(parts))


def _login(parts: SplitResult) -> tuple[str, Secret] | None:
    if parts.username is None:
        return None
    return unquote(parts.username), Secret(unquote(parts.password or ""))


def _without_markup(text: str) -> str:
    if "<html" not in text[:500].lower() and "<!doctype" not in text[:500].lower():
        return text
    pieces = (piece.partition(">")[2] for piece in text[:20_000].split("<"))
    return " ".join(piece.strip() for piece in pieces if piece.strip())


__all__ = ["DEFAULT_URL", "Endpoint", "embedding_endpoint", "endpoint"]
