"""An error of a server gives one line and the right exit code."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from servers.neo4j_server import Server

from qrmem.config import Secret, Settings
from qrmem.errors import (
    AccessRefused,
    MissingError,
    NotFound,
    QrmemError,
    StoreUnavailable,
    UsageError,
)
from qrmem.graphstore import open_store
from qrmem.graphstore.neo4j.connection import is_too_old
from qrmem.graphstore.neo4j.store import Neo4jStore

pytestmark = pytest.mark.neo4j

ODD_PASSWORD = "p@ss:w/rd#%41?&=\"'` ü"


async def _refusal(uri: str, settings: Settings, *, create: bool = True) -> QrmemError:
    """Return what opening raises; see that it is one line without the password."""
    with pytest.raises(QrmemError) as caught:
        await open_store(uri, settings, create=create)
    message = str(caught.value)
    assert "\n" not in message
    assert not settings.neo4j_password or settings.neo4j_password.reveal() not in message
    return caught.value


async def test_a_wrong_password_is_refused(neo4j: Server) -> None:
    error = await _refusal(neo4j.uri, replace(neo4j.settings, neo4j_password=Secret("no-such")))
    assert isinstance(error, AccessRefused)
    assert error.exit_code == 3
    assert "NEO4J_PASSWORD" in str(error)


async def test_a_missing_password_is_refused(neo4j: Server) -> None:
    error = await _refusal(neo4j.uri, replace(neo4j.settings, neo4j_password=Secret("")))
    assert isinstance(error, AccessRefused)
    assert error.exit_code == 3


async def test_nothing_on_the_port_is_out_of_reach() -> None:
    error = await _refusal(f"bolt://127.0.0.1:{_free_port()}", Settings())
    assert isinstance(error, StoreUnavailable)
    assert error.exit_code == 4
    assert "does not answer" in str(error)


async def test_an_unknown_scheme_is_wrong_use(neo4j: Server) -> None:
    address = urlsplit(neo4j.uri).netloc
    for scheme in ("http", "neo4js", "bolt+tls"):
        error = await _refusal(f"{scheme}://{address}", neo4j.settings)
        assert isinstance(error, UsageError)
        assert error.exit_code == 2


async def test_an_address_without_a_host_is_wrong_use(neo4j: Server) -> None:
    for uri in ("bolt://", "bolt://:7687", "neo4j://host:port"):
        assert isinstance(await _refusal(uri, neo4j.settings), UsageError)


@pytest.mark.parametrize("uri", ["neo4j:127.0.0.1:7687", "bolt:/127.0.0.1:7687"])
async def test_an_address_without_its_slashes_is_no_path(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = await _refusal(uri, Settings())
    assert isinstance(error, UsageError)
    assert f"{uri.partition(':')[0]}://127.0.0.1:7687" in str(error)
    assert os.listdir(tmp_path) == []


async def test_a_database_in_the_address_is_wrong_use(neo4j: Server) -> None:
    error = await _refusal(f"{neo4j.uri}/mine", neo4j.settings)
    assert isinstance(error, UsageError)
    assert "QRMEM_NEO4J_DATABASE" in str(error)


async def test_a_statement_outside_a_transaction_fails_in_our_words(neo4j: Server) -> None:
    store = await open_store(neo4j.uri, neo4j.settings)
    assert isinstance(store, Neo4jStore)
    with pytest.raises(StoreUnavailable, match="Invalid input"):
        await store.db.outside("no Cypher")
    await store.close()


async def test_a_password_in_the_address_is_refused_and_not_repeated(neo4j: Server) -> None:
    error = await _refusal("bolt://neo4j:hidden-word@127.0.0.1:7687", neo4j.settings)
    assert isinstance(error, UsageError)
    assert "hidden-word" not in str(error)


async def test_tls_to_a_server_without_it_is_named(neo4j: Server) -> None:
    address = urlsplit(neo4j.uri).netloc
    for scheme in ("bolt+s", "bolt+ssc", "neo4j+s"):
        error = await _refusal(f"{scheme}://{address}", neo4j.settings)
        assert isinstance(error, StoreUnavailable)
        assert error.exit_code == 4
        assert "TLS" in str(error)


async def test_a_server_that_wants_tls_is_named() -> None:
    alert = b"\x15\x03\x01\x00\x02\x02\x46"  # what TLS says to a Bolt handshake
    with _answering(alert) as port:
        error = await _refusal(f"bolt://127.0.0.1:{port}", Settings())
    assert error.exit_code == 3
    assert "wants TLS (neo4j+s://" in str(error)


async def test_a_port_that_speaks_something_else_is_named() -> None:
    with _answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        error = await _refusal(f"bolt://127.0.0.1:{port}", Settings())
    assert isinstance(error, StoreUnavailable)
    assert "Bolt" in str(error)


async def test_a_server_that_closes_the_connection_is_out_of_reach() -> None:
    with _answering() as port:
        error = await _refusal(f"bolt://127.0.0.1:{port}", Settings())
    assert isinstance(error, StoreUnavailable)
    assert error.exit_code == 4


async def test_a_server_that_is_too_old_is_named() -> None:
    server = b"\xb1\x70\xa2\x86server\x8cNeo4j/4.4.38\x8dconnection_id\x81a"
    hello = len(server).to_bytes(2, "big") + server + b"\x00\x00"
    with _answering(b"\x00\x00\x04\x04", hello) as port:
        error = await _refusal(f"bolt://127.0.0.1:{port}", Settings())
    assert isinstance(error, MissingError)
    assert error.exit_code == 3
    assert "5.26" in str(error)


@pytest.mark.parametrize("agent", ["Neo4j/4.4.38", "Neo4j/5.25.1", "Other/5.26.0", "Neo4j", ""])
def test_old_and_foreign_servers_are_known(agent: str) -> None:
    assert is_too_old(agent)


@pytest.mark.parametrize("agent", ["Neo4j/5.26.0", "Neo4j/5.27-aura", "Neo4j/2025.10.1"])
def test_servers_of_today_are_taken(agent: str) -> None:
    assert not is_too_old(agent)


@pytest.mark.parametrize(("name", "word"), [("nowhere", "nowhere"), ("system", "user database")])
async def test_a_database_that_holds_no_memory_is_named(
    neo4j: Server, name: str, word: str
) -> None:
    error = await _refusal(neo4j.uri, replace(neo4j.settings, neo4j_database=name))
    assert isinstance(error, MissingError)
    assert error.exit_code == 3
    assert word in str(error)
    assert "QRMEM_NEO4J_DATABASE" in str(error)


async def test_a_password_of_special_characters_lets_in(neo4j: Server) -> None:
    neo4j.query("DROP USER odd IF EXISTS")
    neo4j.query("CREATE USER odd SET PASSWORD $word CHANGE NOT REQUIRED", word=ODD_PASSWORD)
    settings = replace(neo4j.settings, neo4j_user="odd", neo4j_password=Secret(ODD_PASSWORD))
    try:
        store = await open_store(neo4j.uri, settings)
        assert ODD_PASSWORD not in store.location
        await store.close()
    finally:
        neo4j.query("DROP USER odd")


async def test_a_memory_of_a_newer_qrmem_is_not_changed(neo4j: Server) -> None:
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    found = neo4j.query("MATCH (v:QrmemSchema) RETURN v.version")[0][0]
    neo4j.query("MATCH (v:QrmemSchema) SET v.version = 99")
    try:
        error = await _refusal(neo4j.uri, neo4j.settings)
    finally:
        neo4j.query("MATCH (v:QrmemSchema) SET v.version = $version", version=found)
    assert isinstance(error, MissingError)


async def test_an_empty_database_is_not_made_a_memory_by_reading(neo4j: Server) -> None:
    neo4j.query("MATCH (v:QrmemSchema) DELETE v")
    error = await _refusal(neo4j.uri, neo4j.settings, create=False)
    assert isinstance(error, NotFound)
    assert not neo4j.query("MATCH (v:QrmemSchema) RETURN v")


async def test_a_closed_store_says_so(neo4j: Server) -> None:
    store = await open_store(neo4j.uri, neo4j.settings)
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.namespaces()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _answering(*replies: bytes) -> Iterator[int]:
    """Yield a port that gives fixed replies, one for each message, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer, args=(listener, replies), daemon=True)
        thread.start()
        yield listener.getsockname()[1]


def _answer(listener: socket.socket, replies: tuple[bytes, ...]) -> None:
    try:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                for reply in replies:
                    connection.sendall(reply)
                    connection.recv(65_536)
    except OSError:
        return  # the test is over
