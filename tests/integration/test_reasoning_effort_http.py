"""The reasoning effort over HTTP: sent, and left out for a server that does not know it."""

import pytest
from servers.openai_server import Behaviour, OpenAIServer

import qrmem
from qrmem.config import Settings
from qrmem.settings_files import Secret


@pytest.mark.parametrize("refused", [False, True])
async def test_a_server_that_does_not_know_the_effort_gets_requests_without(refused: bool) -> None:
    behaviour = Behaviour(parameters=["reasoning_effort"] if refused else [])
    async with OpenAIServer(behaviour=behaviour) as server:
        settings = Settings(
            model="test", base_url=server.url, api_key=Secret("k"), reasoning_effort="low"
        )
        async with qrmem.open("memory://", settings=settings, embedder="none") as memory:
            await memory.add({"id": "d", "text": "Ann Lee crossed the bridge of Rome."})
            assert (await memory.ask("Who crossed the bridge?")).text
        sent = [body.get("reasoning_effort") for body in server.stats.bodies]
    assert sent[0] == "low"
    assert set(sent[1:]) == ({None} if refused else {"low"})
