"""Documents from an address of the web, by real servers on this machine."""

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest
from documents import pdf, xlsx_file
from e2e.conftest import Shell, qrmem
from e2e.test_bad_input import assert_one_line
from servers.loopback import served

import qrmem as library
from qrmem.errors import BadDocument, OutOfReach
from qrmem.io import web_fetch
from qrmem.web.api import api

__all__ = ["qrmem"]
PAGE = b"<html><title>The Harbour</title><h1>Boats</h1><p>Nell is a boat.</p></html>"


@dataclass
class Pages:
    """What a server has, by path: status, headers, body; and the paths that it was asked for."""

    url: str
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def has(self, path: str, body: bytes, kind: str = "", **headers: str) -> str:
        stated = {"Content-Type": kind} if kind else {}
        self.pages[path] = (
            200,
            stated | {k.replace("_", "-"): v for k, v in headers.items()},
            body,
        )
        return self.url + path

    def leads(self, path: str, to: str) -> str:
        self.pages[path] = (302, {"Location": to}, b"")
        return self.url + path


@contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[Pages]:
    pages = Pages("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append(self.path)
            status, headers, body = pages.pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for n in range(0, len(body), 1 if pages.seconds else 100_000):
                try:
                    self.wfile.write(body[n : n + (1 if pages.seconds else 100_000)])
                except OSError:
                    return
                time.sleep(pages.seconds)

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler, host) as pages.url:
        yield pages


@pytest.fixture
def pages() -> Iterator[Pages]:
    with serving() as found:
        yield found


async def test_the_kind_is_what_the_server_says_else_what_the_path_ends_in(pages: Pages) -> None:
    page = await web_fetch.fetched(
        pages.has("/boats?x=1", PAGE, "text/html; charset=utf-8") + "#Nell"
    )
    assert (page.id, page.title) == (f"{pages.url}/boats?x=1", "The Harbour")
    assert page.metadata["source"] == page.id
    assert page.text == "Boats\n\nNell is a boat."
    assert (await web_fetch.fetched(pages.has("/a.pdf", pdf("One.")))).text == "One."
    assert (
        await web_fetch.fetched(pages.has("/report", pdf("Two."), "application/pdf"))
    ).text == "Two."
    assert "Marigold" in (await web_fetch.fetched(pages.has("/boats.xlsx", xlsx_file()))).text
    greek = pages.has("/a.txt", "Ναυαγός".encode("iso-8859-7"), "text/plain; charset=iso-8859-7")
    assert (await web_fetch.fetched(greek)).text == "Ναυαγός"
    packed = pages.has("/b.txt", gzip.compress(b"Packed."), "text/plain", Content_Encoding="gzip")
    assert (await web_fetch.fetched(packed)).text == "Packed."


async def test_pages_are_added_updated_and_refused_one_by_one(pages: Pages, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Brig is a ship.")
    page, gone = pages.has("/boats", PAGE, "text/html"), pages.url + "/gone"
    async with library.open("memory://", embedder="none") as memory:
        report = await memory.add([page, str(tmp_path / "a.txt"), gone])
        assert report.added == (page, "a.txt")
        assert [(name, "404 Not Found" in why) for name, _, why in report.problems] == [
            (gone, True)
        ]
        assert (await memory.add(page)).unchanged == (page,)
        pages.has("/boats", PAGE.replace(b"boat", b"ship"), "text/html")
        assert (await memory.add(page, update=True)).updated == (page,)
        with pytest.raises(BadDocument, match="404 Not Found"):
            await memory.add(gone)


def test_the_command_line_adds_a_page_with_a_title(qrmem: Shell, pages: Pages) -> None:
    page = pages.has("/boats", PAGE, "text/html")
    assert qrmem("plan", "add", page, "--json").json["documents"] == 1
    assert qrmem("add", page, "--title", "Our boats", "--json").json["added"] == [page]
    listed = qrmem("list", "--json").json["documents"]
    assert [one["title"] for one in listed] == ["Our boats"]
    assert_one_line(qrmem("add", pages.url + "/gone"), 2, "404 Not Found")
    assert_one_line(
        qrmem("add", "http://127.0.0.1:9/x"), 4, "http://127.0.0.1:9/x", "cannot be reached"
    )


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("file:///etc/passwd", "only addresses with http"),
        ("ftp://127.0.0.1/x", "only addresses with http"),
        ("HTTP://", "only addresses with http"),
        ("http://[::1", "is not an address"),
        ("http://ann:secret@127.0.0.1/x", "holds a password"),
    ],
)
async def test_other_addresses_are_refused(address: str, says: str) -> None:
    with pytest.raises(BadDocument, match=says) as refused:
        await web_fetch.fetched(address)
    assert "secret" not in str(refused.value)


async def test_redirects_lead_to_pages_alone(pages: Pages) -> None:
    page = pages.has("/boats", PAGE, "text/html")
    moved = pages.leads("/old", "/boats")
    assert (await web_fetch.fetched(moved)).id == moved
    with pytest.raises(BadDocument, match=r"leads to file://"):
        await web_fetch.fetched(pages.leads("/file", "file:///etc/passwd"))
    for scheme in ("ftp", "gopher", "data", "javascript"):
        with pytest.raises(BadDocument, match="leads to"):
            await web_fetch.fetched(pages.leads(f"/{scheme}", f"{scheme}://127.0.0.1/x"))
    with pytest.raises(BadDocument, match="more than 5"):
        await web_fetch.fetched(pages.leads("/round", "/round"))
    assert page


@pytest.mark.parametrize("is_named_outside", [True, False])
@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.1"])
async def test_no_redirect_leads_to_another_server_in_ones_own_network(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, host: str, is_named_outside: bool
) -> None:
    outside = ["127.0.0.1"] if is_named_outside and host != "127.0.0.1" else []
    monkeypatch.setattr(web_fetch, "_is_outside", lambda server: server in outside)
    with serving(host) as inside:
        secret = inside.has("/secret", PAGE, "text/html")
        for lured in (
            pages.leads("/lure", secret),
            pages.leads("/twice", "/lure"),
            pages.leads("/name", secret.replace("127.0.0.1", "localhost")),
        ):
            with pytest.raises(BadDocument, match=r"leads to 127\.0\.0\.\d, port \d+, in the net"):
                await web_fetch.fetched(lured)
        assert inside.asked == []
        assert (await web_fetch.fetched(secret)).title == "The Harbour"  # the user named it


@pytest.mark.parametrize(
    ("server", "is_outside"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:192.168.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("::ffff:127.0.0.1", False),
        ("::ffff:7f00:1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::808:808", True),
        ("fd00::1", False),
        ("0.0.0.0", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
    ],
)
def test_what_is_outside(server: str, is_outside: bool) -> None:
    assert web_fetch._is_outside(server) is is_outside


async def test_too_large_or_slow_replies_are_given_up(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = gzip.compress(bytes(101_000_000), 1)
    with pytest.raises(BadDocument, match="more than 100 MB"):
        await web_fetch.fetched(pages.has("/bomb", bomb, "text/plain", Content_Encoding="gzip"))
    monkeypatch.setattr(web_fetch, "SECONDS", 0.5)
    pages.seconds = 0.05
    with pytest.raises(OutOfReach, match="did not answer within"):
        await web_fetch.fetched(pages.has("/slow", PAGE, "text/html"))


async def test_input_of_an_agent_or_a_client_is_text_and_never_fetched(pages: Pages) -> None:
    page = pages.has("/boats", PAGE, "text/html")
    async with library.open("memory://", embedder="none") as memory:
        (add_text,) = library.tools(memory, ["add_text"])
        await add_text.ainvoke({"text": page, "document_id": page})
        app = httpx.ASGITransport(app=api(memory, write=True))
        async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1") as client:
            sent = {"text": page, "id": page + "2"}
            assert (await client.post("/documents", json=sent)).status_code == 200
        assert len(await memory.documents()) == 2
    assert pages.asked == []
