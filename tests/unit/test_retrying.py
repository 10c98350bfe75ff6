"""When a call is sent again: a silent server costs a whole time-out with every try."""

import asyncio
from collections.abc import Callable

import pytest

from qrmem.config import Settings
from qrmem.errors import AccessRefused, ModelUnavailable
from qrmem.llm.retry import Retries
from qrmem.llm.servers import Cause, Transient, endpoint, from_status

RETRIES = 4


async def tried(retries: Retries, cause: Cause) -> int:
    """Return how often a call is made that always fails for a cause."""
    made: list[Cause] = []
    with pytest.raises(ModelUnavailable, match="no answer"):
        await failing(retries, Transient("no answer", cause=cause), lambda: made.append(cause))
    return len(made)


async def failing(retries: Retries, exc: Exception, tell: Callable[[], None]) -> None:
    async for attempt in retries.tries():
        with attempt:
            tell()
            raise exc


@pytest.mark.parametrize(
    ("cause", "tries"), [("timeout", 2), ("busy", 13), ("server", 9), ("body", 9)]
)
async def test_how_often_a_call_is_sent_depends_on_how_it_fails(cause: Cause, tries: int) -> None:
    assert await tried(Retries(RETRIES, sleep=lambda _: asyncio.sleep(0)), cause) == tries
    assert await tried(Retries(0, sleep=lambda _: asyncio.sleep(0)), cause) == 1


async def test_a_lost_connection_is_tried_again_where_the_server_has_ever_answered() -> None:
    retries = Retries(RETRIES, sleep=lambda _: asyncio.sleep(0))
    assert await tried(retries, "connection") == 1
    await tried(retries, "busy")  # a refusal is an answer
    assert await tried(retries, "connection") == 1 + RETRIES


async def test_the_first_answer_ends_the_tries_and_another_error_is_not_tried_again() -> None:
    retries = Retries(RETRIES, sleep=lambda _: asyncio.sleep(0))
    count = 0
    async for attempt in retries.tries():
        with attempt:
            count += 1
            if count < 3:
                raise Transient("no answer", cause="server")
    assert count == 3
    with pytest.raises(ValueError, match="ours"):
        await failing(retries, ValueError("ours"), lambda: None)


@pytest.mark.parametrize(
    ("said", "headers", "is_passing"),
    [
        ("You exceeded the call rate limit; see oai/quotaincrease", {"retry-after": "1"}, True),
        ("You exceeded your current quota. Please retry in 34 s.", {}, True),
        ("You exceeded your current quota, please check your plan", {}, False),
    ],
)
def test_a_quota_that_comes_back_is_waited_for(
    said: str, headers: dict[str, str], is_passing: bool
) -> None:
    server = endpoint(Settings(model="test", base_url="http://localhost:1/v1"))
    found = from_status(429, said, headers, server, "test")
    assert isinstance(found, Transient if is_passing else AccessRefused)
