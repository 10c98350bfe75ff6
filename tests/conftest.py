"""Shared by several folders of tests: real Neo4j servers, the longest tests, allowed skips."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings
from servers import neo4j_server
from servers.maven import Unavailable
from servers.neo4j_server import Server

pytest.register_assert_rewrite("contract.suite")

# No test asserts how long anything takes, and every run draws the same examples; others, and
# twenty times as many, are drawn with `--hypothesis-profile=searching`.
settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "searching", settings.get_profile("unhurried"), derandomize=False, max_examples=2_000
)
settings.load_profile("unhurried")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would every command that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let a run that is terminated end as one that is interrupted: fixtures end their servers."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt("terminated")


signal.signal(signal.SIGTERM, _interrupt)


LONGEST = Path(__file__).with_name("longest.txt")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take `--longest`."""
    parser.addoption(
        "--longest",
        action="store_true",
        help="run the tests of tests/longest.txt only; without it they are left out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the longest tests to `--longest`, and give all tests with a Neo4j to one worker.

    A test that is named on the command line (`FILE::TEST`) runs in any case.
    """
    for item in items:
        if item.get_closest_marker("neo4j"):
            item.add_marker(pytest.mark.xdist_group("neo4j"))
    if any("::" in argument for argument in config.args):
        return
    listed = {line for line in LONGEST.read_text().splitlines() if line and line[0] != "#"}
    only_longest = bool(config.getoption("longest"))
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_long = item.nodeid.partition("[")[0] in listed
        (chosen if is_long == only_longest else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = chosen


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print which Neo4j the tests use, where any of them needs one."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and any(item.get_closest_marker("neo4j") for item in session.items):
        reporter.write_line(f"neo4j: {neo4j_server.choice()}")


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


ALLOWED_SKIPS = Path(__file__).with_name("skips.txt")
_unexpected: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a skip whose reason is not on the checked-in list."""
    if report.skipped and not hasattr(report, "wasxfail"):
        lines = ALLOWED_SKIPS.read_text().splitlines()
        allowed = [line for line in lines if line and not line.startswith("#")]
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(re.search(pattern, reason) for pattern in allowed):
            _unexpected.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a test that was skipped for another reason is a failure: a real part is missing."""
    if _unexpected and os.environ.get("CI", "").lower() == "true":
        print("\nskipped, and not in tests/skips.txt:", *_unexpected, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
