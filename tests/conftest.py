"""Fixtures that several folders of tests share: real Neo4j servers."""

import os
from collections.abc import Iterator

import pytest
from servers import neo4j_server
from servers.neo4j_server import Server, Unavailable


def pytest_report_header() -> str:
    """Print which Neo4j the tests would use."""
    return f"neo4j: {neo4j_server.choice()}"


def _missing(why: Unavailable) -> None:
    """Skip, with the reason; in CI a missing part is a failure."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(str(why))
    pytest.skip(str(why))


@pytest.fixture(scope="session")
def neo4j() -> Iterator[Server]:
    """Yield a Neo4j that answers; the same one for the whole run."""
    try:
        server = neo4j_server.chosen()
        with server as found:
            yield found
    except Unavailable as exc:
        _missing(exc)


@pytest.fixture(scope="session")
def neo4j_2025() -> Iterator[Server]:
    """Yield a Neo4j 2025."""
    try:
        with neo4j_server.harness() as found:
            yield found
    except Unavailable as exc:
        _missing(exc)
