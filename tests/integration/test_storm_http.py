"""Sixty structured calls through a storm: all answered, by at most twice the calm's requests."""

import asyncio
from collections.abc import Mapping

import pytest
from fakes import metered
from pydantic import BaseModel
from servers.faults import Faults
from servers.openai_server import OpenAIServer, serving

from qrmem.config import Settings
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.structured import ask
from qrmem.types import ChatRequest, Event, Message

STORM: Mapping[str, float] = {"429": 0.2, "500": 0.1, "hang": 0.05, "malformed": 0.1}
SYSTEM = 'Name what the passage names.\nReply with JSON only: {"entities": ["…"]}'
CALLS = 60


class Names(BaseModel):
    entities: list[str]


async def build(server: OpenAIServer, seconds: float) -> tuple[list[list[str]], list[Event]]:
    settings = Settings(model="test", base_url=server.url, timeout=seconds, concurrency=16)

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 100)

    async with ServerChatModel(settings, sleep=sleep) as chat:
        told: list[Event] = []
        meter = metered(chat, listener=told.append)

        async def one(n: int) -> list[str]:
            text = (
                f"Passage:\n<text>\nOnce Ahab met Captain Number{n} near Port Letter{n}.\n</text>"
            )
            request = ChatRequest((Message("system", SYSTEM), Message("user", text)), stage="read")
            return (await ask(meter, request, Names)).value.entities

        return list(await asyncio.gather(*map(one, range(CALLS)))), told


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_storm_changes_nothing_but_the_number_of_requests(seed: int) -> None:
    async with serving() as server:
        calm, _ = await build(server, seconds=60)
        assert server.stats.requests == CALLS
    async with serving(faults=Faults(rates=STORM, seed=seed), latency=0.002) as server:
        stormy, told = await build(server, seconds=2)
        stats = server.stats
    assert stormy == calm
    assert stats.requests <= 2 * CALLS
    assert sum(event.data.get("attempts", 0) for event in told) == stats.requests
    assert sum(stats.faults.values()) > CALLS // 4
