"""Connections of our own under the client, against servers that answer in every way HTTP allows."""

import asyncio
import gzip
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import openai
import pytest

from qrmem.config import Settings
from qrmem.llm import connections
from qrmem.llm.connections import Connections
from qrmem.llm.endpoint import endpoint
from qrmem.llm.exchange import Transient
from qrmem.llm.requests import Client, open_client

http = import_module(type(openai.AsyncOpenAI(api_key="none").base_url).__module__)


@dataclass
class Served:
    """What a server was asked: the number of the connection of each request, heads and bodies.

    Attributes:
        came: set with the first request.
    """

    url: str = ""
    connections: list[int] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    opened: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)


def whole(text: str, *headers: str) -> bytes:
    """Return an answer that says how long it is."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(text)}", *headers, "", text]
    return "\r\n".join(lines).encode()


@asynccontextmanager
async def answering(
    *answers: bytes, closes: bool = False, secure: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    """Run a server that sends these answers, one a request; an empty one is none.

    Args:
        closes: a connection after its answer, without having said so.
    """
    served, left = Served(), list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.opened += 1
        number = served.opened
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                served.heads.append(head)
                length = re.search(rb"content-length: (\d+)", head.lower())
                served.bodies.append(await reader.readexactly(int(length[1]) if length else 0))
                served.connections.append(number)
                served.came.set()
                if answer := left.pop(0):
                    writer.write(answer)
                    if closes or b"HTTP/1.0" in answer:
                        break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secure)
    scheme = "https" if secure else "http"
    served.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/x?a=b"
    async with server:
        yield served


@asynccontextmanager
async def asking(connect: float = 4.0) -> AsyncIterator[Any]:
    """Return a client over connections of our own."""
    time_out = http.Timeout(None, connect=connect)
    async with http.AsyncClient(transport=Connections(http), timeout=time_out) as client:
        yield client


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with answering(whole("one"), whole("two")) as served, asking() as client:
        first = await client.post(served.url, content=b"1")
        second = await client.post(served.url, content=b"2")
    assert (first.text, second.text) == ("one", "two")
    assert served.connections == [1, 1]
    assert served.bodies == [b"1", b"2"]


async def test_requests_at_once_have_connections_of_their_own() -> None:
    async with answering(*[whole("same")] * 5) as served, asking() as client:
        await asyncio.gather(*(client.post(served.url, content=b"x") for _ in range(3)))
        await asyncio.gather(*(client.post(served.url, content=b"x") for _ in range(2)))
    assert sorted(served.connections[:3]) == [1, 2, 3]
    assert served.opened == 3


@pytest.mark.parametrize(
    "answer",
    [
        whole("the answer"),
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + whole("the answer"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\nthe \r\n6\r\nanswer\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nthe answer",
    ],
    ids=["length", "hints first", "chunks", "until it closes"],
)
async def test_an_answer_is_read_whole_however_it_is_framed(answer: bytes) -> None:
    async with answering(answer) as served, asking() as client:
        assert (await client.post(served.url, content=b"x")).text == "the answer"


async def test_an_answer_says_its_status_and_headers() -> None:
    answer = b"HTTP/1.1 429 Slow down\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n"
    async with answering(answer) as served, asking() as client:
        found = await client.post(served.url, content=b"x")
    assert (found.status_code, found.reason_phrase) == (429, "Slow down")
    assert found.headers["retry-after"] == "3"


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with answering(*[whole("same")] * 3, closes=True) as served, asking() as client:
        for _ in range(3):
            assert (await client.post(served.url, content=b"x")).text == "same"
    assert served.connections == [1, 2, 3]


async def test_a_connection_that_the_server_says_it_closes_is_not_used_again() -> None:
    answer = whole("same", "Connection: close")
    async with answering(answer, answer) as served, asking() as client:
        await client.post(served.url, content=b"x")
        await client.post(served.url, content=b"x")
    assert served.connections == [1, 2]


async def test_what_nobody_asked_for_is_taken_for_no_answer() -> None:
    forged = whole("one") + whole("forged")
    async with answering(forged, whole("two")) as served, asking() as client:
        assert (await client.post(served.url, content=b"x")).text == "one"
        assert (await client.post(served.url, content=b"x")).text == "two"
    assert served.connections == [1, 2]


async def test_a_connection_that_was_idle_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    async with answering(whole("one"), whole("two")) as served, asking() as client:
        await client.post(served.url, content=b"x")
        await client.post(served.url, content=b"x")
    assert served.connections == [1, 2]


async def test_a_request_that_was_given_up_leaves_its_answer_to_nobody() -> None:
    async with answering(b"", whole("two")) as served, asking() as client:
        given_up = asyncio.create_task(client.post(served.url, content=b"1"))
        await served.came.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await client.post(served.url, content=b"2")).text == "two"
    assert served.connections == [1, 2]


async def test_a_request_fails_when_its_connections_are_closed() -> None:
    async with answering(b"") as served, asking() as client:
        waiting = asyncio.create_task(client.post(served.url, content=b"1"))
        await served.came.wait()
        await client.aclose()
        with pytest.raises(http.ReadError):
            await waiting


async def test_a_connection_of_another_event_loop_is_not_used_again() -> None:
    async with answering(whole("one"), whole("two")) as served:
        client = http.AsyncClient(transport=Connections(http), timeout=4.0)

        async def ask() -> str:
            async with asyncio.timeout(20):
                return str((await client.post(served.url, content=b"x")).text)

        def in_two_loops() -> tuple[str, str]:
            with asyncio.Runner() as one, asyncio.Runner() as two:
                texts = one.run(ask()), two.run(ask())
                two.run(client.aclose())
                one.run(asyncio.sleep(0))
                return texts

        assert await asyncio.to_thread(in_two_loops) == ("one", "two")
    assert served.connections == [1, 2]


async def test_a_host_that_cannot_be_a_name_is_not_reached() -> None:
    async with asking() as client:
        with pytest.raises(http.ConnectError):
            await client.post(f"http://{'a' * 64}.invalid/v1", content=b"x")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nonly this", "without sending complete"),
        (b"no answer at all\r\n\r\n", "illegal status line"),
        (b"HTTP/1.1 200 OK\r\nBro", "Server disconnected"),
    ],
    ids=["cut off", "no HTTP", "cut off early"],
)
async def test_a_broken_answer_is_an_error_of_the_protocol(answer: bytes, error: str) -> None:
    async with answering(answer, closes=True) as served, asking() as client:
        with pytest.raises(http.RemoteProtocolError, match=error):
            await client.post(served.url, content=b"x")


async def test_a_connection_that_is_refused_is_told_as_that() -> None:
    async with answering() as served:
        gone = served.url
    async with asking() as client:
        with pytest.raises(http.ConnectError):
            await client.post(gone, content=b"x")


def client_of(served: Served) -> Awaitable[Client]:
    """Return a client of the model layer, above connections of our own."""
    given = endpoint(Settings(model="m", base_url=served.url.partition("/x")[0]))
    return open_client(given, "/chat/completions", "m", 5.0)


async def test_every_request_has_the_head_that_the_client_gives_it() -> None:
    async with answering(*[whole("same")] * 4) as served, await client_of(served) as client:
        for n in range(4):
            assert await client.post({"a": f"wörd {n}"}) == "same"
    assert [lines_of(head) for head in served.heads] == [lines_of(served.heads[0])] * 4
    assert served.bodies == [f'{{"a":"wörd {n}"}}'.encode() for n in range(4)]


def lines_of(head: bytes) -> list[bytes]:
    return sorted(head.lower().split(b"\r\n"))


async def test_the_client_makes_what_never_changes_twice_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    real = openai.AsyncOpenAI.post

    async def post(self: Any, path: str, **options: Any) -> Any:
        made.append(path)
        return await real(self, path, **options)

    monkeypatch.setattr(openai.AsyncOpenAI, "post", post)
    async with answering(*[whole("same")] * 5) as served, await client_of(served) as client:
        for _ in range(5):
            await client.post({})
    assert len(made) == 2


async def test_a_cookie_is_sent_with_whatever_follows() -> None:
    answers = [whole("same")] * 3 + [whole("same", "Set-Cookie: place=7")] * 2 + [whole("same")] * 4
    async with answering(*answers) as served, await client_of(served) as client:
        for _ in range(9):
            await client.post({})
    cookies = [b"place=7" in head for head in served.heads]
    assert cookies == [False] * 5 + [True] * 4


async def test_a_request_that_is_sent_elsewhere_goes_there_each_time() -> None:
    elsewhere = b"HTTP/1.1 307 There\r\nLocation: /v1/there\r\nContent-Length: 0\r\n\r\n"
    answers = [whole("here")] * 3 + [
        elsewhere,
        elsewhere,
        whole("there"),
        elsewhere,
        whole("there"),
    ]
    async with answering(*answers) as served, await client_of(served) as client:
        texts = [await client.post({"n": n}) for n in range(5)]
    assert texts == ["here", "here", "here", "there", "there"]
    assert served.bodies[-1] == b'{"n":4}'
    assert served.heads[-1].startswith(b"POST /v1/there ")


@pytest.mark.parametrize("before", [0, 2], ids=["made by the client", "repeated"])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("Content-Type: application/json", "wörd".encode()),
        ("Content-Type: application/json; charset=latin-1", "wörd".encode("latin-1")),
        ("Content-Encoding: gzip", gzip.compress("wörd".encode())),
    ],
    ids=["plain", "another character set", "compressed"],
)
async def test_an_answer_is_decoded_as_it_says(before: int, kind: str, content: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n{kind}\r\n\r\n"
    answers = [whole("same")] * before + [head.encode() + content]
    async with answering(*answers) as served, await client_of(served) as client:
        for _ in range(before):
            await client.post({})
        assert await client.post({}) == "wörd"


@pytest.mark.parametrize("before", [0, 2], ids=["made by the client", "repeated"])
async def test_a_refusal_is_told_whoever_made_the_request(before: int) -> None:
    refusal = b"HTTP/1.1 429 Slow down\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nwhy?"
    answers = [whole("same")] * before + [refusal]
    async with answering(*answers) as served, await client_of(served) as client:
        for _ in range(before):
            await client.post({})
        with pytest.raises(Transient, match=r"answers 429: why\?$") as caught:
            await client.post({})
    assert (caught.value.cause, caught.value.retry_after) == ("busy", 3.0)


@pytest.mark.parametrize("before", [0, 2], ids=["made by the client", "repeated"])
async def test_a_broken_answer_is_told_whoever_made_the_request(before: int) -> None:
    answers = [whole("same")] * before + [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nonly"]
    async with answering(*answers, closes=True) as served, await client_of(served) as client:
        for _ in range(before):
            await client.post({})
        with pytest.raises(Transient, match=r"broke the connection.*without sending complete"):
            await client.post({})


async def test_whoever_logs_what_the_client_sends_sees_every_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", http.__name__):
        async with answering(*[whole("same")] * 4) as served, await client_of(served) as client:
            for _ in range(4):
                await client.post({})
    assert sum("HTTP Request: POST" in line for line in caplog.messages) == 4


async def test_a_proxy_that_the_environment_names_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with answering(whole("by way of it")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.partition("/v1")[0])
        monkeypatch.setenv("NO_PROXY", "")
        settings = Settings(model="m", base_url="http://nowhere.invalid/v1")
        opened = open_client(endpoint(settings), "/chat/completions", "m", 5.0)
        async with await opened as client:
            assert await client.post({}) == "by way of it"
    assert proxy.connections == [1]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of this machine with its key, trusted by nobody."""
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("no openssl here")
    made = tmp_path_factory.mktemp("certificate") / "both.pem"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = [
        openssl,
        "req",
        "-x509",
        *kind,
        *named,
        "-days",
        "2",
        "-keyout",
        str(made),
        "-out",
        "-",
    ]
    shown = subprocess.run(command, check=True, capture_output=True)
    with made.open("ab") as file:
        file.write(shown.stdout)
    return made


@pytest.fixture
def secure(certificate: Path) -> ssl.SSLContext:
    """What a server with that certificate needs."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def test_a_certificate_that_is_trusted_is_accepted(
    certificate: Path, secure: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    answers = whole("one"), whole("two")
    async with answering(*answers, secure=secure) as served, asking() as client:
        assert (await client.post(served.url, content=b"x")).text == "one"
        assert (await client.post(served.url, content=b"x")).text == "two"
    assert served.connections == [1, 1]


async def test_a_certificate_that_nobody_trusts_is_refused(secure: ssl.SSLContext) -> None:
    async with answering(whole("one"), secure=secure) as served, asking() as client:
        with pytest.raises(http.ConnectError, match=r"(?i)certificate"):
            await client.post(served.url, content=b"x")
    assert served.bodies == []
