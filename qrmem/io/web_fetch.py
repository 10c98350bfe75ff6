"""Fetches one page or file from an address that the user gave; it follows no links in it."""

import asyncio
import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from qrmem.errors import BadDocument, OutOfReach
from qrmem.text import files
from qrmem.text.decoding import ByteBudget, declared
from qrmem.types import Document

if TYPE_CHECKING:
    import httpx

SECONDS = 60
"""Time limit in seconds for an address, with all redirects."""
REDIRECTS = 5
_CONNECT_SECONDS = 10
_NAT64 = IPv6Network("64:ff9b::/96")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/csv": "csv",
    "application/pdf": "pdf",
    "application/epub+zip": "epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
}
"""Content type to kind of file; for other content types the path's suffix gives the kind."""


def is_address(source: object) -> bool:
    """Return whether a source is an address, not a path."""
    return isinstance(source, str) and _ADDRESS.match(source) is not None


async def fetched(address: str) -> Document:
    """Fetch a document; the address is its id and its source.

    Redirects are followed only to http and https, and within this machine or its local network only
    to the server that the user named.

    Raises:
        BadDocument: the address is wrong, the server refuses, or the reply is too large or is not a
            document.
        OutOfReach: no answer within `SECONDS`.
        MissingError: the kind of file needs the extra `files`.
    """
    import httpx

    address_shown = address.partition("#")[0]
    try:
        url = httpx.URL(address_shown)
    except httpx.InvalidURL as exc:
        raise BadDocument(f"{address_shown} is not an address: {exc}") from exc
    if url.scheme not in ("http", "https") or not url.host:
        raise BadDocument(f"{address_shown}: only addresses with http:// or https:// are read")
    if url.userinfo:
        raise BadDocument(
            f"the address at {url.host} holds a password, which would be kept with the document:"
            " fetch the file yourself, then add it"
        )
    try:
        async with asyncio.timeout(SECONDS):
            answer, data = await _got(url, ByteBudget(address_shown))
    except TimeoutError as exc:
        raise OutOfReach(f"{address_shown} did not answer within {SECONDS} s") from exc
    except httpx.HTTPError as exc:
        reason = " ".join(str(exc).split()) or type(exc).__name__
        raise OutOfReach(f"{address_shown} cannot be reached: {reason}") from exc
    kind, charset = _kind(answer)
    if kind in ("", "html", "markdown", "csv"):
        data = _in_utf8(data, charset)
    name = PurePosixPath(url.path).name or url.host
    read = files.from_bytes(data, name, address_shown, kind)
    return Document(read.text, read.title, address_shown, read.metadata, read.parts)


async def _got(url: "httpx.URL", budget: ByteBudget) -> "tuple[httpx.Response, bytes]":
    """Return the final reply of an address, after redirects, with its whole body."""
    import httpx

    guard = _Guard(budget.name)
    headers = {"User-Agent": "qrmem", "Accept-Encoding": "gzip"}
    async with httpx.AsyncClient(headers=headers, timeout=_CONNECT_SECONDS) as client:
        for _ in range(REDIRECTS + 1):
            request = client.build_request("GET", url, extensions={"trace": guard})
            answer = await client.send(request, stream=True)
            try:
                if answer.next_request is None:
                    return answer, await _body(answer, budget)
                guard.is_redirected = True
                url = answer.next_request.url
            finally:
                await answer.aclose()
            if url.scheme not in ("http", "https"):
                raise BadDocument(f"{budget.name} leads to {url.scheme}://, which is not read")
    raise BadDocument(f"{budget.name} leads from one address to the next, more than {REDIRECTS}")


async def _body(answer: "httpx.Response", budget: ByteBudget) -> bytes:
    if answer.status_code != 200:
        status_line = f"{answer.status_code} {answer.reason_phrase}".strip()
        raise BadDocument(f"{budget.name} cannot be read: the server answers {status_line}")
    pieces = []
    async for piece in answer.aiter_bytes():
        budget.take(len(piece))
        pieces.append(piece)
    return b"".join(pieces)


class _Guard:
    """Checks each connection before a request is sent on it.

    It checks the address of the connected machine, so it also detects a name that resolves
    differently on a second lookup. Behind a proxy it sees the proxy, which has its own rules.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._named = ("", 0)
        self.is_redirected = False

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        if event != "connection.connect_tcp.complete":
            return
        connection = info["return_value"]
        server, port = connection.get_extra_info("server_addr")[:2]
        if not self.is_redirected:
            self._named = (server, port)
            return
        is_secured = self._named == (server, 80) and port == 443
        is_named = self._named == (server, port) or is_secured
        if not is_named and not _is_outside(server):
            await connection.aclose()
            raise BadDocument(
                f"{self._name} leads to {server}, port {port}, in the network of this machine:"
                " not followed; if you mean that page, add its address itself"
            )


def _is_outside(server: str) -> bool:
    """Return whether an IP address is public, also one of IPv4 within one of IPv6."""
    address = ip_address(server.partition("%")[0])
    if isinstance(address, IPv6Address):
        in_nat64 = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        address = address.ipv4_mapped or address.sixtofour or in_nat64 or address
    return address.is_global and not address.is_multicast


def _kind(answer: "httpx.Response") -> tuple[str, str]:
    """Return the kind and the encoding of a file by the server's headers; "" if not stated."""
    content_type = answer.headers.get("content-type", "")
    return _KINDS.get(
        content_type.partition(";")[0].strip().lower(), ""
    ), answer.charset_encoding or ""


def _in_utf8(data: bytes, encoding: str) -> bytes:
    """Return a text in UTF-8 if the encoding in the server's headers is right."""
    text = declared(data, encoding) if encoding else None
    return data if text is None else text.encode()
