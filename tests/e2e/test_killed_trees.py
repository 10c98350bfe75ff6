"""`qrmem tree build` killed or interrupted in the middle of a level: resumed, the same tree."""

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from e2e.conftest import Shell
from e2e.test_killed_builds import CONCURRENCY, Watched, books, server, write
from servers.nursery import Nursery

import qrmem
from qrmem.types.documents import Tree

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="not ours to kill")
__all__ = ["server"]
STOPS = 8


async def the_tree(path: Path) -> Tree:
    async with qrmem.open(str(path), create=False, settings=qrmem.Settings()) as memory:
        (tree,) = await memory.trees()
        return tree


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_tree_that_is_stopped_anywhere_is_the_same_in_the_end_and_paid_once(
    tmp_path: Path, server: Watched, sent: signal.Signals
) -> None:
    shell, dice = Shell(tmp_path), random.Random(11)
    write(shell, "book.md")
    build = ["tree", "build", "--model", "test", "--base-url", server.url, "--quiet"]
    environment = {**shell.environment, "QRMEM_CONCURRENCY": str(CONCURRENCY)}
    with Nursery(shell.folder, environment) as nursery:

        def read(memory: str) -> list[str]:
            words = ["add", "book.md", "--segment-tokens", "120", "--quiet", "--memory", memory]
            assert nursery.start(*words).wait() == 0
            return [*build, "--memory", memory]

        assert nursery.start(*read("calm.db")).wait() == 0
        asked, calm = (
            Counter(server.stats.contents),
            asyncio.run(the_tree(shell.folder / "calm.db")),
        )
        assert max(node.level for node in calm.nodes) >= 2
        stops = memories = 0
        while stops < STOPS:
            memories += 1
            before, stopped = Counter(server.stats.contents), 0
            words = read(f"{memories}.db")
            while True:
                left = len(asked) - len(server.stats.contents - before)
                server.wait_for(dice.randint(min(1, left), left))
                child = nursery.start(*words)
                if left and stopped < 3:
                    assert server.reached.wait(timeout=30)
                    os.kill(child.pid, sent)
                if (code := child.wait()) == 0:
                    break
                stopped += 1
                assert code in (-signal.SIGKILL, 130, -signal.SIGINT)
            stops += stopped
            path = shell.folder / f"{memories}.db"
            assert asyncio.run(the_tree(path)) == calm
            requests = (server.stats.contents - before).total()
            assert requests <= asked.total() + stopped * CONCURRENCY
            kept, paid = asyncio.run(books(path))
            assert paid == kept, "a reply is kept that the ledger does not know, or the reverse"
