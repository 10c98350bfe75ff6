"""`kill -9` of `qrmem add` at any point: run again, it makes the same memory for little more."""

import asyncio
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import SAMPLE, Shell
from servers.nursery import Nursery
from servers.openai_server import Behaviour, OpenAIServer, in_thread

import qrmem
from qrmem.graphstore import open_store

CONCURRENCY = 4
KILLS = 15
"""For each of the two sources."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="not ours to kill")


class Watched(OpenAIServer):
    """A server that tells when a run has sent so many requests.

    Attributes:
        at: the number of the request.
        reached: set then.
        last: when the last request came.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.at = 0
        self.last = 0.0
        self.reached = threading.Event()

    def wait_for(self, request: int) -> None:
        """Set `reached` at the n-th request from now on; at once if n is 0."""
        self.reached.clear()
        self.at = self.stats.requests + request
        if not request:
            self.reached.set()

    async def _wait(self, key: str) -> None:
        self.last = time.monotonic()
        if self.at and self.stats.requests >= self.at:
            self.reached.set()
        await super()._wait(key)


@pytest.fixture
def server() -> Iterator[Watched]:
    with in_thread(Watched(behaviour=Behaviour(latency=0.004, spread=2.0))) as running:
        yield running


def write(shell: Shell, source: str) -> None:
    """Write a document of many segments, or many documents that share calls."""
    text = (SAMPLE / "harbour.md").read_text()
    if source == "book.md":
        shell.write(source, "## ".join(text.split("## ")[:3]))
        return
    paragraphs = [part for part in text.split("\n\n") if len(part) > 200]
    for n, paragraph in enumerate(paragraphs[:40]):
        shell.write(f"{source}/{n:02}.txt", paragraph[:400])


def graph(path: Path) -> dict[str, Any]:
    return asyncio.run(_graph(path))


async def _graph(path: Path) -> dict[str, Any]:
    async with qrmem.open(str(path), create=False, settings=qrmem.Settings()) as memory:
        found = [await memory.entity(e.key) for e in await memory.entities(limit=10_000)]
        status = await memory.status()
        archive = path.with_suffix(".qrmem")
        await memory.export(archive, overwrite=True)
        return {
            "archive": archive.read_bytes(),
            "entities": [view.entity for view in found],
            "relations": [view.relations for view in found],
            "questions": [view.questions for view in found],
            "documents": await memory.documents(),
            "states": status.states,
            "problems": status.problems,
        }


async def books(path: Path) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Return the tokens of the stored replies, and the paid tokens in the ledger."""
    store = await open_store(str(path), qrmem.Settings())
    keys = await store.cache_keys("default", "reply")
    kept = [reply.value for reply in await store.cache_entries("default", "reply", keys)]
    paid = [c for c in await store.calls("default") if c.outcome in {"ok", "repaired"}]
    await store.close()
    return (
        Counter((reply["tokens_in"], reply["tokens_out"]) for reply in kept),
        Counter((call.tokens_in, call.tokens_out) for call in paid),
    )


@pytest.mark.parametrize("source", ["book.md", "notes"])
def test_a_build_that_is_killed_anywhere_ends_where_an_undisturbed_one_does(
    tmp_path: Path, server: Watched, source: str
) -> None:
    shell, dice = Shell(tmp_path), random.Random(7)
    write(shell, source)
    words = ["add", source, "--model", "test", "--base-url", server.url, "--segment-tokens", "120"]
    words += ["--concurrency", str(CONCURRENCY), "--quiet"]
    environment = {**shell.environment, "QRMEM_SHARED_TOKENS": "0" if source == "book.md" else ""}
    with Nursery(shell.folder, environment) as nursery:
        assert nursery.start(*words, "--memory", "calm.db").wait() == 0
        ending = time.monotonic() - server.last
        asked, expected = Counter(server.stats.contents), graph(shell.folder / "calm.db")
        assert expected["states"].keys() == {"ok"}
        kills = memories = 0
        while kills < KILLS:
            memories += 1
            before, killed, code = Counter(server.stats.contents), 0, -9
            while code:
                # At a request; or after the last one, in what follows it.
                left = len(asked) - len(server.stats.contents - before)
                is_late = dice.random() < 0.3
                server.wait_for(left if is_late else dice.randint(min(1, left), left))
                child = nursery.start(*words, "--memory", f"{memories}.db")
                if left:
                    server.reached.wait(timeout=10)
                    time.sleep(dice.random() * (ending if is_late else 0.02))
                    child.kill()
                code = child.wait()
                killed += code == -9
                assert code in (0, -9), (shell.folder / "printed").read_text()
            kills += killed
            assert graph(shell.folder / f"{memories}.db") == expected
            requests = (server.stats.contents - before).total()
            assert requests <= asked.total() + killed * CONCURRENCY
            kept, paid = asyncio.run(books(shell.folder / f"{memories}.db"))
            assert paid == kept, "a reply is kept that the ledger does not know, or the reverse"
