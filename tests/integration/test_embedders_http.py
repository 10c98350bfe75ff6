"""Embeddings from a server, over real HTTP on loopback."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from servers.faults import Faults
from servers.openai_server import OpenAIServer, serving

import qrmem
from qrmem.config import Secret, Settings
from qrmem.errors import AccessRefused, ContextExceeded, ModelUnavailable
from qrmem.llm.embedders import RemoteEmbedder, open_embedder


class Opened:
    """Opens embedders of servers, and closes them with the test."""

    def __init__(self) -> None:
        self.all: list[RemoteEmbedder] = []

    def __call__(self, server: OpenAIServer, **settings: Any) -> RemoteEmbedder:
        given = Settings(base_url=server.url, timeout=5.0).with_(**settings)
        opened = open_embedder("openai:small", given)
        assert isinstance(opened, RemoteEmbedder)
        self.all.append(opened)
        return opened


@pytest.fixture
async def embedder() -> AsyncIterator[Opened]:
    opened = Opened()
    yield opened
    for one in opened.all:
        await one.aclose()


async def test_texts_come_back_in_their_order_in_batches(embedder: Opened) -> None:
    texts = [f"text number {n}" for n in range(150)]
    async with serving() as server:
        encoder = embedder(server)
        rows = await encoder.embed(texts)
        assert server.stats.requests == 3
        alone = await encoder.embed([texts[149]])
    assert rows.shape == (150, 32)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.array_equal(rows[149:], alone)
    assert encoder.dimension == 32
    assert encoder.name == "openai:small"


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_server_that_takes_fewer_texts_at_once_is_given_fewer(
    embedder: Opened, status: int
) -> None:
    texts = [f"text number {n}" for n in range(150)]
    async with serving() as server:
        expected = await embedder(server).embed(texts)
    async with serving(batch=10, refusal=status) as server:
        encoder = embedder(server)
        assert np.array_equal(await encoder.embed(texts), expected)
        assert server.stats.embedded == 150
        # It is found out once: 64, 32 and 16 are refused.
        assert server.stats.requests == 3 + 8 + 8 + 3


async def test_an_error_about_a_text_that_a_server_refuses_says_what_to_do(
    embedder: Opened,
) -> None:
    async with serving(context=20) as server:
        with pytest.raises(ContextExceeded, match=r"QRMEM_SEGMENT_TOKENS.* less than 20 tokens"):
            await embedder(server).embed(["short", "long " * 30, "short"])


async def test_the_dimension_is_known_once_a_text_was_embedded(embedder: Opened) -> None:
    async with OpenAIServer() as server:
        encoder = embedder(server)
        assert encoder.dimension == 0
        await encoder.embed(["Ahab"])
        assert encoder.dimension == 32


async def test_an_empty_text_does_no_harm(embedder: Opened) -> None:
    async with serving() as server:
        assert (await embedder(server).embed(["", "a"])).shape == (2, 32)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("nan", "NaN"), ("zeros", "zeros"), ("wrong-dimension", "31 numbers; the ones before had 32")],
)
async def test_invalid_vectors_are_refused(fault: str, words: str, embedder: Opened) -> None:
    async with serving(faults=Faults(script={2: fault})) as server:
        encoder = embedder(server)
        await encoder.embed(["first"])
        with pytest.raises(ModelUnavailable, match=words):
            await encoder.embed(["second"])


async def test_a_failure_that_may_pass_is_tried_again(embedder: Opened) -> None:
    async with serving(faults=Faults(script={1: "429-after:0.01", 2: "cut-body"})) as server:
        assert (await embedder(server).embed(["a"])).shape == (1, 32)
        assert server.stats.requests == 3


async def test_a_refused_key_is_reported_at_once(embedder: Opened) -> None:
    async with serving(key="sk-right") as server:
        with pytest.raises(AccessRefused, match="401"):
            await embedder(server, api_key=Secret("sk-wrong")).embed(["a"])


async def test_the_first_failing_batch_ends_the_others(embedder: Opened) -> None:
    faults = Faults(script={n: "403" for n in range(2, 20)})
    async with serving(faults=faults) as server:
        with pytest.raises(AccessRefused):
            await embedder(server).embed([str(n) for n in range(400)])


async def test_a_long_text_is_cut_into_windows_without_loss(embedder: Opened) -> None:
    text = "The whale was white. " * 3000
    async with serving() as server:
        windows = embedder(server).windows(text)
        assert embedder(server).windows("short") == ["short"]
        assert embedder(server).windows("") == [""]
    assert len(windows) > 1
    assert "".join(windows) == text


async def test_all_that_a_memory_embeds_goes_over_one_connection() -> None:
    async with serving() as server:
        given = Settings(base_url=server.url, embedder="openai:small")
        async with qrmem.open("memory://", settings=given) as memory:
            for text in ("Ann met Bob in Rome.", "Bob sold the mill to Cid."):
                await memory.add(qrmem.Document(text))
                await memory.search("Who sold the mill?")
                await memory.ask("Who sold the mill?", strategy="passages")
        assert server.stats.requests > 5
        assert server.stats.connections == 1


@pytest.mark.parametrize("fault", ["500", "401"])
async def test_a_turn_is_kept_while_the_embedder_is_away_and_embedded_later(fault: str) -> None:
    warned: list[str] = []
    async with serving() as server:
        given = Settings(base_url=server.url, embedder="openai:small", retries=0, model="")
        async with qrmem.open("memory://", settings=given) as memory:
            watched = memory.listening(lambda event: warned.append(str(event.data.get("message"))))
            server.faults = Faults(always=fault)
            with pytest.raises((ModelUnavailable, AccessRefused)):
                await watched.add_turn("user", "Nobody knows how long a vector is.")
            assert await memory.namespaces() == []
            server.faults = Faults()
            await watched.add_turn("user", "I live in Rome.")
            server.faults = Faults(always=fault)
            added = await watched.add_turn("user", "I moved to Oslo.")
            assert [turn.id for turn in await memory.turns()][-1] == added
            assert "kept, but not complete" in warned[-1]
            (told,) = (await memory.status()).warnings
            assert told == "1 segment without a vector: run `reembed` with openai:small"
            server.faults = Faults()
            await memory.add_turn("user", "I like it there.")
            assert (await memory.status()).warnings == ()
