"""Where a model is served: address, how to name it in messages, and whether a key is needed."""

import re
from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from qrmem.config import Secret, Settings, revealed
from qrmem.errors import MissingError, UsageError

DEFAULT_URL = "https://api.openai.com/v1"
_SHOWN = 300
"""Characters of a server's words that a message shows."""
_SHORTEST = 4
"""Characters of a secret that is looked for in messages; "x" is no secret."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the OpenAI protocol.

    Attributes:
        url: base URL, without name and password, for whoever sends to it may log it.
        address: the same without query.
        host: host and port, for messages.
        token: name and password that stood in the URL, as a header takes them; a proxy may guard a
            server so.
        others: what else no message may show: the password, and values of the URL's query.
    """

    url: str
    address: str
    host: str
    key: Secret
    token: Secret | None = None
    others: tuple[Secret, ...] = ()

    def clean(self, text: str) -> str:
        """Return foreign words on one line, at most 300 characters, with nothing that is secret.

        Characters that are not printable are left out, and before a secret is looked for.
        """
        words = " ".join(_without_markup(text).split())
        shown = "".join(char for char in words if char.isprintable())
        for secret in (self.key, self.token, *self.others):
            if secret and len(secret.reveal()) >= _SHORTEST:
                shown = shown.replace(secret.reveal(), "***")
        return shown[:_SHOWN]


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
    # Refused here, for what cannot be sent is shown by those who try, and in another spelling.
    if not (key.isascii() and key.isprintable()):
        raise MissingError(f"the key for {host} holds characters that no key can: copy it again")
    open_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    address = f"{parts.scheme}://{host}{parts.path}"
    token, others = _login(parts)
    return Endpoint(open_url, address, host, Secret(key), token, others)


def _login(parts: SplitResult) -> tuple[Secret | None, tuple[Secret, ...]]:
    """Return what logs in, and all parts of a URL that are secret."""
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


__all__ = ["DEFAULT_URL", "Endpoint", "embedding_endpoint", "endpoint"]
