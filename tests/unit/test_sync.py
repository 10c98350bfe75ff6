"""A memory without `await` where its thread cannot answer: it refuses, and never waits for ever."""

import subprocess
import sys

import pytest

from qrmem import sync
from qrmem.errors import UsageError

_FORKED = """
import os
from qrmem import sync
with sync.open("memory://", embedder="none") as memory:
    memory.add({"id": "a", "text": "Ada met Babbage in London."})
    if child := os.fork():
        print(os.waitpid(child, 0)[1])
    else:
        try:
            memory.search("Ada")
        except Exception as exc:
            print(exc, flush=True)
"""
_LEFT = """
from qrmem import sync
memory = sync.open("memory://", embedder="none")
memory.add({"id": "a", "text": "Ada met Babbage in London."})
steps = memory.stream("Whom did Ada meet?")
print(next(steps).action)
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (_FORKED, "the memory was opened in another process; open it in this one\n0\n"),
        (_LEFT, "start\n"),
    ],
)
def test_a_process_ends_that_was_forked_or_left_a_stream(script: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert (ended.stdout, ended.stderr) == (said, "")


def test_a_coroutine_on_the_memory_s_loop_cannot_wait_for_it() -> None:
    with sync.open("memory://", embedder="none") as memory:

        async def search(_: object) -> None:
            memory.search("Ada")

        with pytest.raises(UsageError, match="cannot wait for the memory"):
            memory.call(search)
